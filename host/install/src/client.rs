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
    pub dialect: EntryFormat,
    /// Next step for the user after an entry is added.
    pub next_step: &'static str,
    /// Instructions for a part that cannot be written to a file: where to paste it.
    pub paste_hint: Option<&'static str>,
}

impl ClientConfiguration {
    /// Returns whether the client has a configuration for this scope.
    pub fn has(&self, scope: ConfigurationScope) -> bool {
        scope == ConfigurationScope::User || self.project_path.is_some()
    }

    /// Returns the configuration in a file that the user named.
    pub fn configuration_at(&self, file: &Path, around: &PathEnvironment) -> ConfigurationPath {
        // If the file matches a known path, use the format of that path.
        let place = self
            .user_paths
            .iter()
            .find(|place| file.ends_with(place.file));
        let dialect = place
            .and_then(|place| place.entry_format)
            .unwrap_or(self.dialect);
        ConfigurationPath {
            file: file.to_owned(),
            system: around.system_of(file),
            entry_format: dialect,
            markers: Vec::new(),
        }
    }

    /// Returns the possible paths of the configuration, most likely first. Empty if the client has
    /// none for this scope.
    pub fn configuration_paths(
        &self,
        scope: ConfigurationScope,
        around: &PathEnvironment,
    ) -> Vec<ConfigurationPath> {
        match scope {
            ConfigurationScope::Project => self.project_configuration_paths(around),
            ConfigurationScope::User => self.user_configuration_paths(around),
        }
    }

    fn project_configuration_paths(&self, around: &PathEnvironment) -> Vec<ConfigurationPath> {
        let spot = |file: &&str| ConfigurationPath {
            file: around.project.join(file),
            // A project's server is started on the system that the project is on.
            system: OperatingSystem::Linux,
            entry_format: self.dialect,
            markers: Vec::new(),
        };
        self.project_path.iter().map(spot).collect()
    }

    fn user_configuration_paths(&self, around: &PathEnvironment) -> Vec<ConfigurationPath> {
        let moved = self
            .overrides
            .iter()
            .find_map(|moved| Some((around.variable(moved.variable)?, moved.file)));
        if let Some((folder, file)) = moved {
            let folder = around.project.join(folder);
            let file = folder.join(file);
            return vec![ConfigurationPath {
                system: OperatingSystem::Linux,
                entry_format: self.dialect,
                markers: vec![folder],
                file,
            }];
        }
        let mut spots = Vec::new();
        for place in self.user_paths {
            let homes: &[PathBuf] = match (place.system, &around.wsl) {
                (OperatingSystem::Windows, Some(wsl)) => &wsl.homes,
                (OperatingSystem::Windows, None) => &[],
                (OperatingSystem::Linux | OperatingSystem::MacOs, _) => {
                    std::slice::from_ref(&around.home)
                }
            };
            for home in homes {
                let markers = place
                    .markers
                    .iter()
                    .map(|(base, folder)| around.base_folder(*base, home).join(folder));
                spots.push(ConfigurationPath {
                    file: around.base_folder(place.base, home).join(place.file),
                    system: place.system,
                    entry_format: place.entry_format.unwrap_or(self.dialect),
                    markers: markers.collect(),
                });
            }
        }
        spots
    }
}
