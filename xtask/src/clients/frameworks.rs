//! Tests agent frameworks and bridges between transports, on a folder of edge-case plugins.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anstream::{eprintln, println};
use anyhow::{Context, Result, anyhow};
use toolbay_testkit::build::Built;
use toolbay_testkit::command;
use toolbay_testkit::guests::once;
use toolbay_testkit::terminal;

use super::conversation::Conversation;
use super::copied::copy;
use super::folders::Folders;
use super::odd::{self, Odd};
use super::script::{EACH_TRANSPORT, NEWCOMER, Script};
use super::{jvm, node, python};
use crate::tally::Tally;

/// Every transport, with automatic negotiation and with sessions only.
const WITH_LEGACY: &[Conversation] =
    &[("auto", "stdio"), ("legacy", "stdio"), ("auto", "http"), ("legacy", "http"), ("legacy", "sse")];

/// The directions of a bridge: the transport that it offers, and the transport of the server.
const BRIDGES: &[Conversation] = &[("streamableHttp", "stdio"), ("sse", "stdio"), ("stdio", "http"), ("stdio", "sse")];

/// Every transport, with `schemas = "portable"`. A schema that such a client cannot read makes it
/// reject the whole list.
const PORTABLE: &[Conversation] = &[("portable", "stdio"), ("portable", "http"), ("portable", "sse")];

/// Every transport, with both forms of schemas. `AutoGen` has tools, which read only portable
/// schemas, and a workbench.
const BOTH_FORMS: &[Conversation] = &[
    ("auto", "stdio"),
    ("auto", "http"),
    ("auto", "sse"),
    ("portable", "stdio"),
    ("portable", "http"),
    ("portable", "sse"),
];

/// A client in Python: its name, its script, its environment, and its conversations.
type InPython = (&'static str, &'static str, &'static str, &'static [Conversation]);

/// The Python environments, by the name of their requirements file: one for each major version of
/// the official SDK.
const SDK_1: &str = "python-1";
const SDK_2: &str = "python-2";

const IN_PYTHON: [InPython; 10] = [
    ("langchain-mcp-adapters", "client_langchain.py", SDK_1, EACH_TRANSPORT),
    ("semantic-kernel", "client_semantic_kernel.py", SDK_1, PORTABLE),
    ("autogen-ext", "client_autogen.py", SDK_1, BOTH_FORMS),
    ("mcpo", "client_mcpo.py", SDK_1, PORTABLE),
    ("openai-agents", "client_openai.py", SDK_2, EACH_TRANSPORT),
    ("pydantic-ai", "client_pydantic_ai.py", SDK_2, EACH_TRANSPORT),
    ("llama-index-tools-mcp", "client_llama_index.py", SDK_2, PORTABLE),
    ("mcp-haystack", "client_haystack.py", SDK_2, PORTABLE),
    ("google-adk", "client_adk.py", SDK_2, EACH_TRANSPORT),
    ("strands-agents", "client_strands.py", SDK_2, EACH_TRANSPORT),
];

/// The clients in JavaScript: name, script, and conversations.
const IN_JAVASCRIPT: [(&str, &str, &[Conversation]); 5] = [
    ("@ai-sdk/mcp", "client_ai.mjs", WITH_LEGACY),
    ("@langchain/mcp-adapters", "client_langchain.mjs", EACH_TRANSPORT),
    ("@openai/agents", "client_openai.mjs", EACH_TRANSPORT),
    ("mcp-remote", "client_remote.mjs", &[("legacy", "http"), ("auto", "http"), ("legacy", "sse")]),
    ("supergateway", "client_supergateway.mjs", BRIDGES),
];

/// The manifests that `npm ci` reads.
const MANIFESTS: [&str; 2] = ["frameworks/package.json", "frameworks/package-lock.json"];

/// The modules that the scripts in JavaScript share.
const SHARED: [&str; 3] = ["checks.mjs", "frameworks/harness.mjs", "frameworks/official.mjs"];

/// Runs the clients whose names `wanted` accepts. A client that cannot be installed counts as a
/// failure, and the other clients still run.
pub(super) fn run(folders: &Folders, built: &Built, wanted: &dyn Fn(&str) -> bool, tally: &mut Tally) -> Result<()> {
    let mut failures = Vec::new();
    let mut scripts = Vec::new();
    let python =
        IN_PYTHON.iter().filter(|(client, ..)| wanted(client)).map(|client| ("Python", in_python(folders, client)));
    let javascript = IN_JAVASCRIPT
        .iter()
        .filter(|(client, ..)| wanted(client))
        .map(|client| ("JavaScript", in_javascript(folders, client)));
    for (language, installed) in python.chain(javascript).map(|(language, script)| (language, script.map(Some))).chain(
        jvm::CLIENTS.iter().filter(|client| wanted(client.name)).map(|client| ("the JVM", client.install(folders))),
    ) {
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
        let odd = odd::lay_out(folders, built)?;
        for script in &scripts {
            for (mode, transport) in script.conversations {
                let name = format!("{}, {mode} over {transport}", script.client);
                println!("{}", terminal::bold(format!("\n{name}")));
                let failed = tally.failed;
                if let Err(error) = converse(script, (mode, transport), built, &odd, tally) {
                    tally.failed = tally.failed.max(failed + 1);
                    failures.push(format!("{name}: {error:#}"));
                }
            }
        }
    }
    if failures.is_empty() { Ok(()) } else { Err(anyhow!("{}", failures.join("; "))) }
}

/// Runs one conversation with the real server.
fn converse(
    script: &Script,
    (mode, transport): Conversation,
    built: &Built,
    odd: &Odd,
    tally: &mut Tally,
) -> Result<()> {
    let mut command = Command::new(&script.program);
    command.args(&script.args).args([mode, transport]).arg(&built.server);
    command.arg(&odd.plugins).arg(&odd.calls).arg(&odd.cache).arg(built.guests.join(NEWCOMER));
    tally.count_lines(&mut command)
}

/// Installs a client in Python and its environment.
fn in_python(folders: &Folders, &(client, name, environment, conversations): &InPython) -> Result<Script> {
    let requirements = format!("frameworks/{environment}.txt");
    let what = format!("the frameworks of {requirements}");
    let python = python::with(folders, &format!("frameworks-{environment}"), &requirements, &what, "3.11")?;
    let script = folders.source.join("frameworks").join(name);
    let args = vec!["-u".into(), "-B".into(), script.into()];
    Ok(Script { client, program: python, args, conversations })
}

/// Installs a client in JavaScript, with its script next to the packages.
fn in_javascript(
    folders: &Folders,
    &(client, name, conversations): &(&'static str, &str, &'static [Conversation]),
) -> Result<Script> {
    let installed = environment(folders)?;
    let script = PathBuf::from("frameworks").join(name);
    copy([folders.source.join(script)], &installed)?;
    Ok(Script { client, program: "node".into(), args: vec![installed.join(name).into()], conversations })
}

/// Installs the packages in JavaScript, and returns their folder.
pub(super) fn environment(folders: &Folders) -> Result<PathBuf> {
    node::is_new_enough()?;
    let installed = folders.installed.join("frameworks-node");
    fs::create_dir_all(&installed).with_context(|| format!("failed to create {}", installed.display()))?;
    copy(MANIFESTS.iter().chain(&SHARED).map(|name| folders.source.join(name)), &installed)?;
    let inputs = MANIFESTS.map(|name| folders.read(name)).into_iter().collect::<Result<String>>()?;
    once(&installed.join("node_modules/.toolbay-stamp"), &inputs, || {
        println!("Installing the frameworks in JavaScript");
        let mut npm = Command::new("npm");
        npm.args(["ci", "--loglevel=error", "--no-audit", "--no-fund", "--ignore-scripts"]).current_dir(&installed);
        command::run(&mut npm).context("failed to install the frameworks in JavaScript")
    })?;
    Ok(installed)
}
