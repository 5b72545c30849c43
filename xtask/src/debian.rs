//! Provides programs from Debian and Ubuntu packages. The packages are unpacked below `target`, and
//! nothing is installed on the system.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anstream::println;
use anyhow::{Context, Result, bail};
use toolbay_testkit::command;
use toolbay_testkit::guests::run_once;

/// Folders with programs that are not in every user's `PATH`.
const EXTRA_PROGRAM_FOLDERS: [&str; 2] = ["/usr/local/sbin", "/usr/sbin"];

/// Packages with libraries that every system has, and that work only with the system's own loader.
const SYSTEM_LIBRARIES: [&str; 4] = ["libc6", "libcrypt1", "libgcc-s1", "libstdc++6"];

/// Folders of libraries in an unpacked package. They contain a folder for each architecture.
const LIBRARY_FOLDERS: [&str; 2] = ["lib", "usr/lib"];

/// A package and the programs to use from it.
pub(crate) struct DebianPackage {
    /// The name of the package.
    pub(crate) name: &'static str,
    /// The names of the programs.
    pub(crate) programs: &'static [&'static str],
    /// The folder of the programs in the package.
    pub(crate) folder: &'static str,
    /// If set, the libraries that the package depends on are unpacked, too.
    pub(crate) with_libraries: bool,
}

/// The location of programs that can be started.
pub(crate) struct ProgramLocation {
    /// The folder of the programs.
    pub(crate) folder: PathBuf,
    /// The value of `LD_LIBRARY_PATH` for the programs. Empty if it is not required.
    pub(crate) libraries: OsString,
}

impl DebianPackage {
    /// Returns the programs of the system, or else those of the package, which is unpacked into
    /// `folder`.
    ///
    /// # Errors
    ///
    /// Fails if the system neither has the programs nor can download the package.
    pub(crate) fn install(&self, folder: &Path) -> Result<ProgramLocation> {
        if let Some(folder) = self.find_on_system() {
            return Ok(ProgramLocation {
                folder,
                libraries: OsString::new(),
            });
        }
        let system = folder.join("system");
        let programs = system.join(self.folder);
        run_once(&folder.with_added_extension("installed"), self.name, || {
            println!("Unpacking {}", self.name);
            match fs::remove_dir_all(folder) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(error.into());
                }
                _ => {}
            }
            fs::create_dir_all(folder)
                .with_context(|| format!("failed to create {}", folder.display()))?;
            for file in self
                .download(folder)
                .with_context(|| format!("failed to get the package {}", self.name))?
            {
                let mut dpkg = Command::new("dpkg-deb");
                dpkg.arg("--extract").arg(&file).arg(&system);
                command::run(&mut dpkg)
                    .with_context(|| format!("failed to unpack {}", file.display()))?;
                fs::remove_file(&file)?;
            }
            if let Some(missing) = self
                .programs
                .iter()
                .find(|name| !programs.join(name).is_file())
            {
                bail!("the package {} has no {missing}", self.name);
            }
            Ok(())
        })?;
        let libraries = if self.with_libraries {
            library_path(&system)
        } else {
            OsString::new()
        };
        Ok(ProgramLocation {
            folder: programs,
            libraries,
        })
    }

    /// Finds a folder of the system that contains all programs.
    fn find_on_system(&self) -> Option<PathBuf> {
        let path = std::env::var_os("PATH")?;
        let folders = std::env::split_paths(&path).chain(EXTRA_PROGRAM_FOLDERS.map(PathBuf::from));
        folders
            .into_iter()
            .find(|folder| self.programs.iter().all(|name| folder.join(name).is_file()))
    }

    /// Downloads the package, and its dependencies if `with_libraries` is set. The system's package
    /// lists may be outdated or missing, and only root can update them. In that case, the function
    /// downloads separate lists into `folder`.
    fn download(&self, folder: &Path) -> Result<Vec<PathBuf>> {
        let lists = folder.join("lists");
        if self.download_with_options(folder, &[]).is_err() {
            let own =
                ["Dir::State::Lists", "Dir::Cache"].map(|key| format!("{key}={}", lists.display()));
            fs::create_dir_all(lists.join("partial"))?;
            command::output(apt_command("apt-get", folder, &own).arg("update"))?;
            self.download_with_options(folder, &own)?;
            fs::remove_dir_all(&lists)?;
        }
        let files = fs::read_dir(folder)?.filter_map(|entry| Some(entry.ok()?.path()));
        let packages: Vec<PathBuf> = files
            .filter(|path| path.extension().is_some_and(|extension| extension == "deb"))
            .collect();
        if packages.is_empty() {
            bail!("apt-get downloaded nothing");
        }
        Ok(packages)
    }

    fn download_with_options(&self, folder: &Path, options: &[String]) -> Result<()> {
        let mut names = BTreeSet::from([self.name.to_owned()]);
        let mut open = if self.with_libraries {
            vec![self.name.to_owned()]
        } else {
            Vec::new()
        };
        while let Some(name) = open.pop() {
            let said = command::output(
                apt_command("apt-cache", folder, options)
                    .arg("depends")
                    .arg(&name),
            )?;
            let needed = said
                .lines()
                .filter_map(|line| line.trim().strip_prefix("Depends: "));
            for name in
                needed.filter(|name| name.starts_with("lib") && !SYSTEM_LIBRARIES.contains(name))
            {
                if names.insert(name.to_owned()) {
                    open.push(name.to_owned());
                }
            }
        }
        command::output(
            apt_command("apt-get", folder, options)
                .arg("download")
                .args(&names),
        )
        .map(drop)
    }
}

/// Returns the `LD_LIBRARY_PATH` of an unpacked package.
fn library_path(system: &Path) -> OsString {
    let mut path = OsString::new();
    for folder in LIBRARY_FOLDERS.map(|folder| system.join(folder)) {
        let below = fs::read_dir(&folder)
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path());
        for folder in below.filter(|path| path.is_dir()) {
            if !path.is_empty() {
                path.push(":");
            }
            path.push(folder);
        }
    }
    path
}

/// Returns a command for a program of apt with these options, in a folder. The program writes files
/// as the current user and not as apt's sandbox user.
fn apt_command(program: &str, folder: &Path, options: &[String]) -> Command {
    let mut apt = Command::new(program);
    apt.current_dir(folder)
        .args(["--option", "APT::Sandbox::User=root"]);
    if program == "apt-get" {
        apt.args(["--quiet", "--yes"]);
    }
    for option in options {
        apt.args(["--option", option]);
    }
    apt
}
