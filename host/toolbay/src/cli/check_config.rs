//! `toolbay check-config`: checks what `toolbay serve` needs, without serving and without changing
//! a file.

use std::io::ErrorKind;
use std::net::TcpListener;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::ExitCode;

use rustix::fs::{Access, access};
use toolbay_catalog::{PluginFileStatus, Snapshot};
use toolbay_mcp::http::{ListenAddress, check_issuer_keys};
use toolbay_private::PrivateFolder;

use super::check_report::{CheckReport, CheckStatus};
use super::common::{Common, Listen, block_on};
use super::load_progress::{command_server, wait_until_loaded};
use super::output::count_noun;
use crate::config::Config;
use crate::serve::confinement::ConfinementNeeds;
use crate::serve::pattern_warnings::unmatched_patterns;

pub(super) fn run(common: &Common, listen: &Listen, as_json: bool) -> anyhow::Result<ExitCode> {
    let config = common.load_config(true, listen)?;
    let mut report = CheckReport::default();
    report.add(CheckStatus::Ok, "configuration", config.source_message());
    for clamp in config.clamp_messages() {
        report.add(CheckStatus::Warning, "configuration", clamp);
    }
    check_http(&config, &mut report);
    check_files(&config, &mut report);
    block_on(async {
        check_plugins(&config, &mut report).await?;
        report.print(as_json)
    })
}

/// Checks the settings of MCP over HTTP, as far as the server uses it.
fn check_http(config: &Config, report: &mut CheckReport) {
    let http = &config.http;
    if http.tls.is_some() {
        let opened = http.open_tls();
        report.add_result(
            "http.tls",
            opened
                .map(|_| "the certificate and the key match".to_owned())
                .map_err(|error| error.to_string()),
        );
    }
    if let Some(oauth) = http.options(false, None).oauth {
        let servers = oauth.authorization_servers.len();
        report.add_result(
            "http.oauth",
            check_issuer_keys(&oauth).map(|()| format!("the keys of {servers} issuers were read")),
        );
    }
    match &http.listen {
        None => report.add(
            CheckStatus::Ok,
            "transport",
            "standard input and output; use --http to check an address",
        ),
        Some(address) => {
            let (status, message) = check_address(address);
            report.add(status, "http.listen", message);
            if matches!(address, ListenAddress::Internet(address) if address.ip().is_loopback())
                && !http.needs_token()
            {
                report.add(
                    CheckStatus::Warning,
                    "http.tokens",
                    "every account of this machine can call all tools, because http.tokens and http.oauth are not set",
                );
            }
        }
    }
}

/// Checks that a server can listen on an address. An address in use is a warning, because the
/// program that uses it may be the server whose configuration is checked.
fn check_address(address: &ListenAddress) -> (CheckStatus, String) {
    let in_use = |shown: String| {
        (
            CheckStatus::Warning,
            format!("{shown} is in use; another server cannot start on it"),
        )
    };
    match address {
        ListenAddress::Internet(socket) => match TcpListener::bind(socket) {
            Ok(_) => (CheckStatus::Ok, format!("{socket} is free")),
            Err(error) if error.kind() == ErrorKind::AddrInUse => in_use(socket.to_string()),
            Err(error) => (
                CheckStatus::Error,
                format!("cannot listen on {socket}: {}", error.kind()),
            ),
        },
        ListenAddress::Unix(path) => {
            let shown = path.display().to_string();
            if UnixStream::connect(path).is_ok() {
                return in_use(shown);
            }
            let folder = path.parent().unwrap_or(Path::new("/"));
            match access(folder, Access::WRITE_OK | Access::EXEC_OK) {
                Ok(()) => (CheckStatus::Ok, format!("{shown} is free")),
                Err(error) => (
                    CheckStatus::Error,
                    format!(
                        "cannot create a socket in {}: {}",
                        folder.display(),
                        std::io::Error::from(error).kind()
                    ),
                ),
            }
        }
    }
}

/// Checks the folders and files that the server writes, and what its confinement needs.
fn check_files(config: &Config, report: &mut CheckReport) {
    for (purpose, folder) in config.server_folders() {
        report.add_result(purpose, check_folder(&folder));
    }
    if let Some(record) = config.record.settings() {
        let folder = record.file.parent().unwrap_or(Path::new("."));
        report.add_result("the recording of calls", check_folder(folder));
    }
    if let Err(error) = config.otel.settings() {
        report.add(CheckStatus::Error, "otel", error.to_string());
    }
    let socket = config
        .http
        .listen
        .as_ref()
        .and_then(ListenAddress::socket_path);
    let needs = ConfinementNeeds::from_config(config, socket);
    report.add_result(
        "server.confine",
        needs
            .map(|needs| match needs.overlap_count() {
                0 => "no writable path decides about permissions".to_owned(),
                overlaps => format!(
                    "{} of what the server may write decides about permissions; the log of a server names it",
                    count_noun(overlaps, "path")
                ),
            })
            .map_err(|error| error.to_string()),
    );
}

/// Checks that the server can use a folder, without creating it.
fn check_folder(folder: &Path) -> Result<String, String> {
    let folder = std::path::absolute(folder).map_err(|error| error.kind().to_string())?;
    if folder.exists() {
        let private = PrivateFolder::open(&folder, "")?;
        return match access(&private.path, Access::WRITE_OK | Access::EXEC_OK) {
            Ok(()) => Ok(format!("{} can be written", folder.display())),
            Err(error) => Err(format!(
                "cannot write {}: {}",
                folder.display(),
                std::io::Error::from(error).kind()
            )),
        };
    }
    let Some(ancestor) = folder.ancestors().find(|ancestor| ancestor.exists()) else {
        return Err(format!("cannot create {}", folder.display()));
    };
    match access(ancestor, Access::WRITE_OK | Access::EXEC_OK) {
        Ok(()) if ancestor.is_dir() => Ok(format!("{} will be created", folder.display())),
        Ok(()) => Err(format!(
            "cannot create {}: {} is not a folder",
            folder.display(),
            ancestor.display()
        )),
        Err(error) => Err(format!(
            "cannot create {} in {}: {}",
            folder.display(),
            ancestor.display(),
            std::io::Error::from(error).kind()
        )),
    }
}

/// Loads the plugins as a server does, and reports problems of their files and grants.
async fn check_plugins(config: &Config, report: &mut CheckReport) -> anyhow::Result<()> {
    let server = command_server(config.clone()).start()?;
    let snapshot = wait_until_loaded(&server).await;
    report.add(
        CheckStatus::Ok,
        "plugins",
        format!(
            "{} with {} in {}",
            count_noun(served_count(&snapshot), "plugin"),
            count_noun(snapshot.tools.len(), "tool"),
            config.plugins.display()
        ),
    );
    for (id, plugin) in &snapshot.plugins {
        let status = match plugin.status {
            PluginFileStatus::Refused | PluginFileStatus::Stale => CheckStatus::Error,
            PluginFileStatus::Ready | PluginFileStatus::Loading => CheckStatus::Warning,
        };
        for problem in &plugin.problems {
            report.add(status, format!("plugin {id}"), problem);
        }
    }
    for (name, note) in &snapshot.notes {
        report.add(CheckStatus::Warning, format!("file {name}"), note);
    }
    for pattern in unmatched_patterns(config, &snapshot) {
        report.add(CheckStatus::Warning, "configuration", pattern);
    }
    Ok(())
}

fn served_count(snapshot: &Snapshot) -> usize {
    snapshot
        .plugins
        .values()
        .filter(|plugin| plugin.status == PluginFileStatus::Ready)
        .count()
}
