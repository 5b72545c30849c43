//! `toolbay compile`: fills the compile cache, for container images and CI.

use std::process::ExitCode;

use anyhow::bail;
use toolbay_catalog::PluginFileStatus;
use toolbay_model::text::clean_line;

use super::common::{Common, Listen, block_on};
use super::load_progress::{inspection_server, wait_until_loaded};
use super::output::{complain, print};

/// Maximum length of a printed file name, in bytes.
const MAX_NAME_BYTES: usize = 300;

/// Maximum length of a printed reason, in bytes.
const MAX_REASON_BYTES: usize = 2_000;

pub(super) fn run(common: &Common) -> anyhow::Result<ExitCode> {
    let config = common.load_config(true, &Listen::default())?;
    block_on(async {
        let server = inspection_server(config).start()?;
        let sandbox = server.service().sandbox();
        if let Some(why) = sandbox.cache_off_reason() {
            bail!("{why}");
        }
        let snapshot = wait_until_loaded(&server).await;
        let mut code = ExitCode::SUCCESS;
        for (id, report) in &snapshot.plugins {
            if report.status == PluginFileStatus::Ready && report.digest.is_none() {
                print(&format!(
                    "{}  has nothing to compile\n",
                    clean_line(id, MAX_NAME_BYTES)
                ));
                for problem in &report.problems {
                    complain(&format!(
                        "{}: {}",
                        clean_line(id, MAX_NAME_BYTES),
                        clean_line(problem, MAX_REASON_BYTES)
                    ));
                }
                continue;
            }
            if report.status != PluginFileStatus::Ready {
                complain(&format!(
                    "{}: {}",
                    clean_line(id, MAX_NAME_BYTES),
                    clean_line(&report.problems.join("; "), MAX_REASON_BYTES)
                ));
            } else if report
                .digest
                .as_deref()
                .is_some_and(|digest| sandbox.is_cached(digest))
            {
                print(&format!("{}  compiled\n", clean_line(id, MAX_NAME_BYTES)));
                continue;
            } else {
                complain(&format!(
                    "{}: compiled, but not in the compile cache: check free disk space and compile.cache_size",
                    clean_line(id, MAX_NAME_BYTES)
                ));
            }
            code = ExitCode::FAILURE;
        }
        Ok(code)
    })
}
