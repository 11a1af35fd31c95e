//! The scenarios of the replicas. Each starts where the one before it ended.

use std::time::Instant;

use super::resources::{KINDS, cluster_of, endpoints, key, route};
use super::stage::{EVERYTHING, Sent, Stage};
use crate::scenarios::QUIET;
use crate::wait::{self, so};

pub type Play = (&'static str, fn(&mut Stage) -> Result<(), String>);

pub const ALL: [Play; 13] = [
    ("same versions on both", same_versions),
    ("same versions after a restart", versions_after_restart),
    ("a client moves, delta: sent nothing", delta_moves),
    ("a client moves, SotW: same versions", sotw_moves),
    ("a transaction is one change", transaction),
    ("a bad value: the last good stays", bad_value),
    ("a first value that is bad: unknown", first_value_bad),
    ("a group's own resource", group),
    ("a lease that expires", lease),
    ("another leader, and one killed", leader),
    ("etcd away and back", outage),
    ("history compacted while away", compacted),
    ("10,000 keys", many),
];

/// The resources of three services.
const COUNT: usize = 12;

fn same_versions(stage: &mut Stage) -> Result<(), String> {
    let held = stage.delta.holds(COUNT)?;
    stage.sotw.holds(COUNT)?;
    let other = stage.client("same", 1, &EVERYTHING)?;
    so(other.holds(COUNT)? == held, || "other versions at the other replica".into())
}

/// Versions depend on the contents of resources, and not on their history.
fn versions_after_restart(stage: &mut Stage) -> Result<(), String> {
    let held = stage.delta.held()?;
    for port in [77, 1] {
        stage.members.change(&[endpoints(1, port)])?;
    }
    stage.replicas[1].plane.restart()?;
    stage.replicas[1].until_ready("ready\n")?;
    let other = stage.client("restarted", 1, &EVERYTHING)?;
    so(other.holds(COUNT)? == held, || "other versions at a new life of the other replica".into())?;
    wait::until(|| so(stage.delta.held()? == held, || "the change and its return are not there".into()))
}

fn delta_moves(stage: &mut Stage) -> Result<(), String> {
    let (applied, mark) = (stage.delta.of("apply")?.len(), stage.replicas[1].mark()?);
    stage.delta.way.lead(Some(stage.replicas[1].plane.port()));
    subscribed(stage, 1, "delta", mark)?;
    wait::throughout(QUIET, || {
        let sent = stage.replicas[1].sent("delta", mark)?;
        so(sent.is_empty(), || format!("sent what the client has: {sent:?}"))
    })?;
    let now = stage.delta.of("apply")?.len();
    so(now == applied, || format!("{now} updates applied, not {applied}"))
}

fn sotw_moves(stage: &mut Stage) -> Result<(), String> {
    let (held, mark) = (stage.sotw.held()?, stage.replicas[0].mark()?);
    let versions = last_versions(&stage.replicas[1].sent("sotw", 0)?);
    so(versions.len() == 4, || format!("{versions:?}"))?;
    stage.sotw.way.lead(Some(stage.replicas[0].plane.port()));
    subscribed(stage, 0, "sotw", mark)?;
    wait::until(|| {
        let now = last_versions(&stage.replicas[0].sent("sotw", mark)?);
        so(now == versions, || format!("{now:?}, not {versions:?}"))
    })?;
    wait::throughout(QUIET, || so(stage.sotw.held()? == held, || "something changed".into()))
}

/// Returns the last version of each type.
fn last_versions(sent: &[Sent]) -> std::collections::BTreeMap<String, String> {
    sent.iter().map(|sent| (sent.of.clone(), sent.version.clone())).collect()
}

/// Waits until a node has subscribed to all types since a mark.
fn subscribed(stage: &Stage, replica: usize, node: &str, mark: usize) -> Result<(), String> {
    wait::until(|| {
        let events = stage.replicas[replica].plane.since(mark)?;
        let has = |kind: &str| events.iter().any(|event| event.is("subscribed", kind) && event.text("node") == node);
        let missing = KINDS.iter().find(|(_, kind)| !has(kind));
        so(missing.is_none(), || format!("{node} has not subscribed to {missing:?}"))
    })
}

/// Make before break: the new cluster, the route to it, and then the removal of the old cluster.
fn transaction(stage: &mut Stage) -> Result<(), String> {
    let marks = [stage.replicas[0].mark()?, stage.replicas[1].mark()?];
    let gone = ["c1", "e1"].map(|name| (key("_", name), None));
    let puts = [route(1, 9), endpoints(9, 9), cluster_of(9, 1)];
    stage.members.change(&[gone.as_slice(), &puts].concat())?;
    wait::until(|| {
        let sent = stage.replicas[1].sent("delta", marks[1])?;
        let at = |of: &str, name: &str| {
            let is = |sent: &Sent| sent.of == of && sent.resources.iter().any(|resource| resource == name);
            sent.iter().position(is).ok_or_else(|| format!("no {name}: {sent:?}"))
        };
        let (made, routed) = (at("Cluster", "c9")?, at("RouteConfiguration", "r1")?);
        at("ClusterLoadAssignment", "e9")?;
        let broken = sent.iter().position(|sent| sent.removed.iter().any(|name| name == "c1"));
        let broken = broken.ok_or_else(|| format!("c1 is not removed: {sent:?}"))?;
        so(made < routed && routed < broken, || format!("out of order: {sent:?}"))?;
        let of_clusters = sent.iter().filter(|sent| sent.of == "Cluster").count();
        so(of_clusters == 2, || format!("{of_clusters} responses with clusters: {sent:?}"))
    })?;
    // In SotW, the union is sent before the new set.
    wait::until(|| {
        let sent = stage.replicas[0].sent("sotw", marks[0])?;
        let clusters: Vec<_> = sent.iter().filter(|sent| sent.of == "Cluster").map(|sent| &sent.resources).collect();
        let has = |names: &[String], name: &str| names.iter().any(|has| has == name);
        let [union, set] = clusters[..] else { return Err(format!("{clusters:?}")) };
        so(has(union, "c9") && has(union, "c1") && has(set, "c9") && !has(set, "c1"), || format!("{clusters:?}"))
    })?;
    stage.delta.holds(COUNT)?;
    Ok(())
}

fn bad_value(stage: &mut Stage) -> Result<(), String> {
    let (held, mark, key) = (stage.delta.held()?, stage.replicas[1].mark()?, key("_", "e2"));
    stage.members.put(&key, r#"{"clusterName":"other"}"#)?;
    let line = format!("{key}: its own name is \"other\" (its last good value is still served)");
    for replica in &stage.replicas {
        wait::until(|| so(replica.plane.complaints()?.contains(&line), || format!("not said: {line}")))?;
    }
    let served = stage.client("good", 1, &EVERYTHING)?.holds(COUNT)?;
    so(served == held, || "a new client is served something else".into())?;
    stage.members.change(&[endpoints(2, 105)])?;
    only(stage, mark, &[("ClusterLoadAssignment", "e2")])
}

fn first_value_bad(stage: &mut Stage) -> Result<(), String> {
    let client = stage.client("by-name", 0, &["--subscribe", "cds=c50,c51"])?;
    let missing = || -> Result<Vec<String>, String> {
        Ok(client.of("missing")?.iter().filter_map(|missing| Some(missing["name"].as_str()?.to_owned())).collect())
    };
    wait::until(|| so(missing()?.len() == 2, || "two names are absent".into()))?;
    stage.members.put(&key("_", "c60"), "bad")?;
    let line = format!("{}: ", key("_", "c60"));
    wait::until(|| so(stage.replicas[0].plane.complaints()?.contains(&line), || "not said".into()))?;
    let client = stage.client("by-name-too", 0, &["--subscribe", "cds=c60,c61"])?;
    let missing = || -> Result<Vec<String>, String> {
        Ok(client.of("missing")?.iter().filter_map(|missing| Some(missing["name"].as_str()?.to_owned())).collect())
    };
    wait::until(|| so(missing()? == ["c61"], || "c61 is absent".into()))?;
    wait::throughout(QUIET, || so(missing()? == ["c61"], || "c60 is not absent, but unknown".into()))?;
    stage.members.change(&[cluster_of(60, 1)])?;
    client.holds(1)?;
    stage.members.delete(&key("_", "c60"))?;
    stage.delta.holds(COUNT).map(drop)
}

fn group(stage: &mut Stage) -> Result<(), String> {
    let edge = stage.client("edge", 1, &["--node-cluster", "edge", "--subscribe", "cds"])?;
    let held = edge.holds(3)?;
    let mark = stage.replicas[1].mark()?;
    let (_, value) = cluster_of(3, 30);
    stage.members.put(&key("edge", "c3"), &value.unwrap_or_default())?;
    wait::until(|| {
        let now = edge.held()?;
        let changed: Vec<_> = now.iter().filter(|(place, version)| held.get(*place) != Some(version)).collect();
        so(changed.len() == 1 && changed[0].0.1 == "c3", || format!("changed for the group: {changed:?}"))
    })?;
    let sent = stage.replicas[1].sent("delta", mark)?;
    so(sent.is_empty(), || format!("sent to a node of no group: {sent:?}"))?;
    stage.members.delete(&key("edge", "c3"))?;
    wait::until(|| so(edge.held()? == held, || "the group does not see again what all see".into()))
}

fn lease(stage: &mut Stage) -> Result<(), String> {
    let (_, value) = cluster_of(70, 1);
    stage.members.put_for(&key("_", "c70"), &value.unwrap_or_default(), 2)?;
    stage.delta.holds(COUNT + 1)?;
    stage.delta.holds(COUNT).map(drop)
}

fn leader(stage: &mut Stage) -> Result<(), String> {
    let leader = stage.members.move_leader()?;
    let mark = stage.replicas[1].mark()?;
    stage.members.change(&[endpoints(2, 106)])?;
    only(stage, mark, &[("ClusterLoadAssignment", "e2")])?;
    stage.members.kill(leader);
    let mark = stage.replicas[1].mark()?;
    stage.members.settle()?;
    stage.members.change(&[endpoints(2, 107)])?;
    only(stage, mark, &[("ClusterLoadAssignment", "e2")])?;
    stage.members.restart(leader)?;
    stage.members.settle()?;
    Ok(())
}

fn outage(stage: &mut Stage) -> Result<(), String> {
    let (held, mark) = (stage.delta.held()?, stage.replicas[1].mark()?);
    (0..3).for_each(|number| stage.members.kill(number));
    for replica in &stage.replicas {
        replica.until_ready("ready, though ")?;
    }
    let served = stage.client("meanwhile", 1, &EVERYTHING)?.holds(COUNT)?;
    so(served == held, || "a new client is served something else".into())?;
    (0..3).try_for_each(|number| stage.members.restart(number))?;
    stage.members.settle()?;
    stage.members.change(&[endpoints(2, 108)])?;
    for replica in &stage.replicas {
        replica.until_ready("ready\n")?;
    }
    only(stage, mark, &[("ClusterLoadAssignment", "e2")])
}

fn compacted(stage: &mut Stage) -> Result<(), String> {
    let mark = stage.replicas[1].mark()?;
    stage.links.iter().for_each(|link| link.lead(None));
    stage.replicas[1].until_ready("ready, though ")?;
    let gone: Vec<_> = ["c3", "e3", "l3", "r3"].map(|name| (key("_", name), None)).into();
    stage.members.change(&gone)?;
    stage.members.change(&[cluster_of(80, 1)])?;
    stage.members.delete(&key("_", "c80"))?;
    let last = stage.members.change(&[endpoints(2, 109)])?;
    stage.members.compact(last)?;
    (0..3).for_each(|number| stage.links[number].lead(Some(stage.members.port(number))));
    stage.replicas[1].until_ready("ready\n")?;
    only(stage, mark, &[("ClusterLoadAssignment", "e2")])?;
    let said = stage.replicas[1].plane.complaints()?;
    so(said.contains("the history is compacted"), || "the replica did not meet the compaction".into())?;
    let new = stage.client("after", 0, &EVERYTHING)?.holds(COUNT - 4)?;
    wait::until(|| {
        // The client prints no line about a resource that it has unsubscribed from.
        let mut held = stage.delta.held()?;
        held.retain(|(_, name), _| name != "e3" && name != "r3");
        so(held == new, || format!("the replicas differ: {held:?}, {new:?}"))
    })
}

fn many(stage: &mut Stage) -> Result<(), String> {
    let (started, before) = (Instant::now(), stage.delta.held()?.len());
    let all: Vec<_> = (10_000..20_000)
        .map(|number| (key("_", &format!("c{number}")), Some(format!(r#"{{"name":"c{number}","type":"STATIC"}}"#))))
        .collect();
    for some in all.chunks(100) {
        stage.members.change(some)?;
    }
    let put = started.elapsed();
    let count = before + all.len();
    let held = stage.delta.holds(count)?;
    println!("10,000 keys: put in {put:.1?}, held by the client after {:.1?}", started.elapsed());
    let mark = stage.replicas[1].mark()?;
    let changed = (key("_", "c15000"), Some(r#"{"name":"c15000","type":"STATIC","connectTimeout":"2s"}"#.to_owned()));
    stage.members.change(&[changed])?;
    only(stage, mark, &[("Cluster", "c15000")])?;
    // A replica that has just read all keys sends a client nothing again.
    stage.replicas[0].plane.restart()?;
    stage.replicas[0].until_ready("ready\n")?;
    stage.delta.way.lead(Some(stage.replicas[0].plane.port()));
    subscribed(stage, 0, "delta", 0)?;
    wait::throughout(QUIET, || {
        let sent = stage.replicas[0].sent("delta", 0)?;
        so(sent.is_empty(), || format!("sent what the client has: {} responses", sent.len()))
    })?;
    so(stage.delta.held()?.len() == held.len(), || "the client lost something".into())
}

/// Waits until exactly these resources were sent to the client in delta, which is at the second replica.
fn only(stage: &Stage, mark: usize, expected: &[(&str, &str)]) -> Result<(), String> {
    let resources = || -> Result<Vec<(String, String)>, String> {
        let sent = stage.replicas[1].sent("delta", mark)?.into_iter();
        Ok(sent.flat_map(|sent| sent.resources.into_iter().map(move |name| (sent.of.clone(), name))).collect())
    };
    let is = |sent: &[(String, String)]| {
        sent.iter().map(|(of, name)| (of.as_str(), name.as_str())).eq(expected.iter().copied())
    };
    wait::until(|| {
        let sent = resources()?;
        so(is(&sent), || format!("sent {sent:?}, not {expected:?}"))
    })?;
    wait::throughout(QUIET, || {
        let sent = resources()?;
        so(is(&sent), || format!("sent {sent:?}, not {expected:?}"))
    })
}
