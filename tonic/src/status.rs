//! The status of a stream, as tonic has it.

/// Converts the status of a machine.
pub(crate) fn to_tonic(status: xds_machine::Status) -> tonic::Status {
    tonic::Status::new(status.code.into(), status.message)
}
