//! `toolbay check`: explains a plugin file before anybody trusts it.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use bytesize::ByteSize;
use serde_json::{Value, json};
use toolbay_catalog::{Definition, LoadError, check, describe_failed, read_bounded};
use toolbay_model::Digest;
use toolbay_model::text::{clean, line};
use toolbay_sandbox::{About, Sandbox, Source};
use toolbay_settings::project::{self, Project};

use super::common::{Common, Listen, block_on};
use super::output::{complain, print};
use super::requirements::ready;
use crate::config::Config;

/// A compile that is shorter than this needs no words.
const PATIENCE: Duration = Duration::from_secs(1);

/// How long a reason may be, in bytes: a stranger wrote some of it.
const WHY: usize = 2_000;

/// What there is to say about a file.
struct Findings {
    digest: Digest,
    size: u64,
    about: About,
    form: String,
    /// How long it took to compile; absent if the compile cache had it.
    compile_ms: Option<f64>,
    remarks: Vec<String>,
    tools: Vec<std::sync::Arc<Definition>>,
}

/// What an interface is, and what it needs before it does anything, by how its name begins.
const INTERFACES: [(&str, &str); 10] = [
    ("toolbay:plugin/", "logs, progress and configuration of the host; needs no permission"),
    ("wasi:cli/environment", "environment variables; none, unless permissions.environment names them"),
    ("wasi:cli/", "standard input and output, and the end of the program; captured, needs no permission"),
    ("wasi:clocks/", "the time; needs no permission"),
    ("wasi:filesystem/", "files; none, unless [[permissions.mounts]] gives folders"),
    ("wasi:http/", "HTTP requests; refused at use"),
    ("wasi:io/", "streams, of what else it imports; needs no permission"),
    ("wasi:random/", "random numbers; needs no permission"),
    ("wasi:sockets/", "network connections; refused at use"),
    ("", "something that no plugin can have"),
];

pub(super) fn run(common: &Common, path: &Path, as_json: bool) -> anyhow::Result<ExitCode> {
    let file = &file_of(path)?;
    // No plugin folder is needed for one file; the one that it is in will do.
    let beside = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let common = Common { plugins: Some(beside.to_owned()), config: common.config.clone(), log: common.log.clone() };
    let config = common.configure(true, &Listen::default())?;
    let findings = block_on(look(config, file))?;
    let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    print(&if as_json { json_text(&findings)? } else { text(name, &findings) });
    Ok(ExitCode::SUCCESS)
}

/// The file to explain: of a project, what its build made.
fn file_of(path: &Path) -> anyhow::Result<PathBuf> {
    if !path.join(project::FILE).is_file() {
        return Ok(path.to_owned());
    }
    let project = Project::read(path).map_err(anyhow::Error::msg)?;
    ready(&project)?;
    let output = path.join(&project.output);
    if !output.is_file() {
        let commands: Vec<&str> = project.setup.iter().chain(&project.build).map(String::as_str).collect();
        bail!("{} is not built yet; in its folder\n    {}", project.name, commands.join("\n    "));
    }
    Ok(output)
}

async fn look(config: Config, file: &Path) -> anyhow::Result<Findings> {
    let name = file.display();
    let unusable = |why: &str| anyhow::anyhow!("{} cannot be a plugin: {}", name, line(why, WHY));
    if file.is_dir() {
        bail!("{name} is a folder without {}: name a plugin file, or the folder of a project", project::FILE);
    }
    let limit = config.server.component.as_u64();
    let bytes = read_bounded(file, limit, Some("server.component")).map_err(|error| match error {
        LoadError::Gone => anyhow::anyhow!("there is no file {name}"),
        error => anyhow::anyhow!("{name}: {}", error.why()),
    })?;
    let wit = std::fs::read_to_string(file.with_extension("wit")).unwrap_or_default();
    let (size, source) = (bytes.len() as u64, Source { file: bytes, wit });
    let digest = source.digest();
    let sandbox = Sandbox::new(config.sandbox()?)?;
    let (prepared, description, about, compile_ms) = match sandbox.find(digest) {
        Some((prepared, description, about)) => (prepared, description, about, None),
        None => {
            let began = Instant::now();
            let mut compiling = std::pin::pin!(sandbox.compile(source));
            let compiled = match tokio::time::timeout(PATIENCE, compiling.as_mut()).await {
                Ok(compiled) => compiled,
                Err(_elapsed) => {
                    complain(&format!(
                        "compiling {name} ({}); this can take minutes",
                        ByteSize::b(size).display().iec()
                    ));
                    compiling.await
                }
            };
            let compiled = compiled.map_err(|error| unusable(&error.to_string()))?;
            let compile_ms = began.elapsed().as_secs_f64() * 1000.0;
            let (asked, limits) = (sandbox.clone(), config.rules().describe);
            let described = sandbox.spawn(async move {
                let finished = asked.describe(&compiled, &limits).await;
                (compiled, finished.result)
            });
            let (compiled, description) = described.await.context("asking it for its tools failed")?;
            let description = description.map_err(|error| unusable(describe_failed(&error).why()))?;
            let (prepared, scratch, about) = compiled.into_parts();
            sandbox.keep(digest, scratch, description.clone(), about.clone());
            (prepared, description, about, Some(compile_ms))
        }
    };
    let tools = check(description.tools).map_err(|why| unusable(&why))?;
    Ok(Findings { digest, size, about, form: prepared.form(), compile_ms, remarks: description.remarks, tools })
}

/// What the imports let it do, in plain words, each once.
fn needs(about: &About) -> Vec<&'static str> {
    let mut words: Vec<&str> = Vec::new();
    for import in &about.imports {
        let known = INTERFACES.iter().find(|(start, _)| import.starts_with(start));
        words.extend(known.map(|(_, words)| *words).filter(|known| !words.contains(known)));
    }
    words
}

fn text(name: &str, findings: &Findings) -> String {
    let about = &findings.about;
    let mut out = String::new();
    let size = ByteSize::b(findings.size).display().iec();
    let _ = writeln!(out, "{}  {size}  sha256 {}", line(name, WHY), findings.digest);
    let _ = writeln!(out, "    {}; {}", about.kind, findings.form);
    if !about.made_with.is_empty() {
        let _ = writeln!(out, "    made with {}", line(&about.made_with.join(", "), WHY));
    }
    let code = ByteSize::b(about.code).display().iec();
    let _ = match findings.compile_ms {
        Some(ms) => writeln!(out, "    compiled in {ms:.0} ms to {code}"),
        None => writeln!(out, "    compiled before, to {code} (in the compile cache)"),
    };
    let _ = writeln!(out, "\nIt can use:");
    let needs = needs(about);
    for words in &needs {
        let _ = writeln!(out, "    {words}");
    }
    if needs.is_empty() {
        let _ = writeln!(out, "    nothing but its own memory");
    }
    for remark in &findings.remarks {
        let _ = writeln!(out, "    ! {}", line(remark, WHY));
    }
    let _ = writeln!(out, "\nIts tools:");
    for tool in &findings.tools {
        let _ = writeln!(out, "    {}", tool.tool.name);
        for words in tool.tool.description.as_deref().unwrap_or_default().lines() {
            let _ = writeln!(out, "        {}", clean(words));
        }
        let _ = writeln!(out, "        input   {}", tool.input.value());
        if let Some(output) = &tool.output {
            let _ = writeln!(out, "        output  {}", output.value());
        }
    }
    if let Some(wit) = &about.wit {
        let _ = writeln!(out, "\nIts types:");
        for words in clean(wit).lines() {
            let _ = writeln!(out, "{}", format!("    {words}").trim_end());
        }
    }
    out
}

fn json_text(findings: &Findings) -> serde_json::Result<String> {
    let about = &findings.about;
    let tool = |tool: &Definition| {
        json!({
            "name": tool.tool.name,
            "title": tool.tool.title,
            "description": tool.tool.description,
            "inputSchema": tool.input.value(),
            "outputSchema": tool.output.as_ref().map(|schema| schema.value().clone()),
        })
    };
    let json: Value = json!({
        "sha256": findings.digest.to_string(),
        "size": findings.size,
        "kind": about.kind,
        "form": findings.form,
        "madeWith": about.made_with,
        "compileMs": findings.compile_ms,
        "code": about.code,
        "imports": about.imports,
        "exports": about.exports,
        "canUse": needs(about),
        "remarks": findings.remarks,
        "tools": findings.tools.iter().map(|checked| tool(checked)).collect::<Vec<_>>(),
        "wit": about.wit,
    });
    Ok(serde_json::to_string_pretty(&json)? + "\n")
}
