//! Sources of secret values.

use std::fmt;
use std::path::{Path, PathBuf};

/// Program that reads the desktop keyring (Secret Service) for the server.
pub(crate) const KEYRING_PROGRAM: &str = "secret-tool";

/// Source of a secret value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SecretSource {
    /// Environment variable of the server with this name.
    Environment(String),
    /// File, with the path as written in the grant. Relative paths are relative to the plugin
    /// folder.
    File(PathBuf),
    /// Entry of the operator's keyring with these attributes, as `secret-tool` finds it.
    Keyring {
        /// Attribute `service`.
        service: String,
        /// Attribute `username`.
        user: String,
    },
    /// Standard output of a program: the program and its arguments.
    Command(Vec<String>),
    /// Directory with one file for each caller, at the caller's path
    /// ([`CallerIdentity::path`](toolbay_model::CallerIdentity::path)). The directory's path is as
    /// written in the grant.
    CallerFolder(PathBuf),
}

impl SecretSource {
    /// Returns the path of the file, directory or program, as written in the grant; `None` if the
    /// grant names no path.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::File(path) | Self::CallerFolder(path) => Some(path),
            // A name without a slash is looked up in `PATH`.
            Self::Command(words) => words
                .first()
                .filter(|program| program.contains('/'))
                .map(Path::new),
            Self::Environment(_) | Self::Keyring { .. } => None,
        }
    }

    /// Returns the program that prints the value, and its arguments; `None` if the source does not
    /// use a program.
    pub fn command_line(&self) -> Option<Vec<String>> {
        match self {
            Self::Command(words) => Some(words.clone()),
            Self::Keyring { service, user } => Some(
                [
                    KEYRING_PROGRAM,
                    "lookup",
                    "service",
                    service,
                    "username",
                    user,
                ]
                .map(str::to_owned)
                .into(),
            ),
            Self::Environment(_) | Self::File(_) | Self::CallerFolder(_) => None,
        }
    }

    /// Returns the files that determine the behavior of the program that prints the value, if the
    /// grant is in `folder`: the program itself, and each file among its arguments, such as a
    /// script for an interpreter. For a program that is looked up in `PATH`, also returns the paths
    /// that precede it in the lookup. Blocks.
    pub fn program_files(&self, folder: &Path) -> Vec<PathBuf> {
        let words = self.command_line().unwrap_or_default();
        let Some((program, arguments)) = words.split_first() else {
            return Vec::new();
        };
        let mut files = if program.contains('/') {
            vec![folder.join(program)]
        } else {
            lookup_paths(program, folder)
        };
        // Both `script.sh` and `--file=script.sh`.
        let values = arguments
            .iter()
            .filter_map(|argument| Some(argument.split_once('=')?.1));
        let possible_files = arguments
            .iter()
            .map(String::as_str)
            .chain(values)
            .filter(|argument| !argument.is_empty());
        files.extend(
            possible_files
                .map(|argument| folder.join(argument))
                .filter(|path| path.is_file()),
        );
        files
    }

    /// Returns whether the value is read once, when the plugin is loaded.
    pub(crate) fn is_fixed(&self) -> bool {
        matches!(
            self,
            Self::Environment(_) | Self::Keyring { .. } | Self::Command(_)
        )
    }
}

/// Returns the paths at which a program is looked up in `PATH`, up to the first one that exists.
fn lookup_paths(program: &str, folder: &Path) -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut files = Vec::new();
    for candidate in std::env::split_paths(&path).map(|place| folder.join(place).join(program)) {
        let is_found = candidate.is_file();
        files.push(candidate);
        if is_found {
            break;
        }
    }
    files
}

/// Writes the source for messages, such as `the file secrets/github`. Omits the arguments of a
/// command.
impl fmt::Display for SecretSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Environment(variable) => write!(f, "the environment variable {variable}"),
            Self::File(path) => write!(f, "the file {}", path.display()),
            Self::Keyring { service, user } => {
                write!(f, "the keyring entry of {user:?} for {service:?}")
            }
            Self::Command(words) => write!(
                f,
                "the command {}",
                words.first().map_or("", String::as_str)
            ),
            Self::CallerFolder(path) => write!(f, "each caller's file in {}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn script_argument_is_a_file_of_the_program() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["t.sh", "lib.sh"] {
            fs::write(dir.path().join(name), "").unwrap();
        }
        let script = dir.path().join("t.sh");
        let files = |words: &[&str]| {
            SecretSource::Command(words.iter().map(|word| (*word).to_owned()).collect())
                .program_files(dir.path())
        };
        let found = files(&[
            "sh",
            "-e",
            script.to_str().unwrap(),
            "--with=lib.sh",
            "missing.sh",
            ".",
        ]);
        assert!(
            found.contains(&script) && found.contains(&dir.path().join("lib.sh")),
            "{found:?}"
        );
        assert!(
            found
                .iter()
                .any(|path| path.ends_with("sh") && path.is_file()),
            "{found:?}"
        );
        assert!(
            found
                .iter()
                .all(|path| !path.ends_with("missing.sh") && path != dir.path()),
            "{found:?}"
        );
        assert_eq!(files(&["./get", "x"]), [dir.path().join("./get")]);
        assert!(
            files(&[]).is_empty()
                && SecretSource::File("t.sh".into())
                    .program_files(dir.path())
                    .is_empty()
        );
    }
}
