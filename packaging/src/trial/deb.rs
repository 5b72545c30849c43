//! `dpkg --install`, into a separate root.

use std::fs;
use std::path::PathBuf;

use anyhow::Result;
use toolbay_testkit::command;

use super::{Installed, Room};
use crate::content::BINARY;
use crate::kit::Kit;

pub(crate) fn install(_: &Kit, files: &[PathBuf], room: &Room) -> Result<Installed> {
    let system = room.installed();
    // The database of dpkg for a system in which nothing is installed.
    for folder in ["updates", "info", "triggers"] {
        fs::create_dir_all(system.join("var/lib/dpkg").join(folder))?;
    }
    fs::write(system.join("var/lib/dpkg/status"), "")?;
    for file in files {
        let mut dpkg = room.command("dpkg");
        dpkg.args(["--force-not-root", "--force-script-chrootless"])
            .arg(format!("--root={}", system.display()));
        command::output(dpkg.arg("--install").arg(file))?;
    }
    let program = system.join("usr").join(BINARY);
    Ok(Installed {
        words: vec![program.display().to_string()],
        ..Installed::default()
    })
}
