//! `toolbay secret-worker`: starts the programs that print secrets, for a server that has confined itself.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Context as _;
use toolbay_secrets::serve_programs;

use super::common::block_on;
use crate::wall::is_granted;

pub(super) fn run(folder: &Path) -> anyhow::Result<ExitCode> {
    block_on(async {
        let plugins = folder.to_owned();
        let granted = move |grant: &str, words: &[String]| is_granted(&plugins, grant, words);
        serve_programs(tokio::io::stdin(), tokio::io::stdout(), folder, granted)
            .await
            .context("failed to talk to the server")?;
        Ok(ExitCode::SUCCESS)
    })
}
