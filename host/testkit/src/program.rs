//! The server program under test.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::Folder;
use crate::guests;

/// The program, and the home folder of its servers, in which they cache compiled code.
#[derive(Clone, Debug)]
pub struct Program {
    path: PathBuf,
    home: Option<PathBuf>,
}

impl Program {
    /// The program at `path`. Each [folder](crate::Folder) is the home of its servers, so none finds what another one
    /// compiled.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), home: None }
    }

    /// The same program with one home for all its servers, so that each component is compiled once.
    #[must_use]
    pub fn with_home(self, home: impl Into<PathBuf>) -> Self {
        Self { home: Some(home.into()), ..self }
    }

    /// The program's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The home of servers that work in `root`.
    pub(crate) fn home(&self, root: &Path) -> PathBuf {
        self.home.clone().unwrap_or_else(|| root.to_owned())
    }

    /// Compiles a component into the shared home, once for all test processes. Compiling has the lowest priority, so on
    /// a busy machine it may take longer than a test, or a call at startup, should wait.
    pub fn compile_once(&self, id: &str, component: &[u8]) -> Result<()> {
        let home = self.home.as_ref().context("without a home, there is nothing to compile into")?;
        let built = std::fs::metadata(&self.path)
            .and_then(|program| Ok((program.len(), program.modified()?)))
            .with_context(|| format!("failed to look at {}", self.path.display()))?;
        let inputs = format!("{built:?} {:016x}", guests::digest(component));
        guests::once(&home.join("compiled").join(id), &inputs, || {
            let folder = Folder::make(self, "toolbay-compile-")?;
            let file = folder.path(&format!("{id}.wasm"));
            std::fs::write(&file, component).with_context(|| format!("failed to write {}", file.display()))?;
            let outcome = crate::Toolbay::new(&folder).args(["list"]).outcome("")?;
            anyhow::ensure!(outcome.stdout.contains(&format!("{id}  ready")), "{id} is not ready: {outcome}");
            Ok(())
        })
    }
}
