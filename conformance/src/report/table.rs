//! The numbers of several reports, as a table of Markdown.

use std::fmt::Write;

use serde_json::Value;

/// Returns the table of several reports (as [`to_json`](super::to_json) writes them): the name of each, its numbers,
/// and the cases that failed.
pub fn table(reports: &[(String, Value)]) -> String {
    let mut text = String::from(
        "| report | passed | failed | unsupported | inconclusive | which failed |\n|---|---|---|---|---|---|\n",
    );
    for (name, report) in reports {
        let summary = &report["summary"];
        let failed = |level: &str| {
            let cases = report["cases"].as_array().into_iter().flatten();
            let of = cases.filter(|case| case["verdict"] == "fail" && case["level"] == level);
            let id = |case: &Value| {
                let text = |key: &str| case[key].as_str().unwrap_or_default().to_owned();
                let id = text("id");
                let short = id.split_once('/').map_or(id.as_str(), |(_, rest)| rest);
                format!("`{short}` {}", text("variant"))
            };
            of.map(id).collect::<Vec<_>>().join(", ")
        };
        let groups = ["MUST", "SHOULD"].map(|level| (level, failed(level)));
        let groups = groups.iter().filter(|(_, cases)| !cases.is_empty());
        let failures = groups.map(|(level, cases)| format!("{level}: {cases}")).collect::<Vec<_>>().join("; ");
        // Writing to a string does not fail.
        _ = writeln!(
            text,
            "| {name} | {} | {} | {} | {} | {failures} |",
            summary["passed"], summary["failed"], summary["unsupported"], summary["inconclusive"]
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_report_is_a_table_row_that_names_its_failed_cases() {
        let case = |id: &str, verdict: &str, level: &str| json!({"id": id, "variant": "delta", "verdict": verdict, "level": level});
        let cases = [
            case("server/b/x", "fail", "SHOULD"),
            case("server/a/y", "fail", "MUST"),
            case("server/c", "pass", "MUST"),
        ];
        let summary = json!({"passed": 1, "failed": 2, "unsupported": 3, "inconclusive": 4});
        let text = table(&[("one".into(), json!({"summary": summary, "cases": cases}))]);
        let last = text.lines().last();
        assert_eq!(last, Some("| one | 1 | 2 | 3 | 4 | MUST: `a/y` delta; SHOULD: `b/x` delta |"));
    }
}
