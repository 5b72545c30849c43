//! `toolbay install` and `toolbay uninstall`: add the server to the configuration of a client, and
//! remove it.

pub(super) mod client_environment;
pub(super) mod report;
mod target;

use std::process::ExitCode;

use anyhow::{Context as _, anyhow, bail};
use clap::builder::PossibleValuesParser;
use clap::{Args, ValueEnum};
use serde_json::{Map, Value};
use toolbay_install::{
    CLIENTS, ClientConfiguration, ConfigFile, ConfigurationMistake, ConfigurationScope,
    ConfigurationText, EditOutcome, EntryName, FileError, InvalidEntry, ServerEntry,
    client_with_id, has_same_connection, is_toolbay,
};

use self::client_environment::{path_environment, program_path};
use self::report::{
    EntryState, InstallReport, entry_fragment, entry_text, print_clients, replace_question,
};
use self::target::{InstallTarget, find_target};
use super::common::{Common, Listen, Settings};
use super::confirm;
use super::output::{complain, print, print_json};
use crate::config::ConfigError;

/// Maximum number of attempts to edit a file that other programs write at the same time.
const MAX_ATTEMPTS: usize = 3;

/// The options that both commands have.
#[derive(Args, Debug)]
pub(super) struct EntryOptions {
    /// Whose configuration: the user's, for all projects, or that of the project in the current
    /// folder
    #[arg(long, value_enum, default_value_t = ScopeOption::User)]
    scope: ScopeOption,
    /// The name of the server in the configuration
    #[arg(long, default_value = "toolbay", value_parser = name)]
    name: EntryName,
    /// The configuration file [default: where the client has it]
    #[arg(long, value_name = "FILE")]
    file: Option<std::path::PathBuf>,
    /// Show what would be written and where, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Do not ask before an entry is replaced or removed that belongs to another program or differs
    #[arg(long)]
    yes: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The options of `toolbay install`.
#[derive(Args, Debug)]
pub(super) struct Install {
    /// The client [default: list all clients, and where the server is installed]
    #[arg(value_name = "CLIENT", value_parser = clients())]
    client: Option<String>,
    /// The plugin folder [default: the key `plugins` of the configuration file, or ./plugins]
    #[arg(long, value_name = "DIR", conflicts_with = "http")]
    plugins: Option<std::path::PathBuf>,
    /// The configuration file of the server [default: `TOOLBAY_CONFIG`, or toolbay.toml in the
    /// folder that contains the plugin folder, if it exists]
    #[arg(long, value_name = "FILE", conflicts_with = "http")]
    config: Option<std::path::PathBuf>,
    /// Have the server read no configuration file
    #[arg(long, conflicts_with_all = ["http", "config"])]
    no_config: bool,
    /// The URL of a server that runs, such as `http://127.0.0.1:8931/mcp`, instead of a command
    /// that starts one
    #[arg(long, value_name = "URL")]
    http: Option<String>,
    /// With --http, the name of the variable from which the client takes the bearer token
    #[arg(long, value_name = "NAME", requires = "http")]
    token_variable: Option<String>,
    /// Write the configuration although the client is not found here
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    which: EntryOptions,
}

/// The options of `toolbay uninstall`.
#[derive(Args, Debug)]
pub(super) struct Uninstall {
    /// The client
    #[arg(value_name = "CLIENT", value_parser = clients())]
    client: String,
    #[command(flatten)]
    which: EntryOptions,
}

/// The scope of the configuration, as an option.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum ScopeOption {
    User,
    Project,
}

impl From<ScopeOption> for ConfigurationScope {
    fn from(whose: ScopeOption) -> Self {
        match whose {
            ScopeOption::User => Self::User,
            ScopeOption::Project => Self::Project,
        }
    }
}

fn clients() -> PossibleValuesParser {
    PossibleValuesParser::new(CLIENTS.iter().map(|client| client.id))
}

fn name(text: &str) -> Result<EntryName, InvalidEntry> {
    EntryName::new(text)
}

pub(super) fn install(options: &Install) -> anyhow::Result<ExitCode> {
    let Install {
        client,
        which,
        force,
        ..
    } = options;
    let environment = path_environment()?;
    let Some(client) = client else {
        return print_clients(&environment, &which.name, which.json);
    };
    let client = find_client(client)?;
    let target = find_target(
        client,
        which.scope.into(),
        which.file.as_deref(),
        &environment,
    )?;
    let server = server_entry(options)?;
    if server.exposes_token() {
        complain(
            "the token would cross the network unencrypted: use https, or an address of this machine",
        );
    }
    let entry = server.to_entry(client, &target.location, environment.wsl.as_ref())?;
    if !(target.is_found || *force || which.dry_run) {
        let file = target.location.file.display();
        bail!(
            "{} is not found here; to write {file} anyway, add --force",
            client.title
        );
    }
    let change = |document: &ConfigurationText| document.with_server(which.name.as_str(), &entry);
    let question_about = |old: Option<&Map<String, Value>>| match old {
        Some(old) if !has_same_connection(old, &entry) => {
            Some(replace_question(which.name.as_str(), &target, old, &entry))
        }
        _ => None,
    };
    let mut report = edit_configuration(
        &target,
        which,
        change,
        question_about,
        EntryState::Installed,
    )?;
    report.next_step = Some(client.next_step);
    if let Some(paste) = client.paste_hint {
        report.paste_hint = Some((
            paste,
            entry_fragment(client.entry_format, which.name.as_str(), &entry),
        ));
    }
    report.entry = Some(entry);
    print_report(&report, which)
}

pub(super) fn uninstall(options: &Uninstall) -> anyhow::Result<ExitCode> {
    let Uninstall { client, which } = options;
    let environment = path_environment()?;
    let client = find_client(client)?;
    let target = find_target(
        client,
        which.scope.into(),
        which.file.as_deref(),
        &environment,
    )?;
    let name = which.name.as_str();
    let question_about = |old: Option<&Map<String, Value>>| match old {
        Some(old) if !is_toolbay(old) => Some(format!(
            "{} has a server {name} that does not start this program:\n{}\n\nRemove it? Type y for yes, anything else for no:",
            target.file.path().display(),
            entry_text(&target, name, old),
        )),
        _ => None,
    };
    let report = edit_configuration(
        &target,
        which,
        |document| document.without_server(name),
        question_about,
        EntryState::Removed,
    )?;
    print_report(&report, which)
}

fn find_client(id: &str) -> anyhow::Result<&'static ClientConfiguration> {
    client_with_id(id).with_context(|| format!("unknown client {id}"))
}

/// Returns the server that the client connects to.
fn server_entry(options: &Install) -> anyhow::Result<ServerEntry> {
    if let Some(url) = &options.http {
        return Ok(ServerEntry::http(url, options.token_variable.as_deref())?);
    }
    let settings = Settings {
        config: options.config.clone(),
        no_config: options.no_config,
        log: None,
    };
    let common = Common::for_folder(options.plugins.clone(), settings);
    // Report errors of the configuration here. The client would only report that the server does
    // not start.
    let config = common.load_config(true, &Listen::default())?;
    let absolute = |path: &std::path::Path| {
        std::fs::canonicalize(path)
            .map_err(|error| ConfigError::new(format!("{}: {error}", path.display())))
    };
    let mut paths = Vec::new();
    // The client chooses the working directory of the server, so all paths must be absolute.
    if config.file_read {
        paths.push(("--config", absolute(&config.file)?));
    }
    if options.plugins.is_some() || !config.file_read {
        paths.push(("--plugins", absolute(&config.plugins)?));
    }
    let paths: Vec<_> = paths
        .iter()
        .map(|(flag, path)| (*flag, path.as_path()))
        .collect();
    let arguments: &[&str] = if config.file_read {
        &["serve"]
    } else {
        &["serve", "--no-config"]
    };
    Ok(ServerEntry::command(&program_path()?, arguments, &paths)?)
}

/// Applies `change` to the file of a target. If `question_about` returns a question about the
/// existing entry, a person must confirm the change first.
fn edit_configuration(
    target: &InstallTarget,
    which: &EntryOptions,
    change: impl Fn(&ConfigurationText) -> Result<EditOutcome, ConfigurationMistake>,
    question_about: impl Fn(Option<&Map<String, Value>>) -> Option<String>,
    new_state: EntryState,
) -> anyhow::Result<InstallReport> {
    let mut file = ConfigFile::read(&target.location.file)?;
    for _ in 0..MAX_ATTEMPTS {
        let with_path = |mistake| anyhow!(FileError::Mistake(mistake, file.path().to_owned()));
        let document = ConfigurationText::parse(
            target.location.entry_format,
            file.text().unwrap_or_default(),
        )
        .map_err(with_path)?;
        let edit = change(&document).map_err(with_path)?;
        let mut report = InstallReport::new(target, which.name.as_str(), file.path());
        let EditOutcome::Changed(text) = edit else {
            return Ok(report);
        };
        report.state = new_state;
        if which.dry_run {
            report.is_dry_run = true;
            return Ok(report);
        }
        if let Some(question) =
            question_about(document.entry(which.name.as_str())).filter(|_| !which.yes)
        {
            if !confirm::is_possible() {
                bail!(
                    "{} has a server {} that is not what would be written; to replace or remove it, add --yes",
                    file.path().display(),
                    which.name.as_str()
                );
            }
            if !confirm::ask_blocking(&question) {
                bail!("nothing was changed");
            }
        }
        match file.write(&text, matches!(which.scope, ScopeOption::Project)) {
            Ok(backup) => {
                report.backup = backup;
                return Ok(report);
            }
            // Another program changed the file. The confirmed entry may be different now, so check
            // it again.
            Err(FileError::Changed(_)) => file = ConfigFile::read(&target.location.file)?,
            Err(error) => return Err(error.into()),
        }
    }
    Err(FileError::Changed(file.path().to_owned()).into())
}

fn print_report(report: &InstallReport, which: &EntryOptions) -> anyhow::Result<ExitCode> {
    if which.json {
        print_json(&report.to_json())?;
    } else {
        print(&report.to_text());
    }
    Ok(ExitCode::SUCCESS)
}
