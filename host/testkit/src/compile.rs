//! Compiles components ahead of time, so that servers in tests load them from the compile cache.

use std::fs;

use anyhow::{Context, Result, ensure};

use crate::folder::TestFolder;
use crate::guests;
use crate::program::ServerProgram;
use crate::toolbay_command::ToolbayCommand;

/// Compiles a component into the home that all servers of a program share, once for all test
/// processes.
///
/// Compilation has the lowest priority. On a busy machine, it may take longer than the timeout of a
/// test or of a call at startup.
pub fn compile_once(program: &ServerProgram, id: &str, component: &[u8]) -> Result<()> {
    let home = program
        .shared_home()
        .context("without a home, there is nothing to compile into")?;
    let built = fs::metadata(program.path())
        .and_then(|file| Ok((file.len(), file.modified()?)))
        .with_context(|| format!("failed to look at {}", program.path().display()))?;
    let inputs = format!("{built:?} {:016x}", guests::hash_bytes(component));
    guests::run_once(&home.join("compiled").join(id), &inputs, || {
        let folder = TestFolder::create(program, "toolbay-compile-")?;
        let file = folder.plugin_path(&format!("{id}.wasm"));
        fs::write(&file, component)
            .with_context(|| format!("failed to write {}", file.display()))?;
        let outcome = ToolbayCommand::new(&folder)
            .args(["list"])
            .try_run_with("")?;
        ensure!(
            outcome.stdout.contains(&format!("{id}  ready")),
            "{id} is not ready: {outcome}"
        );
        Ok(())
    })
}
