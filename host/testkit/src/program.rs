//! The server program under test.

use std::path::{Path, PathBuf};

/// The program, and where its servers keep what they compile.
#[derive(Clone, Debug)]
pub struct Program {
    path: PathBuf,
    home: Option<PathBuf>,
}

impl Program {
    /// The program at `path`. Its servers have each [folder](crate::Folder) for a home: none finds what another one
    /// compiled.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), home: None }
    }

    /// The same program with one home for all its servers, so that each component is compiled once.
    #[must_use]
    pub fn with_home(self, home: impl Into<PathBuf>) -> Self {
        Self { home: Some(home.into()), ..self }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The home that all its servers share, if they do.
    pub(crate) fn shared_home(&self) -> Option<&Path> {
        self.home.as_deref()
    }

    /// The home of servers that work in `root`.
    pub(crate) fn home(&self, root: &Path) -> PathBuf {
        self.home.clone().unwrap_or_else(|| root.to_owned())
    }
}
