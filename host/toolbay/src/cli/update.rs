//! `toolbay update` and `toolbay outdated`: what the references in `toolbay.plugins.toml` name now,
//! compared with what is pinned.
//!
//! A pin never moves by itself. If a tag names something else, only `toolbay update` follows it.

use std::fmt::Write as _;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use clap::Args;
use serde_json::{Map, Value, json};
use toolbay_bundle::{PluginEntry, PluginReference, ReferencePin};
use toolbay_lock::LOCK_FILE_NAME;
use toolbay_model::Digest;

use super::candidate::{ExistingGrant, candidate_text};
use super::common::{Common, Listen, block_on};
use super::confirm;
use super::downloaded_archive::read_archive;
use super::installation::Installation;
use super::installed_files::archive_digest;
use super::output::{complain, note, print, print_json};
use super::plugin_download::PluginDownloader;
use super::plugins_file::{read_plugins_file, select_entries, write_entry};
use crate::config::Config;

#[derive(Args, Debug)]
pub(super) struct Update {
    /// Only these plugins [default: all in toolbay.plugins.toml]
    #[arg(value_name = "PLUGIN")]
    plugins: Vec<String>,
    /// Only show what an update would change
    #[arg(long)]
    dry_run: bool,
    /// Update without asking
    #[arg(long, conflicts_with = "dry_run")]
    yes: bool,
    #[command(flatten)]
    common: Common,
}

#[derive(Args, Debug)]
pub(super) struct Outdated {
    /// Only these plugins [default: all in toolbay.plugins.toml]
    #[arg(value_name = "PLUGIN")]
    plugins: Vec<String>,
    #[command(flatten)]
    common: Common,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What a reference names, compared with its pin.
enum PinState {
    /// The reference states a digest, so it names the same forever.
    Fixed,
    /// The reference still names what is pinned.
    Current,
    /// The reference names something else, or nothing was pinned.
    Moved {
        pinned: Option<Digest>,
        now: Box<PluginReference>,
    },
}

pub(super) fn run(options: &Update) -> anyhow::Result<ExitCode> {
    let config = options.common.load_config(true, &Listen::default())?;
    if !options.dry_run && !options.yes && !confirm::is_possible() {
        bail!(
            "nothing was updated: run the command on a terminal, or add --yes; --dry-run only shows what would change"
        );
    }
    block_on(async {
        let file = read_plugins_file(&config.plugins)?;
        let downloader = PluginDownloader::new(&config);
        let mut has_failed = false;
        for (id, entry) in select_entries(file, &options.plugins)? {
            if let Err(why) = Box::pin(update(options, &config, &downloader, &id, entry)).await {
                complain(&format!("{id}: {why:#}"));
                has_failed = true;
            }
        }
        Ok(exit_code(has_failed))
    })
}

async fn update(
    options: &Update,
    config: &Config,
    downloader: &PluginDownloader<'_>,
    id: &str,
    entry: PluginEntry,
) -> anyhow::Result<()> {
    let (pinned, now) = match Box::pin(compare(downloader, &entry)).await? {
        PinState::Moved { pinned, now } => (pinned, now),
        state => {
            print(&state_line(id, &entry, &state));
            return Ok(());
        }
    };
    let folder = &config.plugins;
    let download = downloader.download(&now).await?;
    let resolved = download.resolved.clone();
    let archive = read_archive(downloader, config, download, Some(id))?;
    let installation = Installation::plan(folder, &archive);
    let existing = ExistingGrant::read(folder, id)?;
    let mut shown = state_line(
        id,
        &entry,
        &PinState::Moved {
            pinned,
            now: Box::new(resolved.clone()),
        },
    );
    shown += &candidate_text(config, &archive, &installation, existing.grant.as_ref()).await?;
    print(&shown);
    if options.dry_run {
        return Ok(());
    }
    if !options.yes
        && !confirm::ask_blocking(&format!(
            "\nUpdate {id}? Type y for yes, anything else for no:"
        ))
    {
        print(&format!("{id} was not updated\n"));
        return Ok(());
    }
    existing.ensure_unchanged(folder, id)?;
    installation
        .install(folder, &archive)
        .context("it was not updated, and nothing has changed")?;
    let pin = ReferencePin {
        resolved,
        files: archive_digest(&archive),
    };
    let entry = PluginEntry {
        reference: entry.reference,
        pin: Some(pin),
    };
    write_entry(folder, id, Some(entry))?;
    print(&format!("updated {id}\n"));
    if folder.join(LOCK_FILE_NAME).exists() {
        note(&format!(
            "a server holds the new version until `toolbay lock {id}` approves it"
        ));
    }
    Ok(())
}

/// Prints what the references name. The exit code is 1 if one names something else than is pinned.
pub(super) fn outdated(options: &Outdated) -> anyhow::Result<ExitCode> {
    let config = options.common.load_config(true, &Listen::default())?;
    block_on(async {
        let file = read_plugins_file(&config.plugins)?;
        let downloader = PluginDownloader::new(&config);
        let mut differs = false;
        let mut rows = Map::new();
        for (id, entry) in select_entries(file, &options.plugins)? {
            let state = Box::pin(compare(&downloader, &entry)).await;
            differs |= !matches!(state, Ok(PinState::Fixed | PinState::Current));
            if options.json {
                rows.insert(id, state_json(&entry, &state));
                continue;
            }
            match state {
                Ok(state) => print(&state_line(&id, &entry, &state)),
                Err(why) => complain(&format!("{id}: {why:#}")),
            }
        }
        if options.json {
            print_json(&json!({ "plugins": rows }))?;
        }
        Ok(exit_code(differs))
    })
}

async fn compare(
    downloader: &PluginDownloader<'_>,
    entry: &PluginEntry,
) -> anyhow::Result<PinState> {
    let pin = entry.valid_pin();
    if entry.reference.digest().is_some() && pin.is_some() {
        return Ok(PinState::Fixed);
    }
    let now = downloader.resolve(&entry.reference).await?;
    let pinned = pin.and_then(|pin| pin.resolved.digest());
    if pinned.is_some() && pinned == now.digest() {
        return Ok(PinState::Current);
    }
    Ok(PinState::Moved {
        pinned,
        now: Box::new(now),
    })
}

fn state_line(id: &str, entry: &PluginEntry, state: &PinState) -> String {
    let reference = &entry.reference;
    match state {
        PinState::Fixed => format!("{id}: {reference} states its digest, and cannot change\n"),
        PinState::Current => format!("{id}: {reference} is up to date\n"),
        PinState::Moved { pinned, now } => {
            let mut text = format!("{id}: {reference} names another version\n");
            let digest = |digest: Option<Digest>| {
                digest.map_or_else(|| "nothing".to_owned(), |digest| format!("sha256:{digest}"))
            };
            let _ = writeln!(text, "    pinned    {}", digest(*pinned));
            let _ = writeln!(text, "    now       {}", digest(now.digest()));
            text
        }
    }
}

fn state_json(entry: &PluginEntry, state: &anyhow::Result<PinState>) -> Value {
    let digest = |digest: Option<Digest>| digest.map(|digest| format!("sha256:{digest}"));
    let pinned = entry.valid_pin().and_then(|pin| pin.resolved.digest());
    let mut row = Map::new();
    let mut set = |key: &str, value| row.insert(key.to_owned(), value);
    set("reference", json!(entry.reference.to_pinned_text()));
    set("pinned", json!(digest(pinned)));
    let word = match state {
        Ok(PinState::Fixed) => "fixed",
        Ok(PinState::Current) => "current",
        Ok(PinState::Moved { now, .. }) => {
            set("now", json!(digest(now.digest())));
            "moved"
        }
        Err(why) => {
            set("error", json!(format!("{why:#}")));
            "unknown"
        }
    };
    set("state", json!(word));
    Value::Object(row)
}

fn exit_code(has_failed: bool) -> ExitCode {
    if has_failed {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    }
}
