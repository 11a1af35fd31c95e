//! What may be wrong with a structured name.

use alloc::string::String;

/// Why a text is no structured name.
#[derive(Clone, Debug, Eq, Hash, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A directive has no value that it may have.
    #[error("the directive {directive} is not `alt=` or `entry=` with a value")]
    BadDirective {
        /// The directive as it stands in the name.
        directive: String,
    },
    /// The resource type has a character that no message type has.
    #[error("{resource_type} is no resource type")]
    BadResourceType {
        /// The text in its place.
        resource_type: String,
    },
    /// The name has the same directive twice.
    #[error("the directive {directive} comes twice")]
    DuplicateDirective {
        /// The key of the directive.
        directive: &'static str,
    },
    /// A context parameter comes twice: which one counts is not defined.
    #[error("the context parameter {key} comes twice")]
    DuplicateParam {
        /// The key of the parameter.
        key: String,
    },
    /// A context parameter has no key.
    #[error("a context parameter has no key")]
    EmptyKey,
    /// The text is not `xdstp://` and so on.
    #[error("a structured name begins with xdstp://")]
    Scheme,
    /// A percent sign is not followed by two hexadecimal digits, or what they encode is no UTF-8.
    #[error("a percent sign encodes no character")]
    Escape,
    /// There is no resource type.
    #[error("the resource type is missing")]
    NoResourceType,
    /// There is nothing after the resource type.
    #[error("the id is missing")]
    NoId,
}
