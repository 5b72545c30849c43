//! What this process knows of its surroundings: its home, its variables, Windows around it, and its own path.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use toolbay_install::{PathEnvironment, WslEnvironment};

/// The variable in which WSL names the Linux that runs.
const DISTRIBUTION: &str = "WSL_DISTRO_NAME";

/// Where WSL has the drives of Windows, unless it is told otherwise.
const DRIVES: &str = "/mnt";

/// The folder of home folders on the first drive.
const USERS: &str = "c/Users";

/// Most home folders of Windows that are looked at.
const HOMES: usize = 100;

/// Folders beside the home folders that belong to nobody.
const NOBODY: [&str; 4] = ["Public", "Default", "Default User", "All Users"];

/// What the paths of configurations depend on.
pub(super) fn surroundings() -> anyhow::Result<PathEnvironment> {
    let home = env::home_dir().filter(|home| home.is_absolute());
    let home = home.context("the home folder is unknown: set HOME to its path")?;
    let project = env::current_dir().context("the current folder is unknown")?;
    let variables = env::vars_os().filter_map(|(k, v)| Some((k.into_string().ok()?, v.into_string().ok()?))).collect();
    let wsl = env::var(DISTRIBUTION).ok().filter(|name| !name.is_empty());
    let wsl = wsl.map(|distribution| WslEnvironment {
        distribution,
        drives: PathBuf::from(DRIVES),
        homes: homes(&Path::new(DRIVES).join(USERS)),
    });
    Ok(PathEnvironment { home, project, variables, wsl })
}

/// The home folders in `users` that can be read.
fn homes(users: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(users) else { return Vec::new() };
    let is_home = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| !NOBODY.contains(&name)) && path.join("AppData").is_dir()
    };
    let mut homes: Vec<PathBuf> =
        entries.take(HOMES).filter_map(|entry| Some(entry.ok()?.path())).filter(is_home).collect();
    homes.sort();
    homes
}

/// Absolute path of this program: that on the search path if it leads here, because it stays the same in later versions.
pub(super) fn program() -> anyhow::Result<PathBuf> {
    let running = env::current_exe().context("the path of this program is unknown")?;
    ensure!(running.is_file(), "this program is no longer at {}: run the one that took its place", running.display());
    let name = running.file_name().unwrap_or_default();
    let itself = fs::canonicalize(&running).ok();
    let leads_here = |path: &PathBuf| path.is_absolute() && fs::canonicalize(path).ok() == itself;
    Ok(search_path().map(|folder| folder.join(name)).find(leads_here).unwrap_or(running))
}

/// Whether a program is on the search path.
pub(super) fn has_program(name: &str) -> bool {
    search_path().any(|folder| folder.is_absolute() && folder.join(name).is_file())
}

fn search_path() -> impl Iterator<Item = PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).collect::<Vec<_>>().into_iter()
}
