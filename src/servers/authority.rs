//! The authority of a name (xRFC TP1, gRFC A47).

/// Returns the authority of a structured name, which may be empty; `None` for any other name.
pub(crate) fn of(name: &str) -> Option<&str> {
    let rest = name.strip_prefix("xdstp:")?;
    let rest = rest.strip_prefix("//").unwrap_or_default();
    rest.split(['/', '?', '#']).next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_xdstp_names_have_an_authority() {
        for (name, authority) in [
            ("a", None),
            ("*", None),
            ("https://x/y", None),
            ("xdstp", None),
            ("xdstp://x.example.com/type/id?k=v", Some("x.example.com")),
            ("xdstp://x", Some("x")),
            ("xdstp://x?k=v", Some("x")),
            ("xdstp:///type/id", Some("")),
            ("xdstp:/type/id", Some("")),
            ("xdstp:", Some("")),
        ] {
            assert_eq!(of(name), authority, "{name}");
        }
    }
}
