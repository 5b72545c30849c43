//! `toolbay compile`: fills the store of compiled components, for images and CI.

use std::process::ExitCode;

use anyhow::bail;
use tokio_util::sync::CancellationToken;

use super::{Common, Listen, block_on, complain, print, start};
use crate::catalog::Status;

pub(super) fn run(common: &Common) -> anyhow::Result<ExitCode> {
    let config = common.configure(true, &Listen::default())?;
    block_on(async {
        let service = start(config, false, &CancellationToken::new())?;
        let sandbox = service.sandbox();
        if let Some(why) = sandbox.keeps_nothing() {
            bail!("{why}");
        }
        let snapshot = service.catalog().wait_for(|snapshot| snapshot.complete).await;
        let mut code = ExitCode::SUCCESS;
        for (id, report) in &snapshot.plugins {
            if report.status != Status::Ready {
                complain(&format!("{id}: {}", report.problems.join("; ")));
            } else if report.digest.as_deref().is_some_and(|digest| sandbox.keeps(digest)) {
                print(&format!("{id}  compiled\n"));
                continue;
            } else {
                complain(&format!("{id}: compiled, but not kept: is the disk full, or compile.store_size too small?"));
            }
            code = ExitCode::FAILURE;
        }
        Ok(code)
    })
}
