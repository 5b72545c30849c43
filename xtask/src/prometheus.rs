//! Prometheus and promtool: those of the system, or the package of Debian and Ubuntu, unpacked into `target/prometheus`.
//! Nothing is installed into the system.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anstream::println;
use anyhow::{Context, Result, bail};
use toolbay_testkit::command;
use toolbay_testkit::guests::once;
use toolbay_testkit::workspace::Workspace;

/// What the tests use of it.
const PROGRAMS: [&str; 2] = ["prometheus", "promtool"];

/// The name of the package.
const PACKAGE: &str = "prometheus";

/// What to do if there is none.
const ADVICE: &str = "install Prometheus so that `prometheus` and `promtool` are in a folder of PATH";

/// The folder with both programs.
///
/// # Errors
///
/// The system has neither Prometheus nor the means to get the package.
pub(crate) fn install(workspace: &Workspace) -> Result<PathBuf> {
    if let Some(folder) = found() {
        return Ok(folder);
    }
    let installed = workspace.target.join("prometheus");
    let programs = installed.join("system/usr/bin");
    once(&installed.with_added_extension("installed"), PACKAGE, || {
        println!("Unpacking Prometheus");
        match fs::remove_dir_all(&installed) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
        fs::create_dir_all(&installed).with_context(|| format!("failed to create {}", installed.display()))?;
        let package = download(&installed).with_context(|| format!("failed to get the package {PACKAGE}; {ADVICE}"))?;
        let mut dpkg = Command::new("dpkg-deb");
        dpkg.arg("--extract").arg(&package).arg(installed.join("system"));
        command::run(&mut dpkg).context("failed to unpack Prometheus")?;
        fs::remove_file(&package)?;
        if let Some(missing) = PROGRAMS.iter().find(|name| !programs.join(name).is_file()) {
            bail!("the package {PACKAGE} has no {missing}; {ADVICE}");
        }
        Ok(())
    })?;
    Ok(programs)
}

/// The folder of `PATH` that has both programs.
fn found() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).find(|folder| PROGRAMS.iter().all(|name| folder.join(name).is_file()))
}

/// Downloads the package into a folder. The system's own list of packages may be old or missing, and only root may read it
/// anew; then there is another one in this folder.
fn download(folder: &Path) -> Result<PathBuf> {
    if command::output(apt(folder, &[]).args(["download", PACKAGE])).is_err() {
        let lists = folder.join("lists");
        let own = ["Dir::State::Lists", "Dir::Cache"].map(|key| format!("{key}={}", lists.display()));
        fs::create_dir_all(lists.join("partial"))?;
        command::output(apt(folder, &own).arg("update"))?;
        command::output(apt(folder, &own).args(["download", PACKAGE]))?;
        fs::remove_dir_all(&lists)?;
    }
    let files = fs::read_dir(folder)?.filter_map(|entry| Some(entry.ok()?.path()));
    let mut packages = files.filter(|path| path.extension().is_some_and(|extension| extension == "deb"));
    packages.next().context("apt-get downloaded nothing")
}

/// `apt-get` with these options, in a folder. It writes there as whoever runs it, and not as a user of its own.
fn apt(folder: &Path, options: &[String]) -> Command {
    let mut apt = Command::new("apt-get");
    apt.current_dir(folder).args(["--quiet", "--yes", "--option", "APT::Sandbox::User=root"]);
    for option in options {
        apt.args(["--option", option]);
    }
    apt
}
