use benches::workload as w;
use prost::Message;
use std::time::Instant as C;
use xds_machine::client::*;
use xds_machine::*;
fn main() {
    let n: usize = std::env::args().nth(1).map_or(100_000, |x| x.parse().unwrap());
    let types = w::clusters();
    let mut cache = w::cache(&types, n);
    let mut client = Client::<Sotw>::new(Config::new(message::Node::new("n")));
    client.subscribe(&types, ["*".into()]).unwrap();
    client.handle_open(Instant::EPOCH);
    while client.poll_transmit().is_some() {}
    for round in 0..6u8 {
        cache.insert(&types, w::resource(n / 2, round));
        let mut f = w::sotw_response(&cache, &types);
        f.nonce = round.to_string();
        let bytes = bytes::Bytes::from(f.encode_to_vec());
        drop(f);
        let r = proto::sotw::decode_response(bytes).unwrap();
        let t0 = C::now();
        client.handle_response(Instant::EPOCH, r).unwrap();
        let t1 = C::now();
        let Some(Action::Apply(u)) = client.poll_action() else { panic!() };
        let t2 = C::now();
        let v = u.accept();
        client.handle_verdict(Instant::EPOCH, v).unwrap();
        let t3 = C::now();
        let x = client.poll_transmit();
        let t4 = C::now();
        println!("handle_response {:?} poll {:?} verdict {:?} transmit {:?}", t1 - t0, t2 - t1, t3 - t2, t4 - t3);
        drop(x);
    }
}
