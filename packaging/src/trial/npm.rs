//! `npx toolbay`, from a registry that serves both packages.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use toolbay_testkit::command;

use super::{Installed, LocalSite, Room};
use crate::kit::Kit;
use crate::release::NAME;

/// The directory in which the registry stores the archives.
const ARCHIVES: &str = "-";

pub(crate) fn install(kit: &Kit, files: &[PathBuf], room: &Room) -> Result<Installed> {
    let folder = room.installed();
    let site = LocalSite::serve(&folder, room)?;
    fs::create_dir(folder.join(ARCHIVES))?;
    for file in files {
        let name = file
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        fs::copy(file, folder.join(ARCHIVES).join(&name))?;
        let manifest = command::output(
            room.command("tar")
                .arg("-xzOf")
                .arg(file)
                .arg("package/package.json"),
        )?;
        let mut manifest: Value = serde_json::from_str(&manifest)?;
        let package = manifest
            .get("name")
            .and_then(Value::as_str)
            .context("a package has no name")?
            .to_owned();
        if let Some(manifest) = manifest.as_object_mut() {
            manifest.insert(
                "dist".to_owned(),
                json!({"tarball": format!("{}/{ARCHIVES}/{name}", site.url)}),
            );
        }
        let version = &kit.release.version;
        let told = json!({"name": package, "dist-tags": {"latest": version}, "versions": {version: manifest}});
        let path = folder.join(&package);
        fs::create_dir_all(path.parent().unwrap_or(&folder))?;
        fs::write(path, told.to_string())?;
    }
    let variables = vec![
        ("npm_config_registry".to_owned(), site.url.clone()),
        ("npm_config_update_notifier".to_owned(), "false".to_owned()),
        ("npm_config_fund".to_owned(), "false".to_owned()),
        ("npm_config_audit".to_owned(), "false".to_owned()),
    ];
    let told = |command: &mut std::process::Command| {
        command::output(command.envs(variables.iter().map(|(name, value)| (name, value))))
    };
    // The package of the other machine is missing, which npm must silently ignore.
    let said = told(room.command("npx").args(["--yes", NAME, "--version"]))?;
    ensure!(said.starts_with(NAME), "npx said {said:?}");
    // npx does not forward signals. Services that need them start the program that `npm install`
    // linked.
    told(
        room.command("npm")
            .args(["install", "--silent", "--global", "--prefix"])
            .arg(&folder)
            .arg(NAME),
    )?;
    let service = Some(folder.join("bin").join(NAME).display().to_string());
    let words = vec!["npx".to_owned(), "--yes".to_owned(), NAME.to_owned()];
    Ok(Installed {
        words,
        service,
        variables,
        _site: Some(site),
        ..Installed::default()
    })
}
