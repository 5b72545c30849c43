//! `npx toolbay`, from a registry that has both packages.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use toolbay_testkit::command;

use super::{Installed, LocalSite, Room};
use crate::kit::Kit;
use crate::release::NAME;

/// Where the registry has the archives.
const ARCHIVES: &str = "-";

pub(crate) fn install(kit: &Kit, files: &[PathBuf], room: &Room) -> Result<Installed> {
    let folder = room.installed();
    let site = LocalSite::serve(&folder, room)?;
    fs::create_dir(folder.join(ARCHIVES))?;
    for file in files {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        fs::copy(file, folder.join(ARCHIVES).join(&name))?;
        let manifest = command::output(room.command("tar").arg("-xzOf").arg(file).arg("package/package.json"))?;
        let mut manifest: Value = serde_json::from_str(&manifest)?;
        let package = manifest.get("name").and_then(Value::as_str).context("a package has no name")?.to_owned();
        if let Some(manifest) = manifest.as_object_mut() {
            manifest.insert("dist".to_owned(), json!({"tarball": format!("{}/{ARCHIVES}/{name}", site.url)}));
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
    // The machine that there is no package for must do no harm; npm says nothing about it.
    let words = vec!["npx".to_owned(), "--yes".to_owned(), NAME.to_owned()];
    let mut npx = room.command("npx");
    npx.args(["--yes", NAME, "--version"]).envs(variables.iter().map(|(name, value)| (name, value)));
    let said = command::output(&mut npx)?;
    ensure!(said.starts_with(NAME), "npx said {said:?}");
    Ok(Installed { words, variables, _site: Some(site), ..Installed::default() })
}
