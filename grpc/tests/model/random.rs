//! Random conversations, as the fuzz target `chain` plays them.

use super::play::play;

#[test]
fn random_conversations_find_no_fault() {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    for round in 0..3000 {
        let bytes: Vec<u8> = (0..3 * (10 + round % 90))
            .map(|_| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                (state >> 24) as u8
            })
            .collect();
        if std::panic::catch_unwind(|| play(&bytes)).is_err() {
            panic!("round {round}: {bytes:?}");
        }
    }
}
