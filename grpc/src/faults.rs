//! Faults of a resource or of a bootstrap file: all of them at once, each with the path of its field.

use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::{self, Write};

/// The number of faults that are kept. Further ones are counted only, so that a hostile resource makes no long message.
const KEPT: usize = 100;

/// The faults of a resource or of a bootstrap file, in the order of their paths.
///
/// A caller that checks more than the decoders do (the *data path*) adds its own faults, so that one verdict has all:
///
/// ```
/// use xds_machine_grpc::faults::Faults;
///
/// let mut faults = Faults::default();
/// faults.add("lb_policy", "LB policy is not supported");
/// faults.add("circuit_breakers.thresholds[0]", "unknown priority");
/// faults.add("lb_policy", "unknown enum value");
/// assert_eq!(
///     faults.to_string(),
///     "[field:circuit_breakers.thresholds[0] error:unknown priority; \
///       field:lb_policy errors:[LB policy is not supported; unknown enum value]]",
/// );
/// ```
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct Faults {
    by_path: BTreeMap<String, Vec<String>>,
    more: usize,
}

impl Faults {
    /// Adds a fault: its path (empty if the whole is at fault), and what is wrong there.
    pub fn add(&mut self, path: impl Into<String>, message: impl Into<String>) {
        if self.more > 0 || self.iter().count() == KEPT {
            self.more += 1;
            return;
        }
        self.by_path.entry(path.into()).or_default().push(message.into());
    }

    /// Returns whether there are no faults.
    pub fn is_empty(&self) -> bool {
        self.by_path.is_empty()
    }

    /// Returns the faults, each as a path and a message.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.by_path
            .iter()
            .flat_map(|(path, messages)| messages.iter().map(|message| (path.as_str(), message.as_str())))
    }

    /// Returns the number of faults beyond the first 100, which are counted but not kept.
    pub fn more(&self) -> usize {
        self.more
    }

    /// Returns the value if there are no faults.
    ///
    /// # Errors
    ///
    /// The faults, if there are any.
    pub fn verdict<T>(self, value: T) -> Result<T, Self> {
        if self.is_empty() { Ok(value) } else { Err(self) }
    }

    /// Joins these faults with those of a decoder: the value counts only if there are neither.
    ///
    /// # Errors
    ///
    /// All faults, if there are any.
    pub fn with<T>(mut self, decoded: Result<T, Self>) -> Result<T, Self> {
        match decoded {
            Ok(value) => self.verdict(value),
            Err(faults) => {
                faults.iter().for_each(|(path, message)| self.add(path, message));
                self.more += faults.more;
                Err(self)
            }
        }
    }
}

impl fmt::Display for Faults {
    /// Writes all faults in the form of gRPC's messages: `[field:a.b error:x; field:c errors:[y; z]]`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        for (at, (path, messages)) in self.by_path.iter().enumerate() {
            f.write_str(if at == 0 { "" } else { "; " })?;
            match (path.as_str(), &messages[..]) {
                ("", messages) => f.write_str(&messages.join("; "))?,
                (path, [message]) => write!(f, "field:{path} error:{message}")?,
                (path, messages) => write!(f, "field:{path} errors:[{}]", messages.join("; "))?,
            }
        }
        match self.more {
            0 => f.write_str("]"),
            more => write!(f, "; and {more} more]"),
        }
    }
}

impl core::error::Error for Faults {}

/// Collects the faults of a message while a decoder walks through the fields.
#[derive(Default)]
pub(crate) struct Walk {
    path: String,
    faults: Faults,
}

impl Walk {
    /// Walks into a field, given by name or as `name[index]`, for the time of a function.
    pub(crate) fn within<T>(&mut self, field: impl fmt::Display, walk: impl FnOnce(&mut Self) -> T) -> T {
        let len = self.enter(&field);
        let value = walk(self);
        self.leave(len);
        value
    }

    /// Walks into a field. Returns the argument for [`leave`](Self::leave).
    pub(crate) fn enter(&mut self, field: &dyn fmt::Display) -> usize {
        let len = self.path.len();
        if len > 0 {
            self.path.push('.');
        }
        let start = self.path.len();
        let written = write!(self.path, "{field}");
        debug_assert!(written.is_ok(), "a string takes all there is");
        // An index, or the key of a map, follows its field without a dot.
        if len > 0 && self.path[start..].starts_with('[') {
            self.path.remove(len);
        }
        len
    }

    /// Walks out of a field again.
    pub(crate) fn leave(&mut self, len: usize) {
        self.path.truncate(len);
    }

    /// Adds a fault of the field that the walk is in.
    pub(crate) fn fault(&mut self, message: impl Into<String>) {
        self.faults.add(self.path.to_owned(), message);
    }

    /// Adds a fault of a field inside the field that the walk is in.
    pub(crate) fn fault_at(&mut self, field: impl fmt::Display, message: impl Into<String>) {
        self.within(field, |walk| walk.fault(message));
    }

    /// Returns the faults.
    pub(crate) fn into_faults(self) -> Faults {
        self.faults
    }
}
