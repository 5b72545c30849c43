//! Where the value of a secret comes from.

use std::fmt;
use std::path::{Path, PathBuf};

/// The program that reads the keyring of the desktop (Secret Service) for the server.
pub(crate) const KEYRING: &str = "secret-tool";

/// Where the value of a secret comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// The environment variable of the server with this name.
    Environment(String),
    /// A file, as the grant writes its path: a relative one is relative to the plugin folder.
    File(PathBuf),
    /// The entry of the operator's keyring with these attributes, as `secret-tool` finds it.
    Keyring {
        /// Its attribute `service`.
        service: String,
        /// Its attribute `username`.
        user: String,
    },
    /// What a program writes to its standard output: the program and its arguments.
    Command(Vec<String>),
    /// A folder with one file for each caller, at the caller's path
    /// ([`Identity::path`](toolbay_model::Identity::path)). As the grant writes it.
    CallerFolder(PathBuf),
}

impl Source {
    /// The file or folder that it reads or runs, as the grant writes it; `None` if the grant names no path.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::File(path) | Self::CallerFolder(path) => Some(path),
            // Without a slash it is looked up in `PATH`.
            Self::Command(words) => words.first().filter(|program| program.contains('/')).map(Path::new),
            Self::Environment(_) | Self::Keyring { .. } => None,
        }
    }

    /// The program that prints its value, with its arguments; `None` if none does.
    pub fn words(&self) -> Option<Vec<String>> {
        match self {
            Self::Command(words) => Some(words.clone()),
            Self::Keyring { service, user } => {
                Some([KEYRING, "lookup", "service", service, "username", user].map(str::to_owned).into())
            }
            Self::Environment(_) | Self::File(_) | Self::CallerFolder(_) => None,
        }
    }

    /// Whether its value is taken once, when the plugin is loaded.
    pub(crate) fn is_fixed(&self) -> bool {
        matches!(self, Self::Environment(_) | Self::Keyring { .. } | Self::Command(_))
    }
}

/// For messages, such as `the file secrets/github`. The arguments of a command are left out.
impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Environment(variable) => write!(f, "the environment variable {variable}"),
            Self::File(path) => write!(f, "the file {}", path.display()),
            Self::Keyring { service, user } => write!(f, "the keyring entry of {user:?} for {service:?}"),
            Self::Command(words) => write!(f, "the command {}", words.first().map_or("", String::as_str)),
            Self::CallerFolder(path) => write!(f, "each caller's file in {}", path.display()),
        }
    }
}
