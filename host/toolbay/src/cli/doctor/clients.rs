//! The clients that start this program, and what each of them starts.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use crate::cli::check_report::{CheckReport, CheckStatus};
use crate::cli::install::client_environment::path_environment;
use crate::cli::install::report::installed_servers;

/// Maximum number of entries of a plugin folder that are counted.
const MAX_COUNTED_FILES: usize = 100_000;

/// Adds a line for each server of Toolbay in the configuration of a client.
pub(super) fn check_clients(report: &mut CheckReport) {
    let environment = match path_environment() {
        Ok(environment) => environment,
        Err(error) => {
            return report.add(CheckStatus::Warning, "clients", format!("{error:#}"));
        }
    };
    let servers = installed_servers(&environment);
    if servers.is_empty() {
        report.add(
            CheckStatus::Ok,
            "clients",
            "no client starts Toolbay; to add it to one, use `toolbay install`",
        );
    }
    for server in servers {
        let file = server.file.display();
        let subject = format!("client {}", server.client.id);
        match &server.entry {
            Err(why) => report.add(CheckStatus::Warning, subject, why.clone()),
            Ok((name, entry)) => {
                let (status, text) = entry_text(entry);
                report.add(status, subject, format!("{name:?} in {file}: {text}"));
            }
        }
    }
}

/// Returns what an entry starts, and whether it can be started.
fn entry_text(entry: &Map<String, Value>) -> (CheckStatus, String) {
    let arguments: Vec<&str> = entry
        .get("args")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let command = entry
        .get("command")
        .and_then(Value::as_str)
        .unwrap_or_default();
    if command.is_empty() {
        return (CheckStatus::Ok, "connects to a server that runs".to_owned());
    }
    if !is_program(command) {
        return (
            CheckStatus::Error,
            format!("the program {command} does not exist or cannot be started"),
        );
    }
    let Some(folder) = option_value(&arguments, "--plugins") else {
        return (CheckStatus::Ok, format!("starts {command}"));
    };
    match count_plugins(Path::new(folder)) {
        Err(why) => (
            CheckStatus::Error,
            format!("the plugin folder {folder} cannot be read: {why}"),
        ),
        Ok(0) => (
            CheckStatus::Warning,
            format!("the plugin folder {folder} has no .wasm file"),
        ),
        Ok(1) => (
            CheckStatus::Ok,
            format!("serves {folder} with 1 .wasm file"),
        ),
        Ok(count) => (
            CheckStatus::Ok,
            format!("serves {folder} with {count} .wasm files"),
        ),
    }
}

/// Returns whether a client can start this program: by its path, or by its name in PATH.
fn is_program(command: &str) -> bool {
    let is_executable = |path: &Path| {
        rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok() && path.is_file()
    };
    if command.contains('/') {
        return is_executable(Path::new(command));
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| is_executable(&folder.join(command)))
}

/// Returns the value of an option, as `--option VALUE` or `--option=VALUE`.
fn option_value<'a>(arguments: &[&'a str], option: &str) -> Option<&'a str> {
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        if *argument == option {
            return rest.next().copied();
        }
        if let Some(value) = argument
            .strip_prefix(option)
            .and_then(|rest| rest.strip_prefix('='))
        {
            return Some(value);
        }
    }
    None
}

fn count_plugins(folder: &Path) -> Result<usize, String> {
    let entries = fs::read_dir(folder).map_err(|error| error.kind().to_string())?;
    Ok(entries
        .take(MAX_COUNTED_FILES)
        .filter_map(Result::ok)
        .map(|entry| PathBuf::from(entry.file_name()))
        .filter(|name| {
            name.extension()
                .is_some_and(|extension| extension == "wasm")
        })
        .count())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn entry(value: Value) -> Map<String, Value> {
        match value {
            Value::Object(entry) => entry,
            other => panic!("{other}"),
        }
    }

    #[test]
    fn an_entry_is_checked_for_its_program_and_its_plugin_folder() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().to_str().unwrap();
        let check = |arguments: Value| {
            entry_text(&entry(
                json!({"command": "/proc/self/exe", "args": arguments}),
            ))
        };
        assert_eq!(
            check(json!(["serve", "--plugins", path])).0,
            CheckStatus::Warning
        );
        fs::write(folder.path().join("a.wasm"), "").unwrap();
        assert_eq!(
            check(json!(["serve", format!("--plugins={path}")])),
            (CheckStatus::Ok, format!("serves {path} with 1 .wasm file"))
        );
        assert_eq!(check(json!(["serve"])).0, CheckStatus::Ok);
        let gone = format!("{path}/gone");
        assert_eq!(
            check(json!(["serve", "--plugins", gone])).0,
            CheckStatus::Error
        );
        let missing = entry(json!({"command": gone, "args": []}));
        assert_eq!(entry_text(&missing).0, CheckStatus::Error);
        let remote = entry(json!({"url": "http://127.0.0.1:8931/mcp"}));
        assert_eq!(entry_text(&remote).0, CheckStatus::Ok);
    }
}
