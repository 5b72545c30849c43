//! `cargo xtask conformance`: runs both published versions of the official conformance suite
//! against the real server.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};
use toolbay_testkit::HttpServerProcess;
use toolbay_testkit::build::BuildOutput;
use toolbay_testkit::command;
use toolbay_testkit::guests::run_once;
use toolbay_testkit::terminal;
use toolbay_testkit::workspace::CargoWorkspace;

use crate::build;
use crate::serving;
use crate::tally::TestCounts;

/// The plugin with the tools, prompts and resources that the suite uses.
const CONFORMANCE_PLUGIN: &str = "conformance.wasm";

/// The plugins that tools of the plugin copy into the plugin folder, to change the lists. Each has
/// a source name and a target name.
const SPARE_PLUGINS: [(&str, &str); 2] =
    [("bare.wasm", "tools.wasm"), ("asker.wasm", "prompts.wasm")];

/// The grant that allows the plugin to write to the plugin folder. Only a test should grant this.
const CONFORMANCE_GRANT: &str = r#"
[[permissions.mounts]]
host = "."
guest = "/plugins"
access = "read-write"
unsafe = true

[[permissions.mounts]]
host = "../spare"
guest = "/spare"
access = "read"
"#;

/// A run of the suite.
struct SuiteRun {
    /// The npm package of the suite, by its alias.
    package: &'static str,
    /// The arguments of the suite.
    args: &'static [&'static str],
    /// True if the list of expected failures may contain single checks of a scenario.
    allows_single_checks: bool,
    /// The maximum time for which the server keeps the stream of a call open (`http.poll_after`),
    /// and the text that the suite must then print.
    polling: Option<(&'static str, &'static str)>,
}

/// A skill folder, which contains a folder and another skill.
const SKILL_FOLDER: &str = "pdf-processing.skill";

/// The runs for every revision that the suites support, restricted to the required scenarios if the
/// suite has a list of these. Also contains the scenarios of extensions, which are in no list.
const SUITE_RUNS: [SuiteRun; 9] = [
    SuiteRun {
        package: "next",
        args: &["--requirements", "2026-07-28"],
        allows_single_checks: true,
        polling: None,
    },
    SuiteRun {
        package: "next",
        args: &["--requirements", "2025-11-25"],
        allows_single_checks: true,
        polling: None,
    },
    SuiteRun {
        package: "next",
        args: &["--suite", "active", "--spec-version", "2025-06-18"],
        allows_single_checks: true,
        polling: None,
    },
    SuiteRun {
        package: "next",
        args: &["--suite", "active", "--spec-version", "2025-03-26"],
        allows_single_checks: true,
        polling: None,
    },
    SuiteRun {
        package: "stable",
        args: &["--suite", "all"],
        allows_single_checks: false,
        polling: None,
    },
    SuiteRun {
        package: "next",
        args: &["--scenario", "sep-2640-skills-enumeration"],
        allows_single_checks: true,
        polling: None,
    },
    SuiteRun {
        package: "next",
        args: &["--scenario", "sep-2640-skills-directory"],
        allows_single_checks: true,
        polling: None,
    },
    SuiteRun {
        package: "next",
        args: &["--scenario", "sep-2640-skills-manifest"],
        allows_single_checks: true,
        polling: None,
    },
    // With this setting, the server ends the stream of a call early. The call takes three seconds,
    // so the client polls once.
    SuiteRun {
        package: "next",
        args: &[
            "--scenario",
            "server-sse-polling",
            "--spec-version",
            "2025-11-25",
            "--verbose",
        ],
        allows_single_checks: true,
        polling: Some((
            "2s",
            "Successfully received tool response after reconnection",
        )),
    },
];

/// Runs `cargo xtask conformance`.
pub(crate) fn run(workspace: &CargoWorkspace) -> Result<ExitCode> {
    let built = build::build(workspace)?;
    let mut tally = TestCounts::default();
    run_suites(workspace, &built, &mut tally)?;
    println!("\n{tally}");
    Ok(if tally.failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Runs the suites. Each run counts as one test.
pub(crate) fn run_suites(
    workspace: &CargoWorkspace,
    built: &BuildOutput,
    tally: &mut TestCounts,
) -> Result<()> {
    let source = workspace.root.join("tests/conformance");
    let installed = workspace.target.join("conformance");
    install(&source, &installed)?;
    let expected = fs::read_to_string(source.join("expected-failures.yaml"))?;
    let root = tempfile::tempdir()?;
    let mut failures = Vec::new();
    for run in SUITE_RUNS {
        // Each run has a separate server, so that it does not depend on the state of the previous
        // run.
        let server = serve(
            built,
            &source.join(SKILL_FOLDER),
            root.path(),
            run.polling.map(|(after, _)| after),
        )?;
        let name = format!("{} {}", run.package, run.args.join(" "));
        println!(
            "{}",
            terminal::bold(format!("\nThe conformance suite, {name}"))
        );
        let list = root.path().join("expected-failures.yaml");
        fs::write(&list, run.expected_failures(&expected))?;
        let passed = run.start(&installed, &server.url(), &list, root.path())?;
        if passed {
            tally.passed += 1;
        } else {
            tally.failed += 1;
            failures.push(name);
        }
    }
    if failures.is_empty() {
        Ok(())
    } else {
        bail!("not as expected: {}", failures.join("; "))
    }
}

fn install(source: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to).with_context(|| format!("failed to create {}", to.display()))?;
    let mut inputs = String::new();
    for name in ["package.json", "package-lock.json"] {
        let text = fs::read_to_string(source.join(name))
            .with_context(|| format!("failed to read {name}"))?;
        fs::write(to.join(name), &text)?;
        inputs += &text;
    }
    run_once(&to.join("node_modules/.toolbay-stamp"), &inputs, || {
        println!("Installing the official conformance suite");
        let mut npm = Command::new("npm");
        npm.args(["ci", "--loglevel=error", "--no-audit", "--no-fund"])
            .current_dir(to);
        command::run(&mut npm).context("failed to install the conformance suite; it needs npm")
    })
}

impl SuiteRun {
    /// Returns the expected failures in the format that this version of the suite reads.
    fn expected_failures(&self, all: &str) -> String {
        let keep = |line: &&str| {
            self.allows_single_checks || !line.trim_start().starts_with("- ") || !line.contains(':')
        };
        all.lines()
            .filter(keep)
            .flat_map(|line| [line, "\n"])
            .collect()
    }

    fn start(&self, installed: &Path, url: &str, expected: &Path, folder: &Path) -> Result<bool> {
        let modules = installed.join("node_modules");
        let mut suite = Command::new(modules.join(".bin/node"));
        suite
            .arg(modules.join(self.package).join("dist/index.js"))
            .args(["server", "--url", url])
            .args(self.args);
        suite
            .arg("--expected-failures")
            .arg(expected)
            .current_dir(folder);
        // If the run passes, only the summary is printed. Otherwise, everything is printed.
        let mut lines = Vec::new();
        let mut summary = None;
        let passed = command::stream(&mut suite, |line| {
            if line.contains("=== SUMMARY") {
                summary = Some(lines.len());
            }
            lines.push(line.to_owned());
        })?;
        let passed = passed
            && self
                .polling
                .is_none_or(|(_, wanted)| lines.iter().any(|line| line.contains(wanted)));
        let shown = if passed { summary.unwrap_or(0) } else { 0 };
        for line in lines.get(shown..).unwrap_or_default() {
            println!("{line}");
        }
        Ok(passed)
    }
}

/// Starts the server with the plugin and the skill, on an empty plugin folder.
fn serve(
    built: &BuildOutput,
    skill: &Path,
    root: &Path,
    poll_after: Option<&str>,
) -> Result<HttpServerProcess> {
    let plugins = root.join("plugins");
    let spare = root.join("spare");
    for folder in [&plugins, &spare] {
        drop(fs::remove_dir_all(folder));
        fs::create_dir(folder)?;
    }
    let copy = |from: &str, to: PathBuf| {
        fs::copy(built.guests.join(from), to).with_context(|| format!("no {from}"))
    };
    copy(CONFORMANCE_PLUGIN, plugins.join(CONFORMANCE_PLUGIN))?;
    for (from, to) in SPARE_PLUGINS {
        copy(from, spare.join(to))?;
    }
    fs::write(
        plugins.join(CONFORMANCE_PLUGIN).with_extension("toml"),
        CONFORMANCE_GRANT,
    )?;
    std::os::unix::fs::symlink(skill, plugins.join(SKILL_FOLDER))?;
    // The suite has a fixed timeout for notifications of changes, which compilation on a slow
    // machine could exceed.
    for folder in [&plugins, &spare] {
        serving::compile_plugins(&built.server, folder, root)?;
    }
    serving::start_with(&built.server, &plugins, root, |server| {
        server.envs(poll_after.map(|after| ("TOOLBAY_HTTP_POLL_AFTER", after)));
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stable_line_knows_no_single_checks() {
        let all = "# a: comment\nserver:\n  - a\n  - b:c\n";
        assert_eq!(SUITE_RUNS[0].expected_failures(all), all);
        assert_eq!(
            SUITE_RUNS[4].expected_failures(all),
            "# a: comment\nserver:\n  - a\n"
        );
    }
}
