//! Logs the results of loads.

use crate::skill::skill_folder::SkillFolder;
use crate::version::plain_files::PlainFiles;
use crate::version::plugin::Plugin;

/// Logs a version that is put into service.
pub(crate) fn log_loaded(id: &str, plugin: &Plugin) {
    let tools = plugin.tools.len();
    let prompts = plugin.prompts.len();
    let resources = plugin.component.contents.resources.len() + plugin.files.resources.len();
    if let Some(digest) = plugin.digest() {
        tracing::info!(plugin = id, tools, prompts, resources, %digest, "loaded");
    } else {
        let skills = count_skills(plugin.files.skill.as_deref());
        tracing::info!(plugin = id, prompts, resources, skills, "loaded");
    }
}

/// Logs new plain files of a version in service.
pub(crate) fn log_plain_files(id: &str, files: &PlainFiles) {
    let PlainFiles {
        prompts,
        resources,
        skill,
        ..
    } = files;
    tracing::debug!(
        plugin = id,
        prompts = prompts.len(),
        resources = resources.len(),
        skills = count_skills(skill.as_deref()),
        "plain files loaded"
    );
}

/// Logs the warnings about plain files that are new.
pub(crate) fn log_new_file_warnings(id: &str, files: &PlainFiles, before: &PlainFiles) {
    for remark in files
        .remarks
        .iter()
        .filter(|remark| !before.remarks.contains(remark))
    {
        tracing::warn!(plugin = id, "{remark}");
    }
}

/// Logs that the files of a plugin are refused.
pub(crate) fn log_refusal(id: &str, has_previous: bool, why: &str) {
    if has_previous {
        tracing::warn!(
            plugin = id,
            "refused; the previous version stays in service: {why}"
        );
    } else {
        tracing::warn!(plugin = id, "refused: {why}");
    }
}

/// Logs that a version is held because it differs from the lock file.
pub(crate) fn log_held(id: &str, has_previous: bool, why: &str) {
    if has_previous {
        tracing::warn!(
            plugin = id,
            "held; the approved version stays in service: {why}"
        );
    } else {
        tracing::warn!(plugin = id, "held: {why}");
    }
}

/// Returns the number of skills in a folder.
fn count_skills(folder: Option<&SkillFolder>) -> usize {
    folder.map_or(0, |folder| folder.skills.len())
}
