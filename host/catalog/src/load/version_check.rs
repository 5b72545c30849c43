//! Compares a loaded version with its pin before it is put into service.

use std::sync::Arc;

use toolbay_lock::{ItemKind, ItemPin, LOCK_FILE_NAME, LockFile, PluginPin, VersionDifference};
use toolbay_model::Digest;

use crate::folder::folder_lock::LockRules;
use crate::folder::load_error::{HeldVersion, LoadError};
use crate::load::grant_application::AppliedGrant;
use crate::load::load_result::LoadOutcome;
use crate::rules::grant::Grant;
use crate::version::plain_files::PlainFiles;
use crate::version::plugin::Plugin;
use crate::version::version_pin::{CONTENT_FIELD, VersionPin, prompt_file_name};

/// Start of the message about a version that differs from its pin.
const DIFFERENCE_PREFIX: &str = "it differs from";

/// Returns whether a grant is held: it is neither that of the pinned version nor that of an approved
/// one. Nothing in it may be used then, such as a program that prints a secret or a mounted folder.
pub(crate) fn is_grant_held(rules: Option<&LockRules>, id: &str, grant: &Grant) -> bool {
    rules.is_some_and(|rules| rules.holds && !rules.accepts_grant(id, grant.digest))
}

/// Returns the error for a version that is held. Blocks, because it reads the plain files.
pub(crate) fn hold(rules: &LockRules, plugin: &Plugin) -> LoadError {
    match VersionPin::new(plugin) {
        Ok(version) => held(rules, &plugin.id, version.pin),
        Err(error) => error,
    }
}

fn held(rules: &LockRules, id: &str, version: PluginPin) -> LoadError {
    let pinned = rules.file.plugins.get(id);
    let how = difference_message(id, &VersionDifference::new(pinned, &version));
    let reason = format!("{how}, and `toolbay lock {id}` approves it");
    LoadError::Held(Arc::new(HeldVersion::new(id, pinned, version, reason)))
}

/// Compares a loaded version with its pin. Blocks, because it reads the plain files.
///
/// # Errors
///
/// The version differs, and `rules` hold such versions.
pub(crate) fn check_version(
    rules: Option<&LockRules>,
    outcome: LoadOutcome,
) -> Result<LoadOutcome, LoadError> {
    let Some(rules) = rules else {
        return Ok(outcome);
    };
    let LoadOutcome {
        plugin,
        mut remarks,
    } = outcome;
    remarks.retain(|remark| !remark.starts_with(DIFFERENCE_PREFIX));
    let version = VersionPin::new(&plugin)?;
    let id = &plugin.id;
    if !rules.accepts(id, &version.pin) {
        if rules.holds {
            return Err(held(rules, id, version.pin));
        }
        let difference = VersionDifference::new(rules.file.plugins.get(id), &version.pin);
        remarks.push(difference_message(id, &difference));
        return Ok(LoadOutcome { plugin, remarks });
    }
    let plugin = if rules.holds && !plugin.files.resources.is_empty() {
        Arc::new(with_required_contents(&plugin, &version))
    } else {
        plugin
    };
    Ok(LoadOutcome { plugin, remarks })
}

/// Returns the version with its plain files if it is the pinned one, or without them if only they
/// differ. Blocks.
///
/// # Errors
///
/// Something else differs.
pub(crate) fn approve_parts(
    rules: &LockRules,
    applied: &AppliedGrant,
    plain: Arc<PlainFiles>,
) -> Result<LoadOutcome, LoadError> {
    let whole = applied.with_files(plain);
    if let Ok(approved) = check_version(Some(rules), whole) {
        return Ok(approved);
    }
    let id = &applied.plugin.id;
    let mut file = LockFile::default();
    if let Some(pin) = rules.file.plugins.get(id) {
        let mut pin = pin.clone();
        pin.items
            .retain(|(kind, name), item| !is_plain_item(id, *kind, name, item));
        file.plugins.insert(id.clone(), pin);
    }
    let component_rules = LockRules {
        file: Arc::new(file),
        approvals: Arc::default(),
        holds: true,
    };
    check_version(Some(&component_rules), applied.with_files(Arc::default()))
}

/// Returns whether a pinned item is a plain file.
fn is_plain_item(id: &str, kind: ItemKind, name: &str, item: &ItemPin) -> bool {
    match kind {
        ItemKind::Skill | ItemKind::SkillFile => true,
        ItemKind::Prompt => name.starts_with(&prompt_file_name(id, "")),
        ItemKind::Resource => item.contains_key(CONTENT_FIELD),
        ItemKind::Tool | ItemKind::Template => false,
    }
}

fn difference_message(id: &str, difference: &VersionDifference) -> String {
    let summary = difference.summary();
    format!("{DIFFERENCE_PREFIX} {LOCK_FILE_NAME}: {summary}; `toolbay diff {id}` shows how")
}

/// Returns a copy of the plugin whose files are served only with the content that was compared.
fn with_required_contents(plugin: &Plugin, version: &VersionPin) -> Plugin {
    let files = &plugin.files;
    let resources = files.resources.iter().zip(&version.resource_digests);
    let resources = resources.map(|(file, digest)| {
        // A file that did not exist then has no approved content.
        let digest = digest.unwrap_or(Digest::new([0; 32]));
        Arc::new(file.with_required_digest(digest))
    });
    plugin.with_files(Arc::new(PlainFiles {
        resources: resources.collect(),
        ..PlainFiles::clone(files)
    }))
}
