//! Checks the dependencies against `deny.toml`: their licences, versions and sources.

use std::process::{Command, Stdio};

use anstream::println;
use anyhow::{Context as _, Result, bail};

use super::context::StepContext;
use super::tools;
use toolbay_testkit::{command, terminal};

/// A part of cargo-deny's error message if the advisory database is not available.
const MISSING_DATABASE_ERROR: &str = "failed to fetch advisory database";

/// Checks the dependencies. If the advisory database is not available, prints that advisories are
/// not checked.
pub(super) fn run(context: &mut StepContext<'_>) -> Result<()> {
    let workspace = context.workspace;
    let program = tools::install_program(workspace, "cargo-deny")?;
    let check = |what: &[&str]| {
        let mut check = Command::new(&program);
        check
            .args(["--workspace", "check", "--deny", "warnings"])
            .args(what)
            .current_dir(&workspace.root);
        check
    };
    command::run(&mut check(&["bans", "licenses", "sources"]))?;
    let output = check(&["advisories"])
        .stdin(Stdio::null())
        .output()
        .context("failed to start cargo-deny")?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    match classify_output(output.status.success(), &said) {
        AdvisoryCheck::Checked => println!("advisories: checked, none applies"),
        AdvisoryCheck::Unreachable => {
            let notice =
                "advisories: NOT checked, because their database cannot be reached from here";
            println!("{}", terminal::red(notice));
        }
        AdvisoryCheck::Found => bail!("advisories:\n{}", said.trim()),
    }
    context.tally.passed += 1;
    Ok(())
}

/// The outcome of the advisory check.
#[derive(Debug, PartialEq, Eq)]
enum AdvisoryCheck {
    Checked,
    Unreachable,
    Found,
}

fn classify_output(is_success: bool, said: &str) -> AdvisoryCheck {
    match is_success {
        true => AdvisoryCheck::Checked,
        false if said.contains(MISSING_DATABASE_ERROR) => AdvisoryCheck::Unreachable,
        false => AdvisoryCheck::Found,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_database_that_cannot_be_had_excuses_a_failure() {
        assert_eq!(classify_output(true, ""), AdvisoryCheck::Checked);
        let unreachable = "[ERROR] failed to fetch advisory database https://example.org with cli: failed to clone";
        assert_eq!(
            classify_output(false, unreachable),
            AdvisoryCheck::Unreachable
        );
        assert_eq!(
            classify_output(false, "error[vulnerability]: Marvin Attack"),
            AdvisoryCheck::Found
        );
    }
}
