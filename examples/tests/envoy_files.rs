//! What Envoy made of files: each is recorded with its result, and read here with the same one.

use std::collections::BTreeMap;
use std::path::Path;

use bytes::Bytes;
use examples::discovery_file;
use serde::Deserialize;

/// The files that are read unlike Envoy, on purpose.
const DIFFERENCES: [(&str, &[&str]); 4] = [
    (
        "an unknown field or enumerator of an operator's file is an error",
        &[
            "yaml: unknown field",
            "yaml: unknown nested",
            "yaml: merge",
            "yaml: merge ignore",
            "yaml: merge inline",
            "yaml: merge list",
            "yaml: key case",
            "yaml: ignore value",
            "yaml: wrapped32 {a: 1}",
            "yaml: wrapped64 {a: 1}",
            "yaml: wrapped32 {value: 5, x: 1}",
            "yaml: duration {seconds: 5, x: 1}",
            "yaml: enum \"x\"",
            "yaml: enum \"true\"",
            "yaml: enum 1.5",
            "yaml: enum 1e2",
            "yaml: enum \"1e2\"",
            "yaml: enum \"\"",
            "yaml: enum 5.0",
            "yaml: enum \"5.0\"",
            "yaml: enum \"0x10\"",
            "yaml: enum NOPE",
            "yaml: enum v4-only",
            "yaml: enum V4ONLY",
            "yaml: enum 1.0",
            "json: enum \"x\"",
            "json: enum \"true\"",
            "json: enum \"NaN\"",
            "json: enum \"False\"",
            "json: enum \" true\"",
            "json: any typed unknown field",
            "json: json ext name",
        ],
    ),
    ("JSON is strict JSON", &["json: trailing comma", "json: single quotes", "json: unquoted key", "json: control"]),
    ("a resource has a name", &["json: resource null"]),
    (
        "it is no YAML 1.2, though Envoy's parser takes it",
        &["yaml: struct -", "yaml: struct >\n      true\n", "yaml: struct |\n      5\n"],
    ),
];

/// A file, and what Envoy 1.40 made of it.
#[derive(Deserialize)]
struct Recorded {
    file: String,
    /// `success`, `failure` (it can't be read), `rejected` (its content is invalid) or `crash`.
    result: String,
    /// The clusters that Envoy has after a success.
    #[serde(default)]
    clusters: Vec<serde_json::Value>,
}

/// Returns the resources of a file.
fn bodies(path: &str, file: &str) -> Result<Vec<Bytes>, String> {
    let resources = discovery_file::read(Path::new(path), file.as_bytes().to_vec())?;
    Ok(resources.into_values().map(|resource| resource.body().clone()).collect())
}

#[test]
fn files_mean_what_they_mean_to_envoy() {
    let recorded: BTreeMap<String, Recorded> =
        serde_json::from_str(include_str!("files/envoy-1.40.json")).expect("recordings");
    let mut wrong = Vec::new();
    let mut equal = 0;
    for (name, Recorded { file, result, clusters }) in &recorded {
        let suffix = name.split(':').next().unwrap_or_default();
        let ours = bodies(&format!("x.{suffix}"), file);
        let is_same = match result.as_str() {
            "success" => {
                let theirs = serde_json::json!({ "resources": clusters }).to_string();
                let theirs = bodies("x.json", &theirs);
                ours.is_ok() && ours == theirs
            }
            "failure" => ours.is_err(),
            // Envoy's own checks come after the reading.
            _ => continue,
        };
        let is_meant = DIFFERENCES.iter().any(|(_, names)| names.contains(&name.as_str()));
        equal += usize::from(is_same);
        if is_same == is_meant {
            wrong.push(format!("{name}: {result}, and here {ours:?}: {file}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), recorded.len(), wrong.join("\n"));
    assert!(equal > 300, "{equal}");
}
