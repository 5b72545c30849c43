//! A client, and where its configuration is.

use std::path::{Path, PathBuf};

use crate::dialect::EntryFormat;
use crate::place::{
    ConfigurationPath, ConfigurationScope, OperatingSystem, PathEnvironment, UserPath, VariableOverride,
};

/// An MCP client whose configuration is a file.
#[derive(Debug)]
pub struct ClientConfiguration {
    /// The name on the command line, such as `claude-code`.
    pub id: &'static str,
    /// The name for people.
    pub title: &'static str,
    /// Programs whose presence on the search path says that the client is installed.
    pub programs: &'static [&'static str],
    /// Variables of the client that move its configuration; the first that is set decides.
    pub(crate) overrides: &'static [VariableOverride],
    /// Where the configuration of the user can be, the likeliest first.
    pub(crate) user: &'static [UserPath],
    /// Path of the configuration of a project, in its folder.
    pub(crate) project: Option<&'static str>,
    /// How its entries are written, except where a place has its own.
    pub dialect: EntryFormat,
    /// What to do next, after an entry was added.
    pub next: &'static str,
    /// What cannot be written into a file, and where to paste it.
    pub paste: Option<&'static str>,
}

impl ClientConfiguration {
    /// Whether it has a configuration for this scope.
    pub fn has(&self, scope: ConfigurationScope) -> bool {
        scope == ConfigurationScope::User || self.project.is_some()
    }

    /// The configuration in a file that the user named.
    pub fn spot_at(&self, file: &Path, around: &PathEnvironment) -> ConfigurationPath {
        // A place that the file would also be at knows its dialect.
        let place = self.user.iter().find(|place| file.ends_with(place.file));
        let dialect = place.and_then(|place| place.dialect).unwrap_or(self.dialect);
        ConfigurationPath { file: file.to_owned(), system: around.system_of(file), dialect, markers: Vec::new() }
    }

    /// Where its configuration is or could be, the likeliest first. Empty if it has none for this scope.
    pub fn spots(&self, scope: ConfigurationScope, around: &PathEnvironment) -> Vec<ConfigurationPath> {
        match scope {
            ConfigurationScope::Project => self.project_spots(around),
            ConfigurationScope::User => self.user_spots(around),
        }
    }

    fn project_spots(&self, around: &PathEnvironment) -> Vec<ConfigurationPath> {
        let spot = |file: &&str| ConfigurationPath {
            file: around.project.join(file),
            // A server for a project is started where the project is.
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
