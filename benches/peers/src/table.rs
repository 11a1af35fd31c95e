//! Tables of rows, for people.

use std::fmt::Write;

use serde_json::Value;

use crate::plan::PEERS;

/// Returns a table of each kind of work, and one of the probes.
pub fn tables(rows: &str) -> String {
    let rows: Vec<Value> = rows.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let mut works: Vec<&str> = Vec::new();
    for work in rows.iter().filter_map(|row| row["workload"].as_str()).filter(|work| *work != "probe") {
        if !works.contains(&work) {
            works.push(work);
        }
    }
    let mut out = String::new();
    works.iter().for_each(|work| table(&mut out, work, &rows));
    probes(&mut out, &rows);
    out
}

fn table(out: &mut String, work: &str, rows: &[Value]) {
    let rows: Vec<&Value> = rows.iter().filter(|row| row["workload"] == work).collect();
    let mut peers: Vec<&str> =
        PEERS.iter().map(|peer| peer.name).filter(|name| rows.iter().any(|row| row["peer"] == *name)).collect();
    peers.dedup(); // ours is two programs
    let mut sizes: Vec<(u64, u64)> = rows.iter().filter_map(|row| size(row)).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let _ = writeln!(out, "**{work}**\n\n| N | S | floor | {} |", peers.join(" | "));
    let _ = writeln!(out, "|---:|---:|---:|{}", "---:|".repeat(peers.len()));
    for (n, s) in sizes {
        let here: Vec<&&Value> = rows.iter().filter(|row| size(row) == Some((n, s))).collect();
        let floor = here.iter().find_map(|row| row["floor_ns"].as_f64().filter(|ns| *ns > 0.0));
        let _ = write!(out, "| {n} | {s} | {} |", floor.map_or("".into(), time));
        for peer in &peers {
            let cells: Vec<String> = here.iter().filter(|row| row["peer"] == *peer).map(|row| cell(row)).collect();
            let _ = write!(out, " {} |", cells.join("; "));
        }
        out.push('\n');
    }
    out.push('\n');
}

fn size(row: &Value) -> Option<(u64, u64)> {
    Some((row["n"].as_u64()?, row["s"].as_u64()?))
}

fn cell(row: &Value) -> String {
    let outcome = row["outcome"].as_str().unwrap_or_default();
    let Some(ns) = row["ns"].as_f64() else { return outcome.into() };
    let measured = if row["workload"] == "idle stream" {
        format!("{:.0} B", row["bytes"].as_f64().unwrap_or_default())
    } else {
        time(ns)
    };
    if outcome == "ok" { measured } else { format!("{measured}, {outcome}") }
}

fn time(ns: f64) -> String {
    let (value, unit) = match ns {
        ..1e3 => (ns, "ns"),
        1e3..1e6 => (ns / 1e3, "µs"),
        1e6..1e9 => (ns / 1e6, "ms"),
        _ => (ns / 1e9, "s"),
    };
    if value < 10.0 { format!("{value:.1} {unit}") } else { format!("{value:.0} {unit}") }
}

fn probes(out: &mut String, rows: &[Value]) {
    let _ = writeln!(out, "| peer | what was done | what had to come | what came | |\n|---|---|---|---|---|");
    for row in rows.iter().filter(|row| row["workload"] == "probe") {
        let text = |of: &str| row[of].as_str().unwrap_or_default().replace('|', "\\|");
        let (peer, sent, expected) = (text("peer"), text("sent"), text("expected"));
        let _ = writeln!(out, "| {peer} | {sent} | {expected} | {} | {} |", text("got"), text("outcome"));
    }
}
