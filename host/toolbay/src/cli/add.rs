//! `toolbay add`: adds a plugin that somebody else made to the plugin folder.
//!
//! Nothing that comes with a plugin is a grant. The command validates everything in memory, shows
//! it, and asks. A proposed grant is written only after a separate yes on a terminal, which no
//! option replaces.

mod download;
mod installation;

use std::fmt::Write as _;
use std::fs::{self, File, Permissions};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, anyhow, bail};
use bytesize::ByteSize;
use clap::Args;
use sha2::{Digest as _, Sha256};
use toolbay_bundle::{
    ArchiveLimits, PluginArchive, PluginReference, check_plugin_id, read_manifest,
};
use toolbay_catalog::{ComponentContents, Grant, read_grant};
use toolbay_model::Digest;
use toolbay_sandbox::{CompileSource, Sandbox};

use self::installation::Installation;
use super::check::write_offers;
use super::common::{Common, Listen, block_on};
use super::confirm;
use super::manifest::{grant_differences, metadata_lines, proposal_text};
use super::output::print;
use super::plugin_file::{load_plugin, printable_path};
use crate::config::Config;
use crate::serve::grant_comparison::parse_proposal;
use crate::serve::grant_text::permission_summary;

/// First bytes of a WebAssembly file.
const WASM_MAGIC: &[u8] = b"\0asm";

/// Mode of a new grant: only the server's user can write it.
const GRANT_MODE: u32 = 0o644;

#[derive(Args, Debug)]
pub(super) struct Add {
    /// A .bay archive or a .wasm file, or the URL of one with https; a fragment #sha256=DIGEST
    /// states the digest that it must have
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
    let component_limit = config.server.component_size.as_u64();
    let limits = ArchiveLimits::for_component_size(component_limit);
    let bytes = fetch(&options.source, &config, limits.packed).await?;
    let digest = Digest::new(Sha256::digest(&bytes).into());
    let source = options.source.to_string();
    if let PluginReference::Url {
        digest: Some(expected),
        ..
    } = &options.source
        && *expected != digest
    {
        bail!("{source} has the digest {digest}, and not {expected}; nothing was added");
    }
    let archive =
        read_archive(bytes, options, limits).with_context(|| format!("{source} was not added"))?;
    let component_size = archive.component().map_or(0, <[u8]>::len) as u64;
    if component_size > component_limit {
        bail!(
            "{source} was not added: its component has {}, more than server.component_size",
            ByteSize::b(component_size).display().iec()
        );
    }
    let folder = config.plugins.clone();
    let id = archive.id.clone();
    let installation = Installation::plan(&folder, &archive);
    let grant_text = existing_grant_text(&folder, &id)?;
    let grant = existing_grant(&folder, &id, grant_text.as_deref())?;
    let mut shown = format!("{source}\n    sha256    {digest}\n");
    shown += &metadata_lines(&archive.manifest);
    for path in archive.files.keys() {
        let _ = writeln!(shown, "    file      {path}");
    }
    if let Some(component) = archive.component() {
        let sandbox = Sandbox::new(config.sandbox_settings()?)?;
        let source_code = CompileSource {
            file: component.to_vec(),
            wit: archive.wit(),
        };
        let loaded = load_plugin(&sandbox, source_code, config.load_policy(), &id).await?;
        let contents: ComponentContents = loaded.contents;
        write_offers(&mut shown, &contents, &std::collections::BTreeMap::new());
    }
    let grant_file = format!("{id}.toml");
    if let Some(proposal) = &archive.manifest.proposed_grant {
        shown += &proposal_text(proposal, &grant_file);
    }
    shown += &existing_text(&folder, &archive, grant.as_ref());
    for change in installation.changes() {
        let _ = writeln!(shown, "! {change}");
    }
    print(&shown);
    let replaces = installation.replaces_something() || grant.is_some();
    if !confirm_addition(options, &folder, &id, replaces)? {
        return Ok(ExitCode::FAILURE);
    }
    // A grant that was not shown must not apply to the plugin.
    if existing_grant_text(&folder, &id)? != grant_text {
        bail!("{id}.toml changed meanwhile; nothing was added. Run the command again");
    }
    installation
        .install(&folder, &archive)
        .with_context(|| format!("{id} was not added, and nothing has changed"))?;
    print(&format!("added {id} to {}\n", printable_path(&folder)));
    offer_grant(&folder, &archive, grant.is_some())?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the bytes of a plugin. The file of a reference is read up to `limit` bytes.
async fn fetch(source: &PluginReference, config: &Config, limit: u64) -> anyhow::Result<Vec<u8>> {
    match source {
        PluginReference::File(path) => read_bounded(path, limit),
        PluginReference::Url { url, .. } => download::get(url, config, limit).await,
        other => bail!("this version of Toolbay cannot read {other}"),
    }
}

fn read_bounded(path: &Path, limit: u64) -> anyhow::Result<Vec<u8>> {
    let shown = printable_path(path);
    let metadata = fs::metadata(path).with_context(|| format!("cannot read {shown}"))?;
    if !metadata.is_file() {
        bail!("{shown} is not a file");
    }
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(limit.saturating_add(1)).read_to_end(&mut bytes))
        .with_context(|| format!("cannot read {shown}"))?;
    if bytes.len() as u64 > limit {
        bail!("{shown} is larger than {limit} bytes");
    }
    Ok(bytes)
}

/// Reads an archive, or makes one of a component.
fn read_archive(
    bytes: Vec<u8>,
    options: &Add,
    limits: ArchiveLimits,
) -> anyhow::Result<PluginArchive> {
    let mut archive = if bytes.starts_with(WASM_MAGIC) {
        let id = match &options.name {
            Some(name) => name.clone(),
            None => file_stem(&options.source)?,
        };
        check_plugin_id(&id).map_err(|why| anyhow!("{why}; choose a name with --as"))?;
        let (manifest, remarks) = read_manifest(&bytes);
        for remark in remarks {
            print(&format!("! {remark}\n"));
        }
        PluginArchive {
            files: [(format!("{id}.wasm"), bytes)].into(),
            manifest,
            id,
        }
    } else {
        PluginArchive::read(&bytes, limits)?
    };
    if let Some(name) = &options.name {
        check_plugin_id(name).map_err(anyhow::Error::msg)?;
        archive.rename(name);
    }
    Ok(archive)
}

fn file_stem(source: &PluginReference) -> anyhow::Result<String> {
    let name = match source {
        PluginReference::File(path) => path.file_name().and_then(|name| name.to_str()),
        PluginReference::Url { url, .. } => url.path_segments().and_then(|mut all| all.next_back()),
        _ => None,
    };
    let name = name.unwrap_or_default();
    let stem = name.strip_suffix(".wasm").unwrap_or(name);
    if stem.is_empty() {
        bail!("the plugin has no name; choose one with --as");
    }
    Ok(stem.to_owned())
}

/// Returns the text of the grant that is there already, which the command never changes.
fn existing_grant_text(folder: &Path, id: &str) -> anyhow::Result<Option<String>> {
    read_grant(folder, id)
        .map_err(|error| anyhow!("{id}.toml: {}; nothing was added", error.reason()))
}

fn existing_grant(folder: &Path, id: &str, text: Option<&str>) -> anyhow::Result<Option<Grant>> {
    text.map(|text| Grant::parse(&format!("{id}.toml"), text, folder))
        .transpose()
        .map_err(|why| anyhow!("{why}; nothing was added"))
}

/// Returns what changes for a plugin or a grant that exists.
fn existing_text(folder: &Path, archive: &PluginArchive, grant: Option<&Grant>) -> String {
    let mut text = String::new();
    let id = &archive.id;
    if let Ok(existing) = fs::read(folder.join(format!("{id}.wasm"))) {
        let (manifest, _) = read_manifest(&existing);
        let digest = |bytes: &[u8]| hex::encode(Sha256::digest(bytes));
        let version = |version: &Option<String>| {
            version
                .clone()
                .unwrap_or_else(|| "without a version".to_owned())
        };
        let _ = writeln!(
            text,
            "\nReplaces {id}.wasm: {} (sha256 {}) by {} (sha256 {})",
            version(&manifest.version),
            digest(&existing),
            version(&archive.manifest.version),
            digest(archive.component().unwrap_or_default()),
        );
        let proposal = |grant: &Option<toolbay_bundle::ProposedGrant>| {
            grant.as_ref().and_then(|one| parse_proposal(one).ok())
        };
        let old = proposal(&manifest.proposed_grant).unwrap_or_default();
        let new = proposal(&archive.manifest.proposed_grant).unwrap_or_default();
        for line in new.permissions.excess_over(&old.permissions) {
            let _ = writeln!(text, "    proposes in addition: {line}");
        }
    }
    let Some(grant) = grant else { return text };
    let file = format!("{id}.toml");
    let _ = writeln!(
        text,
        "\n{file} exists, stays as it is, and applies to this plugin:"
    );
    let lines = permission_summary(&grant.permissions);
    for line in &lines {
        let _ = writeln!(text, "    {line}");
    }
    if lines.is_empty() {
        text.push_str("    no permissions\n");
    }
    if let Some(proposal) = &archive.manifest.proposed_grant {
        for remark in grant_differences(&file, grant, proposal) {
            let _ = writeln!(text, "    ! {remark}");
        }
    }
    text
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
