//! Ids and names in an event.

use std::fmt;

use serde::Serialize;

use crate::printable::cut;

/// An id or a name that a peer or an operator chose, cut to a length that a log can hold. The log escapes it.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Name<'a>(&'a str);

impl<'a> Name<'a> {
    pub(super) fn as_str(self) -> &'a str {
        self.0
    }
}

impl<'a> From<&'a str> for Name<'a> {
    fn from(name: &'a str) -> Self {
        Self(cut(name))
    }
}

impl<'a> From<&'a String> for Name<'a> {
    fn from(name: &'a String) -> Self {
        name.as_str().into()
    }
}

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}
