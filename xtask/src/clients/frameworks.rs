//! Tests agent frameworks and bridges between transports, on a folder of edge-case plugins.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anstream::{eprintln, println};
use anyhow::{Context, Result, anyhow};
use toolbay_testkit::build::BuildOutput;
use toolbay_testkit::command;
use toolbay_testkit::guests::run_once;
use toolbay_testkit::terminal;

use super::conversation::ClientConversation;
use super::copied::copy_into;
use super::folders::ClientFolders;
use super::odd::{self, EdgeCasePlugins};
use super::script::{ADDED_PLUGIN, ClientScript, EACH_TRANSPORT};
use super::{jvm, node, python};
use crate::tally::TestCounts;

/// Every transport, with automatic negotiation and with sessions only.
const AUTO_AND_LEGACY: &[ClientConversation] = &[
    ("auto", "stdio"),
    ("legacy", "stdio"),
    ("auto", "http"),
    ("legacy", "http"),
    ("legacy", "sse"),
];

/// The directions of a bridge: the transport that it offers, and the transport of the server.
const BRIDGE_DIRECTIONS: &[ClientConversation] = &[
    ("streamableHttp", "stdio"),
    ("sse", "stdio"),
    ("stdio", "http"),
    ("stdio", "sse"),
];

/// Every transport, with `schemas = "portable"`. A schema that such a client cannot read makes it
/// reject the whole list.
const PORTABLE_SCHEMAS: &[ClientConversation] = &[
    ("portable", "stdio"),
    ("portable", "http"),
    ("portable", "sse"),
];

/// Every transport, with both forms of schemas. `AutoGen` has tools, which read only portable
/// schemas, and a workbench.
const ALL_SCHEMA_FORMS: &[ClientConversation] = &[
    ("auto", "stdio"),
    ("auto", "http"),
    ("auto", "sse"),
    ("portable", "stdio"),
    ("portable", "http"),
    ("portable", "sse"),
];

/// A client in Python: its name, its script, its environment, and its conversations.
type PythonClient = (
    &'static str,
    &'static str,
    &'static str,
    &'static [ClientConversation],
);

/// The Python environments, by the name of their requirements file: one for each major version of
/// the official SDK.
const SDK_1: &str = "python-1";
const SDK_2: &str = "python-2";

const PYTHON_CLIENTS: [PythonClient; 10] = [
    (
        "langchain-mcp-adapters",
        "client_langchain.py",
        SDK_1,
        EACH_TRANSPORT,
    ),
    (
        "semantic-kernel",
        "client_semantic_kernel.py",
        SDK_1,
        PORTABLE_SCHEMAS,
    ),
    ("autogen-ext", "client_autogen.py", SDK_1, ALL_SCHEMA_FORMS),
    ("mcpo", "client_mcpo.py", SDK_1, PORTABLE_SCHEMAS),
    ("openai-agents", "client_openai.py", SDK_2, EACH_TRANSPORT),
    (
        "pydantic-ai",
        "client_pydantic_ai.py",
        SDK_2,
        EACH_TRANSPORT,
    ),
    (
        "llama-index-tools-mcp",
        "client_llama_index.py",
        SDK_2,
        PORTABLE_SCHEMAS,
    ),
    (
        "mcp-haystack",
        "client_haystack.py",
        SDK_2,
        PORTABLE_SCHEMAS,
    ),
    ("google-adk", "client_adk.py", SDK_2, EACH_TRANSPORT),
    ("strands-agents", "client_strands.py", SDK_2, EACH_TRANSPORT),
];

/// The clients in JavaScript: name, script, and conversations.
const JAVASCRIPT_CLIENTS: [(&str, &str, &[ClientConversation]); 5] = [
    ("@ai-sdk/mcp", "client_ai.mjs", AUTO_AND_LEGACY),
    (
        "@langchain/mcp-adapters",
        "client_langchain.mjs",
        EACH_TRANSPORT,
    ),
    ("@openai/agents", "client_openai.mjs", EACH_TRANSPORT),
    (
        "mcp-remote",
        "client_remote.mjs",
        &[("legacy", "http"), ("auto", "http"), ("legacy", "sse")],
    ),
    ("supergateway", "client_supergateway.mjs", BRIDGE_DIRECTIONS),
];

/// The manifests that `npm ci` reads.
const MANIFESTS: [&str; 2] = ["frameworks/package.json", "frameworks/package-lock.json"];

/// The modules that the scripts in JavaScript share.
const SHARED_SCRIPTS: [&str; 3] = [
    "checks.mjs",
    "frameworks/harness.mjs",
    "frameworks/official.mjs",
];

/// Runs the clients whose names `wanted` accepts. A client that cannot be installed counts as a
/// failure, and the other clients still run.
pub(super) fn run(
    folders: &ClientFolders,
    built: &BuildOutput,
    wanted: &dyn Fn(&str) -> bool,
    tally: &mut TestCounts,
) -> Result<()> {
    let mut failures = Vec::new();
    let mut scripts = Vec::new();
    let python = PYTHON_CLIENTS
        .iter()
        .filter(|(client, ..)| wanted(client))
        .map(|client| ("Python", install_python_client(folders, client)));
    let javascript = JAVASCRIPT_CLIENTS
        .iter()
        .filter(|(client, ..)| wanted(client))
        .map(|client| ("JavaScript", install_javascript_client(folders, client)));
    for (language, installed) in python
        .chain(javascript)
        .map(|(language, script)| (language, script.map(Some)))
        .chain(
            jvm::CLIENTS
                .iter()
                .filter(|client| wanted(client.name))
                .map(|client| ("the JVM", client.install(folders))),
        )
    {
        match installed {
            Ok(installed) => scripts.extend(installed),
            Err(error) => {
                eprintln!("{} {error:#}", terminal::red("error:"));
                tally.failed += 1;
                failures.push(format!("a client in {language} could not be installed"));
            }
        }
    }
    if !scripts.is_empty() {
        let odd = odd::create_plugins(folders, built)?;
        for script in &scripts {
            for (mode, transport) in script.conversations {
                let name = format!("{}, {mode} over {transport}", script.client);
                println!("{}", terminal::bold(format!("\n{name}")));
                let failed = tally.failed;
                if let Err(error) = run_conversation(script, (mode, transport), built, &odd, tally)
                {
                    tally.failed = tally.failed.max(failed + 1);
                    failures.push(format!("{name}: {error:#}"));
                }
            }
        }
    }
    if failures.is_empty() {
        Ok(())
    } else {
        Err(anyhow!("{}", failures.join("; ")))
    }
}

/// Runs one conversation with the real server.
fn run_conversation(
    script: &ClientScript,
    (mode, transport): ClientConversation,
    built: &BuildOutput,
    odd: &EdgeCasePlugins,
    tally: &mut TestCounts,
) -> Result<()> {
    let mut command = Command::new(&script.program);
    command
        .args(&script.args)
        .args([mode, transport])
        .arg(&built.server);
    command
        .arg(&odd.plugins)
        .arg(&odd.calls)
        .arg(&odd.cache)
        .arg(built.guests.join(ADDED_PLUGIN));
    tally.run_and_print(&mut command)
}

/// Installs a client in Python and its environment.
fn install_python_client(
    folders: &ClientFolders,
    &(client, name, environment, conversations): &PythonClient,
) -> Result<ClientScript> {
    let requirements = format!("frameworks/{environment}.txt");
    let what = format!("the frameworks of {requirements}");
    let python = python::install_environment(
        folders,
        &format!("frameworks-{environment}"),
        &requirements,
        &what,
        "3.11",
    )?;
    let script = folders.source.join("frameworks").join(name);
    let args = vec!["-u".into(), "-B".into(), script.into()];
    Ok(ClientScript {
        client,
        program: python,
        args,
        conversations,
    })
}

/// Installs a client in JavaScript, with its script next to the packages.
fn install_javascript_client(
    folders: &ClientFolders,
    &(client, name, conversations): &(&'static str, &str, &'static [ClientConversation]),
) -> Result<ClientScript> {
    let installed = install_node_packages(folders)?;
    let script = PathBuf::from("frameworks").join(name);
    copy_into([folders.source.join(script)], &installed)?;
    Ok(ClientScript {
        client,
        program: "node".into(),
        args: vec![installed.join(name).into()],
        conversations,
    })
}

/// Installs the packages in JavaScript, and returns their folder.
pub(super) fn install_node_packages(folders: &ClientFolders) -> Result<PathBuf> {
    node::require_node()?;
    let installed = folders.installed.join("frameworks-node");
    fs::create_dir_all(&installed)
        .with_context(|| format!("failed to create {}", installed.display()))?;
    copy_into(
        MANIFESTS
            .iter()
            .chain(&SHARED_SCRIPTS)
            .map(|name| folders.source.join(name)),
        &installed,
    )?;
    let inputs = MANIFESTS
        .map(|name| folders.read(name))
        .into_iter()
        .collect::<Result<String>>()?;
    run_once(
        &installed.join("node_modules/.toolbay-stamp"),
        &inputs,
        || {
            println!("Installing the frameworks in JavaScript");
            let mut npm = Command::new("npm");
            npm.args([
                "ci",
                "--loglevel=error",
                "--no-audit",
                "--no-fund",
                "--ignore-scripts",
            ])
            .current_dir(&installed);
            command::run(&mut npm).context("failed to install the frameworks in JavaScript")
        },
    )?;
    Ok(installed)
}
