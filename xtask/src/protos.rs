//! Generates Rust from `proto/`, without `protoc`.

use std::error::Error;
use std::path::PathBuf;
use std::{env, fs, process};

use crate::run::root;

fn generated() -> PathBuf {
    root().join("src/proto/generated.rs")
}

pub fn write() -> Result<(), Box<dyn Error>> {
    fs::write(generated(), generate()?)?;
    Ok(())
}

fn generate() -> Result<String, Box<dyn Error>> {
    let proto = root().join("proto");
    let files = ["discovery.proto", "load_stats.proto", "client_status.proto"].map(|file| proto.join(file));
    let set = protox::compile(files, [&proto])?;
    let out = env::temp_dir().join(format!("xds-machine-protos-{}", process::id()));
    fs::create_dir_all(&out)?;
    let mut config = prost_build::Config::new();
    config.bytes(["."]); // bodies are slices of the received buffer
    config.btree_map(["."]); // the same input makes the same bytes
    config.disable_comments(["."]);
    config.out_dir(&out);
    config.compile_fds(set)?;
    let generated = fs::read_to_string(out.join("xds_machine.rs"))?;
    fs::remove_dir_all(&out)?;
    Ok(generated)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generated_code_is_what_the_protos_say() {
        let committed = fs::read_to_string(generated()).expect("src/proto/generated.rs");
        assert!(generate().expect("protos compile") == committed, "run `cargo xtask protos`");
    }
}
