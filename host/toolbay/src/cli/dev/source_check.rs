//! The check of a project's sources, such as that of types, which runs during the build.

use std::path::Path;
use std::process::Stdio;

use tokio::process::Command;
use tokio_util::task::AbortOnDropHandle;

use crate::cli::output::{complain, note};

/// Maximum number of printed lines of a check that failed.
const MAX_LINES: usize = 200;

/// A check that may still run. Dropping it stops it.
#[derive(Default)]
pub(super) struct SourceCheck(Option<AbortOnDropHandle<Vec<FailedCheck>>>);

/// A command that failed, with its output.
struct FailedCheck {
    command: String,
    output: String,
}

impl SourceCheck {
    /// Starts the commands, one after another, in the folder of the project.
    pub(super) fn start(folder: &Path, commands: &[String]) -> Self {
        if commands.is_empty() {
            return Self::default();
        }
        let folder = folder.to_owned();
        let commands = commands.to_vec();
        let running = tokio::spawn(async move {
            let mut failed = Vec::new();
            for command in commands {
                failed.extend(run(&folder, command).await);
            }
            failed
        });
        Self(Some(AbortOnDropHandle::new(running)))
    }

    /// Waits until the check has ended, and prints what failed. Returns whether nothing did.
    pub(super) async fn finish(self) -> bool {
        let Some(running) = self.0 else {
            return true;
        };
        let failed = running.await.unwrap_or_default();
        for FailedCheck { command, output } in &failed {
            let lines: Vec<&str> = output.trim_end().lines().take(MAX_LINES).collect();
            note(&lines.join("\n"));
            complain(&format!(
                "`{command}` failed; the plugin stays in service if it was built"
            ));
        }
        failed.is_empty()
    }
}

/// Runs a command. Returns its output if it fails.
async fn run(folder: &Path, command: String) -> Option<FailedCheck> {
    let output = Command::new("sh")
        .arg("-c")
        .arg(&command)
        .current_dir(folder)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await;
    let output = match output {
        Ok(output) if output.status.success() => return None,
        Ok(output) => [output.stdout, output.stderr].concat(),
        Err(error) => error.to_string().into_bytes(),
    };
    Some(FailedCheck {
        command,
        output: String::from_utf8_lossy(&output).into_owned(),
    })
}
