//! Creates a folder of edge-case plugins, which combines everything that at least one client could
//! not read, list or call.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::{Map, Value, json};
use toolbay_testkit::build::BuildOutput;
use toolbay_testkit::{TinyComponent, TinyCoreModule, TinyTool};

use super::folders::ClientFolders;
use crate::serving;

/// The description of the plugins, the calls and the expected results.
const EDGE_CASES_FILE: &str = "frameworks/odd.json";

/// The file with a schema for each construct that model APIs treat differently.
const CONSTRUCTS_FILE: &str = "constructs.json";

/// The grant of a plugin that receives many concurrent calls.
const UNLIMITED_GRANT: &str = "[rate_limit]\ncalls = 100_000\nper = \"1m\"\n";

/// The paths of the edge-case plugins and of the related files.
pub(super) struct EdgeCasePlugins {
    /// The plugin folder.
    pub(super) plugins: PathBuf,
    /// The calls, as JSON: `listed`, the names of the tools; `plugins`, the file of each edge-case
    /// plugin; `calls`, each with `tool`, `arguments` and `returns`, which is a part of the text or
    /// the whole text as JSON; `resources`, the URIs of resources.
    pub(super) calls: PathBuf,
    /// The compile cache, which contains all plugins.
    pub(super) cache: PathBuf,
}

/// Creates the folder again from the description.
pub(super) fn create_plugins(
    folders: &ClientFolders,
    built: &BuildOutput,
) -> Result<EdgeCasePlugins> {
    let root = folders.installed.join("odd");
    let odd = EdgeCasePlugins {
        plugins: root.join("plugins"),
        calls: root.join("calls.json"),
        cache: root.join("cache"),
    };
    match fs::remove_dir_all(&odd.plugins) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
        _ => {}
    }
    fs::create_dir_all(&odd.plugins)
        .with_context(|| format!("failed to create {}", odd.plugins.display()))?;
    let described: Value = serde_json::from_str(&folders.read(EDGE_CASES_FILE)?)
        .with_context(|| format!("failed to read {EDGE_CASES_FILE}"))?;
    let constructs: Map<String, Value> = serde_json::from_str(&folders.read(CONSTRUCTS_FILE)?)
        .with_context(|| format!("failed to read {CONSTRUCTS_FILE}"))?;
    for guest in items(&described, "guests") {
        let file = PathBuf::from(text(guest)).with_extension("wasm");
        let from = [&built.plugins, &built.guests].map(|folder| folder.join(&file));
        let from = from
            .iter()
            .find(|path| path.is_file())
            .with_context(|| format!("no plugin {}", file.display()))?;
        fs::copy(from, odd.plugins.join(&file))
            .with_context(|| format!("failed to copy {}", from.display()))?;
    }
    fs::write(odd.plugins.join("calculator.toml"), UNLIMITED_GRANT)?;
    let resources = items(&described, "resources").fold(TinyCoreModule::new(), |resources, uri| {
        let uri = text(uri);
        resources.resource(uri, uri)
    });
    fs::write(odd.plugins.join("uris.wasm"), resources.build())?;

    let mut calls: Vec<Value> = items(&described, "calls").cloned().collect();
    let mut listed: Vec<Value> = calls
        .iter()
        .map(|call| member(call, "tool").clone())
        .collect();
    let mut refused = Vec::new();
    let mut files = Map::new();
    for plugin in items(&described, "plugins") {
        let name = text(member(plugin, "file"));
        let tools = parse_tools(plugin, &constructs)?;
        let mut tiny =
            TinyComponent::with_tools(tools.iter().map(|(tool, _)| tool.clone()).collect());
        tiny = match plugin.get("structured") {
            Some(structured) => tiny
                .with_structured(&structured.to_string())
                .with_text(&structured.to_string()),
            None => tiny.with_echo(),
        };
        if *member(plugin, "refused") == true {
            refused.push((name, tiny.build()));
            continue;
        }
        fs::write(
            odd.plugins.join(name).with_added_extension("wasm"),
            tiny.build(),
        )?;
        let prefix = write_grant(plugin, &odd.plugins.join(name).with_added_extension("toml"))?;
        for (tool, arguments) in tools {
            let tool = format!("{prefix}{}", tool.name);
            listed.push(Value::from(tool.as_str()));
            files.insert(tool.clone(), Value::from(format!("{name}.wasm")));
            if let Some(arguments) = arguments {
                let returns = plugin.get("structured").unwrap_or(arguments);
                calls.push(json!({"tool": tool, "arguments": arguments, "returns": returns}));
            }
        }
    }
    serving::compile_plugins(&built.server, &odd.plugins, &root)?;
    // The server must reject these plugins without an effect on the others. They are added after
    // the compilation, which would fail for them.
    for (name, bytes) in refused {
        fs::write(odd.plugins.join(name).with_added_extension("wasm"), bytes)?;
    }
    fs::write(
        &odd.calls,
        json!({"listed": listed, "calls": calls, "plugins": files, "resources": member(&described, "resources")})
            .to_string(),
    )?;
    Ok(odd)
}

/// Returns the tools of a plugin, each with the arguments of its call. A tool that no client can
/// call has no arguments.
fn parse_tools<'a>(
    plugin: &'a Value,
    constructs: &Map<String, Value>,
) -> Result<Vec<(TinyTool, Option<&'a Value>)>> {
    if let Some(arguments) = plugin.get("constructs") {
        let tools = constructs.iter().map(|(name, schema)| {
            (
                TinyTool {
                    input: schema.to_string(),
                    ..TinyTool::new(name)
                },
                arguments.get(name),
            )
        });
        return Ok(tools.collect());
    }
    items(plugin, "tools")
        .map(|tool| {
            let arguments = tool.get("arguments").context("a tool without arguments")?;
            let output = tool.get("output").map(Value::to_string);
            let made = TinyTool {
                input: member(tool, "input").to_string(),
                output,
                ..TinyTool::new(text(member(tool, "name")))
            };
            Ok((made, Some(arguments)))
        })
        .collect()
}

/// Writes the grant of a plugin whose tool names have a prefix, and returns the prefix with its
/// separator.
fn write_grant(plugin: &Value, file: &Path) -> Result<String> {
    let Some(prefix) = plugin.get("prefix").and_then(Value::as_str) else {
        return Ok(String::new());
    };
    let separator = plugin
        .get("separator")
        .and_then(Value::as_str)
        .unwrap_or("_");
    fs::write(
        file,
        format!("prefix = \"{prefix}\"\nseparator = \"{separator}\"\n"),
    )
    .with_context(|| format!("failed to write {}", file.display()))?;
    Ok(format!("{prefix}{separator}"))
}

fn items<'a>(of: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    of.get(key).and_then(Value::as_array).into_iter().flatten()
}

fn member<'a>(of: &'a Value, key: &str) -> &'a Value {
    of.get(key).unwrap_or(&Value::Null)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
