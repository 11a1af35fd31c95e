//! The published members of the workspace, and the contents of their packages.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{env, fs};

use serde_json::Value;

use crate::run::{Result, cargo, run};

/// A member of the workspace that may be published: its manifest does not set `publish = false`.
pub struct Package {
    pub name: String,
    /// The folder of its manifest.
    pub folder: PathBuf,
    /// The files in its package, relative to its folder.
    pub files: BTreeSet<String>,
}

/// Builds every package as a user gets it, from the packed files only. Works offline once `cargo fetch` has run.
pub fn check() -> Result {
    let packages = publishable()?;
    drop_unpacked(&packages)?;
    let mut command = cargo(&["package", "--quiet", "--offline", "--allow-dirty"]);
    // One call builds all packages, because they may depend on each other and need not be published yet.
    packages.iter().for_each(|package| _ = command.args(["--package", &package.name]));
    run(&mut command)?;
    for package in &packages {
        println!("{}: a package of {} files, which builds", package.name, package.files.len());
    }
    Ok(())
}

/// Removes what cargo unpacked and built in an earlier run: cargo takes a package of the same version for the same.
fn drop_unpacked(packages: &[Package]) -> Result {
    let mut folders = vec![Path::new("target/debug/.fingerprint").to_path_buf()];
    let home = env::var_os("CARGO_HOME").map(PathBuf::from).or_else(|| Some(env::home_dir()?.join(".cargo")));
    if let Some(Ok(registries)) = home.map(|home| fs::read_dir(home.join("registry/src"))) {
        let registries = registries.flatten().map(|registry| registry.path());
        // A registry without a host is the one that `cargo package` makes for packages that are not published.
        folders
            .extend(registries.filter(|path| path.file_name().is_some_and(|name| name.as_encoded_bytes()[0] == b'-')));
    }
    for entry in folders.into_iter().filter_map(|folder| fs::read_dir(folder).ok()).flatten() {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if packages.iter().any(|package| name.strip_prefix(&package.name).is_some_and(|rest| rest.starts_with('-'))) {
            fs::remove_dir_all(&path)?;
        }
    }
    Ok(())
}

/// Returns the members that may be published.
pub fn publishable() -> Result<Vec<Package>> {
    let output = cargo(&["metadata", "--no-deps", "--offline", "--format-version", "1"]).output()?;
    if !output.status.success() {
        return Err(format!("cargo metadata: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    let members = members(&serde_json::from_slice(&output.stdout)?);
    members.into_iter().map(|(name, folder)| Ok(Package { files: files(&name)?, name, folder })).collect()
}

/// Returns the names and folders of the members that `cargo metadata` lists, without those that are never published.
fn members(metadata: &Value) -> Vec<(String, PathBuf)> {
    let packages = metadata["packages"].as_array().into_iter().flatten();
    // `publish` is null unless the manifest restricts it; `false` there is the empty list here.
    let published = packages.filter(|package| package["publish"].as_array().is_none_or(|to| !to.is_empty()));
    let member = |package: &Value| {
        let folder = Path::new(package["manifest_path"].as_str()?).parent()?;
        Some((package["name"].as_str()?.to_string(), folder.to_path_buf()))
    };
    published.filter_map(member).collect()
}

fn files(package: &str) -> Result<BTreeSet<String>> {
    let output = cargo(&["package", "--list", "--offline", "--allow-dirty", "--package", package]).output()?;
    if !output.status.success() {
        return Err(format!("cargo package --list: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    Ok(String::from_utf8(output.stdout)?.lines().map(String::from).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_publishable_unless_their_publish_list_is_empty() {
        let metadata = serde_json::json!({ "packages": [
            { "name": "library", "publish": null, "manifest_path": "/w/Cargo.toml" },
            { "name": "tool", "publish": [], "manifest_path": "/w/tool/Cargo.toml" },
            { "name": "testing", "publish": ["a registry"], "manifest_path": "/w/testing/Cargo.toml" },
        ]});
        let expected = [("library".to_string(), "/w".into()), ("testing".to_string(), "/w/testing".into())];
        assert_eq!(members(&metadata), expected);
    }
}
