//! Generates Rust from the protos, without `protoc`.

use std::error::Error;
use std::path::PathBuf;
use std::{env, fs, process};

use crate::run::root;

/// The protos of a crate, and the file that is generated from them.
struct Protos {
    folder: &'static str,
    files: &'static [&'static str],
    /// The package that the files have in common.
    package: &'static str,
    generated: &'static str,
}

const ALL: [Protos; 3] = [
    Protos {
        folder: "proto",
        files: &["discovery.proto", "load_stats.proto", "client_status.proto"],
        package: "xds_machine",
        generated: "src/proto/generated.rs",
    },
    Protos {
        folder: "grpc/proto",
        files: &["resources.proto"],
        package: "xds_machine_grpc",
        generated: "grpc/src/resources/generated.rs",
    },
    Protos {
        folder: "examples/proto",
        files: &["etcd.proto"],
        package: "etcdserverpb",
        generated: "examples/src/control_plane/etcd/generated.rs",
    },
];

impl Protos {
    fn generated(&self) -> PathBuf {
        root().join(self.generated)
    }

    fn generate(&self) -> Result<String, Box<dyn Error>> {
        let folder = root().join(self.folder);
        let set = protox::compile(self.files.iter().map(|file| folder.join(file)), [&folder])?;
        let out = env::temp_dir().join(format!("xds-machine-protos-{}-{}", self.package, process::id()));
        fs::create_dir_all(&out)?;
        let mut config = prost_build::Config::new();
        config.bytes(["."]); // bodies are slices of the received buffer
        config.btree_map(["."]); // the same input makes the same bytes
        config.disable_comments(["."]);
        config.out_dir(&out);
        config.compile_fds(set)?;
        let generated = fs::read_to_string(out.join(format!("{}.rs", self.package)))?;
        fs::remove_dir_all(&out)?;
        Ok(generated)
    }
}

pub fn write() -> Result<(), Box<dyn Error>> {
    for protos in &ALL {
        fs::write(protos.generated(), protos.generate()?)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generated_code_is_up_to_date_with_the_protos() {
        for protos in &ALL {
            let committed = fs::read_to_string(protos.generated()).expect(protos.generated);
            assert!(protos.generate().expect("protos compile") == committed, "run `cargo xtask protos`");
        }
    }
}
