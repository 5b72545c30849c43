//! Values of sources that are read once, when a plugin is loaded.

use std::path::Path;

use tokio::task::JoinSet;
use zeroize::Zeroizing;

use crate::program::ProgramFailure;
use crate::program_runner::ProgramRunner;
use crate::secret_spec::SecretSpec;
use crate::source::{KEYRING_PROGRAM, SecretSource};
use crate::value::SecretValue;

/// Values of the secrets whose sources are read once, in the order of the secrets. `None` for all
/// others.
#[derive(Clone, Debug, Default)]
pub struct FixedSecrets(pub(crate) Vec<Option<Result<SecretValue, NoValue>>>);

/// Reason that a source has no value, as the end of a sentence about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NoValue {
    /// The source has no value.
    Absent(String),
    /// The value is not valid as a secret.
    Invalid(String),
    /// The program that prints the value was not run, so it is unknown whether there is one.
    Unread,
}

impl NoValue {
    pub(crate) fn reason(&self) -> &str {
        match self {
            Self::Absent(why) | Self::Invalid(why) => why,
            Self::Unread => "has not been read",
        }
    }
}

impl FixedSecrets {
    /// Reads the environment and runs all programs concurrently, in `plugin_folder` and through
    /// `programs`. `variable` reads an environment variable; `grant_name` is the file name of the
    /// grant. Must run on a Tokio runtime.
    pub async fn fetch(
        secrets: &[SecretSpec],
        (grant_name, plugin_folder): (&str, &Path),
        programs: &ProgramRunner,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Self {
        let mut tasks = JoinSet::new();
        let mut values = Vec::with_capacity(secrets.len());
        for (index, secret) in secrets.iter().enumerate() {
            if let SecretSource::Environment(name) = &secret.source {
                values.push(Some(parse_variable(variable(name))));
                continue;
            }
            let Some(words) = secret.source.command_line() else {
                values.push(None);
                continue;
            };
            if programs.is_disabled() {
                values.push(Some(Err(NoValue::Unread)));
                continue;
            }
            values.push(None);
            let folder = plugin_folder.to_owned();
            let source = secret.source.clone();
            let grant = grant_name.to_owned();
            let programs = programs.clone();
            tasks.spawn(async move {
                (
                    index,
                    parse_program_output(programs.run(&grant, &words, &folder).await, &source),
                )
            });
        }
        while let Some(Ok((index, value))) = tasks.join_next().await {
            if let Some(slot) = values.get_mut(index) {
                *slot = Some(value);
            }
        }
        Self(values)
    }

    /// Returns whether fetching the values runs programs, which may take seconds.
    pub fn needs_programs(secrets: &[SecretSpec]) -> bool {
        secrets.iter().any(|secret| {
            matches!(
                secret.source,
                SecretSource::Keyring { .. } | SecretSource::Command(_)
            )
        })
    }

    /// Creates test values: each secret that is not in a file has the value that `value` returns
    /// for its name.
    pub fn with_test_values(
        secrets: &[SecretSpec],
        value: impl Fn(&str) -> Option<String>,
    ) -> Self {
        let test_value = |secret: &SecretSpec| {
            secret
                .source
                .is_fixed()
                .then(|| parse_variable(value(&secret.name)))
        };
        Self(secrets.iter().map(test_value).collect())
    }
}

/// Parses the value of an environment variable. Returns the reason that there is none as the end of
/// a sentence about the variable.
fn parse_variable(value: Option<String>) -> Result<SecretValue, NoValue> {
    match value.map(Zeroizing::new) {
        Some(value) if !value.trim().is_empty() => {
            SecretValue::parse(value.as_bytes()).map_err(NoValue::Invalid)
        }
        _ => Err(NoValue::Absent("is not set".to_owned())),
    }
}

/// Parses the output of a program.
fn parse_program_output(
    output: Result<Zeroizing<Vec<u8>>, ProgramFailure>,
    source: &SecretSource,
) -> Result<SecretValue, NoValue> {
    let is_keyring = matches!(source, SecretSource::Keyring { .. });
    let reason = match output {
        Ok(output) if is_keyring => return SecretValue::parse(&output).map_err(NoValue::Invalid),
        Ok(output) => {
            return SecretValue::parse(&output)
                .map_err(|why| NoValue::Invalid(format!("wrote a value that {why}")));
        }
        Err(ProgramFailure::NotFound) if is_keyring => {
            format!("cannot be read: the program {KEYRING_PROGRAM} was not found")
        }
        Err(ProgramFailure::Status(1)) if is_keyring => {
            "does not exist, or the keyring is locked".to_owned()
        }
        Err(failure) if is_keyring => format!("cannot be read: {KEYRING_PROGRAM} {failure}"),
        Err(failure) => failure.to_string(),
    };
    Err(NoValue::Absent(reason))
}
