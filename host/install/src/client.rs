//! MCP clients and the paths of their configurations.

use std::path::{Path, PathBuf};

use crate::dialect::EntryFormat;
use crate::place::{
    ConfigurationPath, ConfigurationScope, OperatingSystem, PathEnvironment, UserPath, VariableOverride,
};

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
    pub(crate) user: &'static [UserPath],
    /// Path of a project's configuration, relative to the project's directory.
    pub(crate) project: Option<&'static str>,
    /// Format of the entries, unless a path has a separate one.
    pub dialect: EntryFormat,
    /// Next step for the user after an entry is added.
    pub next: &'static str,
    /// Instructions for a part that cannot be written to a file: where to paste it.
    pub paste: Option<&'static str>,
}

impl ClientConfiguration {
    /// Returns whether the client has a configuration for this scope.
    pub fn has(&self, scope: ConfigurationScope) -> bool {
        scope == ConfigurationScope::User || self.project.is_some()
    }

    /// Returns the configuration in a file that the user named.
    pub fn spot_at(&self, file: &Path, around: &PathEnvironment) -> ConfigurationPath {
        // If the file matches a known path, use the format of that path.
        let place = self.user.iter().find(|place| file.ends_with(place.file));
        let dialect = place.and_then(|place| place.dialect).unwrap_or(self.dialect);
        ConfigurationPath { file: file.to_owned(), system: around.system_of(file), dialect, markers: Vec::new() }
    }

    /// Returns the possible paths of the configuration, most likely first. Empty if the client has
    /// none for this scope.
    pub fn spots(&self, scope: ConfigurationScope, around: &PathEnvironment) -> Vec<ConfigurationPath> {
        match scope {
            ConfigurationScope::Project => self.project_spots(around),
            ConfigurationScope::User => self.user_spots(around),
        }
    }

    fn project_spots(&self, around: &PathEnvironment) -> Vec<ConfigurationPath> {
        let spot = |file: &&str| ConfigurationPath {
            file: around.project.join(file),
            // A project's server is started on the system that the project is on.
            system: OperatingSystem::Linux,
            dialect: self.dialect,
            markers: Vec::new(),
        };
        self.project.iter().map(spot).collect()
    }

    fn user_spots(&self, around: &PathEnvironment) -> Vec<ConfigurationPath> {
        let moved = self.overrides.iter().find_map(|moved| Some((around.variable(moved.variable)?, moved.file)));
        if let Some((folder, file)) = moved {
            let folder = around.project.join(folder);
            let file = folder.join(file);
            return vec![ConfigurationPath {
                system: OperatingSystem::Linux,
                dialect: self.dialect,
                markers: vec![folder],
                file,
            }];
        }
        let mut spots = Vec::new();
        for place in self.user {
            let homes: &[PathBuf] = match (place.system, &around.wsl) {
                (OperatingSystem::Windows, Some(wsl)) => &wsl.homes,
                (OperatingSystem::Windows, None) => &[],
                (OperatingSystem::Linux | OperatingSystem::MacOs, _) => std::slice::from_ref(&around.home),
            };
            for home in homes {
                let markers = place.markers.iter().map(|(base, folder)| around.base(*base, home).join(folder));
                spots.push(ConfigurationPath {
                    file: around.base(place.base, home).join(place.file),
                    system: place.system,
                    dialect: place.dialect.unwrap_or(self.dialect),
                    markers: markers.collect(),
                });
            }
        }
        spots
    }
}
