//! Structured names: valid names, invalid names, and equality.

use proptest::prelude::*;
use xds_machine::xdstp::{Error, Uri};
use xds_machine::{ResourceName, TypeUrl, type_url};

fn normal(text: &str) -> String {
    Uri::parse(text).expect(text).to_string()
}

#[test]
fn the_parts_of_a_uri_are_decoded() {
    let uri =
        Uri::parse("xdstp://a%2Fb/T.v3.X/c%25/%C3%A9//d?k%26=v%3D&a=#entry=e/1,alt=xdstp://o/T/x%23").expect("a URI");
    assert_eq!((uri.authority(), uri.resource_type(), uri.id()), ("a/b", "T.v3.X", "c%/é//d"));
    assert_eq!(uri.params().collect::<Vec<_>>(), [("a", ""), ("k&", "v=")]);
    assert_eq!((uri.alternative(), uri.entry()), (Some("xdstp://o/T/x#"), Some("e/1")));
    assert!(uri.has_directives() && !uri.is_glob());
    assert!(!uri.clone().without_directives().has_directives());
    assert_eq!(uri.to_string(), "xdstp://a%2Fb/T.v3.X/c%25/%C3%A9//d?a=&k%26=v%3D#alt=xdstp://o/T/x%23,entry=e/1");
}

#[test]
fn only_equivalent_spellings_of_a_name_are_equal() {
    let same = [
        ["xdstp://a/T/x?a=1&b=2", "xdstp://a/T/x?b=2&a=1"],
        ["xdstp://a/T/x", "xdstp://a/T/x?"],
        ["xdstp://a/T/x", "xdstp://a/T/%78"],
        ["xdstp://a/T/x/y", "xdstp://a/T/x%2Fy"],
        ["xdstp://a/T/x:y", "xdstp://a/T/x%3Ay"],
        ["xdstp://a/T/%5b", "xdstp://a/T/["],
        ["xdstp://a/T/x y", "xdstp://a/T/x%20y"],
        ["xdstp://a/T/é", "xdstp://a/T/%c3%A9"],
        ["xdstp://a/T/x?a", "xdstp://a/T/x?&a=&"],
        ["xdstp://a/T/x?a=1%2B1", "xdstp://a/T/x?a=1+1"],
        ["xdstp://a/T/foo/*", "xdstp://a/T/foo/%2A"],
        ["xdstp://[::1]:80/T/x", "xdstp://%5B::1%5D%3A80/T/x"],
    ];
    for [one, other] in same {
        assert_eq!(Uri::parse(one), Uri::parse(other));
        assert_eq!(ResourceName::from(one), ResourceName::from(other));
    }
    let differ = [
        ["xdstp://a/T/x", "xdstp://A/T/x"],
        ["xdstp://a/T/x", "xdstp:///T/x"],
        ["xdstp://a/T/x", "xdstp://a/t/x"],
        ["xdstp://a/T/x", "xdstp://a/T/x/"],
        ["xdstp://a/T/x?a=1", "xdstp://a/T/x"],
        ["xdstp://a/T/x?a=1", "xdstp://a/T/x?a=1%26b=2"],
    ];
    for [one, other] in differ {
        assert_ne!(Uri::parse(one).expect(one), Uri::parse(other).expect(other));
        assert_ne!(ResourceName::from(one), ResourceName::from(other));
    }
}

#[test]
fn an_invalid_structured_name_is_opaque_and_its_error_states_the_reason() {
    let (directive, key) = (|text: &str| text.into(), || "a".into());
    let cases = [
        ("x", Error::Scheme, "a structured name begins with xdstp://"),
        ("xdstp:/a/T/x", Error::Scheme, "a structured name begins with xdstp://"),
        ("xdstp://a", Error::NoResourceType, "the resource type is missing"),
        ("xdstp://a//x", Error::NoResourceType, "the resource type is missing"),
        ("xdstp://a/T%20/x", Error::BadResourceType { resource_type: "T%20".into() }, "T%20 is no resource type"),
        ("xdstp://a/T", Error::NoId, "the id is missing"),
        ("xdstp://a/T/?x=1", Error::NoId, "the id is missing"),
        ("xdstp://a/T/%4", Error::Escape, "a percent sign encodes no character"),
        ("xdstp://a/T/%zz", Error::Escape, "a percent sign encodes no character"),
        ("xdstp://a/T/%ff", Error::Escape, "a percent sign encodes no character"),
        ("xdstp://a/T/x?=1", Error::EmptyKey, "a context parameter has no key"),
        ("xdstp://a/T/x?b&a=1&%61=2", Error::DuplicateParam { key: key() }, "the context parameter a comes twice"),
        (
            "xdstp://a/T/x#foo=1",
            Error::BadDirective { directive: directive("foo=1") },
            "the directive foo=1 is not `alt=` or `entry=` with a value",
        ),
        (
            "xdstp://a/T/x#entry=a b",
            Error::BadDirective { directive: directive("entry=a b") },
            "the directive entry=a b is not `alt=` or `entry=` with a value",
        ),
        (
            "xdstp://a/T/x#entry=a,entry=b",
            Error::DuplicateDirective { directive: "entry" },
            "the directive entry comes twice",
        ),
    ];
    for (text, error, message) in cases {
        assert_eq!(Uri::parse(text), Err(error.clone()), "{text}");
        assert_eq!(error.to_string(), message);
        assert_eq!(ResourceName::from(text), text, "what is no structured name is opaque");
    }
}

#[test]
fn a_name_with_directives_is_kept_as_it_is() {
    let name = "xdstp://a/T/x?b=1&a=2#entry=z";
    assert_eq!(ResourceName::from(name), name);
}

#[test]
fn a_uri_matches_only_the_type_url_of_its_resource_type() {
    let uri = Uri::parse("xdstp://a/envoy.config.cluster.v3.Cluster/x").expect("a URI");
    assert!(uri.is_of(&TypeUrl::from(type_url::CLUSTER)));
    assert!(uri.is_of(&TypeUrl::from("envoy.config.cluster.v3.Cluster")));
    assert!(!uri.is_of(&TypeUrl::from(type_url::ENDPOINT)));
}

#[test]
fn glob_returns_the_collection_of_a_member() {
    let glob = |name: &str| ResourceName::from(name).glob();
    assert_eq!(glob("xdstp://a/T/foo/b?y=1&x=2"), Some("xdstp://a/T/foo/*?x=2&y=1".into()));
    assert_eq!(glob("xdstp://a/T/b"), Some("xdstp://a/T/*".into()));
    assert_eq!(glob("xdstp://a/T/*"), None);
    assert_eq!(glob("foo/b"), None);
    assert!(ResourceName::from("xdstp://a/T/foo/*?y=1&x=2").is_glob() && !ResourceName::from("foo/*").is_glob());
}

/// Generates texts with all characters that matter in URIs.
fn text(first: &'static str) -> impl Strategy<Value = String> {
    proptest::string::string_regex(&format!("{first}[-a-c.~/?#%&=+,:@*\\[\\] é]{{0,8}}")).expect("a pattern")
}

fn uri() -> impl Strategy<Value = Uri<'static>> {
    let params = prop::collection::btree_map(text("[a-c/&=%]"), text(""), 0..4);
    (text(""), "[a-zA-Z][a-zA-Z0-9._]{0,8}", text("[a-c/&=%*]"), params).prop_map(|(authority, kind, id, params)| {
        let uri = Uri::new(authority, kind, id).expect("good parts");
        params.into_iter().fold(uri, |uri, (key, value)| uri.with_param(key, value))
    })
}

/// Writes the same URI in another form: parameters in another order, more or fewer characters escaped, and hex digits
/// of either case.
fn rewritten(uri: &Uri<'_>, seed: u64) -> String {
    let mut state = seed | 1;
    let mut coin = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state & 4 == 0
    };
    let mut escape = |text: &str, must: &str| {
        let mut out = String::new();
        for char in text.chars() {
            if must.contains(char) || coin() {
                let mut buffer = [0; 4];
                for byte in char.encode_utf8(&mut buffer).bytes() {
                    out += &if coin() { format!("%{byte:02x}") } else { format!("%{byte:02X}") };
                }
            } else {
                out.push(char);
            }
        }
        out
    };
    let mut text = format!("xdstp://{}/{}/", escape(uri.authority(), "%/?#"), uri.resource_type());
    text += &escape(uri.id(), "%?#");
    let mut params: Vec<String> =
        uri.params().map(|(key, value)| format!("{}={}", escape(key, "%#&="), escape(value, "%#&"))).collect();
    if seed & 1 == 0 {
        params.reverse();
    }
    text + "?" + &params.join("&")
}

proptest! {
    #[test]
    fn a_formatted_uri_parses_to_the_same_uri(uri in uri()) {
        let text = uri.to_string();
        prop_assert_eq!(Uri::parse(&text).expect("a URI"), uri);
        // Other parsers can read the text too: it has only characters that a URI may have.
        prop_assert!(text.bytes().all(|byte| byte.is_ascii_graphic() && !br#""<>\^`{|}"#.contains(&byte)), "{}", text);
    }

    #[test]
    fn equivalent_uris_have_the_same_normal_form(uri in uri(), seed: u64) {
        let other = rewritten(&uri, seed);
        prop_assert_eq!(normal(&other), uri.to_string());
        prop_assert_eq!(normal(&normal(&other)), normal(&other));
        let (name, same) = (ResourceName::from(other), ResourceName::from(uri.to_string()));
        prop_assert_eq!(name.as_str(), same.as_str());
        prop_assert_eq!(name.is_glob(), uri.is_glob());
        if let Some(glob) = name.glob() {
            prop_assert!(glob.is_glob());
            prop_assert_eq!(normal(glob.as_str()), glob.as_str(), "in its normal form as well");
        } else {
            prop_assert!(name.is_glob());
        }
    }

    #[test]
    fn normalization_of_any_text_as_a_name_is_idempotent(text in "xdstp:(//)?[-a-c.~/?#%&=+,:@*\\[\\] é0-9A-F]{0,24}") {
        let name = ResourceName::from(text.as_str());
        prop_assert_eq!(ResourceName::from(name.as_str()), name.clone());
        prop_assert_eq!(Uri::parse(&text), Uri::parse(name.as_str()));
    }
}
