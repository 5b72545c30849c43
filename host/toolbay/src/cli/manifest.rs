//! The metadata and the proposed grant of a plugin, for `toolbay dev`, `pack`, `check` and `add`.
//!
//! A proposed grant is shown. Only `toolbay add` writes one into a grant file, after a yes on the
//! terminal.

use std::fmt::Write as _;
use std::fs::{self, Permissions};
use std::io::Write as _;
use std::path::Path;

use anyhow::{Context as _, anyhow};
use toolbay_bundle::{PluginManifest, ProposedGrant, write_manifest};
use toolbay_catalog::Grant;
use toolbay_settings::project::{self, ProjectFile};

use crate::serve::grant_comparison::{GrantComparison, parse_proposal};

/// Returns the metadata of a project, with a proposed grant that could be a grant.
pub(super) fn project_manifest(project: &ProjectFile) -> anyhow::Result<PluginManifest> {
    let in_file = |why: String| anyhow!("{}: {why}", project::FILE_NAME);
    let manifest = PluginManifest::from_project(project).map_err(in_file)?;
    if let Some(proposal) = &manifest.proposed_grant {
        parse_proposal(proposal).map_err(|why| in_file(format!("proposed_grant: {why}")))?;
    }
    Ok(manifest)
}

/// Writes the metadata of a project into the component that its build has created. Does nothing if
/// there is no metadata, or if the component has it already.
pub(super) fn write_into_output(folder: &Path, project: &ProjectFile) -> anyhow::Result<()> {
    let manifest = project_manifest(project)?;
    if manifest.is_empty() {
        return Ok(());
    }
    let output = folder.join(&project.output);
    let shown = output.display();
    let built = fs::read(&output).with_context(|| format!("cannot read {shown}"))?;
    let stamped = write_manifest(&built, &manifest).map_err(|why| anyhow!("{shown}: {why}"))?;
    if stamped == built {
        return Ok(());
    }
    let mode = fs::metadata(&output)?.permissions();
    write_atomically(&output, &stamped, mode).with_context(|| format!("failed to write {shown}"))
}

/// Writes a file so that no reader sees a part of it.
pub(super) fn write_atomically(
    path: &Path,
    content: &[u8],
    mode: Permissions,
) -> anyhow::Result<()> {
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    let mut part = tempfile::Builder::new()
        .prefix(".toolbay-")
        .tempfile_in(folder)?;
    part.write_all(content)?;
    fs::set_permissions(part.path(), mode)?;
    part.persist(path)?;
    Ok(())
}

/// Returns the lines of the metadata, without the proposed grant; empty if there are none.
pub(super) fn metadata_lines(manifest: &PluginManifest) -> String {
    let mut lines = String::new();
    for (key, text) in manifest.texts() {
        let _ = writeln!(lines, "    {key:<9} {text}");
    }
    lines
}

/// Returns the proposed grant for people, or the reason why it is not one.
pub(super) fn proposal_text(proposal: &ProposedGrant, grant_file: &str) -> String {
    if let Err(why) = parse_proposal(proposal) {
        return format!("\nThe proposed grant is invalid, and not shown: {why}\n");
    }
    if proposal.is_empty() {
        return "\nProposed grant: none is needed.\n".to_owned();
    }
    let mut text =
        format!("\nProposed grant, which nothing has allowed yet, to copy into {grant_file}:\n");
    for line in proposal.to_toml().lines() {
        let _ = writeln!(text, "{}", format!("    {line}").trim_end());
    }
    text
}

/// Returns remarks on the differences between a grant and the proposal.
pub(super) fn grant_differences(
    grant_file: &str,
    grant: &Grant,
    proposal: &ProposedGrant,
) -> Vec<String> {
    let Ok(GrantComparison { excess, missing }) = GrantComparison::new(grant, proposal) else {
        return Vec::new();
    };
    let mut remarks = Vec::new();
    if !excess.is_empty() {
        remarks.push(format!(
            "{grant_file} allows more than the plugin proposes: {}",
            excess.join("; ")
        ));
    }
    if !missing.is_empty() {
        remarks.push(format!(
            "{grant_file} lacks what the plugin proposes: {}",
            missing.join("; ")
        ));
    }
    remarks
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proposal(text: &str) -> ProposedGrant {
        ProposedGrant::from_table(toml::from_str(text).unwrap()).unwrap()
    }

    #[test]
    fn a_proposal_must_be_a_possible_grant() {
        for (text, expected) in [
            (
                "permissions.http = [\"x\"]\nreasons.http = \"x\"",
                "permissions.http",
            ),
            (
                "permissions.htp = []\nreasons.htp = \"x\"",
                "unknown key `htp`",
            ),
            (
                "secrets.a.header = \"A\"\nreasons.\"secrets.a\" = \"x\"",
                "secrets.a: header and query need origins",
            ),
            ("limits.fuel = 0", "limits.fuel"),
        ] {
            let why = parse_proposal(&proposal(text)).unwrap_err();
            assert!(why.contains(expected), "{text}: {why}");
            let shown = proposal_text(&proposal(text), "a.toml");
            assert!(
                shown.starts_with("\nThe proposed grant is invalid"),
                "{shown}"
            );
        }
    }

    #[test]
    fn differences_name_both_directions() {
        let proposal = proposal("permissions.http = [\"https://a.example\"]\nreasons.http = \"x\"");
        let grant = Grant::parse("a.toml", "permissions.tcp = [\"a:1\"]", Path::new("")).unwrap();
        assert_eq!(
            grant_differences("a.toml", &grant, &proposal),
            [
                "a.toml allows more than the plugin proposes: tcp = [\"a:1\"]",
                "a.toml lacks what the plugin proposes: http = [\"https://a.example\"]"
            ]
        );
        let same = Grant::parse("a.toml", &proposal.to_toml(), Path::new("")).unwrap();
        assert_eq!(grant_differences("a.toml", &same, &proposal), [""; 0]);
        assert_eq!(same.permissions.http.len(), 1);
    }
}
