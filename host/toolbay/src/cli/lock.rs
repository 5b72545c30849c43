//! `toolbay lock`: approves the current versions of plugins and writes the lock file.

mod folder_comparison;

use std::fs::{self, Permissions};
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use clap::Args;
use serde_json::{Value, json};
use toolbay_catalog::{LockMode, read_lock_file};
use toolbay_lock::{LOCK_FILE_NAME, LockFile};

use self::folder_comparison::{ChangeKind, FolderComparison, PluginChange};
use super::common::{Common, Listen, block_on};
use super::confirm;
use super::output::{note, print, print_json};
use crate::config::Config;

#[derive(Args, Debug)]
pub(super) struct Lock {
    /// Only these plugins [default: all, and plugins whose files are gone are removed]
    #[arg(value_name = "PLUGIN")]
    plugins: Vec<String>,
    #[command(flatten)]
    common: Common,
    /// Write nothing; the exit code is 1 if a plugin differs from the file
    #[arg(long, conflicts_with = "yes")]
    check: bool,
    /// Approve without a question
    #[arg(long)]
    yes: bool,
}

#[derive(Args, Debug)]
pub(super) struct Diff {
    /// Only these plugins [default: all]
    #[arg(value_name = "PLUGIN")]
    plugins: Vec<String>,
    #[command(flatten)]
    common: Common,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Writes the lock file, or compares it with the plugins.
pub(super) fn run(options: &Lock) -> anyhow::Result<ExitCode> {
    let config = options.common.load_config(true, &Listen::default())?;
    block_on(async {
        let comparison = FolderComparison::load(&config).await?;
        comparison.check_names(&options.plugins)?;
        for (id, why) in &comparison.refused {
            note(&format!(
                "{id}: refused, so its approved version stays as it was: {why}"
            ));
        }
        let changes = comparison.changes(&options.plugins);
        if config.lock.mode == LockMode::Off {
            note("lock.mode is \"off\", so servers ignore the lock file");
        }
        if changes.is_empty() && comparison.file.is_some() {
            print(&format!("{LOCK_FILE_NAME} is up to date\n"));
            return Ok(ExitCode::SUCCESS);
        }
        if options.check {
            print_changes(&changes);
            note_approvals(&config, &comparison, &changes);
            note(&match &comparison.file {
                Some(_) => format!("{LOCK_FILE_NAME} is not up to date"),
                None => format!("there is no {LOCK_FILE_NAME}"),
            });
            return Ok(ExitCode::FAILURE);
        }
        approve(&config.plugins, &comparison, &changes, options.yes)?;
        Ok(ExitCode::SUCCESS)
    })
}

/// Names the versions that are approved in the console of a server on this machine. They count there,
/// and not in the lock file.
fn note_approvals(config: &Config, comparison: &FolderComparison, changes: &[PluginChange]) {
    let Some(file) = config.approval_file() else {
        return;
    };
    let approvals = match file.read_approvals() {
        Ok(approvals) => approvals,
        Err(why) => {
            return note(&format!(
                "the approvals of the console cannot be read: {why}"
            ));
        }
    };
    for change in changes {
        let id = &change.id;
        let (Some(approval), Some(version)) = (approvals.get(id), comparison.versions.get(id))
        else {
            continue;
        };
        let pinned = comparison
            .file
            .as_ref()
            .and_then(|file| file.plugins.get(id));
        let base = pinned.map(|pinned| LockFile::pin_digest(id, pinned));
        if (approval.base, approval.version) == (base, LockFile::pin_digest(id, version)) {
            note(&format!(
                "{id}: this version is approved in the console; `toolbay lock {id}` writes it to {LOCK_FILE_NAME}"
            ));
        }
    }
}

/// Shows the differences, asks, and writes the file.
fn approve(
    folder: &Path,
    comparison: &FolderComparison,
    changes: &[PluginChange],
    is_confirmed: bool,
) -> anyhow::Result<()> {
    let is_first = comparison.file.is_none();
    if !is_first {
        print_changes(changes);
    }
    for change in changes {
        if let ChangeKind::Changed(_, signs) = &change.kind
            && is_first
        {
            for sign in signs.lines() {
                note(&format!("{}: ! {sign}", change.id));
            }
        }
    }
    let count = changes.len();
    let plugins = if count == 1 { "plugin" } else { "plugins" };
    if !is_first && !is_confirmed {
        if !confirm::is_possible() {
            bail!("nothing was written; to approve these changes without a question, use --yes");
        }
        let question = format!(
            "Approve the changes of {count} {plugins}? Type y for yes, anything else for no:"
        );
        if !confirm::ask_blocking(&question) {
            bail!("nothing was written");
        }
    }
    let before = comparison.file.clone().unwrap_or_default();
    let mut after = before.clone();
    for change in changes {
        match comparison.versions.get(&change.id) {
            Some(version) => after.plugins.insert(change.id.clone(), version.clone()),
            None => after.plugins.remove(&change.id),
        };
    }
    if read_lock_file(folder).map_err(anyhow::Error::msg)? != comparison.file {
        bail!("{LOCK_FILE_NAME} changed meanwhile; run the command again");
    }
    write_lock_file(folder, &after)?;
    print(&format!(
        "wrote {LOCK_FILE_NAME}: {count} {plugins} changed, {} pinned\n",
        after.plugins.len()
    ));
    Ok(())
}

/// Replaces the lock file at once.
fn write_lock_file(folder: &Path, file: &LockFile) -> anyhow::Result<()> {
    let text = file.render();
    if LockFile::parse(&text).as_ref() != Ok(file) {
        bail!("the plugins cannot be written to {LOCK_FILE_NAME}; this is a mistake in Toolbay");
    }
    let context = || format!("failed to write {LOCK_FILE_NAME} in {}", folder.display());
    let path = folder.join(LOCK_FILE_NAME);
    let mode = fs::metadata(&path).map_or(0o644, |metadata| metadata.permissions().mode() & 0o777);
    let mut staged = tempfile::Builder::new()
        .prefix(".toolbay-lock-")
        .tempfile_in(folder)
        .with_context(context)?;
    staged
        .write_all(text.as_bytes())
        .and_then(|()| {
            staged
                .as_file()
                .set_permissions(Permissions::from_mode(mode))
        })
        .and_then(|()| staged.as_file().sync_all())
        .with_context(context)?;
    staged.persist(&path).with_context(context)?;
    Ok(())
}

/// Prints how the plugins differ from the lock file. The exit code is 1 if one does.
pub(super) fn diff(options: &Diff) -> anyhow::Result<ExitCode> {
    let config = options.common.load_config(true, &Listen::default())?;
    block_on(async {
        let comparison = FolderComparison::load(&config).await?;
        comparison.check_names(&options.plugins)?;
        if comparison.file.is_none() {
            bail!(
                "there is no {LOCK_FILE_NAME} in {}; `toolbay lock` writes it",
                config.plugins.display()
            );
        }
        let changes = comparison.changes(&options.plugins);
        if options.json {
            print_json(&changes_json(&changes))?;
        } else {
            print_changes(&changes);
            for (id, why) in &comparison.refused {
                note(&format!("{id}: refused, so it cannot be compared: {why}"));
            }
        }
        Ok(if changes.is_empty() {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        })
    })
}

fn print_changes(changes: &[PluginChange]) {
    for change in changes {
        print(&change.render());
    }
}

/// Returns the differences as JSON, by plugin ID.
fn changes_json(changes: &[PluginChange]) -> Value {
    let entry = |change: &PluginChange| {
        let value = match &change.kind {
            ChangeKind::Changed(difference, signs) => json!({
                "change": if difference.is_new { "new" } else { "changed" },
                "summary": difference.summary(),
                "signs": signs.lines().collect::<Vec<_>>(),
                "text": difference.render(signs),
            }),
            ChangeKind::Missing => json!({"change": "missing"}),
        };
        (change.id.clone(), value)
    };
    let plugins: serde_json::Map<String, Value> = changes.iter().map(entry).collect();
    json!({ "plugins": plugins })
}

/// Checks that the plugins of a loaded folder are exactly those of its lock file.
///
/// # Errors
///
/// One is missing, differs or is not loaded, or there is no lock file. The message has one line for
/// each.
pub(super) fn check_locked(
    folder: &Path,
    snapshot: &toolbay_catalog::Snapshot,
) -> anyhow::Result<()> {
    let file = read_lock_file(folder).map_err(anyhow::Error::msg)?;
    let Some(file) = file else {
        bail!(
            "--locked: there is no {LOCK_FILE_NAME} in {}",
            folder.display()
        );
    };
    let mut problems: Vec<String> = snapshot
        .plugins
        .iter()
        .filter(|(_, report)| report.status != toolbay_catalog::PluginFileStatus::Ready)
        .map(|(id, report)| format!("{id}: {}", report.problems.join("; ")))
        .collect();
    let missing = file
        .plugins
        .keys()
        .filter(|id| !snapshot.plugins.contains_key(*id));
    problems.extend(
        missing.map(|id| format!("{id}: it is in {LOCK_FILE_NAME}, but its files are missing")),
    );
    if problems.is_empty() {
        return Ok(());
    }
    bail!(
        "--locked: the plugins differ from {LOCK_FILE_NAME}:\n{}",
        problems.join("\n")
    )
}
