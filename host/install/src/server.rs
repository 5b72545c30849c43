//! The server that clients get, written as each of them wants it.

use std::path::Path;

use serde_json::{Map, Value, json};
use url::{Host, Url};

use crate::client::ClientConfiguration;
use crate::dialect::{EntryFormat, TokenForm};
use crate::place::{ConfigurationPath, OperatingSystem, WslEnvironment};

/// Longest name of a server, in bytes: clients put it before the names of tools, which may have 64 in all.
const NAME: usize = 40;

/// How a client reaches the server.
#[derive(Clone, Debug)]
pub enum ServerEntry {
    /// The client starts it.
    Command {
        /// Absolute path of the program.
        program: String,
        /// Its arguments.
        arguments: Vec<String>,
    },
    /// It runs already.
    Http {
        /// Its address.
        url: Url,
        /// The variable with a bearer token that the client sends.
        token: Option<String>,
    },
}

/// The name of a server in a configuration: 1 to 40 letters, digits, `-` and `_`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryName(String);

/// Why a client cannot have the server this way.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct UnsupportedEntry(String);

impl EntryName {
    /// Checks a name.
    ///
    /// # Errors
    ///
    /// It is too long, or has other characters.
    pub fn new(name: &str) -> Result<Self, String> {
        let fits = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
        if name.is_empty() || name.len() > NAME || !name.bytes().all(fits) {
            return Err(format!("expected 1 to {NAME} letters, digits, hyphens and underscores"));
        }
        Ok(Self(name.to_owned()))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl ServerEntry {
    /// A server that is started.
    ///
    /// # Errors
    ///
    /// A path is not absolute, or not UTF-8, which configurations are.
    pub fn command(program: &Path, arguments: &[&str], paths: &[(&str, &Path)]) -> Result<Self, String> {
        let text = |path: &Path| match path.to_str() {
            Some(text) if path.is_absolute() => Ok(text.to_owned()),
            Some(_) => Err(format!("the path {} is not absolute", path.display())),
            None => Err(format!("the path {} is not UTF-8, which configurations are", path.display())),
        };
        let mut all: Vec<String> = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        for (flag, path) in paths {
            all.extend([(*flag).to_owned(), text(path)?]);
        }
        Ok(Self::Command { program: text(program)?, arguments: all })
    }

    /// A server that runs at `url`.
    ///
    /// # Errors
    ///
    /// It is no URL of a server, or `token` is not the name of a variable.
    pub fn http(url: &str, token: Option<&str>) -> Result<Self, String> {
        let parsed = Url::parse(url)
            .map_err(|_| "--http: expected the URL of a server, such as http://127.0.0.1:8931/mcp".to_owned())?;
        if !matches!(parsed.scheme(), "http" | "https") || !parsed.has_host() {
            return Err("--http: expected a URL that starts with http:// or https://".to_owned());
        }
        if !parsed.username().is_empty() || parsed.password().is_some() || parsed.fragment().is_some() {
            return Err("--http: expected a URL without a name, a password or a fragment".to_owned());
        }
        let word = |name: &str| {
            name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
                && !name.starts_with(|c: char| c.is_ascii_digit())
        };
        if token.is_some_and(|name| name.is_empty() || !word(name)) {
            return Err("--token-variable: expected the name of a variable, such as TOOLBAY_TOKEN".to_owned());
        }
        Ok(Self::Http { url: parsed, token: token.map(str::to_owned) })
    }

    /// Whether a token would cross a network without encryption.
    pub fn exposes_token(&self) -> bool {
        let Self::Http { url, token: Some(_) } = self else { return false };
        let loopback = match url.host() {
            Some(Host::Ipv4(address)) => address.is_loopback(),
            Some(Host::Ipv6(address)) => address.is_loopback(),
            Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
            None => false,
        };
        url.scheme() == "http" && !loopback
    }

    /// The entry for a client that reads `spot`.
    ///
    /// # Errors
    ///
    /// The client cannot have the server this way.
    pub fn entry(
        &self,
        client: &ClientConfiguration,
        spot: &ConfigurationPath,
        wsl: Option<&WslEnvironment>,
    ) -> Result<Map<String, Value>, UnsupportedEntry> {
        let title = client.title;
        match self {
            Self::Command { program, arguments } => {
                let (program, arguments) = match (spot.system, wsl) {
                    (OperatingSystem::Linux, _) => (program.clone(), arguments.clone()),
                    (OperatingSystem::Windows, Some(wsl)) => through_wsl(&wsl.distribution, program, arguments),
                    (OperatingSystem::MacOs | OperatingSystem::Windows, _) => {
                        return Err(UnsupportedEntry(format!(
                            "{} belongs to {title} on another system, and this program runs on Linux only; serve over HTTP \
                             and give the URL with --http",
                            spot.file.display()
                        )));
                    }
                };
                Ok(command(&spot.dialect, &program, &arguments))
            }
            Self::Http { url, token } => http(client, &spot.dialect, url, token.as_deref()),
        }
    }
}

/// The command with which Windows starts a program of a Linux within it.
fn through_wsl(distribution: &str, program: &str, arguments: &[String]) -> (String, Vec<String>) {
    let mut all: Vec<String> = ["--distribution", distribution, "--exec", program].map(str::to_owned).to_vec();
    all.extend_from_slice(arguments);
    ("wsl.exe".to_owned(), all)
}

fn command(dialect: &EntryFormat, program: &str, arguments: &[String]) -> Map<String, Value> {
    let mut entry = Map::new();
    if dialect.stdio_type {
        entry.insert("type".to_owned(), json!("stdio"));
    }
    entry.insert("command".to_owned(), json!(program));
    entry.insert("args".to_owned(), json!(arguments));
    entry
}

fn http(
    client: &ClientConfiguration,
    dialect: &EntryFormat,
    url: &Url,
    token: Option<&str>,
) -> Result<Map<String, Value>, UnsupportedEntry> {
    let title = client.title;
    let Some(key) = dialect.url else {
        return Err(UnsupportedEntry(format!(
            "{title} reads no URLs from its configuration: add the server as a connector in its settings, or leave out --http"
        )));
    };
    let mut entry = Map::new();
    if dialect.http_type {
        entry.insert("type".to_owned(), json!("http"));
    }
    entry.insert(key.to_owned(), json!(url.as_str()));
    match (token, dialect.token) {
        (None, _) => {}
        (Some(name), TokenForm::Header(before, after)) => {
            entry.insert("headers".to_owned(), json!({"Authorization": format!("{before}{name}{after}")}));
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
