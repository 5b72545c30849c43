//! Paths of client configurations.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::entry_format::EntryFormat;

/// Operating system that a client runs on. The server itself runs on Linux.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperatingSystem {
    /// Linux, including Linux within WSL.
    Linux,
    /// macOS. Its home directory may be shared with this machine.
    MacOs,
    /// Windows that hosts WSL.
    Windows,
}

/// Scope of a configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfigurationScope {
    /// The user, for all projects.
    User,
    /// The project in the current directory.
    Project,
}

/// Directory that contains configurations.
#[derive(Clone, Copy, Debug)]
pub(crate) enum BaseFolder {
    /// Home directory; on Windows, the Windows user's.
    Home,
    /// `XDG_CONFIG_HOME`, or `.config` in the home directory if it is not set.
    XdgConfig,
    /// `.config` in the home directory.
    Config,
    /// `Library/Application Support` in the home directory.
    MacSupport,
    /// `AppData/Roaming` in the Windows user's home directory.
    Roaming,
}

/// Path of a user's configuration on one system.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UserPath {
    pub(crate) system: OperatingSystem,
    pub(crate) base: BaseFolder,
    pub(crate) file: &'static str,
    /// Directories whose presence indicates that the client is installed.
    pub(crate) markers: &'static [(BaseFolder, &'static str)],
    /// Format of the entries, if it differs from the client's.
    pub(crate) entry_format: Option<EntryFormat>,
}

impl UserPath {
    pub(crate) const fn new(
        system: OperatingSystem,
        base: BaseFolder,
        file: &'static str,
        markers: &'static [(BaseFolder, &'static str)],
    ) -> Self {
        Self {
            system,
            base,
            file,
            markers,
            entry_format: None,
        }
    }

    pub(crate) const fn with_format(self, entry_format: EntryFormat) -> Self {
        Self {
            entry_format: Some(entry_format),
            ..self
        }
    }
}

/// Environment variable with a directory, and the configuration's path in it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct VariableOverride {
    pub(crate) variable: &'static str,
    pub(crate) file: &'static str,
}

/// Inputs that determine the paths of configurations. Empty paths count as missing.
#[derive(Clone, Debug, Default)]
pub struct PathEnvironment {
    /// Home directory of the user.
    pub home: PathBuf,
    /// Directory of the project, which is the current directory.
    pub project: PathBuf,
    /// Environment variables of the process.
    pub variables: BTreeMap<String, String>,
    /// WSL environment, if any.
    pub wsl: Option<WslEnvironment>,
}

/// Windows system that hosts this Linux.
#[derive(Clone, Debug)]
pub struct WslEnvironment {
    /// Name of the WSL distribution, as used by `wsl.exe`.
    pub distribution: String,
    /// Mount point of the Windows drives, such as `/mnt`.
    pub drives: PathBuf,
    /// Home directories of the Windows users, as paths on Linux.
    pub homes: Vec<PathBuf>,
}

/// Existing or possible path of a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigurationPath {
    /// Path of the file.
    pub file: PathBuf,
    /// Operating system that the client runs on.
    pub system: OperatingSystem,
    /// Format of the entries.
    pub entry_format: EntryFormat,
    /// Directories whose presence indicates that the client is installed.
    pub markers: Vec<PathBuf>,
}

impl PathEnvironment {
    /// Returns the value of a variable if it is not empty.
    pub(crate) fn variable(&self, name: &str) -> Option<&str> {
        self.variables
            .get(name)
            .map(String::as_str)
            .filter(|value| !value.is_empty())
    }

    /// Returns the base directory as a path on this system. `home` is the home directory of the
    /// user on that system.
    pub(crate) fn base_folder(&self, base: BaseFolder, home: &Path) -> PathBuf {
        match base {
            BaseFolder::Home => home.to_owned(),
            // The XDG specification requires that a relative path is ignored.
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

    /// Returns the operating system of the client that reads `file`.
    pub(crate) fn system_of(&self, file: &Path) -> OperatingSystem {
        let is_on_windows = self
            .wsl
            .as_ref()
            .is_some_and(|wsl| file.starts_with(&wsl.drives));
        if is_on_windows {
            OperatingSystem::Windows
        } else {
            OperatingSystem::Linux
        }
    }
}
