//! `toolbay sync` and `serve --sync`: brings about in the plugin folder what `toolbay.plugins.toml`
//! says.
//!
//! A plugin whose files have the pinned digest needs no network. A failure of one plugin changes
//! nothing of it, and does not stop the others. No other plugin is touched.

use std::os::fd::AsFd as _;
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context as _, bail};
use clap::Args;
use toolbay_bundle::{PLUGINS_FILE_NAME, PluginEntry, PluginReference, ReferencePin};

use super::common::{Common, Listen, block_on};
use super::downloaded_archive::read_archive;
use super::installation::Installation;
use super::installed_files::{archive_digest, installed_digest};
use super::output::{complain, count_noun, print};
use super::plugin_download::PluginDownloader;
use super::plugins_file::{read_plugins_file, write_entry};
use crate::config::{Config, ConfigError};

/// Exit code of the command for an invalid file (`EX_USAGE` in sysexits.h).
const EXIT_INVALID_FILE: i32 = 64;

#[derive(Args, Debug)]
pub(super) struct Sync {
    /// Get only pinned versions: a reference without a pin is an error
    #[arg(long)]
    locked: bool,
    #[command(flatten)]
    common: Common,
}

pub(super) fn run(options: &Sync) -> anyhow::Result<ExitCode> {
    let config = options.common.load_config(true, &Listen::default())?;
    block_on(async {
        let file = read_plugins_file(&config.plugins)?;
        if file.plugins.is_empty() {
            print(&format!("{PLUGINS_FILE_NAME} names no plugins\n"));
            return Ok(ExitCode::SUCCESS);
        }
        let downloader = PluginDownloader::new(&config);
        let (mut unchanged, mut failed) = (0, 0);
        let count = file.plugins.len();
        for (id, entry) in file.plugins {
            match Box::pin(sync(&config, &downloader, options.locked, &id, entry)).await {
                Ok(None) => unchanged += 1,
                Ok(Some(text)) => print(&format!("{id}: {text}\n")),
                Err(why) => {
                    complain(&format!("{id}: {why:#}"));
                    failed += 1;
                }
            }
        }
        print(&format!(
            "{} in {PLUGINS_FILE_NAME}: {unchanged} unchanged, {} changed, {failed} failed\n",
            count_noun(count, "plugin"),
            count - unchanged - failed
        ));
        Ok(if failed == 0 {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        })
    })
}

/// Brings one plugin about. Returns what was done; `None` if there was nothing to do.
async fn sync(
    config: &Config,
    downloader: &PluginDownloader<'_>,
    is_locked: bool,
    id: &str,
    entry: PluginEntry,
) -> anyhow::Result<Option<String>> {
    let folder = &config.plugins;
    let pin = entry.valid_pin();
    let installed = installed_digest(folder, id, downloader.limits().unpacked)
        .context("its files cannot be read")?;
    if let Some(pin) = pin
        && installed == Some(pin.files)
    {
        return Ok(None);
    }
    if is_locked && pin.is_none() {
        bail!("{PLUGINS_FILE_NAME} does not pin {}", entry.reference);
    }
    let reference: &PluginReference = pin.map_or(&entry.reference, |pin| &pin.resolved);
    let download = downloader.download(reference).await?;
    let resolved = download.resolved.clone();
    let archive = read_archive(downloader, config, download, Some(id))?;
    let files = archive_digest(&archive);
    if let Some(pin) = pin
        && pin.files != files
    {
        bail!(
            "the files have the digest sha256:{files}, and not sha256:{}, as {PLUGINS_FILE_NAME} says",
            pin.files
        );
    }
    let installation = Installation::plan(folder, &archive);
    let verb = if installation.replaces_something() {
        "replaced"
    } else {
        "added"
    };
    if installed != Some(files) {
        installation
            .install(folder, &archive)
            .context("nothing has changed")?;
    }
    if pin.is_some() {
        return Ok(Some(format!("{verb}, {reference}")));
    }
    let text = format!("{verb} and pinned, {}", resolved.to_pinned_text());
    let pin = ReferencePin { resolved, files };
    let entry = PluginEntry {
        reference: entry.reference,
        pin: Some(pin),
    };
    write_entry(folder, id, Some(entry))
        .with_context(|| format!("it was {verb}, but not pinned"))?;
    Ok(Some(text))
}

/// Runs `toolbay sync` as another program, for a server that has not confined itself yet: a download
/// needs threads and connections, which a server must not have before. What it prints goes to
/// standard error.
///
/// # Errors
///
/// The file is invalid, or the program cannot be started. A plugin that was not downloaded is no
/// error.
pub(super) fn run_before_serving(common: &Common, is_locked: bool) -> anyhow::Result<()> {
    let context = "failed to run `toolbay sync`";
    let program = std::env::current_exe().context(context)?;
    let output = std::io::stderr()
        .as_fd()
        .try_clone_to_owned()
        .context(context)?;
    let mut command = Command::new(program);
    command
        .arg("sync")
        .stdin(Stdio::null())
        .stdout(Stdio::from(output));
    // The same options find the same configuration.
    if let Some(folder) = &common.plugins {
        command.arg("--plugins").arg(folder);
    }
    if let Some(file) = &common.settings.config {
        command.arg("--config").arg(file);
    }
    if common.settings.no_config {
        command.arg("--no-config");
    }
    if is_locked {
        command.arg("--locked");
    }
    let status = command.status().context(context)?;
    match status.code() {
        Some(0 | 1) => Ok(()),
        Some(EXIT_INVALID_FILE) => Err(ConfigError::new(format!(
            "--sync: {PLUGINS_FILE_NAME} or the configuration is invalid"
        ))
        .into()),
        _ => bail!("--sync: `toolbay sync` ended unexpectedly ({status})"),
    }
}
