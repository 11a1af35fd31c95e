//! Returns from `check_invariants` with a message unless a condition holds.

macro_rules! ensure {
    ($holds:expr, $($otherwise:tt)+) => {
        if !$holds {
            return Err(alloc::format!($($otherwise)+));
        }
    };
}

pub(crate) use ensure;
