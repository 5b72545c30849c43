//! `toolbay notify-worker`: runs the program that receives notifications of waiting calls, for a
//! confined server.

use std::process::ExitCode;

use anyhow::Context as _;
use tokio::io::BufReader;

use super::common::block_on;
use crate::approval::notifier::serve_commands;

pub(super) fn run(words: &[String]) -> anyhow::Result<ExitCode> {
    block_on(async {
        serve_commands(
            BufReader::new(tokio::io::stdin()),
            tokio::io::stdout(),
            words,
        )
        .await
        .context("failed to communicate with the server")?;
        Ok(ExitCode::SUCCESS)
    })
}
