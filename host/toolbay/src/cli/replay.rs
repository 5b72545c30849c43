//! `toolbay replay`: repeats recorded calls and shows the differences.

mod figures;
mod plugins;
mod report;
mod runner;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{bail, ensure};
use toolbay_mcp::NamePattern;
use toolbay_model::text::clean_line;
use toolbay_recording::{
    RecordedCall, RecordingHeader, RecordingItem, RecordingReader, ReplayVerdict, compare,
};
use toolbay_sandbox::Sandbox;

use self::plugins::{PluginOverride, ReplayPlugins};
use self::report::{ReplayReport, ReplayStatus};
use self::runner::CallReplayer;
use super::common::{Common, Listen, block_on};
use super::output::complain;
use super::plugin_file::{MAX_REASON_BYTES, printable_path};
use crate::config::Config;

/// Reason why a different result of a call with redacted input is not meaningful.
const REDACTED_REASON: &str =
    "its result differs, but what it got contains a secret, which is redacted in the recording";

/// Selection of calls to replay, and the plugin file to use.
#[derive(Debug)]
pub(super) struct ReplaySelection {
    /// The plugin file to run the calls of one plugin with, as `FILE` or `ID=FILE`.
    pub(super) plugin: Option<String>,
    /// The tools whose calls are replayed.
    pub(super) tool: Option<NamePattern>,
}

pub(super) fn run(
    mut common: Common,
    file: &Path,
    selection: &ReplaySelection,
    json: bool,
) -> anyhow::Result<ExitCode> {
    let plugin_override = selection
        .plugin
        .as_deref()
        .map(parse_plugin_override)
        .transpose()?;
    if let Some(PluginOverride { file, .. }) = &plugin_override {
        // A single file needs no plugin folder. Use the folder of the file instead.
        let plugin_folder = file
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty())
            .unwrap_or(Path::new("."));
        common
            .plugins
            .get_or_insert_with(|| plugin_folder.to_owned());
    }
    let config = common.load_config(true, &Listen::default())?;
    let report = block_on(replay_recording(
        &config,
        file,
        plugin_override,
        selection.tool.as_ref(),
    ))?;
    if json {
        report.print_json()?;
    } else {
        report.print();
    }
    Ok(if report.is_equal() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Parses a pattern of tool names.
pub(super) fn pattern(text: &str) -> Result<NamePattern, String> {
    NamePattern::try_from(text.to_owned())
}

/// Parses `FILE` or `ID=FILE`.
fn parse_plugin_override(text: &str) -> anyhow::Result<PluginOverride> {
    if let Some((id, file)) = text
        .split_once('=')
        .filter(|(id, _)| !id.is_empty() && !id.contains('/'))
    {
        return Ok(PluginOverride {
            id: id.to_owned(),
            file: file.into(),
        });
    }
    let file = PathBuf::from(text);
    let id = file
        .file_stem()
        .and_then(|stem| stem.to_str())
        .map(str::to_owned);
    match id {
        Some(id) => Ok(PluginOverride { id, file }),
        None => bail!(
            "--plugin: {} has no name of a plugin; give ID=FILE",
            clean_line(text, MAX_REASON_BYTES)
        ),
    }
}

async fn replay_recording(
    config: &Config,
    file: &Path,
    plugin_override: Option<PluginOverride>,
    tool: Option<&NamePattern>,
) -> anyhow::Result<ReplayReport> {
    let mut settings = config.sandbox_settings()?;
    // Replay must not read or change the stored state of plugins.
    settings.state = None;
    let sandbox = Sandbox::new(settings)?;
    let mut plugins = ReplayPlugins::new(sandbox.clone(), config, plugin_override.clone());
    let runner = CallReplayer::new(sandbox, config.effective_limits().1);
    let with_path = |error| anyhow::anyhow!("{}: {error}", printable_path(file));
    let mut reader = RecordingReader::open(file)?;
    let mut report = ReplayReport::new(file);
    let mut header: Option<RecordingHeader> = None;
    while let Some(item) = reader.next().map_err(with_path)? {
        let (number, call) = match item {
            RecordingItem::Header(next) => {
                report.record_header(&next);
                header = Some(next);
                continue;
            }
            RecordingItem::Lost(calls) => {
                report.lost += calls;
                continue;
            }
            RecordingItem::Partial(number) => {
                complain(&format!(
                    "{}:{number}: this line is only the beginning of a call, and is skipped: the server was killed while it \
                     wrote",
                    printable_path(file)
                ));
                continue;
            }
            RecordingItem::Call(number, call) => (number, call),
        };
        report.plugins.insert(call.plugin.clone());
        let is_other_plugin = plugin_override
            .as_ref()
            .is_some_and(|instead| instead.id != call.plugin);
        if is_other_plugin || tool.is_some_and(|pattern| !pattern.matches(&call.tool)) {
            report.skipped += 1;
            continue;
        }
        let salt = header.as_ref().map_or("", |header| &header.salt);
        let status = replay_call(&mut plugins, &runner, &call, salt, &mut report).await;
        let status =
            status.map_err(|why| anyhow::anyhow!("{}:{number}: {why}", printable_path(file)))?;
        report.add(number, &call, status);
    }
    ensure!(
        report.count() > 0,
        no_calls_message(&report, plugin_override.as_ref(), tool)
    );
    Ok(report)
}

/// Replays one call.
///
/// # Errors
///
/// The recording is invalid. The message is the reason.
async fn replay_call(
    plugins: &mut ReplayPlugins,
    runner: &CallReplayer,
    call: &RecordedCall,
    salt: &str,
    report: &mut ReplayReport,
) -> Result<ReplayStatus, String> {
    if !call.missing.is_empty() {
        return Ok(ReplayStatus::NotReplayable(
            call.missing.iter().map(ToString::to_string).collect(),
        ));
    }
    let plugin = match plugins.get_or_load(&call.plugin).await {
        Ok(plugin) => plugin,
        Err(why) => return Ok(ReplayStatus::NotReplayable(vec![why])),
    };
    if plugin.digest.to_string() != call.plugin_sha256 {
        report.changed.insert(call.plugin.clone());
    }
    Ok(match runner.replay(&plugin, call, salt).await? {
        Ok(replayed) => {
            let comparison = compare(call, &replayed);
            // A redaction mark differs in length from the secret, which can change the result.
            if call.answers.redacted && comparison.verdict != ReplayVerdict::Equal {
                return Ok(ReplayStatus::NotReplayable(vec![
                    REDACTED_REASON.to_owned(),
                ]));
            }
            ReplayStatus::Run(comparison)
        }
        Err(why) => ReplayStatus::NotReplayable(why),
    })
}

/// Returns the reason why no call was replayed.
fn no_calls_message(
    report: &ReplayReport,
    plugin_override: Option<&PluginOverride>,
    tool: Option<&NamePattern>,
) -> String {
    let plugins: Vec<String> = report.plugins.iter().map(|id| format!("{id:?}")).collect();
    let plugins = clean_line(&plugins.join(", "), MAX_REASON_BYTES);
    match (plugin_override, tool) {
        _ if plugins.is_empty() => "the recording has no calls".to_owned(),
        (Some(PluginOverride { id, .. }), _) if !report.plugins.contains(id) => format!(
            "the recording has no calls of the plugin {id:?}, but of {plugins}; name the one that the file \
             replaces with --plugin ID=FILE"
        ),
        (_, Some(pattern)) => format!(
            "the recording has no calls of tools that match {:?}",
            pattern.to_string()
        ),
        (_, None) => "the recording has no calls to run".to_owned(),
    }
}
