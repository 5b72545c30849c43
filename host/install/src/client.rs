//! MCP clients and the paths of their configurations.

use std::path::{Path, PathBuf};

use crate::configuration_path::{
    ConfigurationPath, ConfigurationScope, OperatingSystem, PathEnvironment, UserPath,
    VariableOverride,
};
use crate::entry_format::EntryFormat;

/// MCP client that is configured by a file.
#[derive(Debug)]
pub struct ClientConfiguration {
    /// Name on the command line, such as `claude-code`.
    pub id: &'static str,
    /// Display name.
    pub title: &'static str,
    /// Programs whose presence on the search path indicates that the client is installed.
    pub programs: &'static [&'static str],
    /// Environment variables that move the client's configuration; the first one that is set
    /// applies.
    pub(crate) overrides: &'static [VariableOverride],
    /// Possible paths of the user's configuration, most likely first.
    pub(crate) user_paths: &'static [UserPath],
    /// Path of a project's configuration, relative to the project's directory.
    pub(crate) project_path: Option<&'static str>,
    /// Format of the entries, unless a path has a separate one.
    pub entry_format: EntryFormat,
    /// Next step for the user after an entry is added.
    pub next_step: &'static str,
    /// Instructions for a part that cannot be written to a file: where to paste it.
    pub paste_hint: Option<&'static str>,
}

impl ClientConfiguration {
    /// Returns whether the client has a configuration for this scope.
    pub fn supports(&self, scope: ConfigurationScope) -> bool {
        scope == ConfigurationScope::User || self.project_path.is_some()
    }

    /// Returns the configuration in a file that the user named.
    pub fn configuration_at(
        &self,
        file: &Path,
        environment: &PathEnvironment,
    ) -> ConfigurationPath {
        // If the file matches a known path, use the format of that path.
        let user_path = self
            .user_paths
            .iter()
            .find(|candidate| file.ends_with(candidate.file));
        let entry_format = user_path
            .and_then(|known_path| known_path.entry_format)
            .unwrap_or(self.entry_format);
        ConfigurationPath {
            file: file.to_owned(),
            system: environment.system_of(file),
            entry_format,
            markers: Vec::new(),
        }
    }

    /// Returns the possible paths of the configuration, most likely first. Empty if the client has
    /// none for this scope.
    pub fn configuration_paths(
        &self,
        scope: ConfigurationScope,
        environment: &PathEnvironment,
    ) -> Vec<ConfigurationPath> {
        match scope {
            ConfigurationScope::Project => self.project_configuration_paths(environment),
            ConfigurationScope::User => self.user_configuration_paths(environment),
        }
    }

    fn project_configuration_paths(&self, environment: &PathEnvironment) -> Vec<ConfigurationPath> {
        let to_path = |file: &&str| ConfigurationPath {
            file: environment.project.join(file),
            // A project's server is started on the system that the project is on.
            system: OperatingSystem::Linux,
            entry_format: self.entry_format,
            markers: Vec::new(),
        };
        self.project_path.iter().map(to_path).collect()
    }

    fn user_configuration_paths(&self, environment: &PathEnvironment) -> Vec<ConfigurationPath> {
        let relocated = self.overrides.iter().find_map(|variable_override| {
            Some((
                environment.variable(variable_override.variable)?,
                variable_override.file,
            ))
        });
        if let Some((folder, file)) = relocated {
            let folder = environment.project.join(folder);
            let file = folder.join(file);
            return vec![ConfigurationPath {
                system: OperatingSystem::Linux,
                entry_format: self.entry_format,
                markers: vec![folder],
                file,
            }];
        }
        let mut paths = Vec::new();
        for user_path in self.user_paths {
            let homes: &[PathBuf] = match (user_path.system, &environment.wsl) {
                (OperatingSystem::Windows, Some(wsl)) => &wsl.homes,
                (OperatingSystem::Windows, None) => &[],
                (OperatingSystem::Linux | OperatingSystem::MacOs, _) => {
                    std::slice::from_ref(&environment.home)
                }
            };
            for home in homes {
                let markers = user_path
                    .markers
                    .iter()
                    .map(|(base, folder)| environment.base_folder(*base, home).join(folder));
                paths.push(ConfigurationPath {
                    file: environment
                        .base_folder(user_path.base, home)
                        .join(user_path.file),
                    system: user_path.system,
                    entry_format: user_path.entry_format.unwrap_or(self.entry_format),
                    markers: markers.collect(),
                });
            }
        }
        paths
    }
}
