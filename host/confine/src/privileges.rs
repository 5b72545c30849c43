//! Drops capabilities that a server has only because root started it.

use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};

/// Capabilities that are retained when running as root: those for file access. No server needs the
/// others, such as raw packets, access to the memory of other processes, and machine configuration.
const RETAINED_CAPABILITIES: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::DAC_READ_SEARCH)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID);

/// Drops the capabilities of the calling thread and of the threads that it starts. Does nothing if
/// there are none to drop.
///
/// # Errors
///
/// Returns the reason, as the end of a sentence.
pub(crate) fn drop_capabilities() -> Result<(), String> {
    let current = capabilities(None).map_err(|error| error.to_string())?;
    let retained = current.permitted & RETAINED_CAPABILITIES;
    if current.permitted == retained && current.inheritable.is_empty() {
        return Ok(());
    }
    let sets = CapabilitySets {
        effective: retained,
        permitted: retained,
        inheritable: CapabilitySet::empty(),
    };
    set_capabilities(None, sets).map_err(|error| error.to_string())
}
