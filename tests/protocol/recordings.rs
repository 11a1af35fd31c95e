//! Requests of real clients, against both machines. `recordings/README.md` has the table of deviations.

use std::collections::BTreeMap;
use std::fs;

use xds_machine::{Delta, Sotw};
use xds_machine_testing::replay::{Recording, client, folder, recordings, server};

/// Returns the table of the README: the recording and the machine, and the place where they differ. Each row has a
/// reason.
fn known_differences() -> BTreeMap<(String, String), String> {
    let text = fs::read_to_string(folder().join("README.md")).expect("a README");
    let rows = text.lines().filter_map(|line| {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(|cell| cell.trim().trim_matches('`')).collect();
        match cells[..] {
            [recording, machine @ ("client" | "server"), place, why] => {
                assert!(!why.is_empty(), "{recording}: why?");
                Some(((recording.into(), machine.into()), place.into()))
            }
            _ => None,
        }
    });
    let mut known = BTreeMap::new();
    for (key, place) in rows {
        assert_eq!(known.insert(key.clone(), place), None, "{key:?} is in the table twice");
    }
    known
}

/// Plays all recordings against one machine, and compares with the table, down to the line of the file.
fn play_all(machine: &str, mut play: impl FnMut(&Recording) -> Result<(), String>) {
    let mut known = known_differences();
    known.retain(|(_, of), _| of == machine);
    let (mut played, mut wrong) = (0, Vec::new());
    for recording in recordings() {
        played += 1;
        let expected = known.remove(&(recording.name.clone(), machine.into()));
        let actual = play(&recording).err();
        let place = actual.as_deref().and_then(|error| error.split(':').next());
        if place != expected.as_deref() {
            let actual = actual.as_deref().unwrap_or("it replays");
            wrong.push(format!("{}: {actual}\n    the table says: {expected:?}", recording.name));
        }
    }
    wrong.extend(known.keys().map(|(name, _)| format!("{name} is in the table, and not among the recordings")));
    assert!(played > 0, "there are no recordings");
    assert!(wrong.is_empty(), "{} of {played} are not as the table says\n{}", wrong.len(), wrong.join("\n"));
}

/// The server machine takes each request for what it is in the recording: first, ACK, NACK, spontaneous or stale. The
/// machine's subscriptions are the sum of the requests. No request is an error, and no stream is closed.
#[test]
fn the_server_machine_understands_real_clients() {
    let mut all = BTreeMap::new();
    play_all("server", |recording| {
        let counts =
            if recording.is_delta() { server::replay::<Delta>(recording)? } else { server::replay::<Sotw>(recording)? };
        counts.into_iter().for_each(|(class, count)| *all.entry(class).or_insert(0) += count);
        Ok(())
    });
    println!("requests: {all:?}");
}

/// The client machine sends what the real client sent, per type.
#[test]
fn the_client_machine_sends_what_real_clients_send() {
    let mut all = (0, 0);
    play_all("client", |recording| {
        let (equal, crossed) =
            if recording.is_delta() { client::replay::<Delta>(recording)? } else { client::replay::<Sotw>(recording)? };
        all = (all.0 + equal, all.1 + crossed);
        Ok(())
    });
    println!("{} requests are equal, {} crossed a response", all.0, all.1);
}
