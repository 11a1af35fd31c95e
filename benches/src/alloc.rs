//! Counts what the system allocator gives.

use std::alloc::{GlobalAlloc, Layout, System};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The allocator of a program that measures.
pub struct Counting;

static LIVE: AtomicU64 = AtomicU64::new(0);
static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

// The one place in the project that can't do without: a global allocator is an unsafe trait.
#[allow(unsafe_code)]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LIVE.fetch_add(layout.size() as u64, Relaxed);
        ALLOCATIONS.fetch_add(1, Relaxed);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size() as u64, Relaxed);
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        LIVE.fetch_add(size as u64, Relaxed);
        LIVE.fetch_sub(layout.size() as u64, Relaxed);
        ALLOCATIONS.fetch_add(1, Relaxed);
        unsafe { System.realloc(pointer, layout, size) }
    }
}

/// Bytes that are allocated now.
pub fn live() -> u64 {
    LIVE.load(Relaxed)
}

/// Allocations so far.
pub fn allocations() -> u64 {
    ALLOCATIONS.load(Relaxed)
}

/// Starts this program anew with an allocator that keeps what it has: neither work nor floor is to wait for pages of the
/// system, which come and go with the size of a buffer. (glibc's; another allocator does not look at this.)
pub fn keep() {
    const KEEP: [(&str, &str); 2] =
        [("MALLOC_TRIM_THRESHOLD_", "8000000000"), ("MALLOC_MMAP_THRESHOLD_", "8000000000")];
    if KEEP.iter().any(|(key, _)| std::env::var_os(key).is_none()) {
        let mut again = Command::new(std::env::current_exe().expect("a program has a path"));
        let error = again.args(std::env::args_os().skip(1)).envs(KEEP).exec();
        panic!("can't start anew: {error}");
    }
}
