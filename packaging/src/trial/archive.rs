//! `tar`: downloads, checks and unpacks the archive.

use std::path::PathBuf;

use anyhow::Result;
use toolbay_testkit::command;

use super::{Installed, Room};
use crate::checksums;
use crate::content::BINARY;
use crate::kit::Kit;
use crate::make::archive::folder;

pub(crate) fn install(kit: &Kit, files: &[PathBuf], room: &Room) -> Result<Installed> {
    command::output(
        room.command("sha256sum")
            .args(["--check", "--strict", "--quiet", checksums::FILE])
            .current_dir(&kit.out),
    )?;
    for file in files {
        command::run(
            room.command("tar")
                .arg("-xzf")
                .arg(file)
                .current_dir(room.installed()),
        )?;
    }
    let program = room.installed().join(folder(kit)).join(BINARY);
    Ok(Installed {
        words: vec![program.display().to_string()],
        ..Installed::default()
    })
}
