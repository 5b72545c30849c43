//! Installs a bundle as a desktop client does: unpacks it and starts the command of its manifest.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use serde_json::Value;
use toolbay_testkit::command;

use super::{Installed, Room};
use crate::kit::Kit;

pub(crate) fn install(kit: &Kit, files: &[PathBuf], room: &Room) -> Result<Installed> {
    let folder = room.installed().join("bundle");
    for file in files {
        command::output(
            room.command(kit.tools.mcpb()?)
                .arg("unpack")
                .arg(file)
                .arg(&folder),
        )?;
    }
    let manifest: Value = serde_json::from_str(&fs::read_to_string(folder.join("manifest.json"))?)?;
    let text = |path: &str| {
        let value = manifest
            .pointer(path)
            .and_then(Value::as_str)
            .with_context(|| format!("no {path} in the manifest"))?;
        Ok::<_, anyhow::Error>(value.replace("${__dirname}", &folder.display().to_string()))
    };
    let plugins = text("/user_config/plugins/default")?;
    let args = manifest
        .pointer("/server/mcp_config/args")
        .and_then(Value::as_array)
        .context("no arguments")?;
    let args = args
        .iter()
        .filter_map(Value::as_str)
        .map(|arg| arg.replace("${user_config.plugins}", &plugins));
    // The client adds nothing after `serve --plugins FOLDER`. Other commands receive the folder in
    // a variable.
    anyhow::ensure!(
        args.eq(["serve".to_owned(), "--plugins".to_owned(), plugins.clone()]),
        "other arguments"
    );
    Ok(Installed {
        words: vec![text("/server/mcp_config/command")?],
        variables: vec![("TOOLBAY_PLUGINS".to_owned(), plugins)],
        is_furnished: true,
        ..Installed::default()
    })
}
