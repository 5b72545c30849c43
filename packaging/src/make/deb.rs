//! The package for Debian and Ubuntu, written by `dpkg-deb`. It has no dependencies.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result};

use crate::content::{self, File};
use crate::kit::{Kit, write};
use crate::release::{DESCRIPTION, HOMEPAGE, MAINTAINER, NAME, SUMMARY};

pub(crate) fn make(kit: &Kit) -> Result<Vec<PathBuf>> {
    let work = kit.work("deb")?;
    let files: Vec<File> = kit.content.all().map(moved).collect();
    content::copy(files.iter(), &work.join("usr"))?;
    let mut copyright = String::from(
        "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n\n",
    );
    let _ = writeln!(
        copyright,
        "Files: *\nCopyright: The Toolbay developers\nLicense: MIT or Apache-2.0"
    );
    let _ = writeln!(
        copyright,
        "Comment: LICENSE-MIT and LICENSE-APACHE beside this file have the texts."
    );
    fs::write(
        work.join("usr/share/doc").join(NAME).join("copyright"),
        copyright,
    )?;
    let size: u64 = files
        .iter()
        .map(|file| Ok(fs::metadata(&file.from)?.len()))
        .sum::<Result<u64>>()?;
    let control = work.join("DEBIAN");
    fs::create_dir_all(&control)?;
    fs::write(
        control.join("control"),
        self::control(&kit.release.version, kit.program.machine.debian, size),
    )?;
    let file = kit.out.join(format!(
        "{NAME}_{}_{}.deb",
        kit.release.version, kit.program.machine.debian
    ));
    let mut dpkg = Command::new("dpkg-deb");
    // This takes half a minute and makes the package a third smaller, which is worth it for a
    // download.
    let compression: &[&str] = if kit.program.is_static {
        &["-Zxz"]
    } else {
        &["-Zgzip", "-z1"]
    };
    dpkg.arg("--root-owner-group")
        .args(compression)
        .arg("--build")
        .arg(&work)
        .arg(&file);
    dpkg.env("SOURCE_DATE_EPOCH", kit.release.time.to_string())
        .stdout(std::process::Stdio::null());
    Ok(vec![write(&mut dpkg, file).context(
        "dpkg-deb makes this package; Debian, Ubuntu and Fedora have it as dpkg",
    )?])
}

/// Debian's zsh reads completions from a different directory.
fn moved(file: &File) -> File {
    File {
        to: file
            .to
            .replace("share/zsh/site-functions/", "share/zsh/vendor-completions/"),
        from: file.from.clone(),
    }
}

/// Returns the control file. `size` is in bytes.
fn control(version: &str, machine: &str, size: u64) -> String {
    format!(
        "Package: {NAME}\nVersion: {version}\nArchitecture: {machine}\nMaintainer: {MAINTAINER}\nInstalled-Size: {}\n\
         Section: net\nPriority: optional\nHomepage: {HOMEPAGE}\nDescription: {SUMMARY}\n {DESCRIPTION}\n",
        size.div_ceil(1024)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_control_file_has_one_field_a_line() {
        insta::assert_snapshot!(control("1.2.3", "amd64", 1025), @r"
        Package: toolbay
        Version: 1.2.3
        Architecture: amd64
        Maintainer: The Toolbay developers <packages@toolbay.dev>
        Installed-Size: 2
        Section: net
        Priority: optional
        Homepage: https://toolbay.dev
        Description: An MCP server whose tools are WebAssembly components
         Copy a .wasm file into a folder, and a moment later MCP clients have a new tool, without a restart of the server. Each call runs in a fresh sandbox that limits its fuel, time, memory and permissions.
        ");
    }
}
