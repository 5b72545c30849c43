//! Environment of this process: home folder, variables, the Windows host of WSL, and the program's
//! own path.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use toolbay_install::{PathEnvironment, WslEnvironment};

/// Environment variable that contains the name of the WSL distribution.
const DISTRIBUTION_VARIABLE: &str = "WSL_DISTRO_NAME";

/// Default mount point of Windows drives in WSL.
const DEFAULT_DRIVES_PATH: &str = "/mnt";

/// Path of the Windows home folders, relative to the mount point of the drives.
const USERS_PATH: &str = "c/Users";

/// Maximum number of Windows home folders that are inspected.
const MAX_HOMES: usize = 100;

/// Folders next to the Windows home folders that do not belong to a user.
const SYSTEM_FOLDERS: [&str; 4] = ["Public", "Default", "Default User", "All Users"];

/// Returns the environment that determines the paths of configuration files.
pub(in crate::cli) fn path_environment() -> anyhow::Result<PathEnvironment> {
    let home = env::home_dir().filter(|home| home.is_absolute());
    let home = home.context("the home folder is unknown: set HOME to its path")?;
    let project = env::current_dir().context("the current folder is unknown")?;
    let variables = env::vars_os()
        .filter_map(|(k, v)| Some((k.into_string().ok()?, v.into_string().ok()?)))
        .collect();
    let wsl = env::var(DISTRIBUTION_VARIABLE)
        .ok()
        .filter(|name| !name.is_empty());
    let wsl = wsl.map(|distribution| WslEnvironment {
        distribution,
        drives: PathBuf::from(DEFAULT_DRIVES_PATH),
        homes: windows_homes(&Path::new(DEFAULT_DRIVES_PATH).join(USERS_PATH)),
    });
    Ok(PathEnvironment {
        home,
        project,
        variables,
        wsl,
    })
}

/// Returns the readable home folders in `users`.
fn windows_homes(users: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(users) else {
        return Vec::new();
    };
    let is_home = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| !SYSTEM_FOLDERS.contains(&name)) && path.join("AppData").is_dir()
    };
    let mut homes: Vec<PathBuf> = entries
        .take(MAX_HOMES)
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(is_home)
        .collect();
    homes.sort();
    homes
}

/// Returns the absolute path of this program. Prefers a link on the search path, because it stays
/// valid after an upgrade.
pub(super) fn program_path() -> anyhow::Result<PathBuf> {
    let running = env::current_exe().context("the path of this program is unknown")?;
    ensure!(
        running.is_file(),
        "this program is no longer at {}: run the one that took its place",
        running.display()
    );
    let name = running.file_name().unwrap_or_default();
    let itself = fs::canonicalize(&running).ok();
    let leads_here = |path: &PathBuf| path.is_absolute() && fs::canonicalize(path).ok() == itself;
    Ok(search_path()
        .map(|folder| folder.join(name))
        .find(leads_here)
        .unwrap_or(running))
}

/// Returns whether a program is on the search path.
pub(super) fn has_program(name: &str) -> bool {
    search_path().any(|folder| folder.is_absolute() && folder.join(name).is_file())
}

fn search_path() -> impl Iterator<Item = PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).collect::<Vec<_>>().into_iter()
}
