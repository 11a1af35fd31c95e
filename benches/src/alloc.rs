//! Counts the allocations of the system allocator.

use std::alloc::{GlobalAlloc, Layout, System};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// The allocator of a program that measures.
pub struct Counting;

static LIVE: AtomicU64 = AtomicU64::new(0);
static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);
static OFF: AtomicBool = AtomicBool::new(false);

/// Counts no longer, because threads that share counters wait for each other.
pub fn stop() {
    OFF.store(true, Relaxed);
}

fn count(allocated: usize, freed: usize, allocations: u64) {
    if !OFF.load(Relaxed) {
        LIVE.fetch_add(allocated as u64, Relaxed);
        LIVE.fetch_sub(freed as u64, Relaxed);
        ALLOCATIONS.fetch_add(allocations, Relaxed);
    }
}

// The one unsafe code in the project that can't be avoided: a global allocator is an unsafe trait.
#[allow(unsafe_code)]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 0, 1);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(0, layout.size(), 0);
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size, layout.size(), 1);
        unsafe { System.realloc(pointer, layout, size) }
    }
}

/// Returns the number of bytes that are allocated now.
pub fn live() -> u64 {
    LIVE.load(Relaxed)
}

/// Returns the number of allocations so far.
pub fn allocations() -> u64 {
    ALLOCATIONS.load(Relaxed)
}

/// Restarts this program with an allocator that keeps freed memory, so that neither work nor floor waits for pages of
/// the system, which come and go with the size of a buffer. (Affects glibc; other allocators ignore it.)
pub fn keep() {
    const KEEP: [(&str, &str); 2] =
        [("MALLOC_TRIM_THRESHOLD_", "8000000000"), ("MALLOC_MMAP_THRESHOLD_", "8000000000")];
    if KEEP.iter().any(|(key, _)| std::env::var_os(key).is_none()) {
        let mut again = Command::new(std::env::current_exe().expect("a program has a path"));
        let error = again.args(std::env::args_os().skip(1)).envs(KEEP).exec();
        panic!("can't start anew: {error}");
    }
}
