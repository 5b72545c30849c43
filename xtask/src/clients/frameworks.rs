//! The frameworks that people build agents with, and the bridges between transports, in the folder with the oddest plugins.

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

/// The same, and without asking first what the server speaks.
const WITH_LEGACY: &[Conversation] =
    &[("auto", "stdio"), ("legacy", "stdio"), ("auto", "http"), ("legacy", "http"), ("legacy", "sse")];

/// What a bridge makes of what the server speaks.
const BRIDGES: &[Conversation] = &[("streamableHttp", "stdio"), ("sse", "stdio"), ("stdio", "http"), ("stdio", "sse")];

/// With the schemas of `schemas = "portable"`: any other one that these cannot read costs them the whole list.
const PORTABLE: &[Conversation] = &[("portable", "stdio"), ("portable", "http"), ("portable", "sse")];

/// Both forms: `AutoGen` has tools, which read only the portable form, and a workbench.
const BOTH_FORMS: &[Conversation] = &[
    ("auto", "stdio"),
    ("auto", "http"),
    ("auto", "sse"),
    ("portable", "stdio"),
    ("portable", "http"),
    ("portable", "sse"),
];

/// A client in Python: its name, its script, the environment that has it, and what it does.
type InPython = (&'static str, &'static str, &'static str, &'static [Conversation]);

/// The environments, by what pip installs into them: one for each line of the official SDK.
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

/// A client in JavaScript: its name, its script, and what it does.
const IN_JAVASCRIPT: [(&str, &str, &[Conversation]); 5] = [
    ("@ai-sdk/mcp", "client_ai.mjs", WITH_LEGACY),
    ("@langchain/mcp-adapters", "client_langchain.mjs", EACH_TRANSPORT),
    ("@openai/agents", "client_openai.mjs", EACH_TRANSPORT),
    ("mcp-remote", "client_remote.mjs", &[("legacy", "http"), ("auto", "http"), ("legacy", "sse")]),
    ("supergateway", "client_supergateway.mjs", BRIDGES),
];

/// What `npm ci` installs by.
const MANIFESTS: [&str; 2] = ["frameworks/package.json", "frameworks/package-lock.json"];

/// What the scripts in JavaScript share.
const SHARED: [&str; 3] = ["checks.mjs", "frameworks/harness.mjs", "frameworks/official.mjs"];

/// Runs those that `wanted` names. One that cannot be installed is a failure, and the others still run.
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

/// Has one conversation with the real server.
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

/// A client in Python, with its environment.
fn in_python(folders: &Folders, &(client, name, environment, conversations): &InPython) -> Result<Script> {
    let requirements = format!("frameworks/{environment}.txt");
    let what = format!("the frameworks of {requirements}");
    let python = python::with(folders, &format!("frameworks-{environment}"), &requirements, &what, "3.11")?;
    let script = folders.source.join("frameworks").join(name);
    let args = vec!["-u".into(), "-B".into(), script.into()];
    Ok(Script { client, program: python, args, conversations })
}

/// A client in JavaScript: its script lies beside the packages.
fn in_javascript(
    folders: &Folders,
    &(client, name, conversations): &(&'static str, &str, &'static [Conversation]),
) -> Result<Script> {
    let installed = environment(folders)?;
    let script = PathBuf::from("frameworks").join(name);
    copy([folders.source.join(script)], &installed)?;
    Ok(Script { client, program: "node".into(), args: vec![installed.join(name).into()], conversations })
}

/// The folder with the packages in JavaScript.
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
