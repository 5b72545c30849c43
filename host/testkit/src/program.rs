//! The server executable under test.

use std::path::{Path, PathBuf};

/// The server executable and the home folder of its servers, which contains the compile cache.
#[derive(Clone, Debug)]
pub struct ServerProgram {
    path: PathBuf,
    home: Option<PathBuf>,
}

impl ServerProgram {
    /// Creates a program for the executable at `path`. Each [folder](crate::TestFolder) is the home
    /// of its servers, so servers in different folders do not share a compile cache.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            home: None,
        }
    }

    /// Sets one home folder for all servers, so that each component is compiled once.
    #[must_use]
    pub fn with_home(self, home: impl Into<PathBuf>) -> Self {
        Self {
            home: Some(home.into()),
            ..self
        }
    }

    /// Returns the path of the executable.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the home folder that all servers share, if any.
    pub(crate) fn shared_home(&self) -> Option<&Path> {
        self.home.as_deref()
    }

    /// Returns the home folder of servers whose working folder is `root`.
    pub(crate) fn home_for(&self, root: &Path) -> PathBuf {
        self.home.clone().unwrap_or_else(|| root.to_owned())
    }
}
