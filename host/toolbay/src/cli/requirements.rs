//! What a machine needs to build a plugin.

use anyhow::bail;
use toolbay_settings::project::Project;

/// Whether the machine has what the build needs.
pub(super) fn ready(project: &Project) -> anyhow::Result<()> {
    let missing = project.missing();
    if missing.is_empty() {
        return Ok(());
    }
    bail!("this machine lacks what the build needs\n    {}", missing.join("\n    "))
}
