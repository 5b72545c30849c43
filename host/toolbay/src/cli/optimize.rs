//! `toolbay optimize`: runs a plugin's initialization once, and writes a file that starts with the
//! resulting state.

use std::fs::Permissions;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, anyhow, bail};
use bytesize::ByteSize;
use clap::ValueEnum;
use serde_json::{Map, Value};
use toolbay_model::text::{clean_line, format_duration, format_thousands};
use toolbay_sandbox::{
    CompileSource, InitAllowance, OptimizeJob, OptimizedComponent, Sandbox, WarmUp,
};

use super::common::{Common, Listen, Settings, block_on};
use super::output::{complain, print};
use super::plugin_file::{
    LoadedPlugin, MAX_REASON_BYTES, load_plugin, printable_path, read_plugin_source,
    resolve_plugin_file,
};
use super::progress;
use crate::config::Config;

/// Reason why the calls of an MCP server cannot become part of a file.
const SERVER_CALL_REFUSAL: &str = "it is an MCP server, and --call is not for servers: the handles of a request, such as its body \
                                   and its streams, would be part of the file, and no other instance has them";

/// Remark about an MCP server.
const SERVER_REMARK: &str = "it is an MCP server: its calls skip only what it does before its first request. An SDK that starts in \
                             the first request starts in each call";

/// Capabilities that an initialization may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum AllowedCapability {
    /// Environment variables, arguments and `[config]`: empty during the initialization, whatever
    /// the grant says
    Environment,
    /// The folders of mounts: none during the initialization, whatever the grant says
    Folders,
    /// Random numbers: every call gets the same ones, and anyone with the file can read them
    Random,
    /// Clocks: the time is 1 January 2020, and times that were read do not change
    Clocks,
}

impl From<AllowedCapability> for InitAllowance {
    fn from(allow: AllowedCapability) -> Self {
        match allow {
            AllowedCapability::Environment => Self::Environment,
            AllowedCapability::Folders => Self::Folders,
            AllowedCapability::Random => Self::Random,
            AllowedCapability::Clocks => Self::Clocks,
        }
    }
}

/// Options of the optimization.
pub(super) struct OptimizeOptions {
    /// If set, an existing file is replaced.
    pub(super) force: bool,
    pub(super) allow: Vec<AllowedCapability>,
    /// Calls to make before the snapshot, as given on the command line.
    pub(super) calls: Vec<String>,
}

pub(super) fn run(
    settings: &Settings,
    path: &Path,
    output: Option<PathBuf>,
    options: OptimizeOptions,
) -> anyhow::Result<ExitCode> {
    let OptimizeOptions {
        force,
        allow,
        calls,
    } = options;
    let file = &resolve_plugin_file(path)?;
    let output = match output {
        Some(output) => output,
        None => default_output(file)?,
    };
    if output.is_dir() {
        bail!(
            "{} is a folder; give the name of a file",
            printable_path(&output)
        );
    }
    if !force && output.symlink_metadata().is_ok() {
        bail!(
            "{} exists; to replace it, add --force",
            printable_path(&output)
        );
    }
    let calls = calls
        .iter()
        .map(|call| parse_warm_up(call))
        .collect::<anyhow::Result<Vec<_>>>()?;
    let plugin_folder = file
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    let common = Common::for_folder(Some(plugin_folder.to_owned()), settings.clone());
    let config = common.load_config(true, &Listen::default())?;
    let allowed = allow.into_iter().map(InitAllowance::from).collect();
    let report = block_on(async {
        let source = read_plugin_source(file, config.server.component_size.as_u64())?;
        let job = OptimizeJob {
            source,
            limits: config.load_policy().limits,
            allowed,
            calls,
        };
        let (optimized, report) = optimize_file(&config, file, job).await?;
        write_atomically(&optimized.file, &output)?;
        Ok(report)
    })?;
    print(&format!(
        "{report}\n    written to {}\n",
        printable_path(&output)
    ));
    if let Some(remark) = wit_remark(file, &output) {
        complain(&remark);
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the default name, in the current folder: `word-count.wasm` becomes
/// `word-count.optimized.wasm`.
fn default_output(file: &Path) -> anyhow::Result<PathBuf> {
    let stem = file.file_stem().context("the plugin file has no name")?;
    let mut name = stem.to_owned();
    name.push(".optimized.wasm");
    Ok(name.into())
}

/// Parses `TOOL` or `TOOL=ARGUMENTS`.
fn parse_warm_up(call: &str) -> anyhow::Result<WarmUp> {
    let (tool, arguments) = call.split_once('=').unwrap_or((call, "{}"));
    let object: Result<Map<String, Value>, _> = serde_json::from_str(arguments);
    let object = object.map_err(|error| {
        let tool = clean_line(tool, MAX_REASON_BYTES);
        let error = clean_line(&error.to_string(), MAX_REASON_BYTES);
        anyhow!("--call {tool}: the arguments are not a JSON object: {error}")
    })?;
    Ok(WarmUp {
        tool: tool.to_owned(),
        arguments: Value::Object(object).to_string(),
    })
}

/// Optimizes a file, and checks that its description stays the same. Also returns the report to
/// print.
async fn optimize_file(
    config: &Config,
    file: &Path,
    job: OptimizeJob,
) -> anyhow::Result<(OptimizedComponent, String)> {
    let sandbox = Sandbox::new(config.sandbox_settings()?)?;
    let name = printable_path(file);
    let before = load_plugin(&sandbox, job.source.clone(), config.load_policy(), &name).await?;
    if before.prepared.is_mcp_server() {
        if !job.calls.is_empty() {
            bail!("{name}: {SERVER_CALL_REFUSAL}");
        }
        complain(&format!("{name}: {SERVER_REMARK}"));
    }
    let size = job.source.file.len() as u64;
    let wit = job.source.wit.clone();
    let activity = format!("initializing {name}");
    let optimized = progress::with_progress(&activity, &activity, sandbox.optimize(job)).await;
    let component = optimized.map_err(|error| {
        anyhow!(
            "{name}: {}",
            clean_line(&error.to_string(), MAX_REASON_BYTES)
        )
    })?;
    let source = CompileSource {
        file: component.file.clone(),
        wit,
    };
    let after = load_plugin(
        &sandbox,
        source,
        config.load_policy(),
        &format!("{name}, optimized,"),
    )
    .await?;
    if before.description != after.description || before.prepared.form() != after.prepared.form() {
        bail!(
            "{name}: its tools, prompts or resources differ after the initialization; they must be the same whenever they are listed"
        );
    }
    let report = render_report(&name, &component, size, [&before, &after]);
    Ok((component, report))
}

fn render_report(
    name: &str,
    optimized: &OptimizedComponent,
    size: u64,
    [before, after]: [&LoadedPlugin; 2],
) -> String {
    let OptimizedComponent {
        file,
        fuel,
        wall,
        ran,
    } = optimized;
    let [size, new_size] =
        [size, file.len() as u64].map(|size| ByteSize::b(size).display().iec().to_string());
    let executed = if ran.is_empty() {
        String::new()
    } else {
        format!(" ({})", clean_line(&ran.join(", "), MAX_REASON_BYTES))
    };
    let memory = before
        .prepared
        .memory()
        .zip(after.prepared.memory())
        .map_or_else(String::new, |(before, after)| {
            let [before, after] =
                [before, after].map(|memory| ByteSize::b(memory).display().iec().to_string());
            format!("\n    memory when a call begins: {before}, now {after}")
        });
    let fuel = format_thousands(*fuel);
    let wall = format_duration(*wall);
    format!(
        "{name}: initialized with {fuel} fuel in {wall}{executed}\n    the file: {size}, now {new_size}{memory}"
    )
}

/// Writes the file atomically, so that a server never reads a partial file.
fn write_atomically(bytes: &[u8], output: &Path) -> anyhow::Result<()> {
    let folder = output
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    let failed = || format!("failed to write {}", printable_path(output));
    let mut temporary = tempfile::Builder::new()
        .prefix(".toolbay-optimize-")
        .tempfile_in(folder)
        .with_context(failed)?;
    temporary.write_all(bytes).with_context(failed)?;
    // A temporary file is readable only by its owner, but another user may serve the plugin.
    std::fs::set_permissions(temporary.path(), Permissions::from_mode(0o644))
        .with_context(failed)?;
    temporary.as_file().sync_all().with_context(failed)?;
    temporary.persist(output).with_context(failed)?;
    Ok(())
}

/// Returns advice about the `.wit` file next to a plugin, which contains the descriptions of plain
/// functions.
fn wit_remark(file: &Path, output: &Path) -> Option<String> {
    let [from, to] = [file, output].map(|path| path.with_extension("wit"));
    (from.is_file() && !to.exists()).then(|| {
        format!(
            "{} contains the descriptions of its functions: copy it to {}",
            printable_path(&from),
            printable_path(&to)
        )
    })
}
