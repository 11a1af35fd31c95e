//! Runs both sides on smol to their end.

use std::process::Command;

#[test]
fn client_and_server_run_on_smol_without_tokio_or_grpc() {
    let output = Command::new(env!("CARGO_BIN_EXE_smol")).output().expect("the program starts");
    assert_eq!((output.status.code(), String::from_utf8_lossy(&output.stderr).as_ref()), (Some(0), ""));
    let text = String::from_utf8(output.stdout).expect("text");
    let expected =
        ["a is one, b is one", "a is two, b rejected", "the stream ended", "a is gone, b rejected, c is one"];
    assert_eq!(text.lines().collect::<Vec<_>>(), expected);
}
