//! Server entries in the formats of the clients.

use std::path::Path;

use serde_json::{Map, Value, json};
use url::{Host, Url};

use crate::client::ClientConfiguration;
use crate::configuration_path::{ConfigurationPath, OperatingSystem, WslEnvironment};
use crate::entry_format::{EntryFormat, TokenForm};

/// Maximum length of a server's name, in bytes. Clients put it before the names of tools, whose
/// total length may be limited to 64.
const MAX_NAME_BYTES: usize = 40;

/// Way in which a client connects to the server.
#[derive(Clone, Debug)]
pub enum ServerEntry {
    /// The client starts the server.
    Command {
        /// Absolute path of the program.
        program: String,
        /// Arguments of the program.
        arguments: Vec<String>,
    },
    /// The server is already running.
    Http {
        /// URL of the server.
        url: Url,
        /// Environment variable with the bearer token that the client sends.
        token: Option<String>,
    },
}

/// Name of a server in a configuration: 1 to 40 letters, digits, `-` and `_`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryName(String);

/// Reason that a client does not support an entry.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct UnsupportedEntry(String);

/// Reason that a name or an entry cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidEntry(String);

impl EntryName {
    /// Validates a name.
    ///
    /// # Errors
    ///
    /// Returns an error if the name is too long or has other characters.
    pub fn new(name: &str) -> Result<Self, InvalidEntry> {
        let is_name_byte = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
        if name.is_empty() || name.len() > MAX_NAME_BYTES || !name.bytes().all(is_name_byte) {
            return Err(InvalidEntry(format!(
                "expected 1 to {MAX_NAME_BYTES} letters, digits, hyphens and underscores"
            )));
        }
        Ok(Self(name.to_owned()))
    }

    /// Returns the name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl ServerEntry {
    /// Creates an entry for a server that the client starts.
    ///
    /// # Errors
    ///
    /// Returns an error if a path is not absolute, or is not UTF-8, which configurations require.
    pub fn command(
        program: &Path,
        arguments: &[&str],
        paths: &[(&str, &Path)],
    ) -> Result<Self, InvalidEntry> {
        let path_text = |path: &Path| match path.to_str() {
            Some(text) if path.is_absolute() => Ok(text.to_owned()),
            Some(_) => Err(InvalidEntry(format!(
                "the path {} is not absolute",
                path.display()
            ))),
            None => Err(InvalidEntry(format!(
                "the path {} is not UTF-8, which configurations are",
                path.display()
            ))),
        };
        let mut all_arguments: Vec<String> = arguments
            .iter()
            .map(|argument| (*argument).to_owned())
            .collect();
        for (flag, path) in paths {
            all_arguments.extend([(*flag).to_owned(), path_text(path)?]);
        }
        Ok(Self::Command {
            program: path_text(program)?,
            arguments: all_arguments,
        })
    }

    /// Creates an entry for a server that runs at `url`.
    ///
    /// # Errors
    ///
    /// Returns an error if `url` is not the URL of a server, or if `token` is not the name of a
    /// variable.
    pub fn http(url: &str, token: Option<&str>) -> Result<Self, InvalidEntry> {
        let parsed_url = Url::parse(url).map_err(|_| {
            InvalidEntry(
                "--http: expected the URL of a server, such as http://127.0.0.1:8931/mcp"
                    .to_owned(),
            )
        })?;
        if !matches!(parsed_url.scheme(), "http" | "https") || !parsed_url.has_host() {
            return Err(InvalidEntry(
                "--http: expected a URL that starts with http:// or https://".to_owned(),
            ));
        }
        if !parsed_url.username().is_empty()
            || parsed_url.password().is_some()
            || parsed_url.fragment().is_some()
        {
            return Err(InvalidEntry(
                "--http: expected a URL without a name, a password or a fragment".to_owned(),
            ));
        }
        let is_variable_name = |name: &str| {
            name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
                && !name.starts_with(|c: char| c.is_ascii_digit())
        };
        if token.is_some_and(|name| name.is_empty() || !is_variable_name(name)) {
            return Err(InvalidEntry(
                "--token-variable: expected the name of a variable, such as TOOLBAY_TOKEN"
                    .to_owned(),
            ));
        }
        Ok(Self::Http {
            url: parsed_url,
            token: token.map(str::to_owned),
        })
    }

    /// Returns whether a token would be sent over a network without encryption.
    pub fn exposes_token(&self) -> bool {
        let Self::Http {
            url,
            token: Some(_),
        } = self
        else {
            return false;
        };
        let is_loopback = match url.host() {
            Some(Host::Ipv4(address)) => address.is_loopback(),
            Some(Host::Ipv6(address)) => address.is_loopback(),
            Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
            None => false,
        };
        url.scheme() == "http" && !is_loopback
    }

    /// Returns the entry for a client that reads the configuration at `path`.
    ///
    /// # Errors
    ///
    /// Returns an error if the client does not support the entry.
    pub fn to_entry(
        &self,
        client: &ClientConfiguration,
        path: &ConfigurationPath,
        wsl: Option<&WslEnvironment>,
    ) -> Result<Map<String, Value>, UnsupportedEntry> {
        let title = client.title;
        match self {
            Self::Command { program, arguments } => {
                let (program, arguments) = match (path.system, wsl) {
                    (OperatingSystem::Linux, _) => (program.clone(), arguments.clone()),
                    (OperatingSystem::Windows, Some(wsl)) => {
                        wsl_command(&wsl.distribution, program, arguments)
                    }
                    (OperatingSystem::MacOs | OperatingSystem::Windows, _) => {
                        return Err(UnsupportedEntry(format!(
                            "{} belongs to {title} on another system, and this program runs on Linux only; serve over HTTP \
                             and give the URL with --http",
                            path.file.display()
                        )));
                    }
                };
                Ok(command_entry(&path.entry_format, &program, &arguments))
            }
            Self::Http { url, token } => {
                http_entry(client, &path.entry_format, url, token.as_deref())
            }
        }
    }
}

/// Returns the command that starts a Linux program from Windows.
fn wsl_command(distribution: &str, program: &str, arguments: &[String]) -> (String, Vec<String>) {
    let mut wsl_arguments: Vec<String> = ["--distribution", distribution, "--exec", program]
        .map(str::to_owned)
        .to_vec();
    wsl_arguments.extend_from_slice(arguments);
    ("wsl.exe".to_owned(), wsl_arguments)
}

fn command_entry(
    entry_format: &EntryFormat,
    program: &str,
    arguments: &[String],
) -> Map<String, Value> {
    let mut entry = Map::new();
    if entry_format.stdio_type {
        entry.insert("type".to_owned(), json!("stdio"));
    }
    entry.insert("command".to_owned(), json!(program));
    entry.insert("args".to_owned(), json!(arguments));
    entry
}

fn http_entry(
    client: &ClientConfiguration,
    entry_format: &EntryFormat,
    url: &Url,
    token: Option<&str>,
) -> Result<Map<String, Value>, UnsupportedEntry> {
    let title = client.title;
    let Some(key) = entry_format.url_key else {
        return Err(UnsupportedEntry(format!(
            "{title} reads no URLs from its configuration: add the server as a connector in its settings, or leave out --http"
        )));
    };
    let mut entry = Map::new();
    if entry_format.http_type {
        entry.insert("type".to_owned(), json!("http"));
    }
    entry.insert(key.to_owned(), json!(url.as_str()));
    match (token, entry_format.token_form) {
        (None, _) => {}
        (Some(name), TokenForm::Header(prefix, suffix)) => {
            entry.insert(
                "headers".to_owned(),
                json!({"Authorization": format!("{prefix}{name}{suffix}")}),
            );
        }
        (Some(name), TokenForm::Key(key)) => {
            entry.insert(key.to_owned(), json!(name));
        }
        (Some(_), TokenForm::None) => {
            return Err(UnsupportedEntry(format!(
                "{title} is not known to take tokens from variables: leave out --token-variable, and add the header \
                 Authorization to the entry by hand"
            )));
        }
    }
    Ok(entry)
}
