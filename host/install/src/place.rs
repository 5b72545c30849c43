//! Where the configurations of clients are.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::dialect::Dialect;

/// An operating system that a client runs on. The server itself runs on Linux.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum System {
    /// Linux, also within WSL.
    Linux,
    /// macOS, whose home folder may be shared with this machine.
    MacOs,
    /// Windows around WSL.
    Windows,
}

/// Whose configuration it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// That of the user, for all projects.
    User,
    /// That of the project in the current folder.
    Project,
}

/// A folder that configurations are in.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Base {
    /// The home folder; on Windows, that of the user there.
    Home,
    /// `XDG_CONFIG_HOME`, or else `.config` in the home folder.
    XdgConfig,
    /// `.config` in the home folder.
    Config,
    /// `Library/Application Support` in the home folder.
    MacSupport,
    /// `AppData/Roaming` in the home folder of the user on Windows.
    Roaming,
}

/// A configuration of a user, on one system.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) system: System,
    pub(crate) base: Base,
    pub(crate) file: &'static str,
    /// Folders whose presence says that the client is installed.
    pub(crate) markers: &'static [(Base, &'static str)],
    /// How entries are written here, if not as the client has them elsewhere.
    pub(crate) dialect: Option<Dialect>,
}

impl Place {
    pub(crate) const fn new(
        system: System,
        base: Base,
        file: &'static str,
        markers: &'static [(Base, &'static str)],
    ) -> Self {
        Self { system, base, file, markers, dialect: None }
    }

    pub(crate) const fn in_dialect(self, dialect: Dialect) -> Self {
        Self { dialect: Some(dialect), ..self }
    }
}

/// A variable with a folder, and the configuration's path in it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Override {
    pub(crate) variable: &'static str,
    pub(crate) file: &'static str,
}

/// What the paths of configurations depend on. Empty paths count as missing.
#[derive(Clone, Debug, Default)]
pub struct Surroundings {
    /// The home folder of the user.
    pub home: PathBuf,
    /// The folder of the project, which is the current one.
    pub project: PathBuf,
    /// The process's variables.
    pub variables: BTreeMap<String, String>,
    /// What is around a Linux within Windows.
    pub wsl: Option<Wsl>,
}

/// The Windows around a Linux.
#[derive(Clone, Debug)]
pub struct Wsl {
    /// Name of the Linux, as `wsl.exe` knows it.
    pub distribution: String,
    /// Where the drives of Windows are, such as `/mnt`.
    pub drives: PathBuf,
    /// The home folders of its users, as paths on Linux.
    pub homes: Vec<PathBuf>,
}

/// Where a configuration is or could be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spot {
    /// The file.
    pub file: PathBuf,
    /// The system that the client runs on.
    pub system: System,
    /// How its entries are written.
    pub dialect: Dialect,
    /// Folders whose presence says that the client is installed.
    pub markers: Vec<PathBuf>,
}

impl Surroundings {
    /// The value of a variable that is not empty.
    pub(crate) fn variable(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// The folder on this system that is or contains the configurations. A user of Windows has the home folder `home`.
    pub(crate) fn base(&self, base: Base, home: &Path) -> PathBuf {
        match base {
            Base::Home => home.to_owned(),
            // The specification says that a relative path is to be ignored.
            Base::XdgConfig => self
                .variable("XDG_CONFIG_HOME")
                .map(PathBuf::from)
                .filter(|path| path.is_absolute())
                .unwrap_or_else(|| home.join(".config")),
            Base::Config => home.join(".config"),
            Base::MacSupport => home.join("Library/Application Support"),
            Base::Roaming => home.join("AppData/Roaming"),
        }
    }

    /// The system of the client that reads `file`.
    pub(crate) fn system_of(&self, file: &Path) -> System {
        let windows = self.wsl.as_ref().is_some_and(|wsl| file.starts_with(&wsl.drives));
        if windows { System::Windows } else { System::Linux }
    }
}
