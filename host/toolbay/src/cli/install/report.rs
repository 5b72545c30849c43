//! Output of the commands: the changes, their locations, and the list of clients.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::{Map, Value, json};
use toolbay_install::{
    CLIENTS, ClientConfiguration, ConfigFile, ConfigurationPath, ConfigurationScope,
    ConfigurationText, EditOutcome, EntryFormat, EntryName, FileError, PathEnvironment, is_toolbay,
    redacted_connection,
};

use super::target::{InstallTarget, existing_locations};
use crate::cli::output::{print, print_json};

/// Result for the entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EntryState {
    /// No change was necessary.
    Unchanged,
    /// The entry was added, or replaced another one.
    Installed,
    /// The entry was removed.
    Removed,
}

/// Result of an edit.
#[derive(Debug)]
pub(super) struct InstallReport {
    client: &'static ClientConfiguration,
    scope: ConfigurationScope,
    name: String,
    /// The edited file, with links resolved.
    file: PathBuf,
    dialect: EntryFormat,
    pub(super) state: EntryState,
    /// If set, the change is only printed, not written.
    pub(super) is_dry_run: bool,
    pub(super) backup: Option<PathBuf>,
    pub(super) entry: Option<Map<String, Value>>,
    pub(super) next_step: Option<&'static str>,
    /// Instruction where to paste text by hand, and the text.
    pub(super) paste_hint: Option<(&'static str, String)>,
}

impl InstallReport {
    /// Creates the report of an edit that changes nothing.
    pub(super) fn new(target: &InstallTarget, name: &str, file: &Path) -> Self {
        Self {
            client: target.client,
            scope: target.scope,
            name: name.to_owned(),
            file: file.to_owned(),
            dialect: target.location.entry_format,
            state: EntryState::Unchanged,
            is_dry_run: false,
            backup: None,
            entry: None,
            next_step: None,
            paste_hint: None,
        }
    }

    /// Formats the report for people.
    pub(super) fn to_text(&self) -> String {
        let name = &self.name;
        let file = self.file.display();
        let title = self.client.title;
        let mut out = String::new();
        let _ = match (self.state, self.is_dry_run, &self.entry) {
            (EntryState::Unchanged, _, Some(_)) => {
                writeln!(
                    out,
                    "{file} has the server {name} already; nothing was changed"
                )
            }
            (EntryState::Unchanged, _, None) => {
                writeln!(out, "{file} has no server {name}; nothing was changed")
            }
            (EntryState::Installed, true, _) => writeln!(out, "would add to {file}:\n"),
            (EntryState::Installed, false, _) => {
                writeln!(out, "added the server {name} to {title}: {file}")
            }
            (EntryState::Removed, true, _) => {
                writeln!(out, "would remove the server {name} from {file}")
            }
            (EntryState::Removed, false, _) => {
                writeln!(out, "removed the server {name} from {title}: {file}")
            }
        };
        if self.is_dry_run
            && let Some(entry) = &self.entry
        {
            out += &entry_fragment(self.dialect, name, entry);
        }
        if let Some(backup) = &self.backup {
            let _ = writeln!(out, "the file as it was: {}", backup.display());
        }
        if let (EntryState::Installed, false, Some(next)) =
            (self.state, self.is_dry_run, self.next_step)
        {
            let _ = writeln!(out, "next: {next}");
        }
        if let (EntryState::Installed, Some((where_to, text))) = (self.state, &self.paste_hint) {
            let _ = writeln!(out, "\n{where_to}:\n\n{text}");
        }
        out.truncate(out.trim_end().len());
        out + "\n"
    }

    /// Formats the report for programs.
    pub(super) fn to_json(&self) -> Value {
        let state = match self.state {
            EntryState::Unchanged => "unchanged",
            EntryState::Installed => "installed",
            EntryState::Removed => "removed",
        };
        json!({
            "client": self.client.id,
            "scope": scope_word(self.scope),
            "name": self.name,
            "file": self.file,
            "state": state,
            "written": self.state != EntryState::Unchanged && !self.is_dry_run,
            "backup": self.backup,
            "entry": self.entry,
            "paste": self.paste_hint.as_ref().map(|(where_to, text)| json!({"where": where_to, "text": text})),
        })
    }
}

fn scope_word(scope: ConfigurationScope) -> &'static str {
    match scope {
        ConfigurationScope::User => "user",
        ConfigurationScope::Project => "project",
    }
}

/// Returns a configuration that contains only an entry, to be read or pasted.
pub(super) fn entry_fragment(
    dialect: EntryFormat,
    name: &str,
    entry: &Map<String, Value>,
) -> String {
    match ConfigurationText::parse(dialect, "")
        .and_then(|document| document.with_server(name, entry))
    {
        Ok(EditOutcome::Changed(text)) => text,
        Ok(EditOutcome::Unchanged) | Err(_) => String::new(),
    }
}

/// Formats an entry as it appears in a file, without possible secrets.
pub(super) fn entry_text(target: &InstallTarget, name: &str, entry: &Map<String, Value>) -> String {
    entry_fragment(
        target.location.entry_format,
        name,
        &redacted_connection(entry),
    )
    .trim_end()
    .to_owned()
}

/// Returns the question that must be confirmed before an entry is replaced.
pub(super) fn replace_question(
    name: &str,
    target: &InstallTarget,
    old: &Map<String, Value>,
    new: &Map<String, Value>,
) -> String {
    format!(
        "{} has a server {name} already:\n{}\n\nThe client would connect to it like this instead; other keys of its entry would \
         stay:\n{}\n\nReplace it? Type y for yes, anything else for no:",
        target.file.path().display(),
        entry_text(target, name, old),
        entry_text(target, name, new),
    )
}

/// Lists the clients, with whether they are present and whether the server is installed in them.
pub(super) fn print_clients(
    environment: &PathEnvironment,
    name: &EntryName,
    as_json: bool,
) -> anyhow::Result<ExitCode> {
    let rows: Vec<ReportRow> = CLIENTS
        .iter()
        .flat_map(|client| client_rows(client, environment, name))
        .collect();
    if as_json {
        print_json(&rows.iter().map(ReportRow::to_json).collect::<Vec<_>>())?;
        return Ok(ExitCode::SUCCESS);
    }
    let width = CLIENTS
        .iter()
        .map(|client| client.id.len())
        .max()
        .unwrap_or_default();
    let mut out = String::new();
    for row in &rows {
        let _ = writeln!(
            out,
            "{:width$}  {:13}  {}",
            row.client.id,
            row.status_word(),
            row.location.file.display()
        );
        if let Err(why) = &row.installed {
            let _ = writeln!(out, "{:width$}  ! {why}", "");
        }
    }
    out.push_str("\nto add the server to a client: toolbay install CLIENT\n");
    print(&out);
    Ok(ExitCode::SUCCESS)
}

/// The name of a server, and its entry.
type NamedEntry = (String, Map<String, Value>);

/// A server in the configuration of a client that starts this program, or connects to it.
pub(in crate::cli) struct InstalledServer {
    pub(in crate::cli) client: &'static ClientConfiguration,
    pub(in crate::cli) file: PathBuf,
    /// The entry's name and content, or the reason why the configuration cannot be read.
    pub(in crate::cli) entry: Result<NamedEntry, String>,
}

/// Returns the servers of Toolbay in all existing configurations, under any name, and the
/// configurations that cannot be read.
pub(in crate::cli) fn installed_servers(environment: &PathEnvironment) -> Vec<InstalledServer> {
    let mut servers = Vec::new();
    for client in &CLIENTS {
        let mut locations = client.configuration_paths(ConfigurationScope::User, environment);
        for location in client.configuration_paths(ConfigurationScope::Project, environment) {
            if !locations.iter().any(|known| known.file == location.file) {
                locations.push(location);
            }
        }
        for location in locations.iter().filter(|location| location.file.exists()) {
            let server = |entry| InstalledServer {
                client,
                file: location.file.clone(),
                entry,
            };
            match read_servers(location) {
                Ok(entries) => servers.extend(entries.into_iter().map(Ok).map(server)),
                Err(error) => servers.push(server(Err(error.to_string()))),
            }
        }
    }
    servers
}

/// Returns the names and entries of the servers of Toolbay in a configuration.
fn read_servers(location: &ConfigurationPath) -> Result<Vec<NamedEntry>, FileError> {
    let file = ConfigFile::read(&location.file)?;
    let document = ConfigurationText::parse(location.entry_format, file.text().unwrap_or_default())
        .map_err(|mistake| FileError::Mistake(mistake, file.path().to_owned()))?;
    Ok(document
        .servers()
        .filter(|(_, entry)| is_toolbay(entry))
        .map(|(name, entry)| (name.to_owned(), entry.clone()))
        .collect())
}

/// One configuration of a client.
struct ReportRow {
    client: &'static ClientConfiguration,
    scope: ConfigurationScope,
    location: ConfigurationPath,
    is_found: bool,
    installed: Result<bool, FileError>,
}

/// Returns the existing configurations of a client, or the default one of the user if there are
/// none.
fn client_rows(
    client: &'static ClientConfiguration,
    environment: &PathEnvironment,
    name: &EntryName,
) -> Vec<ReportRow> {
    let row = |scope: ConfigurationScope, location: &ConfigurationPath, is_found: bool| ReportRow {
        client,
        scope,
        location: location.clone(),
        is_found,
        installed: is_installed(location, name),
    };
    let user_locations = client.configuration_paths(ConfigurationScope::User, environment);
    let existing = existing_locations(client, &user_locations);
    let mut rows: Vec<ReportRow> = existing
        .into_iter()
        .map(|spot| row(ConfigurationScope::User, spot, true))
        .collect();
    if rows.is_empty() {
        rows.extend(
            user_locations
                .first()
                .map(|spot| row(ConfigurationScope::User, spot, false)),
        );
    }
    let project_locations = client.configuration_paths(ConfigurationScope::Project, environment);
    let is_own = |spot: &&ConfigurationPath| {
        spot.file.exists() && !user_locations.iter().any(|user| user.file == spot.file)
    };
    rows.extend(
        project_locations
            .iter()
            .filter(is_own)
            .map(|spot| row(ConfigurationScope::Project, spot, true)),
    );
    rows
}

fn is_installed(location: &ConfigurationPath, name: &EntryName) -> Result<bool, FileError> {
    let file = ConfigFile::read(&location.file)?;
    let document = ConfigurationText::parse(location.entry_format, file.text().unwrap_or_default());
    match document {
        Ok(document) => Ok(document.entry(name.as_str()).is_some()),
        Err(mistake) => Err(FileError::Mistake(mistake, file.path().to_owned())),
    }
}

impl ReportRow {
    fn status_word(&self) -> &'static str {
        match (self.is_found, &self.installed) {
            (_, Ok(true)) => "installed",
            (true, Ok(false)) => "not installed",
            (true, Err(_)) => "not readable",
            (false, _) => "not found",
        }
    }

    fn to_json(&self) -> Value {
        json!({
            "client": self.client.id,
            "title": self.client.title,
            "scope": scope_word(self.scope),
            "file": self.location.file,
            "found": self.is_found,
            "installed": self.installed.as_ref().ok(),
            "problem": self.installed.as_ref().err().map(ToString::to_string),
        })
    }
}
