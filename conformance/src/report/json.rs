//! The report as JSON: one schema for all modes.

use std::time::Duration;

use serde_json::{Value, json};

use super::{Report, Row, variant_name};
use crate::suite::SPEC_REVISION;

/// Returns the report as JSON.
pub fn to_json(report: &Report) -> Value {
    let summary = report.summary();
    let ms = |time: Option<Duration>| time.map(|time| time.as_secs_f64() * 1e3);
    let mut implementation = report.implementation.details.clone();
    implementation.insert("target".into(), report.implementation.target.as_str().into());
    json!({
        "kit": concat!("xds-conformance ", env!("CARGO_PKG_VERSION")),
        "spec_revision": SPEC_REVISION,
        "implementation": implementation,
        "mode": report.mode,
        "calibration": {
            "answer_ms": ms(report.calibration.answer),
            "push_ms": ms(report.calibration.push),
            "patience_ms": ms(Some(report.calibration.patience)),
            "quiet_ms": ms(Some(report.calibration.quiet)),
        },
        "cases": report.rows.iter().map(case).collect::<Vec<_>>(),
        "stale_known_failures": report.stale,
        "summary": {
            "passed": summary.passed,
            "failed": summary.failed,
            "known": summary.known,
            "unsupported": summary.unsupported,
            "inconclusive": summary.inconclusive,
        },
    })
}

fn case(row: &Row) -> Value {
    json!({
        "id": row.id,
        "variant": variant_name(row.variant),
        "level": row.level.name(),
        "verdict": row.verdict.name(),
        "known": row.known,
        "why": row.why,
        "rule": row.rule,
        "sentence": row.sentence,
        "seconds": row.time.as_secs_f64(),
        "ladder": row.ladder,
    })
}
