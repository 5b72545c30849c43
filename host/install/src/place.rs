//! Where the configurations of clients are.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::dialect::EntryFormat;

/// An operating system that a client runs on. The server itself runs on Linux.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperatingSystem {
    /// Linux, also within WSL.
    Linux,
    /// macOS, whose home folder may be shared with this machine.
    MacOs,
    /// Windows around WSL.
    Windows,
}

/// Whose configuration it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfigurationScope {
    /// That of the user, for all projects.
    User,
    /// That of the project in the current folder.
    Project,
}

/// A folder that configurations are in.
#[derive(Clone, Copy, Debug)]
pub(crate) enum BaseFolder {
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
pub(crate) struct UserPath {
    pub(crate) system: OperatingSystem,
    pub(crate) base: BaseFolder,
    pub(crate) file: &'static str,
    /// Folders whose presence says that the client is installed.
    pub(crate) markers: &'static [(BaseFolder, &'static str)],
    /// How entries are written here, if not as the client has them elsewhere.
    pub(crate) dialect: Option<EntryFormat>,
}

impl UserPath {
    pub(crate) const fn new(
        system: OperatingSystem,
        base: BaseFolder,
        file: &'static str,
        markers: &'static [(BaseFolder, &'static str)],
    ) -> Self {
        Self { system, base, file, markers, dialect: None }
    }

    pub(crate) const fn in_dialect(self, dialect: EntryFormat) -> Self {
        Self { dialect: Some(dialect), ..self }
    }
}

/// A variable with a folder, and the configuration's path in it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct VariableOverride {
    pub(crate) variable: &'static str,
    pub(crate) file: &'static str,
}

/// What the paths of configurations depend on. Empty paths count as missing.
#[derive(Clone, Debug, Default)]
pub struct PathEnvironment {
    /// The home folder of the user.
    pub home: PathBuf,
    /// The folder of the project, which is the current one.
    pub project: PathBuf,
    /// The process's variables.
    pub variables: BTreeMap<String, String>,
    /// What is around a Linux within Windows.
    pub wsl: Option<WslEnvironment>,
}

/// The Windows around a Linux.
#[derive(Clone, Debug)]
pub struct WslEnvironment {
    /// Name of the Linux, as `wsl.exe` knows it.
    pub distribution: String,
    /// Where the drives of Windows are, such as `/mnt`.
    pub drives: PathBuf,
    /// The home folders of its users, as paths on Linux.
    pub homes: Vec<PathBuf>,
}

/// Where a configuration is or could be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigurationPath {
    /// The file.
    pub file: PathBuf,
    /// The system that the client runs on.
    pub system: OperatingSystem,
    /// How its entries are written.
    pub dialect: EntryFormat,
    /// Folders whose presence says that the client is installed.
    pub markers: Vec<PathBuf>,
}

impl PathEnvironment {
    /// The value of a variable that is not empty.
    pub(crate) fn variable(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// The folder on this system that is or contains the configurations. A user of Windows has the home folder `home`.
    pub(crate) fn base(&self, base: BaseFolder, home: &Path) -> PathBuf {
        match base {
            BaseFolder::Home => home.to_owned(),
            // The specification says that a relative path is to be ignored.
            BaseFolder::XdgConfig => self
                .variable("XDG_CONFIG_HOME")
                .map(PathBuf::from)
                .filter(|path| path.is_absolute())
                .unwrap_or_else(|| home.join(".config")),
            BaseFolder::Config => home.join(".config"),
            BaseFolder::MacSupport => home.join("Library/Application Support"),
            BaseFolder::Roaming => home.join("AppData/Roaming"),
        }
    }

    /// The system of the client that reads `file`.
    pub(crate) fn system_of(&self, file: &Path) -> OperatingSystem {
        let windows = self.wsl.as_ref().is_some_and(|wsl| file.starts_with(&wsl.drives));
        if windows { OperatingSystem::Windows } else { OperatingSystem::Linux }
    }
}
