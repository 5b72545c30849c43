//! Tests which schemas the converters of model APIs accept. Sends nothing to an API.

use std::fs;
use std::process::Command;

use anstream::println;
use anyhow::{Context, Result};
use serde_json::{Map, Value};
use toolbay_testkit::build::BuildOutput;
use toolbay_testkit::terminal;
use toolbay_testkit::{TinyComponent, TinyTool};

use super::folders::ClientFolders;
use super::python;
use crate::tally::TestCounts;

/// The file with the schema constructs, one for each tool.
const CONSTRUCTS_FILE: &str = "constructs.json";

/// The page of the book that contains the table.
const SCHEMAS_PAGE: &str = "docs/src/schemas.md";

/// Compares the table in the book with the results of the converters. Writes the table if
/// `UPDATE_DOCS` is set.
pub(super) fn run(
    folders: &ClientFolders,
    built: &BuildOutput,
    tally: &mut TestCounts,
) -> Result<()> {
    println!("{}", terminal::bold("\nSchemas and the APIs for models"));
    let python = python::install_environment(
        folders,
        "models",
        "models.txt",
        "the converters of the APIs for models",
        "3.10",
    )?;
    let constructs: Map<String, Value> = serde_json::from_str(&folders.read(CONSTRUCTS_FILE)?)
        .with_context(|| format!("failed to read {CONSTRUCTS_FILE}"))?;
    let tools = constructs.iter().map(|(name, schema)| TinyTool {
        input: schema.to_string(),
        ..TinyTool::new(name)
    });
    let plugins = folders.installed.join("constructs");
    fs::create_dir_all(&plugins)
        .with_context(|| format!("failed to create {}", plugins.display()))?;
    fs::write(
        plugins.join("constructs.wasm"),
        TinyComponent::with_tools(tools.collect()).build(),
    )
    .context("failed to write the plugin with the constructs")?;
    let root = folders.source.join("../..");
    let mut command = Command::new(python);
    command
        .args(["-u", "-B"])
        .arg(folders.source.join("models.py"))
        .arg(&built.server)
        .arg(plugins)
        .arg(root.join(SCHEMAS_PAGE));
    if std::env::var_os("UPDATE_DOCS").is_some() {
        command.arg("update");
    }
    tally.run_and_print(&mut command)
}
