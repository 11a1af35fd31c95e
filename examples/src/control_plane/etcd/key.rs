//! Keys: `PREFIX/GROUP/TYPE/NAME`.

use bytes::Bytes;
use xds_machine::{ResourceName, TypeUrl, WILDCARD};

use crate::control_plane::news::{Group, Key};

/// The group of resources that all nodes see.
const ALL: &str = "_";

/// The beginning of all keys.
#[derive(Clone, Debug)]
pub struct Prefix(String);

/// The group, type and name of the resource of a key.
pub type Place = (Group, Key);

impl Prefix {
    /// Creates a prefix. Slashes at its end are ignored.
    pub fn new(prefix: &str) -> Self {
        Self(prefix.trim_end_matches('/').to_owned())
    }

    /// Returns the first key of the prefix, and the first key after all of them.
    pub fn range(&self) -> (Bytes, Bytes) {
        let after_slash = char::from(b'/' + 1);
        (format!("{}/", self.0).into(), format!("{}{after_slash}", self.0).into())
    }

    /// Returns the key of a resource.
    pub fn key(&self, group: Option<&str>, (type_url, name): &Key) -> String {
        let of = type_url.as_str().rsplit('/').next().unwrap_or_default();
        format!("{}/{}/{of}/{name}", self.0, group.unwrap_or(ALL))
    }

    /// Returns the place of a key; `None` if the key belongs to a group, and groups do not count.
    ///
    /// # Errors
    ///
    /// What is wrong with the key.
    pub fn place(&self, key: &[u8], grouped: bool) -> Result<Option<Place>, String> {
        let parts = std::str::from_utf8(key).ok().and_then(|key| key.strip_prefix(&self.0)?.strip_prefix('/'));
        let mut parts = parts.ok_or("the key is no text")?.splitn(3, '/');
        let group = parts.next().unwrap_or_default();
        let (of, name) = match (parts.next(), parts.next()) {
            _ if group != ALL && !grouped => return Ok(None),
            (Some(of), Some(name)) if !group.is_empty() && !of.is_empty() => (of, name),
            _ => return Err(format!("the key is not {}/GROUP/TYPE/NAME", self.0)),
        };
        let parsed = ResourceName::from(name);
        if name.is_empty() || name == WILDCARD {
            return Err(format!("a {of} may not be named {name:?}"));
        }
        if parsed.as_str() != name {
            return Err(format!("the name's normal form is {parsed}")); // otherwise two keys could have the same name
        }
        let group = (group != ALL).then(|| group.into());
        Ok(Some((group, (TypeUrl::from(format!("type.googleapis.com/{of}")), parsed))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(key: &str) -> Result<Option<(Option<String>, String, String)>, String> {
        let place = Prefix::new("/xds/").place(key.as_bytes(), true)?;
        Ok(place.map(|(group, (of, name))| (group.map(|group| group.to_string()), of.to_string(), name.to_string())))
    }

    #[test]
    fn a_key_consists_of_group_type_and_name() {
        let of = |group: Option<&str>, name: &str| {
            Ok(Some((group.map(str::to_owned), "type.googleapis.com/a.B".to_owned(), name.to_owned())))
        };
        assert_eq!(place("/xds/_/a.B/n"), of(None, "n"));
        assert_eq!(place("/xds/edge/a.B/n"), of(Some("edge"), "n"));
        assert_eq!(place("/xds/_/a.B/xdstp://h/a.B/n/m"), of(None, "xdstp://h/a.B/n/m"), "slashes belong to the name");
        assert_eq!(place("/xds/_/a.B//n"), of(None, "/n"));
    }

    #[test]
    fn a_key_of_another_form_or_with_an_invalid_name_is_an_error() {
        let form = "the key is not /xds/GROUP/TYPE/NAME";
        for (key, error) in [
            ("/xds/_", form),
            ("/xds/_/a.B", form),
            ("/xds//a.B/n", form),
            ("/xds/_//n", form),
            ("/xds/_/a.B/", "a a.B may not be named \"\""),
            ("/xds/_/a.B/*", "a a.B may not be named \"*\""),
            ("/xds/_/a.B/xdstp://h/a.B/n?b=1&a=2", "the name's normal form is xdstp://h/a.B/n?a=2&b=1"),
        ] {
            assert_eq!(place(key), Err(error.to_owned()), "{key}");
        }
        assert_eq!(Prefix::new("/xds").place(b"/xds/_/a.B/\xff", true), Err("the key is no text".into()));
    }

    #[test]
    fn without_groups_only_keys_for_all_nodes_are_read() {
        let prefix = Prefix::new("/xds");
        assert_eq!(prefix.place(b"/xds/edge/a.B/n", false), Ok(None));
        assert_eq!(prefix.place(b"/xds/edge", false), Ok(None));
        assert!(prefix.place(b"/xds/_/a.B/n", false).is_ok_and(|place| place.is_some()));
    }

    #[test]
    fn the_range_holds_only_keys_of_the_prefix() {
        let (first, end) = Prefix::new("/xds").range();
        assert!((&first[..]..&end[..]).contains(&&b"/xds/\xff\xff"[..]));
        for other in ["/xds", "/xds2/_/a.B/n", "/xds0", "/xd/"] {
            assert!(!(&first[..]..&end[..]).contains(&other.as_bytes()), "{other}");
        }
    }
}
