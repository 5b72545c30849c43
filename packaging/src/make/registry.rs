//! `server.json`, the entry for the MCP registry: the packages, and the command that starts each.

use std::fs;
use std::path::PathBuf;

use anyhow::Result;
use serde_json::{Value, json};

use super::bundle;
use crate::checksums::digest;
use crate::kit::Kit;
use crate::release::{HOMEPAGE, IMAGE, NAME, REGISTRY_NAME, Release, SUMMARY};

/// The version of the schema.
const SCHEMA: &str = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json";

pub(crate) fn make(kit: &Kit) -> Result<Vec<PathBuf>> {
    let bundle = bundle::file(kit);
    let digest = digest(&kit.out.join(&bundle)).ok();
    let entry = entry(&kit.release, digest.map(|digest| (bundle, digest)));
    let path = kit.out.join("server.json");
    fs::write(&path, serde_json::to_string_pretty(&entry)? + "\n")?;
    Ok(vec![path])
}

/// Returns the entry. `bundle` is the bundle's file and its digest, if it was built.
fn entry(release: &Release, bundle: Option<(String, String)>) -> Value {
    let version = &release.version;
    let transport = json!({"type": "stdio"});
    let serve = json!([
        {"type": "positional", "value": "serve"},
        {
            "type": "named",
            "name": "--plugins",
            "description": "The folder whose .wasm files are the tools",
            "format": "filepath",
            "isRequired": true,
        },
    ]);
    let package = |kind: &str, hint: &str| {
        json!({
            "registryType": kind,
            "identifier": NAME,
            "version": version,
            "runtimeHint": hint,
            "transport": transport,
            "packageArguments": serve,
        })
    };
    let mut packages = vec![
        package("npm", "npx"),
        package("pypi", "uvx"),
        // The image serves its samples, or a directory that is mounted over them.
        json!({
            "registryType": "oci",
            "identifier": format!("{IMAGE}:{version}"),
            "runtimeHint": "docker",
            "transport": transport,
        }),
    ];
    if let Some((file, digest)) = bundle {
        packages.push(json!({
            "registryType": "mcpb",
            "identifier": release.url(&file),
            "fileSha256": digest,
            "transport": transport,
        }));
    }
    json!({
        "$schema": SCHEMA,
        "name": REGISTRY_NAME,
        "title": "Toolbay",
        "description": SUMMARY,
        "websiteUrl": HOMEPAGE,
        "version": version,
        "packages": packages,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_entry() {
        let downloads = "https://example.com/v1.2.3".to_owned();
        let release = Release {
            version: "1.2.3".into(),
            time: 0,
            date: String::new(),
            downloads,
        };
        let entry = entry(&release, Some(("toolbay.mcpb".into(), "abc".into())));
        // The registry rejects longer descriptions.
        assert!(SUMMARY.len() <= 100);
        insta::assert_json_snapshot!(entry);
    }

    #[test]
    fn the_readme_has_the_name_that_the_registry_looks_for() {
        let readme = include_str!("../../../README.md");
        assert!(readme.contains(&format!("<!-- mcp-name: {REGISTRY_NAME} -->")));
    }
}
