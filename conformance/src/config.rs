//! The file of options, `xds-conformance.toml`: options by their names, `role`, and `command`.

use std::ffi::OsString;
use std::path::Path;

use toml::{Table, Value};

/// The modes that a command line may have.
const MODES: [&str; 8] = ["server", "client", "walk", "replay", "matrix", "watch", "tap", "judge"];

/// Puts the options of the file that `--config` names before those of the command line, which take precedence.
///
/// # Errors
///
/// The error names what is wrong with the file.
pub(crate) fn with_config(arguments: Vec<OsString>) -> Result<Vec<OsString>, String> {
    let text = |argument: &OsString| argument.to_string_lossy().into_owned();
    let own = || arguments.iter().take_while(|argument| *argument != "--");
    let inline = own().find_map(|argument| text(argument).strip_prefix("--config=").map(str::to_owned));
    let at = own().position(|argument| argument == "--config");
    let Some(file) = inline.or_else(|| arguments.get(at? + 1).map(text)) else { return Ok(arguments) };
    let content = std::fs::read_to_string(&file).map_err(|error| format!("{file}: {error}"))?;
    let table: Table = content.parse().map_err(|error| format!("{file}: {error}"))?;
    let has_mode = own().skip(1).any(|argument| MODES.contains(&text(argument).as_str()));
    let (before, command) = options(&table, Path::new(&file), has_mode).map_err(|why| format!("{file}: {why}"))?;
    let mut all: Vec<OsString> = arguments.iter().take(1).cloned().collect();
    all.extend(before.into_iter().map(OsString::from));
    all.extend(arguments.iter().skip(1).cloned());
    if !command.is_empty() && !arguments.iter().any(|argument| argument == "--") {
        all.push("--".into());
        all.extend(command.into_iter().map(OsString::from));
    }
    Ok(all)
}

/// Returns the options of a file, with the mode, and the command.
fn options(table: &Table, file: &Path, has_mode: bool) -> Result<(Vec<String>, Vec<String>), String> {
    let (mut options, mut command) = (Vec::new(), Vec::new());
    let list = |value: &Value| match value {
        Value::Array(values) => values.iter().map(plain).collect(),
        value => plain(value).map(|text| vec![text]),
    };
    for (key, value) in table {
        match (key.as_str(), value) {
            ("role", Value::String(role)) if !has_mode => options.insert(0, role.clone()),
            ("role", Value::String(_)) => {}
            ("command", value) => command = list(value)?,
            // These keys are no options: they are for readers, and for reports of other kits.
            ("aggregated" | "names", _) => {}
            ("unsupported", Value::Table(reasons)) => {
                for (feature, reason) in reasons {
                    options.push(format!("--unsupported={feature}={}", plain(reason)?));
                }
            }
            ("about", Value::Table(facts)) => {
                for (key, value) in facts {
                    options.push(format!("--about={key}={}", plain(value)?));
                }
            }
            ("known-failing", Value::String(path)) => {
                let path = file.parent().unwrap_or(Path::new("")).join(path);
                options.push(format!("--known-failing={}", path.display()));
            }
            (key, Value::Boolean(true)) => options.push(format!("--{key}")),
            (_, Value::Boolean(false)) => {}
            (key, value) => options.push(format!("--{key}={}", list(value)?.join(","))),
        }
    }
    Ok((options, command))
}

fn plain(value: &Value) -> Result<String, String> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Integer(number) => Ok(number.to_string()),
        Value::Float(number) => Ok(number.to_string()),
        other => Err(format!("{other} is neither text nor a number")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, has_mode: bool) -> Result<(Vec<String>, Vec<String>), String> {
        options(&text.parse().expect("a table"), Path::new("dir/x.toml"), has_mode)
    }

    #[test]
    fn a_config_file_is_converted_to_command_line_options() {
        let text = "role = 'server'\naddress = 'a:1'\ntypes = ['cds', 'eds']\nstrict = true\npatience = 2.5\n\
                    known-failing = 'known.txt'\ncommand = ['./a', '-x']\n[unsupported]\nttl = 'not yet'\n\
                    [about]\nversion = '1.2'\n";
        let (options, command) = read(text, false).expect("options");
        assert_eq!(command, ["./a", "-x"]);
        let mut sorted = options.clone();
        sorted.sort();
        let expected = [
            "--about=version=1.2",
            "--address=a:1",
            "--known-failing=dir/known.txt",
            "--patience=2.5",
            "--strict",
            "--types=cds,eds",
            "--unsupported=ttl=not yet",
            "server",
        ];
        assert_eq!(sorted, expected);
        assert!(!read(text, true).expect("options").0.contains(&"server".to_owned()));
        assert_eq!(read("types = [[1]]", true), Err("[1] is neither text nor a number".into()));
    }

    #[test]
    fn arguments_are_unchanged_without_a_config_file() {
        let arguments: Vec<OsString> = ["x", "server", "--", "a", "--config", "b"].map(Into::into).to_vec();
        assert_eq!(with_config(arguments.clone()), Ok(arguments));
        let missing = with_config(["x", "--config=/no/such"].map(Into::into).to_vec());
        assert!(missing.expect_err("no file").starts_with("/no/such: "));
    }
}
