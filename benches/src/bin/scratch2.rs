use benches::workload as w;
use prost::Message;
use std::collections::BTreeMap;
use std::hint::black_box;
use std::time::Instant as C;
use xds_machine::*;
fn main() {
    let n = 100_000;
    let types = w::clusters();
    let cache = w::cache(&types, n);
    let bytes = bytes::Bytes::from(w::sotw_response(&cache, &types).encode_to_vec());
    let held: BTreeMap<ResourceName, (Version, bool)> =
        (0..n).map(|i| (ResourceName::from(w::name(i)), (Version::default(), true))).collect();
    for _ in 0..4 {
        let bytes = bytes::Bytes::from(bytes.to_vec());
        let r = proto::sotw::decode_response(bytes).unwrap();
        let t0 = C::now();
        let mut x = 0usize;
        for item in &r.resources {
            let message::sotw::Item::Bare(a) = item else { panic!() };
            x += a.value[1] as usize + a.value[10] as usize;
        }
        let t1 = C::now();
        black_box(x);
        let mut it = held.iter();
        for item in &r.resources {
            let message::sotw::Item::Bare(a) = item else { panic!() };
            let (k, _) = it.next().unwrap();
            let len = a.value[1] as usize;
            assert!(k.as_str().as_bytes() == &a.value[2..2 + len]);
        }
        let t2 = C::now();
        let mut it = held.iter();
        let mut v: Vec<(ResourceName, Version, bytes::Bytes, Option<Box<u8>>)> = Vec::with_capacity(n);
        for item in r.resources {
            let message::sotw::Item::Bare(a) = item else { panic!() };
            let (k, _) = it.next().unwrap();
            v.push((k.clone(), Version::default(), a.value, None));
        }
        let t3 = C::now();
        drop(v);
        let t4 = C::now();
        println!("touch {:?} compare {:?} build {:?} drop {:?}", t1 - t0, t2 - t1, t3 - t2, t4 - t3);
    }
}
