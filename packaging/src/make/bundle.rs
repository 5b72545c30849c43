//! The bundle for desktop clients (MCPB): an archive that a client installs when the user opens it.
//! The official program writes and checks it.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;
use serde_json::{Value, json};
use toolbay_testkit::command;

use crate::content::{BINARY, SAMPLES, copy};
use crate::kit::{Kit, write};
use crate::release::{AUTHORS, DESCRIPTION, HOMEPAGE, LICENSE, NAME, SUMMARY};

/// The version of the manifest format.
const MANIFEST_VERSION: &str = "0.3";

/// Returns the name of the bundle.
pub(crate) fn file(kit: &Kit) -> String {
    format!(
        "{NAME}-{}-linux-{}.mcpb",
        kit.release.version, kit.program.machine.npm
    )
}

pub(crate) fn make(kit: &Kit) -> Result<Vec<PathBuf>> {
    let work = kit.work("bundle")?;
    copy(kit.content.lean(), &work)?;
    fs::write(
        work.join("manifest.json"),
        serde_json::to_string_pretty(&manifest(&kit.release.version))?,
    )?;
    let mcpb = kit.tools.mcpb()?;
    command::output(
        Command::new(&mcpb)
            .arg("validate")
            .arg(work.join("manifest.json")),
    )?;
    let file = kit.out.join(file(kit));
    let mut pack = Command::new(&mcpb);
    pack.arg("pack")
        .arg(&work)
        .arg(&file)
        .stdout(std::process::Stdio::null());
    Ok(vec![write(&mut pack, file)?])
}

/// Returns the manifest. The user can configure a plugin folder; the default is the samples.
fn manifest(version: &str) -> Value {
    json!({
        "manifest_version": MANIFEST_VERSION,
        "name": NAME,
        "display_name": "Toolbay",
        "version": version,
        "description": SUMMARY,
        "long_description": DESCRIPTION,
        "author": {"name": AUTHORS, "url": HOMEPAGE},
        "homepage": HOMEPAGE,
        "license": LICENSE,
        "keywords": ["webassembly", "wasm", "sandbox", "plugins"],
        "server": {
            "type": "binary",
            "entry_point": BINARY,
            "mcp_config": {
                "command": format!("${{__dirname}}/{BINARY}"),
                "args": ["serve", "--plugins", "${user_config.plugins}"],
                "env": {},
            },
        },
        "tools_generated": true,
        "compatibility": {"platforms": ["linux"]},
        "user_config": {
            "plugins": {
                "type": "directory",
                "title": "Plugin folder",
                "description": "The folder whose .wasm files are the tools. Until you choose one: the sample plugins",
                "required": false,
                "default": format!("${{__dirname}}/{SAMPLES}"),
            },
        },
    })
}
