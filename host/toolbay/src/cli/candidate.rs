//! What a new version of a plugin offers and changes, for the person who decides about it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{anyhow, bail};
use sha2::{Digest as _, Sha256};
use toolbay_bundle::{PluginArchive, ProposedGrant, read_manifest};
use toolbay_catalog::{Grant, read_grant};
use toolbay_sandbox::{CompileSource, Sandbox};

use super::check::write_offers;
use super::installation::Installation;
use super::manifest::{grant_differences, metadata_lines, proposal_text};
use super::plugin_file::load_plugin;
use crate::config::Config;
use crate::serve::grant_comparison::parse_proposal;
use crate::serve::grant_text::permission_summary;

/// Returns what a plugin offers, proposes and replaces. Compiles it, and lists what it offers
/// without a grant.
///
/// # Errors
///
/// The component is not a plugin.
pub(super) async fn candidate_text(
    config: &Config,
    archive: &PluginArchive,
    installation: &Installation,
    grant: Option<&Grant>,
) -> anyhow::Result<String> {
    let id = &archive.id;
    let mut shown = metadata_lines(&archive.manifest);
    for path in archive.files.keys() {
        let _ = writeln!(shown, "    file      {path}");
    }
    if let Some(component) = archive.component() {
        let sandbox = Sandbox::new(config.sandbox_settings()?)?;
        let source_code = CompileSource {
            file: component.to_vec(),
            wit: archive.wit(),
        };
        let loaded = load_plugin(&sandbox, source_code, config.load_policy(), id).await?;
        write_offers(&mut shown, &loaded.contents, &BTreeMap::new());
    }
    if let Some(proposal) = &archive.manifest.proposed_grant {
        shown += &proposal_text(proposal, &format!("{id}.toml"));
    }
    shown += &existing_text(&config.plugins, archive, grant);
    for change in installation.changes() {
        let _ = writeln!(shown, "! {change}");
    }
    Ok(shown)
}

/// The grant that is there already, which no command changes.
pub(super) struct ExistingGrant {
    /// The grant, if there is one.
    pub(super) grant: Option<Grant>,
    text: Option<String>,
}

impl ExistingGrant {
    /// Reads the grant of a plugin.
    ///
    /// # Errors
    ///
    /// The grant cannot be read.
    pub(super) fn read(folder: &Path, id: &str) -> anyhow::Result<Self> {
        let text = read_text(folder, id)?;
        let parse = |text| Grant::parse(&format!("{id}.toml"), text, folder);
        let grant = text.as_deref().map(parse).transpose();
        let grant = grant.map_err(|why| anyhow!("{why}"))?;
        Ok(Self { grant, text })
    }

    /// Fails if the grant has changed since it was read: a grant that was not shown must not apply
    /// to the plugin.
    pub(super) fn ensure_unchanged(&self, folder: &Path, id: &str) -> anyhow::Result<()> {
        if read_text(folder, id)? != self.text {
            bail!("{id}.toml changed meanwhile, and nothing was added; run the command again");
        }
        Ok(())
    }
}

fn read_text(folder: &Path, id: &str) -> anyhow::Result<Option<String>> {
    read_grant(folder, id)
        .map_err(|error| anyhow!("{id}.toml: {}; nothing was added", error.reason()))
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
        let proposal =
            |grant: &Option<ProposedGrant>| grant.as_ref().and_then(|one| parse_proposal(one).ok());
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
