//! A library of both machines, and of gRPC's layers above the client, for a target without std.
//!
//! The library defines a panic handler and an allocator. A dependency that links std would bring a second one, which
//! rustc refuses (E0152): a successful build proves, on any host, that no dependency does.

#![no_std]

extern crate alloc;

use core::alloc::{GlobalAlloc, Layout};
use core::cell::UnsafeCell;
use core::panic::PanicInfo;
use core::sync::atomic::{AtomicUsize, Ordering};
use core::{ptr, slice};

use bytes::Bytes;
use xds_machine::client::{self, Action, Client};
use xds_machine::message::Node;
use xds_machine::server::{self, Cache, Resource, Server, StreamId};
use xds_machine::{Delta, Instant, ResourceName, Sotw, TypeUrl, proto, type_url};
use xds_machine_grpc::bootstrap::Bootstrap;
use xds_machine_grpc::resources::decode_cluster;

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    loop {}
}

/// Memory that is allocated once and never freed, which is enough for the proof.
struct Arena {
    memory: UnsafeCell<[u8; SIZE]>,
    taken: AtomicUsize,
}

const SIZE: usize = 1 << 20;

#[global_allocator]
static ARENA: Arena = Arena { memory: UnsafeCell::new([0; SIZE]), taken: AtomicUsize::new(0) };

// SAFETY: no two allocations get the same bytes, because `taken` only grows.
unsafe impl Sync for Arena {}

// SAFETY: every allocation is in the arena, aligned, and handed out once.
unsafe impl GlobalAlloc for Arena {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let start = self.memory.get().cast::<u8>();
        let taken = self.taken.fetch_add(layout.size() + layout.align(), Ordering::Relaxed);
        let place = taken + start.wrapping_add(taken).align_offset(layout.align());
        if place + layout.size() > SIZE { ptr::null_mut() } else { start.wrapping_add(place) }
    }

    unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}
}

/// Sends one resource from a server to a client, over bytes; in both variants, so that the code of both is linked.
/// Returns the number of bodies received.
#[unsafe(no_mangle)]
pub extern "C" fn exchange() -> u32 {
    sotw().unwrap_or(0) + delta().unwrap_or(0)
}

/// Parses a bootstrap file and decodes a Cluster, so that the code of gRPC's layers is linked. Returns the number of
/// servers of the file.
///
/// # Safety
///
/// The text and the body are of these lengths.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn grpc(text: *const u8, text_len: usize, body: *const u8, body_len: usize) -> u32 {
    // SAFETY: the caller says so.
    let (text, body) = unsafe { (slice::from_raw_parts(text, text_len), slice::from_raw_parts(body, body_len)) };
    let Some(bootstrap) = core::str::from_utf8(text).ok().and_then(|text| Bootstrap::parse(text, |_| true).ok()) else {
        return 0;
    };
    let view = decode_cluster(&ResourceName::from("a"), &Bytes::copy_from_slice(body), &bootstrap.context(0));
    view.map_or(0, |_| bootstrap.servers().len() as u32)
}

const NOW: Instant = Instant::EPOCH;

fn store(clusters: &TypeUrl) -> Cache {
    let mut cache = Cache::new(1);
    cache.insert(clusters, Resource::new("a", &b"\x0a\x01a"[..]));
    cache
}

fn sotw() -> Option<u32> {
    let clusters = TypeUrl::from(type_url::CLUSTER);
    let mut client = Client::<Sotw>::new(client::Config::new(Node::new("n")));
    let mut server = Server::<Sotw>::new(server::Config::ads(), StreamId(1));
    client.resources_mut(&clusters).subscribe(["a"]).ok()?;
    client.handle_open();
    let request = proto::sotw::encode_request(&client.poll_transmit()?.request);
    server.handle_request(NOW, proto::sotw::decode_request(request.into()).ok()?).ok()?;
    let mut response = alloc::vec::Vec::new();
    server.poll_transmit(NOW, &store(&clusters))?.encode(&mut response);
    client.handle_response(NOW, proto::sotw::decode_response(response.into()).ok()?).ok()?;
    match client.poll_action()? {
        Action::Apply(update) => Some(update.resources().len() as u32),
        _ => None,
    }
}

fn delta() -> Option<u32> {
    let clusters = TypeUrl::from(type_url::CLUSTER);
    let mut client = Client::<Delta>::new(client::Config::new(Node::new("n")));
    let mut server = Server::<Delta>::new(server::Config::ads(), StreamId(2));
    client.resources_mut(&clusters).subscribe(["a"]).ok()?;
    client.handle_open();
    let request = proto::delta::encode_request(&client.poll_transmit()?.request);
    server.handle_request(NOW, proto::delta::decode_request(request.into()).ok()?).ok()?;
    let mut response = alloc::vec::Vec::new();
    server.poll_transmit(NOW, &store(&clusters))?.encode(&mut response);
    client.handle_response(NOW, proto::delta::decode_response(response.into()).ok()?).ok()?;
    match client.poll_action()? {
        Action::Apply(update) => Some(update.resources().len() as u32),
        _ => None,
    }
}
