//! Compiles components ahead of time, so that servers in tests load them from the compile cache.

use std::fs;

use anyhow::{Context, Result, ensure};

use crate::folder::Folder;
use crate::guests;
use crate::program::Program;
use crate::toolbay::Toolbay;

/// Compiles a component into the home that all servers of a program share, once for all test
/// processes.
///
/// Compilation has the lowest priority. On a busy machine, it may take longer than the timeout of a
/// test or of a call at startup.
pub fn compile_once(program: &Program, id: &str, component: &[u8]) -> Result<()> {
    let home = program.shared_home().context("without a home, there is nothing to compile into")?;
    let built = fs::metadata(program.path())
        .and_then(|file| Ok((file.len(), file.modified()?)))
        .with_context(|| format!("failed to look at {}", program.path().display()))?;
    let inputs = format!("{built:?} {:016x}", guests::digest(component));
    guests::once(&home.join("compiled").join(id), &inputs, || {
        let folder = Folder::make(program, "toolbay-compile-")?;
        let file = folder.path(&format!("{id}.wasm"));
        fs::write(&file, component).with_context(|| format!("failed to write {}", file.display()))?;
        let outcome = Toolbay::new(&folder).args(["list"]).outcome("")?;
        ensure!(outcome.stdout.contains(&format!("{id}  ready")), "{id} is not ready: {outcome}");
        Ok(())
    })
}
