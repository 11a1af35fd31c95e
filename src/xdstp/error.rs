//! The faults of a structured name.

use alloc::string::String;

/// The reason why a text is not a structured name.
#[derive(Clone, Debug, Eq, Hash, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A directive has an invalid value.
    #[error("the directive {directive} is not `alt=` or `entry=` with a value")]
    BadDirective {
        /// The directive as written in the name.
        directive: String,
    },
    /// The resource type has a character that a message type can't have.
    #[error("{resource_type} is no resource type")]
    BadResourceType {
        /// The text in place of the resource type.
        resource_type: String,
    },
    /// The name has the same directive twice.
    #[error("the directive {directive} comes twice")]
    DuplicateDirective {
        /// The key of the directive.
        directive: &'static str,
    },
    /// A context parameter occurs twice; the specification does not define which one counts.
    #[error("the context parameter {key} comes twice")]
    DuplicateParam {
        /// The key of the parameter.
        key: String,
    },
    /// A context parameter has no key.
    #[error("a context parameter has no key")]
    EmptyKey,
    /// The text does not begin with `xdstp://`.
    #[error("a structured name begins with xdstp://")]
    Scheme,
    /// A percent sign is not followed by two hexadecimal digits, or the decoded bytes are not UTF-8.
    #[error("a percent sign encodes no character")]
    Escape,
    /// The resource type is missing.
    #[error("the resource type is missing")]
    NoResourceType,
    /// The id after the resource type is missing.
    #[error("the id is missing")]
    NoId,
}
