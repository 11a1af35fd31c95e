//! The results of a run: for the terminal, as JSON, HTML and JUnit, and as the exit code.

mod html;
mod json;
mod junit;
mod known;
mod matrix;
mod picture;
mod table;
mod terminal;

use std::time::Duration;

use serde_json::{Map, Value};

pub use self::html::to_html;
pub use self::json::to_json;
pub use self::junit::to_junit;
pub use self::known::{Glob, KnownFailures};
pub use self::matrix::matrix;
pub use self::picture::picture;
pub use self::table::table;
pub use self::terminal::{line, summary_line};
use crate::message::Variant;
use crate::referee::{Level, Rule};
use crate::run::Verdict;

/// The row of a case in one variant.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Row {
    /// The id, as in `server/sotw/names-grow`.
    pub id: String,
    /// The variant.
    pub variant: Variant,
    /// The level of the requirement.
    pub level: Level,
    /// The id of the sentence in the catalogue of the specification.
    pub rule: String,
    /// The sentence.
    pub sentence: String,
    /// The verdict.
    pub verdict: Verdict,
    /// The reason; for a case that only informs, the peer's choice.
    pub why: String,
    /// How long the case took.
    pub time: Duration,
    /// The conversation.
    pub ladder: Vec<String>,
    /// Whether the failure was expected.
    pub known: bool,
}

impl Row {
    /// Returns the row of a rule of the referee, with no conversation.
    pub(crate) fn of(rule: Rule, id: String, variant: Variant, verdict: Verdict, why: String, time: Duration) -> Self {
        let (level, sentence) = (rule.level(), rule.sentence().into());
        let (rule, ladder) = (rule.spec_id().into(), Vec::new());
        Self { id, variant, level, rule, sentence, verdict, why, time, ladder, known: false }
    }
}

/// A run.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Report {
    /// The mode, for example `server`.
    pub mode: String,
    /// What was tested.
    pub implementation: Implementation,
    /// What was measured before the cases.
    pub calibration: Calibration,
    /// The cases.
    pub rows: Vec<Row>,
    /// The entries of the file of known failures that did not fail.
    pub stale: Vec<String>,
    /// Whether a failure at level SHOULD counts.
    pub strict: bool,
}

/// What was tested.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Implementation {
    /// An address, or a command.
    pub target: String,
    /// Further facts: how the kit reached the implementation, the features that it declares, and what its owner states.
    pub details: Map<String, Value>,
}

impl From<String> for Implementation {
    fn from(target: String) -> Self {
        Self { target, details: Map::new() }
    }
}

/// What was measured before the cases.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Calibration {
    /// The longest time to a first answer.
    pub answer: Option<Duration>,
    /// The longest time from a change to its push.
    pub push: Option<Duration>,
    /// How long the run waits for a message that must come.
    pub patience: Duration,
    /// How long the run waits for a message that must not come.
    pub quiet: Duration,
}

/// The numbers of a run.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Summary {
    /// Cases that passed.
    pub passed: usize,
    /// Cases that failed, known ones too.
    pub failed: usize,
    /// Failures that were expected.
    pub known: usize,
    /// Cases of features that the peer does not have.
    pub unsupported: usize,
    /// Cases that were not decided.
    pub inconclusive: usize,
}

impl Report {
    /// Counts the cases.
    pub fn summary(&self) -> Summary {
        let count = |verdict| self.rows.iter().filter(|row| row.verdict == verdict).count();
        Summary {
            passed: count(Verdict::Pass),
            failed: count(Verdict::Fail),
            known: self.rows.iter().filter(|row| row.verdict == Verdict::Fail && row.known).count(),
            unsupported: count(Verdict::Unsupported),
            inconclusive: count(Verdict::Inconclusive),
        }
    }

    /// Marks the failures that were expected, and notes the expectations that were not met.
    pub fn mark_known(&mut self, known: &KnownFailures) {
        for row in &mut self.rows {
            row.known = row.verdict == Verdict::Fail && known.covers(&row.id, row.variant);
        }
        let rows = &self.rows;
        let failed =
            |glob: &Glob| rows.iter().any(|row| row.verdict == Verdict::Fail && glob.covers(&row.id, row.variant));
        let passed =
            |glob: &Glob| rows.iter().any(|row| row.verdict == Verdict::Pass && glob.covers(&row.id, row.variant));
        let stale = known.globs().iter().filter(|glob| passed(glob) && !failed(glob));
        self.stale = stale.map(ToString::to_string).collect();
    }

    /// Returns the exit code: 0, 1 (a new failure, or a known one that passes), or 3 (nothing was decided).
    pub fn exit_code(&self) -> u8 {
        let counts = |row: &&Row| row.level == Level::Must || (self.strict && row.level == Level::Should);
        let new = self.rows.iter().filter(counts).any(|row| row.verdict == Verdict::Fail && !row.known);
        let decided = self.rows.iter().filter(|row| row.level == Level::Must);
        let mut decided = decided.filter(|row| [Verdict::Pass, Verdict::Fail].contains(&row.verdict)).peekable();
        match (new || !self.stale.is_empty(), decided.peek().is_some()) {
            (true, _) => 1,
            (false, false) => 3,
            // Known failures alone: nothing new is wrong.
            (false, true) => 0,
        }
    }
}

/// Returns the name of a variant, as reports have it.
pub fn variant_name(variant: Variant) -> &'static str {
    match variant {
        Variant::Sotw => "sotw",
        Variant::Delta => "delta",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(id: &str, level: Level, verdict: Verdict) -> Row {
        let (rule, sentence, why, ladder) =
            ("BASIC-06".into(), "s".into(), "w & <b>".into(), vec!["C> cds [a]".into()]);
        let (variant, time) = (Variant::Sotw, Duration::from_millis(1500));
        Row { id: id.into(), variant, level, rule, sentence, verdict, why, time, ladder, known: false }
    }

    fn report(rows: &[(&str, Level, Verdict)]) -> Report {
        let rows = rows.iter().map(|(id, level, verdict)| row(id, *level, *verdict)).collect();
        Report { mode: "server".into(), implementation: "x".to_owned().into(), rows, ..Report::default() }
    }

    #[test]
    fn the_exit_code_depends_on_verdicts_levels_and_known_failures() {
        use Level::{May, Must, Should};
        use Verdict::{Fail, Inconclusive, Pass, Unsupported};
        assert_eq!(report(&[("a", Must, Pass), ("b", Should, Fail), ("c", Must, Inconclusive)]).exit_code(), 0);
        let strict = Report { strict: true, ..report(&[("a", Must, Pass), ("b", Should, Fail)]) };
        assert_eq!(strict.exit_code(), 1);
        assert_eq!(report(&[("a", Must, Pass), ("b", Must, Fail)]).exit_code(), 1);
        assert_eq!(report(&[("a", Must, Unsupported), ("b", May, Pass), ("c", Should, Pass)]).exit_code(), 3);
        let mut known = report(&[("a", Must, Pass), ("b", Must, Fail)]);
        known.mark_known(&"b # because\n".parse().expect("a file"));
        assert_eq!((known.exit_code(), known.summary().known), (0, 1));
        let mut stale = report(&[("a", Must, Pass), ("b", Must, Fail)]);
        stale.mark_known(&"b sotw\na\n".parse().expect("a file"));
        assert_eq!((stale.exit_code(), stale.stale.as_slice()), (1, ["a".to_owned()].as_slice()));
    }

    #[test]
    fn a_report_is_written_as_json_junit_html_matrix_and_summary() {
        let report = report(&[("server/x", Level::Must, Verdict::Fail), ("server/y", Level::May, Verdict::Pass)]);
        let json = to_json(&report);
        assert_eq!(json["cases"][0]["verdict"], "fail");
        assert_eq!(json["cases"][1]["level"], "MAY");
        assert_eq!((&json["cases"][0]["rule"], &json["implementation"]["target"]), (&"BASIC-06".into(), &"x".into()));
        assert_eq!(json["summary"]["failed"], 1);
        let junit = to_junit(&report);
        assert!(junit.contains(r#"<failure message="w &amp; &lt;b&gt;">"#), "{junit}");
        assert!(junit.contains(r#"tests="2" failures="1" skipped="0""#), "{junit}");
        let html = to_html(&report);
        assert!(html.contains("<td class=fail>fail<td>MUST<td>sotw<td><details id=\"server/x-sotw\">"), "{html}");
        assert!(html.contains("<p>w &amp; &lt;b&gt;</p><pre>C&gt; cds [a]</pre>"), "{html}");
        let page = matrix(&[("one".into(), json.clone()), ("<two>".into(), json)]).expect("reports");
        assert!(
            page.contains("<tr><td>server/y<td>sotw<td>MAY<td class=pass title=\"w &amp; &lt;b&gt;\">✓<td"),
            "{page}"
        );
        assert!(page.contains("<th>one<th>&lt;two&gt;") && page.contains("<th>1, 1<th>1, 1"), "{page}");
        let none = matrix(&[("x".into(), Value::Null)]);
        assert_eq!(none, Err("x is no report: it has no cases".into()));
        let lines = summary_line(&report);
        assert_eq!(lines, "server: 1 passed, 1 failed (0 known), 0 unsupported, 0 inconclusive\n1 passed, 1 failed");
    }
}
