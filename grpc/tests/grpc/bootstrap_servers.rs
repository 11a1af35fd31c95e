//! The bootstrap file: R-BOOT, servers, credentials and certificates.

use std::time::Duration;

use serde_json::{Value, json};
use xds_machine::Sotw;
use xds_machine::client::{self, DataErrors, Dialect};
use xds_machine::message::Node;
use xds_machine::servers::Servers;
use xds_machine_grpc::bootstrap::{Address, Era, Features};
use xds_machine_grpc::resources::Context;

use super::bootstrap::{faults, file, insecure, parse, server, uris, with_server};

/// R-BOOT-08: There is at least one server; the order is preference.
#[test]
fn at_least_one_server_is_required() {
    assert_eq!(faults(json!({})), ["xds_servers: field not present"]);
    assert_eq!(faults(json!({"xds_servers": []})), ["xds_servers: must be non-empty"]);
    let bootstrap = parse(json!({"xds_servers": [server("b"), server("a")]}));
    assert_eq!(uris(bootstrap.default_servers()), ["b", "a"]);
}

/// R-BOOT-09: Every server is validated; a server that is listed twice is legal, and used once.
#[test]
fn every_server_is_validated() {
    let second = json!({"xds_servers": [server("a"), {"server_uri": "b"}]});
    assert_eq!(faults(second), ["xds_servers[1].channel_creds: field not present"]);
    let bootstrap = parse(json!({"xds_servers": [server("a"), server("b"), server("a")]}));
    assert_eq!(uris(bootstrap.default_servers()), ["a", "b"]);
    assert!(Servers::<Sotw>::new(bootstrap.servers_config(Node::new("n"), Era::A53)).is_ok());
}

/// R-BOOT-10: A server has an address.
#[test]
fn a_server_requires_an_address() {
    assert_eq!(faults(with_server(json!({"server_uri": ""}))), ["xds_servers[0].server_uri: must be non-empty"]);
    let none = json!({"xds_servers": [{"channel_creds": insecure()}]});
    assert_eq!(faults(none), ["xds_servers[0].server_uri: field not present"]);
}

/// R-BOOT-10: The address is a gRPC name.
#[test]
fn an_address_is_a_grpc_name() {
    let host = |host: &str, port| Address::Host { host: host.into(), port };
    let ips = |ips: &[&str]| Address::Ip(ips.iter().map(|ip| ip.parse().expect("an address")).collect());
    for (name, address) in [
        ("cp", host("cp", 443)),
        ("cp.example.:18000", host("cp.example.", 18000)),
        ("dns", host("dns", 443)),
        ("1.2.3.4:5", host("1.2.3.4", 5)),
        ("[::1]", host("::1", 443)),
        ("[::1]:5", host("::1", 5)),
        ("::1", host("::1", 443)),
        ("dns:cp:5", host("cp", 5)),
        ("dns:/cp", host("cp", 443)),
        ("dns:///cp", host("cp", 443)),
        ("dns:///%5B::1%5D:5", host("::1", 5)),
        ("http://cp", host("cp", 80)),
        ("http://cp:5/", host("cp", 5)),
        ("https://cp", host("cp", 443)),
        ("ipv4:1.2.3.4", ips(&["1.2.3.4:443"])),
        ("ipv4:1.2.3.4:5,6.7.8.9:10", ips(&["1.2.3.4:5", "6.7.8.9:10"])),
        ("ipv6:[::1]:5,[::2]", ips(&["[::1]:5", "[::2]:443"])),
        ("ipv6:::1", ips(&["[::1]:443"])),
        ("unix:run/cp.sock", Address::Unix("run/cp.sock".into())),
        ("unix:/run/cp.sock", Address::Unix("/run/cp.sock".into())),
        ("unix:///run/a%20b", Address::Unix("/run/a b".into())),
        ("unix-abstract:cp", Address::UnixAbstract("cp".into())),
    ] {
        assert_eq!(Address::parse(name), Ok(address), "{name}");
    }
    let authority = "an authority is not supported";
    let missing = "names no host and no socket";
    let host = "the host is neither a name nor an IP address of the scheme";
    let port = "the port is not a number from 0 to 65535";
    let path = "nothing may follow the host and port";
    for (name, fault) in [
        ("dns://1.1.1.1/cp", authority),
        ("dns://cp:5", authority),
        ("unix://run/cp.sock", authority),
        ("dns:", missing),
        ("dns:///", missing),
        (":5", missing),
        ("https://", missing),
        ("unix:", missing),
        ("unix-abstract:", missing),
        ("ipv4:", missing),
        ("ipv4:1.2.3.4,", missing),
        ("cp:5/x", path),
        ("cp/x", path),
        ("http://cp/x", path),
        ("dns:///cp:5/x", path),
        ("dns:cp?x", path),
        ("cp:http", port),
        ("cp:", port),
        ("cp:65536", port),
        ("cp:+5", port),
        ("xds:svc", port),
        ("a b", host),
        ("user@cp", host),
        ("[cp]:5", host),
        ("[::1]5", host),
        ("1:2:3", host),
        ("ipv4:cp:5", host),
        ("ipv4:[::1]:5", host),
        ("ipv6:1.2.3.4:5", host),
        ("dns:%ff", "the percent-encoded bytes are not UTF-8"),
        ("xds:///svc", "the scheme xds is not known"),
        ("consul://cp:5", "the scheme consul is not known"),
    ] {
        let fault = format!("xds_servers[0].server_uri: {fault}");
        assert_eq!(faults(with_server(json!({"server_uri": name}))), [fault], "{name}");
    }
    assert_eq!(parse(with_server(json!({"server_uri": "cp:5"}))).servers()[0].address(), Address::parse("cp:5"));
}

/// R-BOOT-11: The first supported credentials are used, and the configuration of others is not read.
#[test]
fn the_first_supported_credentials_are_used() {
    let kind = |creds: Value| parse(with_server(json!({"channel_creds": creds}))).servers()[0].credentials.kind.clone();
    assert_eq!(kind(json!([{"type": "x", "config": {"a": 1}}, {"type": "tls"}, {"type": "insecure"}])), "tls");
    for none in [json!([]), json!([{"type": "x"}]), json!([{"type": "jwt_token_file"}])] {
        assert_eq!(
            faults(with_server(json!({"channel_creds": none}))),
            ["xds_servers[0].channel_creds: no known creds type found"]
        );
    }
}

/// R-BOOT-12: Every entry has a type, also if another entry is usable.
#[test]
fn every_credentials_entry_requires_a_type() {
    let with = |entry: Value| faults(with_server(json!({"channel_creds": [{"type": "insecure"}, entry]})));
    assert_eq!(with(json!({})), ["xds_servers[0].channel_creds[1].type: field not present"]);
    assert_eq!(with(json!({"type": 7})), ["xds_servers[0].channel_creds[1].type: is not a string"]);
    assert_eq!(with(json!({"type": "x", "config": 7})), ["xds_servers[0].channel_creds[1].config: is not an object"]);
    let only = faults(with_server(json!({"channel_creds": [{}]})));
    assert_eq!(only, ["xds_servers[0].channel_creds[0].type: field not present"], "and no further fault");
}

/// R-BOOT-13, R-BOOT-14: The configuration of `tls` is checked also if it is not used: a certificate comes with its
/// key, and an interval is a duration.
#[test]
fn tls_credentials_are_validated_even_if_unused() {
    let creds = |config: Value| {
        with_server(json!({"channel_creds": [{"type": "insecure"}, {"type": "tls", "config": config}]}))
    };
    let at = "xds_servers[0].channel_creds[1].config";
    let pair = format!("{at}: fields \"certificate_file\" and \"private_key_file\" must be both set or both unset");
    assert_eq!(faults(creds(json!({"certificate_file": "c"}))), [&*pair]);
    assert_eq!(faults(creds(json!({"private_key_file": "c"}))), [&*pair]);
    assert_eq!(
        faults(creds(
            json!({"certificate_file": 1, "private_key_file": 2, "ca_certificate_file": 3, "refresh_interval": 4})
        )),
        ["ca_certificate_file", "certificate_file", "private_key_file", "refresh_interval"]
            .map(|field| format!("{at}.{field}: is not a string"))
    );
    for bad in ["", "s", "1", "-1s", "1.s5", "+1s", "1 s", "0.0000000001s", "315576000001s", "99999999999999999999s"] {
        assert_eq!(
            faults(creds(json!({"refresh_interval": bad}))),
            [format!("{at}.refresh_interval: is not a duration, such as \"600s\"")],
            "{bad}"
        );
    }
    let tls = |config: Value| {
        let bootstrap = parse(with_server(json!({"channel_creds": [{"type": "tls", "config": config}]})));
        bootstrap.servers()[0].credentials.tls().expect("tls")
    };
    let files = tls(json!({
        "certificate_file": "c", "private_key_file": "k", "ca_certificate_file": "a", "refresh_interval": "1.25s",
    }));
    let some = |text: &str| Some(text.to_owned());
    assert_eq!((files.certificate, files.private_key, files.ca_certificate), (some("c"), some("k"), some("a")));
    assert_eq!(files.refresh_interval, Duration::from_millis(1250));
    assert_eq!(tls(json!({})).refresh_interval, Duration::from_secs(600));
    assert_eq!(
        tls(json!({"refresh_interval": "315576000000s"})).refresh_interval,
        Duration::from_secs(315_576_000_000)
    );
    assert_eq!(tls(json!({"refresh_interval": "0.000000001s"})).refresh_interval, Duration::from_nanos(1));
    assert_eq!(parse(file(json!({}))).servers()[0].credentials.tls(), None);
}

/// R-BOOT-15: All supported credentials of calls are used; a bad configuration of one refuses the file.
#[test]
fn all_supported_call_credentials_are_used() {
    let creds = |creds: Value| with_server(json!({"call_creds": creds}));
    let jwt = json!({"type": "jwt_token_file", "config": {"jwt_token_file": "/t"}});
    let bootstrap = parse(creds(json!([{"type": "x"}, jwt, {"type": "other"}])));
    let kinds: Vec<&str> = bootstrap.servers()[0].call_credentials.iter().map(|creds| &*creds.kind).collect();
    assert_eq!(kinds, ["jwt_token_file", "other"]);
    assert_eq!(parse(creds(json!([]))), parse(file(json!({}))));
    assert_eq!(
        faults(creds(
            json!([{"type": "jwt_token_file"}, {"type": "jwt_token_file", "config": {"jwt_token_file": 7}}, {}])
        )),
        [
            "xds_servers[0].call_creds[0].config.jwt_token_file: field not present",
            "xds_servers[0].call_creds[1].config.jwt_token_file: is not a string",
            "xds_servers[0].call_creds[2].type: field not present",
        ]
    );
}

/// R-BOOT-16: Unknown features are ignored, whatever their type. R-BOOT-17: Four features have a meaning.
#[test]
fn four_server_features_are_known_and_others_are_ignored() {
    let features = |features: Value| parse(with_server(json!({"server_features": features}))).servers()[0].features;
    assert_eq!(features(json!([1, null, {}, [], "x", "xds_v3", "IGNORE_RESOURCE_DELETION"])), Features::default());
    let one = |name: &str| features(json!([name]));
    let none = Features::default();
    assert_eq!(one("ignore_resource_deletion"), Features { ignore_resource_deletion: true, ..none });
    assert_eq!(one("fail_on_data_errors"), Features { fail_on_data_errors: true, ..none });
    assert_eq!(one("resource_timer_is_transient_error"), Features { resource_timer_is_transient_error: true, ..none });
    assert_eq!(one("trusted_xds_server"), Features { trusted_xds_server: true, ..none });
    let all =
        ["ignore_resource_deletion", "fail_on_data_errors", "resource_timer_is_transient_error", "trusted_xds_server"];
    assert_eq!(features(json!(all)).names(), all);
}

/// R-BOOT-18: The meaning of the features, by the rules of each era.
#[test]
fn the_data_error_policy_depends_on_features_and_era() {
    let features =
        |ignore, fail| Features { ignore_resource_deletion: ignore, fail_on_data_errors: fail, ..Features::default() };
    for (ignore, fail, before, after) in [
        (false, false, DataErrors::Delete, DataErrors::Keep),
        (true, false, DataErrors::Keep, DataErrors::Keep),
        (false, true, DataErrors::Delete, DataErrors::Drop),
        (true, true, DataErrors::Keep, DataErrors::Drop),
    ] {
        assert_eq!(features(ignore, fail).data_errors(Era::A53), before);
        assert_eq!(features(ignore, fail).data_errors(Era::A88), after);
    }
    assert_eq!(Era::default(), Era::A53);
}

/// R-BOOT-17, R-BOOT-18: The features are in the configuration of each client.
#[test]
fn each_client_is_configured_by_the_features_of_its_server() {
    let file = json!({"xds_servers": [
        server("plain"),
        {"server_uri": "timer", "channel_creds": insecure(), "server_features": ["resource_timer_is_transient_error"]},
        {"server_uri": "fails", "channel_creds": insecure(), "server_features": ["fail_on_data_errors"]},
    ]});
    let expected = |config: client::Config| config.with_dialect(Dialect::Grpc);
    let config = || expected(client::Config::new(Node::new("n")));
    let clients = |era: Era| {
        let servers = parse(file.clone()).servers_config(Node::new("n"), era);
        servers.servers().map(|config| format!("{config:?}")).collect::<Vec<_>>()
    };
    let before = config().with_data_errors(DataErrors::Delete);
    assert_eq!(clients(Era::A53), [&before, &before, &before].map(|config| format!("{config:?}")));
    let keep = config().with_data_errors(DataErrors::Keep);
    let timer = keep.clone().with_transient_timeout().with_existence_timeout(Some(Duration::from_secs(30)));
    let fails = config().with_data_errors(DataErrors::Drop);
    assert_eq!(clients(Era::A88), [&keep, &timer, &fails].map(|config| format!("{config:?}")));
}

/// R-BOOT-17: The context of a decoder says whether the server is trusted (R-RTE-23).
#[test]
fn the_context_of_a_decoder_shows_whether_the_server_is_trusted() {
    let trusted = json!({"server_uri": "b", "channel_creds": insecure(), "server_features": ["trusted_xds_server"]});
    let bootstrap = parse(json!({"xds_servers": [server("a"), trusted]}));

    let contexts = [0, 1, 2, u64::MAX].map(|id| bootstrap.context(id));
    assert_eq!(contexts, [false, true, false, false].map(|trusted| Context::default().trusted(trusted)));
}

/// R-BOOT-19: Features distinguish servers, but servers share a channel whatever their features.
#[test]
fn servers_with_different_features_are_distinct_and_share_a_channel() {
    let other = json!({"server_uri": "a", "channel_creds": insecure(), "server_features": ["trusted_xds_server"]});
    let bootstrap = parse(json!({"xds_servers": [server("a"), other, server("b")]}));
    let [plain, trusted, b] = bootstrap.servers() else { panic!("three servers") };
    assert!(plain.shares_channel(trusted) && !plain.shares_channel(b));
    let jwt = json!({"call_creds": [{"type": "jwt_token_file", "config": {"jwt_token_file": "/t"}}]});
    assert!(!plain.shares_channel(&parse(with_server(jwt)).servers()[0]));
    let tls = json!({"channel_creds": [{"type": "tls"}]});
    assert!(!plain.shares_channel(&parse(with_server(tls)).servers()[0]));
}

/// R-BOOT-25: A provider of certificates has a plugin; an unknown one is kept for the caller to judge.
#[test]
fn certificate_providers_require_a_plugin_name_and_may_be_unknown() {
    let providers = |providers: Value| file(json!({"certificate_providers": providers}));
    let bootstrap =
        parse(providers(json!({"x": {"plugin_name": "unknown", "config": {"a": 1}}, "y": {"plugin_name": "p"}})));
    let all: Vec<_> =
        bootstrap.certificate_providers().iter().map(|(name, p)| (&**name, &*p.plugin, p.config.len())).collect();
    assert_eq!(all, [("x", "unknown", 1), ("y", "p", 0)]);
    assert_eq!(bootstrap.certificate_providers()["x"].file_watcher(), None);
    assert_eq!(faults(providers(json!({"x": {}}))), ["certificate_providers[\"x\"].plugin_name: field not present"]);
}

/// R-BOOT-26: A file watcher watches something, and a certificate comes with its key.
#[test]
fn a_file_watcher_requires_a_certificate_or_a_ca_certificate() {
    let watcher = |config: Value| {
        file(json!({"certificate_providers": {"x": {"plugin_name": "file_watcher", "config": config}}}))
    };
    let at = "certificate_providers[\"x\"].config";
    let nothing = format!("{at}: at least one of \"certificate_file\" and \"ca_certificate_file\" must be specified");
    let pair = format!("{at}: fields \"certificate_file\" and \"private_key_file\" must be both set or both unset");
    assert_eq!(faults(watcher(json!({}))), [&*nothing]);
    assert_eq!(faults(watcher(json!(null))), [&*nothing]);
    assert_eq!(faults(watcher(json!({"private_key_file": "k"}))), [&*pair, &*nothing]);
    assert_eq!(faults(watcher(json!({"certificate_file": "c"}))), [&*pair]);
    let files = |config: Value| parse(watcher(config)).certificate_providers()["x"].file_watcher().expect("files");
    assert_eq!(files(json!({"ca_certificate_file": "a"})).refresh_interval, Duration::from_secs(600));
    let both = files(json!({"certificate_file": "c", "private_key_file": "k", "refresh_interval": "1s"}));
    assert_eq!((both.refresh_interval, both.private_key.as_deref()), (Duration::from_secs(1), Some("k")));
}

/// R-BOOT-40: `Debug` shows no configuration of credentials.
#[test]
fn debug_output_contains_no_secrets() {
    let bootstrap = parse(file(json!({
        "xds_servers": [{
            "server_uri": "a",
            "channel_creds": [{"type": "tls", "config": {"token": "secret"}}],
            "call_creds": [{"type": "other", "config": {"token": "secret"}}],
        }],
        "certificate_providers": {"x": {"plugin_name": "p", "config": {"token": "secret"}}},
    })));
    let text = format!("{bootstrap:?}");
    assert!(text.contains("Credentials { kind: \"tls\", .. }") && !text.contains("secret"), "{text}");
    assert_eq!(bootstrap.to_json().matches("secret").count(), 3, "the file has them");
}
