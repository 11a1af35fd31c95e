//! Regular expressions in the node matchers of requests for the status of clients.

use regex::RegexBuilder;
use xds_machine::csds::Regex;

/// The size limit of a compiled expression: any requester may send an expression.
const BYTES: usize = 1 << 18;

/// Makes an expression that has to match a complete string.
///
/// # Errors
///
/// If it is none, or too large.
pub fn compile(pattern: &str) -> Result<Regex, String> {
    // The expression is compiled alone first: it could close the group that is put around it.
    RegexBuilder::new(pattern).size_limit(BYTES).build().map_err(|error| error.to_string())?;
    let whole = RegexBuilder::new(&format!("^(?:{pattern})$")).size_limit(2 * BYTES).dfa_size_limit(BYTES).build();
    let whole = whole.map_err(|error| error.to_string())?;
    Ok(Box::new(move |text| whole.is_match(text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_regex_has_to_match_the_complete_string() {
        let is = |pattern: &str, text: &str| compile(pattern).expect("an expression")(text);
        assert!(is("a|b", "a") && is("a|b", "b") && !is("a|b", "ab") && !is("a", "xa"));
        assert!(is("n[0-9]+", "n12") && !is("n[0-9]+", "n12\n"));
        for bad in ["(", "a)(b", "a{1000}{1000}"] {
            assert!(compile(bad).is_err(), "{bad}");
        }
    }
}
