//! Where the value of a secret comes from.

use std::fmt;
use std::path::{Path, PathBuf};

use tokio::task::JoinSet;
use zeroize::Zeroizing;

use crate::program::{self, Failure};
use crate::secret::Secret;
use crate::value::Value;

/// The program that reads the keyring of the desktop (Secret Service) for the server.
const KEYRING: &str = "secret-tool";

/// Where the value of a secret comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// The environment variable of the server with this name.
    Environment(String),
    /// A file, as the grant writes its path: a relative one is relative to the plugin folder.
    File(PathBuf),
    /// The entry of the operator's keyring with these attributes, as `secret-tool` finds it.
    Keyring {
        /// Its attribute `service`.
        service: String,
        /// Its attribute `username`.
        user: String,
    },
    /// What a program writes to its standard output: the program and its arguments.
    Command(Vec<String>),
    /// A folder with one file for each caller, at the caller's path
    /// ([`Identity::path`](toolbay_model::Identity::path)). As the grant writes it.
    CallerFolder(PathBuf),
}

impl Source {
    /// The file or folder that it reads or runs, as the grant writes it; `None` if the grant names no path.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::File(path) | Self::CallerFolder(path) => Some(path),
            // Without a slash it is looked up in `PATH`.
            Self::Command(words) => words.first().filter(|program| program.contains('/')).map(Path::new),
            Self::Environment(_) | Self::Keyring { .. } => None,
        }
    }

    /// Whether its value is taken once, when the plugin is loaded.
    pub(crate) fn is_fixed(&self) -> bool {
        matches!(self, Self::Environment(_) | Self::Keyring { .. } | Self::Command(_))
    }
}

/// For messages, such as `the file secrets/github`. The arguments of a command are left out.
impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Environment(variable) => write!(f, "the environment variable {variable}"),
            Self::File(path) => write!(f, "the file {}", path.display()),
            Self::Keyring { service, user } => write!(f, "the keyring entry of {user:?} for {service:?}"),
            Self::Command(words) => write!(f, "the command {}", words.first().map_or("", String::as_str)),
            Self::CallerFolder(path) => write!(f, "each caller's file in {}", path.display()),
        }
    }
}

/// The values of the secrets whose sources are asked once, in the order of the secrets. `None` for all others.
#[derive(Debug, Default)]
pub struct Fixed(pub(crate) Vec<Option<Result<Value, NoValue>>>);

/// Why a source has no value, as the end of a sentence about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NoValue {
    /// It has none.
    Absent(String),
    /// It has one that cannot be a secret.
    Wrong(String),
}

impl NoValue {
    pub(crate) fn why(&self) -> &str {
        let (Self::Absent(why) | Self::Wrong(why)) = self;
        why
    }
}

impl Fixed {
    /// Reads the environment, and runs the programs, all at once, in the plugin folder `base`. `variable` reads an
    /// environment variable. Dropping the future ends the programs. Must run on a runtime of tokio.
    pub async fn fetch(secrets: &[Secret], base: &Path, variable: impl Fn(&str) -> Option<String>) -> Self {
        let mut running = JoinSet::new();
        let mut values = Vec::with_capacity(secrets.len());
        for (index, secret) in secrets.iter().enumerate() {
            let words = match &secret.source {
                Source::Environment(name) => {
                    values.push(Some(of_variable(variable(name))));
                    continue;
                }
                Source::Command(words) => words.clone(),
                Source::Keyring { service, user } => {
                    [KEYRING, "lookup", "service", service, "username", user].map(str::to_owned).into()
                }
                Source::File(_) | Source::CallerFolder(_) => {
                    values.push(None);
                    continue;
                }
            };
            values.push(None);
            let (base, source) = (base.to_owned(), secret.source.clone());
            running.spawn(async move { (index, of_program(program::run(&words, &base).await, &source)) });
        }
        while let Some(Ok((index, value))) = running.join_next().await {
            if let Some(place) = values.get_mut(index) {
                *place = Some(value);
            }
        }
        Self(values)
    }

    /// Whether taking these values needs programs, which may take seconds.
    pub fn needs_programs(secrets: &[Secret]) -> bool {
        secrets.iter().any(|secret| matches!(secret.source, Source::Keyring { .. } | Source::Command(_)))
    }

    /// For tests without a machine: each secret that is not in a file has the value that `value` returns for its name.
    pub fn supposed(secrets: &[Secret], value: impl Fn(&str) -> Option<String>) -> Self {
        let of = |secret: &Secret| secret.source.is_fixed().then(|| of_variable(value(&secret.name)));
        Self(secrets.iter().map(of).collect())
    }
}

/// The value of an environment variable, or why it has none as the end of a sentence about it.
fn of_variable(value: Option<String>) -> Result<Value, NoValue> {
    match value.map(Zeroizing::new) {
        Some(value) if !value.trim().is_empty() => Value::parse(value.as_bytes()).map_err(NoValue::Wrong),
        _ => Err(NoValue::Absent("is not set".to_owned())),
    }
}

/// What a program returned.
fn of_program(output: Result<Zeroizing<Vec<u8>>, Failure>, source: &Source) -> Result<Value, NoValue> {
    let is_keyring = matches!(source, Source::Keyring { .. });
    let absent = match output {
        Ok(output) if is_keyring => return Value::parse(&output).map_err(NoValue::Wrong),
        Ok(output) => {
            return Value::parse(&output).map_err(|why| NoValue::Wrong(format!("wrote a value that {why}")));
        }
        Err(Failure::Missing) if is_keyring => format!("cannot be read: the program {KEYRING} was not found"),
        Err(Failure::Status(1)) if is_keyring => "does not exist, or the keyring is locked".to_owned(),
        Err(failure) if is_keyring => format!("cannot be read: {KEYRING} {failure}"),
        Err(failure) => failure.to_string(),
    };
    Err(NoValue::Absent(absent))
}
