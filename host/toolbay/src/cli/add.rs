//! `toolbay add`: adds a plugin that somebody else made to the plugin folder.
//!
//! Nothing that comes with a plugin is a grant. The command validates everything in memory, shows
//! it, and asks. A proposed grant is written only after a separate yes on a terminal, which no
//! option replaces.

use std::fmt::Write as _;
use std::fs::{self, Permissions};
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, anyhow, bail};
use clap::Args;
use toolbay_bundle::{PluginArchive, PluginEntry, PluginReference, ReferencePin};
use toolbay_catalog::Grant;

use super::candidate::{ExistingGrant, candidate_text};
use super::common::{Common, Listen, block_on};
use super::confirm;
use super::downloaded_archive::read_archive;
use super::installation::Installation;
use super::installed_files::archive_digest;
use super::output::print;
use super::plugin_download::PluginDownloader;
use super::plugin_file::printable_path;
use super::plugins_file::{read_plugins_file, write_entry};
use crate::config::Config;
use crate::serve::grant_comparison::parse_proposal;

/// Mode of a new grant: only the server's user can write it.
const GRANT_MODE: u32 = 0o644;

#[derive(Args, Debug)]
pub(super) struct Add {
    /// An artifact of a registry, such as `oci://registry.example.com/acme/weather:1.2`, also with
    /// `@sha256:DIGEST`; a package, such as acme:weather@1.2.0; a .bay archive or a .wasm file; or the URL of one with https, where a
    /// fragment #sha256=DIGEST states the digest that it must have
    source: PluginReference,
    /// The name of the plugin [default: the one in the archive, or that of the file]
    #[arg(long = "as", value_name = "NAME")]
    name: Option<String>,
    /// Replace a plugin of this name; its grant stays and applies to the new plugin
    #[arg(long)]
    replace: bool,
    /// Add the plugin without asking. Never writes a grant
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    common: Common,
}

pub(super) fn run(options: &Add) -> anyhow::Result<ExitCode> {
    let config = options.common.load_config(true, &Listen::default())?;
    block_on(add(options, config))
}

async fn add(options: &Add, config: Config) -> anyhow::Result<ExitCode> {
    let folder = config.plugins.clone();
    // A mistake in the file is found before anything is downloaded.
    read_plugins_file(&folder)?;
    let source = options.source.to_string();
    let not_added = || format!("{source} was not added");
    let downloader = PluginDownloader::new(&config);
    let download = downloader
        .download(&options.source)
        .await
        .with_context(not_added)?;
    let (digest, resolved) = (download.digest, download.resolved.clone());
    let archive = read_archive(&downloader, &config, download, options.name.as_deref())
        .with_context(not_added)?;
    let id = archive.id.clone();
    let installation = Installation::plan(&folder, &archive);
    let existing = ExistingGrant::read(&folder, &id).with_context(not_added)?;
    let grant = existing.grant.as_ref();
    let mut shown = format!("{source}\n");
    if let PluginReference::Oci(reference) = &resolved
        && let Some(digest) = reference.digest()
    {
        let _ = writeln!(shown, "    manifest  sha256:{digest}");
    }
    let _ = writeln!(shown, "    sha256    {digest}");
    shown += &candidate_text(&config, &archive, &installation, grant).await?;
    print(&shown);
    let replaces = installation.replaces_something() || grant.is_some();
    if !confirm_addition(options, &folder, &id, replaces)? {
        return Ok(ExitCode::FAILURE);
    }
    existing.ensure_unchanged(&folder, &id)?;
    installation
        .install(&folder, &archive)
        .with_context(|| format!("{id} was not added, and nothing has changed"))?;
    print(&format!("added {id} to {}\n", printable_path(&folder)));
    write_entry(&folder, &id, entry(&options.source, resolved, &archive))?;
    offer_grant(&folder, &archive, grant.is_some())?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the entry of a plugin. A file has none: its path belongs to this machine.
fn entry(
    reference: &PluginReference,
    resolved: PluginReference,
    archive: &PluginArchive,
) -> Option<PluginEntry> {
    if matches!(reference, PluginReference::File(_)) {
        return None;
    }
    Some(PluginEntry {
        reference: reference.clone(),
        pin: Some(ReferencePin {
            resolved,
            files: archive_digest(archive),
        }),
    })
}

/// Returns whether the plugin is to be added.
///
/// # Errors
///
/// Nobody can be asked, and the options do not answer the question.
fn confirm_addition(
    options: &Add,
    folder: &Path,
    id: &str,
    replaces: bool,
) -> anyhow::Result<bool> {
    if options.yes {
        if replaces && !options.replace {
            bail!(
                "a plugin or a grant of the name {id} exists; nothing was added. Use --replace, or another name with --as"
            );
        }
        return Ok(true);
    }
    if !confirm::is_possible() {
        bail!(
            "nothing was added: run the command on a terminal, or add --yes{}",
            if replaces { " and --replace" } else { "" }
        );
    }
    let verb = if replaces { "Replace" } else { "Add" };
    let question = format!(
        "\n{verb} {id} in {}? Type y for yes, anything else for no:",
        printable_path(folder)
    );
    let is_confirmed = confirm::ask_blocking(&question);
    if !is_confirmed {
        print("nothing was added\n");
    }
    Ok(is_confirmed)
}

/// Offers to write the proposed grant. Only a yes on a terminal writes it, and no option does.
fn offer_grant(folder: &Path, archive: &PluginArchive, has_grant: bool) -> anyhow::Result<()> {
    let Some(proposal) = &archive.manifest.proposed_grant else {
        return Ok(());
    };
    if proposal.is_empty() || parse_proposal(proposal).is_err() {
        return Ok(());
    }
    let file = format!("{}.toml", archive.id);
    if has_grant {
        print(&format!("{file} was not changed\n"));
        return Ok(());
    }
    let nothing_granted =
        format!("nothing is granted: to allow what the plugin proposes, write it into {file}\n");
    if !confirm::is_possible() {
        print(&nothing_granted);
        return Ok(());
    }
    let question = format!(
        "\nWrite the proposed grant above to {file}, which allows it? Type y for yes, anything else for no:"
    );
    if !confirm::ask_blocking(&question) {
        print(&nothing_granted);
        return Ok(());
    }
    let text = proposal.to_toml();
    Grant::parse(&file, &text, folder).map_err(|why| anyhow!("{why}; nothing is granted"))?;
    let mut part = tempfile::Builder::new()
        .prefix(".toolbay-add-")
        .tempfile_in(folder)?;
    part.write_all(text.as_bytes())?;
    fs::set_permissions(part.path(), Permissions::from_mode(GRANT_MODE))?;
    // A grant that appeared meanwhile stays.
    part.persist_noclobber(folder.join(&file))
        .with_context(|| format!("failed to write {file}"))?;
    print(&format!("wrote {file}\n"));
    Ok(())
}
