//! Checks the wording of the documentation with Vale, and that of the host's comments and messages.
//!
//! The rules are in `docs/style/Toolbay`. For each rule, `docs/style/examples.toml` has texts that
//! it must find and texts that it must accept.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anstream::println;
use anyhow::{Context as _, Result, bail, ensure};
use toolbay_testkit::guests::run_once;
use toolbay_testkit::workspace::CargoWorkspace;
use toolbay_testkit::{command, terminal};

use super::context::StepContext;
use crate::measure;
use crate::tally::TestCounts;

/// The Go module of Vale, with its version.
const VALE_MODULE: &str = "github.com/vale-cli/vale/v3/cmd/vale@v3.22.0";

/// The folder of the rules, below the root of the repository.
const RULES_FOLDER: &str = "docs/style/Toolbay";

/// The texts that the rules must find and accept, below the root of the repository.
const EXAMPLES_FILE: &str = "docs/style/examples.toml";

/// Checks the sources, the rules and the documentation. On a machine without Go, checks only the
/// sources.
pub(super) fn run(context: &mut StepContext<'_>) -> Result<()> {
    let workspace = context.workspace;
    let sources = measure::check_wording(workspace).context("comments and messages");
    if sources.is_ok() {
        context.tally.passed += 1;
    }
    let Some(vale) = install_vale(workspace)? else {
        return sources;
    };
    // Run all checks, even if one fails.
    let rules = check_rules(&vale, workspace, context.tally);
    let documents = check_documents(&vale, workspace);
    if documents.is_ok() {
        context.tally.passed += 1;
    }
    sources.and(rules).and(documents)
}

/// Installs Vale if necessary, and returns its path. On a machine without Go, prints that the
/// documentation is not checked and returns `None`.
fn install_vale(workspace: &CargoWorkspace) -> Result<Option<PathBuf>> {
    let folder = workspace.target.join("tools/vale");
    let program = folder.join("vale");
    let stamp = folder.join("installed");
    let is_installed = || fs::read_to_string(&stamp).is_ok_and(|module| module == VALE_MODULE);
    if !is_installed() && Command::new("go").arg("version").output().is_err() {
        let notice = "documentation: NOT checked, because there is no Go on this machine (install Go 1.25 or newer)";
        println!("{}", terminal::red(notice));
        return Ok(None);
    }
    run_once(&stamp, VALE_MODULE, || {
        println!("Installing {VALE_MODULE}");
        let mut go = Command::new("go");
        go.args(["install", VALE_MODULE]).env("GOBIN", &folder);
        command::run(&mut go).context("failed to install Vale; it needs Go 1.25 or newer")
    })?;
    Ok(Some(program))
}

/// Checks the Markdown files of the repository, except for those of the tests.
fn check_documents(vale: &Path, workspace: &CargoWorkspace) -> Result<()> {
    let mut git = Command::new("git");
    git.args(["ls-files", "--", "*.md", ":!tests"])
        .current_dir(&workspace.root);
    let listed = command::output(&mut git)?;
    let files: Vec<PathBuf> = listed.lines().map(PathBuf::from).collect();
    ensure!(!files.is_empty(), "git lists no Markdown files");
    let alerts = run_vale(vale, workspace, &files)?;
    for alert in &alerts {
        let Alert {
            file,
            position,
            rule,
            message,
        } = alert;
        println!("{file}:{position}: {message} ({rule})");
    }
    ensure!(
        alerts.is_empty(),
        "{} places in the documentation",
        alerts.len()
    );
    Ok(())
}

/// Checks that each rule finds and accepts its examples. Counts each rule as a test.
fn check_rules(vale: &Path, workspace: &CargoWorkspace, tally: &mut TestCounts) -> Result<()> {
    let rules = read_examples(&workspace.root)?;
    let folder = tempfile::tempdir().context("failed to create a folder")?;
    let mut examples = BTreeMap::new();
    for rule in &rules {
        let texts = [(true, &rule.found), (false, &rule.accepted)];
        let texts = texts
            .iter()
            .flat_map(|(is_found, texts)| texts.iter().map(move |text| (*is_found, text)));
        for (index, (is_found, text)) in texts.enumerate() {
            let path = folder.path().join(format!("{}-{index}.md", rule.name));
            fs::write(&path, format!("{text}\n")).context("failed to write an example")?;
            examples.insert(path, (rule.name.as_str(), is_found, text));
        }
    }
    let files: Vec<PathBuf> = examples.keys().cloned().collect();
    let alerts = run_vale(vale, workspace, &files)?;
    let mut wrong = Vec::new();
    for (path, (rule, is_found, text)) in &examples {
        let fired: Vec<&str> = alerts
            .iter()
            .filter(|alert| Path::new(&alert.file) == path)
            .map(|alert| alert.rule.as_str())
            .collect();
        let is_right = if *is_found {
            fired.contains(rule)
        } else {
            fired.is_empty()
        };
        if !is_right {
            let expected = if *is_found {
                "must find"
            } else {
                "must accept"
            };
            println!("{rule} {expected} {text:?}; found by: {}", fired.join(", "));
            wrong.push(*rule);
        }
    }
    wrong.dedup();
    tally.failed += wrong.len() as u64;
    tally.passed += (rules.len() - wrong.len()) as u64;
    ensure!(wrong.is_empty(), "rules: {}", wrong.join(", "));
    Ok(())
}

/// The examples of a rule.
struct RuleExamples {
    name: String,
    /// The texts that the rule must find.
    found: Vec<String>,
    /// The texts that every rule must accept.
    accepted: Vec<String>,
}

/// Reads the examples of all rules. Fails if a rule has none, or if an example has no rule.
fn read_examples(root: &Path) -> Result<Vec<RuleExamples>> {
    let text = fs::read_to_string(root.join(EXAMPLES_FILE))
        .with_context(|| format!("failed to read {EXAMPLES_FILE}"))?;
    let table: toml::Table = text
        .parse()
        .with_context(|| format!("failed to parse {EXAMPLES_FILE}"))?;
    let texts = |name: &str, key: &str| -> Vec<String> {
        let list = table.get(name).and_then(|rule| rule.get(key)?.as_array());
        list.into_iter()
            .flatten()
            .filter_map(|text| text.as_str().map(str::to_owned))
            .collect()
    };
    let mut rules = Vec::new();
    for entry in fs::read_dir(root.join(RULES_FOLDER))
        .with_context(|| format!("failed to read {RULES_FOLDER}"))?
    {
        let path = entry?.path();
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let found = texts(&name, "found");
        let accepted = texts(&name, "accepted");
        if found.is_empty() || accepted.is_empty() {
            bail!("{EXAMPLES_FILE}: the rule {name} needs texts that it finds and accepts");
        }
        rules.push(RuleExamples {
            name: name.into_owned(),
            found,
            accepted,
        });
    }
    for name in table.keys() {
        ensure!(
            rules.iter().any(|rule| rule.name == *name),
            "{EXAMPLES_FILE}: no rule has the name {name}"
        );
    }
    rules.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(rules)
}

/// A place that a rule has found.
#[derive(Debug, PartialEq, Eq)]
struct Alert {
    file: String,
    /// The line and the column.
    position: String,
    rule: String,
    message: String,
}

/// Runs Vale on these files. Relative paths begin at the root of the repository.
fn run_vale(vale: &Path, workspace: &CargoWorkspace, files: &[PathBuf]) -> Result<Vec<Alert>> {
    let output = Command::new(vale)
        .args(["--config=.vale.ini", "--output=line", "--no-global"])
        .args(files)
        .current_dir(&workspace.root)
        .stdin(Stdio::null())
        .output()
        .context("failed to start vale")?;
    let stdout = String::from_utf8_lossy(&output.stdout);
    let alerts: Option<Vec<Alert>> = stdout.lines().map(Alert::parse).collect();
    if let (Some(0 | 1), Some(alerts)) = (output.status.code(), alerts) {
        return Ok(alerts);
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    bail!("vale ({}): {stdout}{stderr}", output.status)
}

impl Alert {
    /// Parses a line of Vale's output, `file:line:column:Style.Rule:message`.
    fn parse(line: &str) -> Option<Self> {
        let mut parts = line.splitn(5, ':');
        let mut next = || parts.next();
        let file = next()?;
        let row = next()?;
        let column = next()?;
        let (_, rule) = next()?.split_once('.')?;
        Some(Self {
            file: file.to_owned(),
            position: format!("{row}:{column}"),
            rule: rule.to_owned(),
            message: next()?.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use toolbay_testkit::workspace;

    use super::*;

    #[test]
    fn every_rule_has_examples() {
        assert!(read_examples(workspace::root()).unwrap().len() > 10);
    }

    #[test]
    fn an_alert_is_parsed() {
        let alert = Alert::parse("docs/src/a.md:1:3:Toolbay.Told:Use 'notify': or 'report'.");
        assert_eq!(
            alert,
            Some(Alert {
                file: "docs/src/a.md".to_owned(),
                position: "1:3".to_owned(),
                rule: "Told".to_owned(),
                message: "Use 'notify': or 'report'.".to_owned(),
            })
        );
        assert_eq!(Alert::parse("no configuration"), None);
    }
}
