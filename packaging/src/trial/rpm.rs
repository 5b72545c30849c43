//! `rpm --install`, into a separate root.

use std::path::PathBuf;

use anyhow::Result;
use toolbay_testkit::command;

use super::{Installed, Room};
use crate::content::BINARY;
use crate::kit::Kit;

pub(crate) fn install(_: &Kit, files: &[PathBuf], room: &Room) -> Result<Installed> {
    let system = room.installed();
    for file in files {
        // rpm changes its root to the system that it installs to, which requires root; a user
        // namespace is enough.
        let mut rpm = room.command("unshare");
        rpm.args(["--map-root-user", "rpm", "--install", "--root"])
            .arg(&system);
        command::output(
            rpm.args(["--dbpath", "/var/lib/rpm", "--nosignature"])
                .arg(file),
        )?;
    }
    let program = system.join("usr").join(BINARY);
    Ok(Installed {
        words: vec![program.display().to_string()],
        ..Installed::default()
    })
}
