//! `cargo xtask conformance`: the official conformance suite, both published lines, against the real server.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};
use toolbay_testkit::Listener;
use toolbay_testkit::build::Built;
use toolbay_testkit::command;
use toolbay_testkit::guests::once;
use toolbay_testkit::terminal;
use toolbay_testkit::workspace::Workspace;

use crate::build;
use crate::serving;
use crate::tally::Tally;

/// The plugin that has what the suite calls, gets and reads.
const PLUGIN: &str = "conformance.wasm";

/// Plugins that tools of it put into the folder, to change the lists, with the names that they get there.
const SPARE: [(&str, &str); 2] = [("bare.wasm", "tools.wasm"), ("asker.wasm", "prompts.wasm")];

/// What lets it do so: nobody should let a plugin do this.
const GRANT: &str = r#"
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

/// One run of a line of the suite.
struct Run {
    /// The package.
    line: &'static str,
    /// What is asked of it.
    args: &'static [&'static str],
    /// Whether its expected failures may be single checks of a scenario.
    checks: bool,
    /// How long the server lets a stream of a call stay open (`http.poll_after`), and what the suite then prints.
    polling: Option<(&'static str, &'static str)>,
}

/// A folder with a skill, which has a folder and another skill in it.
const SKILL: &str = "pdf-processing.skill";

/// Every revision that the suites know, by its required scenarios where there is a list of these, and the scenarios of
/// extensions, which are in no list.
const RUNS: [Run; 9] = [
    Run { line: "next", args: &["--requirements", "2026-07-28"], checks: true, polling: None },
    Run { line: "next", args: &["--requirements", "2025-11-25"], checks: true, polling: None },
    Run { line: "next", args: &["--suite", "active", "--spec-version", "2025-06-18"], checks: true, polling: None },
    Run { line: "next", args: &["--suite", "active", "--spec-version", "2025-03-26"], checks: true, polling: None },
    Run { line: "stable", args: &["--suite", "all"], checks: false, polling: None },
    Run { line: "next", args: &["--scenario", "sep-2640-skills-enumeration"], checks: true, polling: None },
    Run { line: "next", args: &["--scenario", "sep-2640-skills-directory"], checks: true, polling: None },
    Run { line: "next", args: &["--scenario", "sep-2640-skills-manifest"], checks: true, polling: None },
    // Otherwise the server has no reason to end the stream of a call. The call takes three seconds, and its client polls once.
    Run {
        line: "next",
        args: &["--scenario", "server-sse-polling", "--spec-version", "2025-11-25", "--verbose"],
        checks: true,
        polling: Some(("2s", "Successfully received tool response after reconnection")),
    },
];

/// `cargo xtask conformance`.
pub(crate) fn run(workspace: &Workspace) -> Result<ExitCode> {
    let built = build::build(workspace)?;
    let mut tally = Tally::default();
    check(workspace, &built, &mut tally)?;
    println!("\n{tally}");
    Ok(if tally.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Runs everything; each run of a suite counts as one test.
pub(crate) fn check(workspace: &Workspace, built: &Built, tally: &mut Tally) -> Result<()> {
    let source = workspace.root.join("tests/conformance");
    let installed = workspace.target.join("conformance");
    install(&source, &installed)?;
    let expected = fs::read_to_string(source.join("expected-failures.yaml"))?;
    let root = tempfile::tempdir()?;
    let mut failures = Vec::new();
    for run in RUNS {
        // A server for each, so that none finds what the one before left.
        let server = serve(built, &source.join(SKILL), root.path(), run.polling.map(|(after, _)| after))?;
        let name = format!("{} {}", run.line, run.args.join(" "));
        println!("{}", terminal::bold(format!("\nThe conformance suite, {name}")));
        let list = root.path().join("expected-failures.yaml");
        fs::write(&list, run.expected(&expected))?;
        let passed = run.start(&installed, &server.url(), &list, root.path())?;
        if passed {
            tally.passed += 1;
        } else {
            tally.failed += 1;
            failures.push(name);
        }
    }
    if failures.is_empty() { Ok(()) } else { bail!("not as expected: {}", failures.join("; ")) }
}

fn install(source: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to).with_context(|| format!("failed to create {}", to.display()))?;
    let mut inputs = String::new();
    for name in ["package.json", "package-lock.json"] {
        let text = fs::read_to_string(source.join(name)).with_context(|| format!("failed to read {name}"))?;
        fs::write(to.join(name), &text)?;
        inputs += &text;
    }
    once(&to.join("node_modules/.toolbay-stamp"), &inputs, || {
        println!("Installing the official conformance suite");
        let mut npm = Command::new("npm");
        npm.args(["ci", "--loglevel=error", "--no-audit", "--no-fund"]).current_dir(to);
        command::run(&mut npm).context("failed to install the conformance suite; it needs npm")
    })
}

impl Run {
    /// The expected failures in the form that this line reads.
    fn expected(&self, all: &str) -> String {
        let keep = |line: &&str| self.checks || !line.trim_start().starts_with("- ") || !line.contains(':');
        all.lines().filter(keep).flat_map(|line| [line, "\n"]).collect()
    }

    fn start(&self, installed: &Path, url: &str, expected: &Path, folder: &Path) -> Result<bool> {
        let modules = installed.join("node_modules");
        let mut suite = Command::new(modules.join(".bin/node"));
        suite.arg(modules.join(self.line).join("dist/index.js")).args(["server", "--url", url]).args(self.args);
        suite.arg("--expected-failures").arg(expected).current_dir(folder);
        // The summary is what people read; the rest is for when it is not as expected.
        let (mut lines, mut summary) = (Vec::new(), None);
        let passed = command::stream(&mut suite, |line| {
            if line.contains("=== SUMMARY") {
                summary = Some(lines.len());
            }
            lines.push(line.to_owned());
        })?;
        let passed = passed && self.polling.is_none_or(|(_, wanted)| lines.iter().any(|line| line.contains(wanted)));
        let shown = if passed { summary.unwrap_or(0) } else { 0 };
        for line in lines.get(shown..).unwrap_or_default() {
            println!("{line}");
        }
        Ok(passed)
    }
}

/// The server with this plugin and this skill, on a folder of its own.
fn serve(built: &Built, skill: &Path, root: &Path, poll_after: Option<&str>) -> Result<Listener> {
    let (plugins, spare) = (root.join("plugins"), root.join("spare"));
    for folder in [&plugins, &spare] {
        drop(fs::remove_dir_all(folder));
        fs::create_dir(folder)?;
    }
    let copy = |from: &str, to: PathBuf| fs::copy(built.guests.join(from), to).with_context(|| format!("no {from}"));
    copy(PLUGIN, plugins.join(PLUGIN))?;
    for (from, to) in SPARE {
        copy(from, spare.join(to))?;
    }
    fs::write(plugins.join(PLUGIN).with_extension("toml"), GRANT)?;
    std::os::unix::fs::symlink(skill, plugins.join(SKILL))?;
    // The suite gives a change only so long to be told, however slow the machine is.
    for folder in [&plugins, &spare] {
        serving::compile(&built.server, folder, root)?;
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
        assert_eq!(RUNS[0].expected(all), all);
        assert_eq!(RUNS[4].expected(all), "# a: comment\nserver:\n  - a\n");
    }
}
