//! Drivers as users write them, and faults of such drivers: the check names the violated rule.

use std::thread;

use xds_machine::client::{Action, Client, Config};
use xds_machine::message::Node;
use xds_machine::server::{self, Server, StreamId};
use xds_machine::{Delta, Instant, Sotw};
use xds_machine_testing::driver::{Listener, Network, Pipe, Received, check_driver, check_server_driver};
use xds_machine_testing::variant::Both;

const NOW: Instant = Instant::EPOCH;

/// A fault of a driver of a client.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Fault {
    None,
    SleepsAfterAVerdict,
    NeverRejects,
    NeverReconnects,
    ForgetsHandleClose,
    SkipsGarbage,
    GoesOnAfterAnError,
    PanicsAtGarbage,
}

fn drive<V: Both>(network: &Network, fault: Fault) {
    let mut client = Client::<V>::new(Config::new(Node::new("n")));
    client.resources_mut(&network.type_url()).subscribe(network.names()).expect("good names");
    while let Some(pipe) = network.connect() {
        client.handle_open();
        run(&mut client, &pipe, network, fault);
        pipe.close();
        match fault {
            Fault::ForgetsHandleClose => {
                client = Client::new(Config::new(Node::new("n")));
                client.resources_mut(&network.type_url()).subscribe(network.names()).expect("good names");
            }
            Fault::NeverReconnects => return,
            _ => client.handle_close(),
        }
    }
}

fn run<V: Both>(client: &mut Client<V>, pipe: &Pipe, network: &Network, fault: Fault) {
    let mut judged = 0;
    loop {
        while let Some(action) = client.poll_action() {
            let Action::Apply(update) = action else { continue };
            judged += 1;
            let verdict = if fault == Fault::NeverRejects { update.accept() } else { network.apply(update) };
            client.handle_verdict(NOW, verdict).expect("the update is out");
        }
        while let Some(transmit) = client.poll_transmit().filter(|_| fault != Fault::SleepsAfterAVerdict || judged == 0)
        {
            pipe.send(V::encode_request(&transmit.request));
            client.handle_sent(NOW, transmit.sent);
        }
        let message = match pipe.recv(None) {
            Received::Message(message) => message,
            _ => return,
        };
        let response = match V::decode_response(message) {
            Ok(response) => response,
            Err(_) if fault == Fault::SkipsGarbage => continue,
            Err(error) if fault == Fault::PanicsAtGarbage => panic!("{error}"),
            Err(_) => return,
        };
        if client.handle_response(NOW, response).is_err() && fault != Fault::GoesOnAfterAnError {
            return;
        }
    }
}

#[test]
fn a_correct_client_driver_passes() {
    assert_eq!(check_driver::<Sotw>(|network| drive::<Sotw>(&network, Fault::None)), Ok(()));
    assert_eq!(check_driver::<Delta>(|network| drive::<Delta>(&network, Fault::None)), Ok(()));
}

#[test]
fn faults_of_a_client_driver_are_reported_with_their_rule() {
    let faults = [
        (Fault::NeverReconnects, "after a stream that ended comes another one"),
        (Fault::ForgetsHandleClose, "on a new stream the client claims what it has (`handle_close` was called)"),
        (Fault::NeverRejects, "the application has what it accepted"),
        (Fault::PanicsAtGarbage, "what can't be read ends the stream"),
    ];
    for (fault, rule) in faults {
        let failure = check_driver::<Delta>(move |network| drive::<Delta>(&network, fault)).expect_err("it is found");
        assert_eq!(failure.rule, rule, "{fault:?}: {}", failure.what);
    }
}

/// A fault that is found by waiting takes as long as the check's patience.
#[test]
fn faults_of_a_client_driver_found_by_waiting_are_reported_with_their_rule() {
    let faults = [
        (Fault::SleepsAfterAVerdict, "an update goes to the application, and what the client has to say then is sent"),
        (Fault::SkipsGarbage, "what can't be read ends the stream"),
        (Fault::GoesOnAfterAnError, "an error of `handle_response` ends the stream"),
    ];
    let check = |fault| check_driver::<Delta>(move |network| drive::<Delta>(&network, fault)).expect_err("it is found");
    let checks = faults.map(|(fault, rule)| (thread::spawn(move || check(fault)), rule));
    for (check, rule) in checks {
        let failure = check.join().expect("it returns");
        assert_eq!(failure.rule, rule, "{}", failure.what);
    }
}

/// A duty that a driver of a server forgets.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Forgets {
    Nothing,
    Changes,
    Others,
    ToEnd,
}

fn listen<V: Both>(listener: &Listener, forgets: Forgets) {
    let mut threads = Vec::new();
    for id in 1.. {
        let Some(pipe) = listener.accept() else { break };
        let given = listener.clone();
        let serving = thread::spawn(move || serve::<V>(&pipe, &given, StreamId(id), forgets));
        match forgets {
            Forgets::Others => serving.join().expect("it ends"),
            _ => threads.push(serving),
        }
    }
    threads.into_iter().for_each(|serving| serving.join().expect("it ends"));
}

fn serve<V: Both>(pipe: &Pipe, listener: &Listener, id: StreamId, forgets: Forgets) {
    let mut server = Server::<V>::new(server::Config::ads(), id);
    loop {
        match pipe.recv(None) {
            Received::Message(message) => {
                let request = V::decode_request(message).ok();
                if request.is_none_or(|request| server.handle_request(NOW, request).is_err()) {
                    if forgets == Forgets::ToEnd {
                        continue;
                    }
                    return pipe.close();
                }
            }
            Received::Changed if forgets == Forgets::Changes => continue,
            Received::Changed => {}
            _ => return pipe.close(),
        }
        let store = listener.store();
        while let Some(response) = server.poll_transmit(NOW, &store) {
            pipe.send(V::encode_response(&V::message(&response)));
        }
        while server.poll_action().is_some() {}
    }
}

#[test]
fn a_correct_server_driver_passes() {
    assert_eq!(check_server_driver::<Sotw>(|listener| listen::<Sotw>(&listener, Forgets::Nothing)), Ok(()));
    assert_eq!(check_server_driver::<Delta>(|listener| listen::<Delta>(&listener, Forgets::Nothing)), Ok(()));
}

#[test]
fn faults_of_a_server_driver_are_reported_with_their_rule() {
    let faults = [
        (Forgets::Changes, "a change goes to each stream"),
        (Forgets::Others, "two streams are served at once"),
        (Forgets::ToEnd, "what can't be read ends the stream"),
    ];
    let check = |forgets| check_server_driver::<Delta>(move |listener| listen::<Delta>(&listener, forgets));
    let checks = faults.map(|(forgets, rule)| (thread::spawn(move || check(forgets).expect_err("it is found")), rule));
    for (check, rule) in checks {
        let failure = check.join().expect("it returns");
        assert_eq!(failure.rule, rule, "{}", failure.what);
    }
}
