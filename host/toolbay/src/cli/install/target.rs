//! Selects one of the configurations that a client can have.

use std::path::Path;

use anyhow::{Context as _, ensure};
use toolbay_install::{
    ClientConfiguration, ConfigFile, ConfigurationPath, ConfigurationScope, OperatingSystem,
    PathEnvironment,
};

use super::client_environment::has_program;
use crate::cli::output::complain;

/// The selected configuration.
#[derive(Debug)]
pub(super) struct InstallTarget {
    pub(super) client: &'static ClientConfiguration,
    pub(super) scope: ConfigurationScope,
    pub(super) spot: ConfigurationPath,
    pub(super) file: ConfigFile,
    /// True if the client seems to be installed, or the user named the file.
    pub(super) found: bool,
}

/// Selects the configuration file of a client. `file_option` is the file that the user named, if
/// any.
pub(super) fn find_target(
    client: &'static ClientConfiguration,
    scope: ConfigurationScope,
    named: Option<&Path>,
    around: &PathEnvironment,
) -> anyhow::Result<InstallTarget> {
    ensure!(
        client.has(scope),
        "{} has no configuration for a project; leave out --scope project",
        client.title
    );
    let (spot, found) = if let Some(file) = named {
        (
            client.configuration_at(&around.project.join(file), around),
            true,
        )
    } else {
        let spots = client.configuration_paths(scope, around);
        let there = existing_spots(client, &spots);
        if let Some(other) = there.get(1) {
            complain(&format!(
                "{} is also here: --file {}",
                client.title,
                other.file.display()
            ));
        }
        // A project's configuration does not depend on whether the client is installed here.
        let found = !there.is_empty() || scope == ConfigurationScope::Project;
        let spot = there
            .first()
            .copied()
            .or(spots.first())
            .context("the client has no configuration")?;
        (spot.clone(), found)
    };
    let users = client.configuration_paths(ConfigurationScope::User, around);
    ensure!(
        scope == ConfigurationScope::User || !users.iter().any(|user| user.file == spot.file),
        "the current folder is the home folder, whose {} is the user's; leave out --scope project",
        spot.file.display()
    );
    let file = ConfigFile::read(&spot.file)?;
    Ok(InstallTarget {
        client,
        scope,
        spot,
        file,
        found,
    })
}

/// Returns the existing configurations of a client among the possible ones.
pub(super) fn existing_spots<'a>(
    client: &ClientConfiguration,
    spots: &'a [ConfigurationPath],
) -> Vec<&'a ConfigurationPath> {
    let is_there = |spot: &ConfigurationPath| {
        spot.file.exists() || spot.markers.iter().any(|folder| folder.is_dir())
    };
    let there: Vec<&ConfigurationPath> = spots.iter().filter(|spot| is_there(spot)).collect();
    // If only the client's program exists, its configuration is assumed at the default path.
    let usual = spots
        .first()
        .filter(|spot| spot.system == OperatingSystem::Linux);
    match usual {
        Some(usual) if there.is_empty() && client.programs.iter().any(|name| has_program(name)) => {
            vec![usual]
        }
        _ => there,
    }
}
