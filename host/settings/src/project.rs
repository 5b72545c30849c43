//! Project file of a plugin: `plugin.toml`, as `toolbay new` writes it and `toolbay dev` reads it.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::{toml_file, version};

/// Name of the project file.
pub const FILE_NAME: &str = "plugin.toml";

/// A parsed `plugin.toml`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProjectFile {
    /// Id of the plugin, and the name of its file.
    pub name: String,
    /// Language, as in `toolbay new --language`.
    pub language: String,
    /// Shell commands to run before the first build, and again when the dependencies change.
    #[serde(default)]
    pub setup: Vec<String>,
    /// Shell commands to run after each change.
    pub build: Vec<String>,
    /// Shell commands that check the sources during a build, such as their types. The plugin is
    /// served even if they fail.
    #[serde(default)]
    pub check: Vec<String>,
    /// Shell commands that run the tests.
    #[serde(default)]
    pub test: Vec<String>,
    /// Path of the built component, relative to the project.
    pub output: PathBuf,
    /// Further files to copy into the plugin folder, such as a `.wit` file.
    #[serde(default)]
    pub extra_files: Vec<PathBuf>,
    /// Paths whose changes trigger a build.
    pub watch: Vec<PathBuf>,
    /// Programs that the build requires.
    #[serde(default)]
    pub requires: Vec<BuildRequirement>,
    /// Call to make after each build.
    #[serde(default)]
    pub example: Option<CallExample>,
    /// Version of the plugin, as in Semantic Versioning.
    #[serde(default)]
    pub version: Option<String>,
    /// Purpose of the plugin, on one line.
    #[serde(default)]
    pub summary: Option<String>,
    /// The people or organizations that made it.
    #[serde(default)]
    pub authors: Vec<String>,
    /// License, as an SPDX expression.
    #[serde(default)]
    pub license: Option<String>,
    /// URL of a page about the plugin.
    #[serde(default)]
    pub homepage: Option<String>,
    /// URL of its source code.
    #[serde(default)]
    pub source: Option<String>,
    /// URL of an icon.
    #[serde(default)]
    pub icon: Option<String>,
    /// The permissions that the plugin requests, for the person who adds it. Never a grant.
    #[serde(default)]
    pub proposed_grant: Option<toml::Table>,
    /// Settings of the Python build, which reads them itself.
    #[serde(default)]
    pub python: PythonSettings,
}

/// Settings of the Python build.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PythonSettings {
    /// Packages that are included although no module imports them by name.
    #[serde(default)]
    pub include: Vec<String>,
    /// Patterns of package files that are left out.
    #[serde(default)]
    pub exclude: Vec<String>,
}

/// Program that a build requires.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BuildRequirement {
    /// Command that prints the program's version.
    pub command: String,
    /// Minimum version; `None` accepts every version.
    #[serde(default)]
    pub version: Option<String>,
    /// Installation instructions.
    pub install: String,
}

/// Example call of a tool.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallExample {
    /// Name of the tool.
    pub tool: String,
    /// Arguments of the tool.
    #[serde(default)]
    pub arguments: Map<String, Value>,
}

/// The reason that a `plugin.toml` cannot be used. The text is one line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ProjectError(String);

impl ProjectFile {
    /// Reads the project file in `folder`.
    ///
    /// # Errors
    ///
    /// Returns a one-line error with its position.
    pub fn read(folder: &Path) -> Result<Self, ProjectError> {
        let path = folder.join(FILE_NAME);
        let text = std::fs::read_to_string(&path).map_err(|error| {
            ProjectError(match error.kind() {
                std::io::ErrorKind::NotFound => {
                    format!(
                        "{} has no {FILE_NAME}; `toolbay new` creates a project",
                        folder.display()
                    )
                }
                kind => format!("cannot read {}: {kind}", path.display()),
            })
        })?;
        Self::parse(&text)
    }

    /// Returns the build requirements that this machine does not meet, each with the command that
    /// installs the program.
    pub fn missing_requirements(&self) -> Vec<String> {
        self.requires
            .iter()
            .filter_map(|requirement| requirement.check().err())
            .collect()
    }

    /// Parses the text of a `plugin.toml`.
    ///
    /// # Errors
    ///
    /// See [`ProjectFile::read`].
    pub fn parse(text: &str) -> Result<Self, ProjectError> {
        toml_file::parse(FILE_NAME, text).map_err(ProjectError)
    }
}

impl BuildRequirement {
    /// Checks whether the machine meets the requirement.
    ///
    /// # Errors
    ///
    /// Returns the missing program and the command that installs it.
    pub fn check(&self) -> Result<(), String> {
        let program = self.command.split_whitespace().next().unwrap_or_default();
        let output = std::process::Command::new("sh")
            .arg("-c")
            .arg(&self.command)
            .output();
        let printed = match output {
            Ok(output) if output.status.success() => {
                format!(
                    "{}{}",
                    String::from_utf8_lossy(&output.stdout),
                    String::from_utf8_lossy(&output.stderr)
                )
            }
            _ => {
                return Err(format!(
                    "{program} is missing (`{}` failed): {}",
                    self.command, self.install
                ));
            }
        };
        self.check_version(&printed)
            .map_err(|why| format!("{program} {why}: {}", self.install))
    }

    /// Checks the version in a program's output. Accepts output without a version.
    ///
    /// # Errors
    ///
    /// Returns the version that was found, and the required one.
    pub fn check_version(&self, output: &str) -> Result<(), String> {
        let (Some(minimum), Some(found)) = (&self.version, version::find_version(output)) else {
            return Ok(());
        };
        match version::is_at_least(&found, minimum) {
            Ok(true) => Ok(()),
            Ok(false) => Err(format!("is {found}, but {minimum} or newer is needed")),
            Err(error) => Err(format!(
                "cannot be compared with {minimum:?}, which is not a version ({error})"
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_requirement_says_how_to_install_it() {
        let requirement = |command: &str, version: Option<&str>| BuildRequirement {
            command: command.into(),
            version: version.map(Into::into),
            install: "apt-get install it".into(),
        };
        assert_eq!(requirement("echo it 1.2", Some("1.2")).check(), Ok(()));
        assert_eq!(
            requirement("echo it 1.2", Some("1.10"))
                .check()
                .unwrap_err(),
            "echo is 1.2.0, but 1.10 or newer is needed: apt-get install it"
        );
        assert_eq!(
            requirement("no-such-program --version", None)
                .check()
                .unwrap_err(),
            "no-such-program is missing (`no-such-program --version` failed): apt-get install it"
        );
    }
}
