//! For `check_invariants`: what must hold, or a sentence that says what does not.

macro_rules! ensure {
    ($holds:expr, $($otherwise:tt)+) => {
        if !$holds {
            return Err(alloc::format!($($otherwise)+));
        }
    };
}

pub(crate) use ensure;
