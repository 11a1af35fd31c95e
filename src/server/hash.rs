//! Versions as hashes of content. The hash is stable for ever: a client may present a version to another replica, or
//! after an upgrade.

use core::time::Duration;

use twox_hash::{XxHash3_64, XxHash3_128};

use crate::name::{ResourceName, Version};

/// Returns the version of a resource with this content.
pub(super) fn content(body: &[u8], ttl: Option<Duration>, aliases: &[ResourceName]) -> Version {
    let mut hash = XxHash3_128::oneshot(body);
    if let Some(ttl) = ttl {
        hash = mix(hash, &ttl.as_nanos().to_le_bytes());
    }
    for alias in aliases {
        hash = mix(hash, alias.as_str().as_bytes());
    }
    version(hash)
}

/// Returns the contribution of one resource to the version of its type. Contributions are summed, which does not
/// depend on the order; with XOR equal pairs would cancel (kgateway#14702).
pub(super) fn pair(name: &ResourceName, version: &Version) -> u128 {
    mix(XxHash3_128::oneshot(name.as_str().as_bytes()), version.as_bytes())
}

/// Returns the contribution of a resource to the version of the requested names. One hash less than [`pair`]: each poll
/// computes all of them.
pub(super) fn asked_for(name: &ResourceName, version: &Version) -> u128 {
    of_name(name, version.as_bytes())
}

/// Returns the contribution of a name that does not exist to the version of the requested names. No version is the byte
/// 0xff, which is not UTF-8.
pub(super) fn absent(name: &ResourceName) -> u128 {
    of_name(name, &[0xff])
}

fn of_name(name: &ResourceName, version: &[u8]) -> u128 {
    XxHash3_128::oneshot_with_seed(XxHash3_64::oneshot(version), name.as_str().as_bytes())
}

/// Returns the text of a hash: URL-safe base64 in 22 characters.
pub(super) fn version(hash: u128) -> Version {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut text = [0; 22];
    let mut rest = hash;
    for digit in &mut text {
        *digit = DIGITS[(rest & 63) as usize];
        rest >>= 6;
    }
    Version::ascii(&text)
}

fn mix(seed: u128, bytes: &[u8]) -> u128 {
    // Hashes with both halves of the seed, so that neither is lost.
    let [low, high] = [seed as u64, (seed >> 64) as u64].map(|seed| XxHash3_128::oneshot_with_seed(seed, bytes));
    low.wrapping_mul(3).wrapping_add(high).wrapping_add(seed)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// These versions are on the wire of every deployment: changing them makes every client fetch everything anew.
    #[test]
    fn versions_never_change() {
        assert_eq!(content(b"", None, &[]), "_lUjGRywBAG2YeUATbgqZC");
        assert_eq!(content(b"content", None, &[]), "MaV2IOSL6JblB_0J0JhfRC");
        assert_eq!(content(b"content", Some(Duration::from_secs(60)), &["alias".into()]), "nXltZ9bTFmUYbwDHrRs0JD");
        assert_eq!(version(pair(&"name".into(), &"1".into())), "eCQ1cCA1PvCLc-gTwWxGFA");
    }

    #[test]
    fn versions_of_names_never_change() {
        assert_eq!(version(asked_for(&"name".into(), &"1".into())), "FKmxC3sjoyep-JHDswbLVD");
        assert_eq!(version(absent(&"name".into())), "IhZJ652XAgNy7RldBbQv3C");
        assert_ne!(asked_for(&"a".into(), &"b".into()), asked_for(&"b".into(), &"a".into()));
        assert_ne!(asked_for(&"a".into(), &"b".into()), asked_for(&"a".into(), &"".into()));
    }

    #[test]
    fn every_part_of_a_resource_changes_its_version() {
        let versions = [
            content(b"a", None, &[]),
            content(b"b", None, &[]),
            content(b"a", Some(Duration::from_secs(1)), &[]),
            content(b"a", Some(Duration::from_secs(2)), &[]),
            content(b"a", None, &["x".into()]),
            content(b"a", None, &["y".into()]),
        ];
        for (at, version) in versions.iter().enumerate() {
            assert_eq!(version.as_str().len(), 22);
            assert!(!versions[..at].contains(version), "{at}");
        }
    }

    #[test]
    fn equal_versions_under_other_names_do_not_cancel() {
        let sum = |names: [&str; 2], version: &str| {
            names.iter().map(|&name| pair(&name.into(), &version.into())).fold(0, u128::wrapping_add)
        };
        assert_ne!(sum(["a", "b"], "1"), sum(["a", "b"], "2"));
        assert_ne!(pair(&"a".into(), &"b".into()), pair(&"b".into(), &"a".into()));
    }
}
