//! Privileges that a server has only because root started it.

use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};

/// What root keeps: its way with files. Everything else, such as raw packets, other processes' memory and the settings of
/// the machine, no server needs.
const KEPT: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::DAC_READ_SEARCH)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID);

/// Gives up the privileges of the calling thread, and of those that it starts. Without any there is nothing to do.
///
/// # Errors
///
/// Why not, as the end of a sentence.
pub(crate) fn give_up() -> Result<(), String> {
    let had = capabilities(None).map_err(|error| error.to_string())?;
    let left = had.permitted & KEPT;
    if had.permitted == left && had.inheritable.is_empty() {
        return Ok(());
    }
    let sets = CapabilitySets { effective: left, permitted: left, inheritable: CapabilitySet::empty() };
    set_capabilities(None, sets).map_err(|error| error.to_string())
}
