//! Correct servers with other choices: the kit must not complain of any.

use std::collections::BTreeSet;
use std::sync::Arc;

use xds_conformance::run::Verdict;
use xds_conformance::story::Story;
use xds_conformance::suite;

use crate::plain::Plain;
use crate::style::styles;

#[test]
fn no_case_fails_against_another_correct_server() {
    let mut faults = BTreeSet::new();
    for style in styles() {
        for (variant, story) in suite::server().expect("stories") {
            let story: Arc<Story> = story;
            if story.features.iter().any(|feature| !["ads-order", "per-type"].contains(&feature.as_str())) {
                continue;
            }
            // Two sentences differ on what a claim of a resource means: the case is a SHOULD for that reason.
            if style.resends_claimed && story.id == "server/delta/reconnect-current" {
                continue;
            }
            let mut peer = Plain::new(style);
            let mut played = suite::play(&story, variant, &story.types, "k-", None, &mut peer);
            for played in &mut played {
                if played.outcome.verdict == Verdict::Pass {
                    played.outcome = played.runner.tail(&mut peer);
                }
            }
            let outcome = suite::worst(&played);
            if outcome.verdict != Verdict::Pass {
                faults.insert(format!(
                    "{} {variant:?}: {}\n{style:?}\n  {}",
                    story.id,
                    outcome.why,
                    outcome.ladder.join("\n  ")
                ));
            }
        }
    }
    let (count, some) = (faults.len(), faults.into_iter().take(40).collect::<Vec<_>>());
    assert!(some.is_empty(), "{count} false alarms:\n{}", some.join("\n"));
}
