//! A check of the two ways to decode a response: prost reads the same as the plain way.

use alloc::vec::Vec;
use core::fmt::Debug;

use bytes::Bytes;

use super::DecodeError;

/// Changes each byte of a good message to each value, removes each byte, and cuts the message off at each byte. Prost
/// has to read the same as the plain way, if that reads anything.
pub(super) fn same_for_all_neighbours<R: Debug + PartialEq>(
    good: &[u8],
    plain: fn(&Bytes) -> Option<R>,
    prost: fn(Bytes) -> Result<R, DecodeError>,
) {
    let (mut same, mut refused) = (0, 0);
    let mut check = |bytes: Vec<u8>| {
        let bytes = Bytes::from(bytes);
        match plain(&bytes) {
            Some(read) => {
                assert_eq!(Ok(read), prost(bytes.clone()), "{bytes:?}");
                same += 1;
            }
            None => refused += usize::from(prost(bytes).is_err()),
        }
    };
    check(good.to_vec());
    for at in 0..good.len() {
        check(good[..at].to_vec());
        for value in 0..=255 {
            let mut bytes = good.to_vec();
            bytes[at] = value;
            check(bytes);
        }
        check([&good[..at], &good[at + 1..]].concat());
    }
    assert!(same > 1000 && refused > 1000, "{same} {refused}");
}
