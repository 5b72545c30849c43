//! Standard streams of a guest.

pub(crate) mod guest_stdin;
pub(crate) mod output_capture;
pub(crate) mod stdio_transport;
