//! Faults of a decoder and of the caller, joined.

use xds_machine_grpc::faults::Faults;

fn many(path: &str, count: usize) -> Faults {
    let mut faults = Faults::default();
    (0..count).for_each(|_| faults.add(path, "x"));
    faults
}

/// A value counts only if neither the decoder nor the caller found a fault.
#[test]
fn faults_of_the_decoder_and_the_caller_are_joined() {
    assert_eq!(Faults::default().with(Ok::<_, Faults>(7)), Ok(7));
    assert_eq!(many("own", 1).with(Ok::<_, Faults>(7)), Err(many("own", 1)));
    assert_eq!(Faults::default().with(Err::<(), _>(many("core", 2))), Err(many("core", 2)));
    let both = many("own", 1).with(Err::<(), _>(many("core", 2))).unwrap_err();
    assert_eq!(both.to_string(), "[field:core errors:[x; x]; field:own error:x]");
}

/// Faults beyond the limit are counted on both sides.
#[test]
fn faults_beyond_the_limit_are_counted() {
    let both = many("own", 130).with(Err::<(), _>(many("core", 150))).unwrap_err();
    assert_eq!((both.iter().count(), both.more()), (100, 30 + 100 + 50));
    let both = many("own", 60).with(Err::<(), _>(many("core", 150))).unwrap_err();
    assert_eq!((both.iter().count(), both.more()), (100, 60 + 50));
}
