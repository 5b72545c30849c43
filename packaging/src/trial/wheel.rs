//! `pip install toolbay` and `uvx toolbay`, from an index that contains the wheel.

use std::fs;
use std::path::PathBuf;

use anyhow::Result;
use toolbay_testkit::command;

use super::{Installed, LocalSite, Room};
use crate::kit::Kit;
use crate::release::NAME;

/// Serves an index, which is a directory with an HTML page for each package.
fn index(files: &[PathBuf], room: &Room) -> Result<LocalSite> {
    let folder = room.installed().join("index");
    let package = folder.join(NAME);
    fs::create_dir_all(&package)?;
    for file in files {
        fs::copy(file, package.join(file.file_name().unwrap_or_default()))?;
    }
    LocalSite::serve(&folder, room)
}

pub(crate) fn pip(_: &Kit, files: &[PathBuf], room: &Room) -> Result<Installed> {
    let site = index(files, room)?;
    let environment = room.installed().join("environment");
    command::run(
        room.command("python3")
            .args(["-m", "venv"])
            .arg(&environment),
    )?;
    let mut pip = room.command(environment.join("bin/pip"));
    pip.args([
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--index-url",
        &site.url,
        NAME,
    ]);
    command::run(&mut pip)?;
    let program = environment.join("bin").join(NAME);
    Ok(Installed {
        words: vec![program.display().to_string()],
        ..Installed::default()
    })
}

pub(crate) fn uvx(kit: &Kit, files: &[PathBuf], room: &Room) -> Result<Installed> {
    let site = index(files, room)?;
    let uvx = kit.tools.uv()?.join("uvx").display().to_string();
    let variables = vec![
        ("UV_DEFAULT_INDEX".to_owned(), site.url.clone()),
        // Use the Python of this machine.
        ("UV_PYTHON_DOWNLOADS".to_owned(), "never".to_owned()),
    ];
    let mut first = room.command(&uvx);
    first
        .args([NAME, "--version"])
        .envs(variables.iter().map(|(name, value)| (name, value)));
    command::output(&mut first)?;
    Ok(Installed {
        words: vec![uvx, NAME.to_owned()],
        variables,
        _site: Some(site),
        ..Installed::default()
    })
}
