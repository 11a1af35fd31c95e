//! The messages of each variant, so that code for both can name them.

use core::fmt::Debug;
use core::hash::Hash;

use super::{delta, sotw};
use crate::variant::{Delta, Sotw};

/// The messages of one variant, [`Sotw`] or [`Delta`]. Sealed.
///
/// The supertrait of [`client::Variant`](crate::client::Variant), [`server::Variant`](crate::server::Variant) and
/// [`proto::Wire`](crate::proto::Wire), so that a driver for both variants names `V::Request` and `V::Response` without
/// further bounds.
pub trait Messages: Clone + Debug + Default + Eq + Hash + Send + Sync + Sized + sealed::Sealed + 'static {
    /// The message that the client sends.
    type Request: Clone + Debug + Eq + Hash + Send + Sync + 'static;
    /// The message that the server sends.
    type Response: Clone + Debug + Eq + Hash + Send + Sync + 'static;
}

impl Messages for Sotw {
    type Request = sotw::Request;
    type Response = sotw::Response;
}

impl Messages for Delta {
    type Request = delta::Request;
    type Response = delta::Response;
}

mod sealed {
    #[allow(unnameable_types)] // this is the seal
    pub trait Sealed {}
    impl Sealed for super::Sotw {}
    impl Sealed for super::Delta {}
}
