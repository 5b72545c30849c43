//! `toolbay secret-worker`: runs the programs that print secrets, for a confined server.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use toolbay_catalog::WritablePaths;
use toolbay_secrets::serve_programs;

use super::common::block_on;
use crate::serve::confinement::is_program_granted;

pub(super) fn run(folder: &Path, writable: Vec<PathBuf>) -> anyhow::Result<ExitCode> {
    let writable = WritablePaths::new(writable.into_iter().map(|path| (String::new(), path)), true);
    block_on(async {
        let plugins = folder.to_owned();
        let is_granted = move |grant: &str, words: &[String]| {
            is_program_granted(&plugins, grant, words, &writable)
        };
        serve_programs(tokio::io::stdin(), tokio::io::stdout(), folder, is_granted)
            .await
            .context("failed to communicate with the server")?;
        Ok(ExitCode::SUCCESS)
    })
}
