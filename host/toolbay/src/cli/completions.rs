//! Shell completions and manual pages, generated from the definition of the command line.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Command;
use clap_complete::Shell;

use super::output::print_verbatim;

/// The name of the program.
const PROGRAM_NAME: &str = "toolbay";

/// Prints the shell completions of this command line.
pub(super) fn run(mut command: Command, shell: Shell) -> ExitCode {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, PROGRAM_NAME, &mut script);
    print_verbatim(&script);
    ExitCode::SUCCESS
}

/// Writes the manual of this command line into an existing folder: `toolbay.1`, and a page for each
/// command.
pub(super) fn write_manual(command: Command, folder: &Path) -> anyhow::Result<ExitCode> {
    clap_mangen::generate_to(command, folder)
        .with_context(|| format!("failed to write the manual to {}", folder.display()))?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory as _, ValueEnum as _};

    use super::*;
    use crate::cli::Cli;

    #[test]
    fn every_visible_command_has_completions_and_a_manual_page() {
        let folder = tempfile::tempdir().unwrap();
        write_manual(Cli::command(), folder.path()).unwrap();
        let commands: Vec<Command> = Cli::command().get_subcommands().cloned().collect();
        assert!(commands.len() > 10);
        for command in commands.iter().filter(|command| !command.is_hide_set()) {
            let page = folder
                .path()
                .join(format!("{PROGRAM_NAME}-{}.1", command.get_name()));
            assert!(page.is_file(), "{}", page.display());
        }
        for shell in Shell::value_variants() {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut Cli::command(), PROGRAM_NAME, &mut script);
            let script = String::from_utf8(script).unwrap();
            assert!(
                script.contains("serve") && script.contains("plugins"),
                "{shell}"
            );
        }
    }
}
