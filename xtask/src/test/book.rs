//! Builds the book, and checks every link on its pages and in the repository.

use std::path::Path;
use std::process::{Command, Stdio};

use anstream::println;
use anyhow::{Context as _, Result, bail};

use super::context::StepContext;
use super::tools;
use toolbay_testkit::command;
use toolbay_testkit::workspace::CargoWorkspace;

/// The link mapping for templates. Links in a template point to `toolbay/`, which a new project
/// contains. In the repository, that folder is `sdk/`.
const TEMPLATE_LINK_MAPPING: &str = "plugin-sdk/([a-z]+)/template/toolbay/ plugin-sdk/$1/sdk/";

/// Builds the book into `target/book`, and checks the links of its pages and of all Markdown in the
/// repository.
pub(super) fn run(context: &mut StepContext<'_>) -> Result<()> {
    let workspace = context.workspace;
    let mdbook = tools::install_program(workspace, "mdbook")?;
    let lychee = tools::install_program(workspace, "lychee")?;
    let book = workspace.target.join("book");
    build(&mdbook, workspace, &book)?;
    println!("{}", book.join("index.html").display());
    // Check the links in the repository, as on a code hosting site.
    let files = command::run(
        link_checker(&lychee)
            .args(["--remap", TEMPLATE_LINK_MAPPING, "."])
            .current_dir(&workspace.root),
    );
    // Check the links on the pages, as on any other site, where the repository is not available.
    let alone = tempfile::tempdir().context("failed to make a folder")?;
    build(&mdbook, workspace, alone.path())?;
    let pages = command::run(
        link_checker(&lychee)
            .arg("--root-dir")
            .arg(alone.path())
            .arg(alone.path()),
    );
    files.context("links in the repository")?;
    pages.context(
        "links on the pages of the book: they can lead to each other and to the web, but to no file beside them",
    )?;
    context.tally.passed += 1;
    Ok(())
}

/// Runs mdBook. Fails also if it prints a warning.
fn build(mdbook: &Path, workspace: &CargoWorkspace, to: &Path) -> Result<()> {
    let mut build = Command::new(mdbook);
    build
        .arg("build")
        .arg(workspace.root.join("docs"))
        .arg("--dest-dir")
        .arg(to);
    let output = build
        .stdin(Stdio::null())
        .output()
        .context("failed to start mdbook")?;
    let said = [output.stdout, output.stderr]
        .map(|text| String::from_utf8_lossy(&text).into_owned())
        .concat();
    if !output.status.success() || has_warnings(&said) {
        bail!("mdbook ({}) says:\n{}", output.status, said.trim());
    }
    Ok(())
}

/// Returns whether mdBook's log contains a warning or an error. mdBook continues after most errors.
fn has_warnings(log: &str) -> bool {
    log.lines().any(|line| {
        ["WARN", "ERROR"]
            .iter()
            .any(|level| line.trim_start().starts_with(level))
    })
}

/// Returns a command for the link checker. It does not follow links to the web, because other sites
/// may change.
fn link_checker(lychee: &Path) -> Command {
    let mut links = Command::new(lychee);
    links.args([
        "--offline",
        "--include-fragments",
        "--no-progress",
        "--extensions",
        "md,html",
    ]);
    links
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_mdbook_only_warns_of_is_found() {
        assert!(!has_warnings(
            " INFO Book building has started\n INFO Running the html backend\n"
        ));
        assert!(has_warnings(
            " INFO Book building has started\n WARN unclosed HTML tag `<b>` found in `a.md`\n"
        ));
        assert!(has_warnings(
            "ERROR Error updating \"{{#include nowhere.txt}}\"\n"
        ));
    }
}
