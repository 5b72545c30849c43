//! Finds the programs that grants name as the sources of secrets.

use std::path::Path;

use crate::folder::plugin_folder::grant_path;
use crate::load::grant_file::load_grant;
use crate::rules::mount_policy::MountPlan;
use crate::rules::writable_paths::WritablePaths;

/// Returns whether the current grant of the plugin `id` names this program as the source of a
/// secret. `words` are the program and its arguments. Returns `false` if the plugin could have
/// replaced the program, or if the server, which may write to `writable_paths`, could have replaced
/// the program or the grant. Blocks.
pub fn names_program(folder: &Path, id: &str, words: &[String], writable: &WritablePaths) -> bool {
    let Ok(grant) = load_grant(folder, id) else {
        return false;
    };
    let secrets = grant.secret_specs().unwrap_or_default();
    let named = secrets
        .iter()
        .any(|secret| secret.source.command_line().as_deref() == Some(words));
    let is_writable = || {
        let named: Vec<_> = secrets
            .iter()
            .filter(|secret| secret.source.command_line().as_deref() == Some(words))
            .cloned()
            .collect();
        let grant = grant_path(folder, id);
        !writable.explain_program_writes(folder, &named).is_empty()
            || writable.explain_write("the grant", &grant).is_some()
    };
    named
        && !is_writable()
        && MountPlan::resolve(id, folder, &grant.permissions, &secrets)
            .check(&[])
            .is_ok()
}
