//! Keeps each part of a walk with a client legal.

use std::collections::{BTreeMap, BTreeSet};

use crate::client::story::{Content, Step};

/// Returns the steps, with a good resource in place of each resource that cannot be used, unless the client must know
/// that it wants the name: a client may ignore a resource that it does not want.
pub(super) fn legal(steps: &[Step]) -> Vec<Step> {
    let mut wanted: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    // Whether the client has come to rest since the names that it wants, or its stream, changed.
    let mut at_rest = false;
    let mut all = steps.to_vec();
    for step in &mut all {
        match step {
            Step::Want { type_name, add, remove } => {
                let names = wanted.entry(type_name.clone()).or_default();
                remove.iter().for_each(|name| _ = names.remove(name));
                names.extend(add.iter().cloned());
                at_rest = false;
            }
            Step::Cut(_) => at_rest = false,
            Step::Barrier => at_rest = true,
            Step::Send(send) => {
                let names = wanted.get(&send.type_name);
                let is_wanted = |name: &str| names.is_some_and(|names| names.contains(name) || names.contains("*"));
                for item in send.items.iter_mut().filter(|item| item.content == Content::Bad) {
                    if !at_rest || !is_wanted(&item.name) {
                        item.content = Content::Revision(1);
                    }
                }
            }
            _ => {}
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::story::{parse, write_step};
    use crate::message::Variant;

    fn of(steps: &str) -> Vec<String> {
        let text = format!("case x\nlevel MUST\nrule R-1\nsentence s\nvariants sotw\n\n{steps}");
        let story = parse(&text, Variant::Sotw).expect("a story");
        let steps: Vec<Step> = story.steps.into_iter().map(|(_, step)| step).collect();
        legal(&steps).iter().filter_map(write_step).collect()
    }

    #[test]
    fn a_bad_resource_is_kept_only_for_a_settled_subscription() {
        assert_eq!(of("want cds +a\nbarrier\nS> cds {a!,b!}")[2], "S> cds {a!,b@1}");
        assert_eq!(of("want cds +*\nbarrier\nS> cds {b!}")[2], "S> cds {b!}");
        assert_eq!(of("want cds +a\nS> cds {a!}")[1], "S> cds {a@1}");
        assert_eq!(of("want cds +a\nbarrier\ncut\nS> cds {a!}")[3], "S> cds {a@1}");
        assert_eq!(of("want cds +a\nbarrier\nwant cds -a\nbarrier\nS> cds {a!}")[4], "S> cds {a@1}");
    }
}
