//! `toolbay compile`: fills the store of compiled components, for images and CI.

use std::process::ExitCode;

use super::{Common, Listen, block_on, complain, loaded, print};
use crate::catalog::Status;

pub(super) fn run(common: &Common) -> anyhow::Result<ExitCode> {
    let config = common.configure(true, &Listen::default())?;
    block_on(async {
        let (_service, snapshot) = loaded(config).await?;
        let mut code = ExitCode::SUCCESS;
        for (id, report) in &snapshot.plugins {
            if report.status == Status::Ready {
                print(&format!("{id}  compiled\n"));
            } else {
                complain(&format!("{id}: {}", report.problems.join("; ")));
                code = ExitCode::FAILURE;
            }
        }
        Ok(code)
    })
}
