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
    pub(super) location: ConfigurationPath,
    pub(super) file: ConfigFile,
    /// True if the client seems to be installed, or the user named the file.
    pub(super) is_found: bool,
}

/// Selects the configuration file of a client. `file_option` is the file that the user named, if
/// any.
pub(super) fn find_target(
    client: &'static ClientConfiguration,
    scope: ConfigurationScope,
    file_option: Option<&Path>,
    environment: &PathEnvironment,
) -> anyhow::Result<InstallTarget> {
    ensure!(
        client.supports(scope),
        "{} has no configuration for a project; leave out --scope project",
        client.title
    );
    let (location, is_found) = if let Some(file) = file_option {
        (
            client.configuration_at(&environment.project.join(file), environment),
            true,
        )
    } else {
        let locations = client.configuration_paths(scope, environment);
        let existing = existing_locations(client, &locations);
        if let Some(other) = existing.get(1) {
            complain(&format!(
                "{} is also here: --file {}",
                client.title,
                other.file.display()
            ));
        }
        // A project's configuration does not depend on whether the client is installed here.
        let is_present = !existing.is_empty() || scope == ConfigurationScope::Project;
        let first_location = existing
            .first()
            .copied()
            .or(locations.first())
            .context("the client has no configuration")?;
        (first_location.clone(), is_present)
    };
    let user_locations = client.configuration_paths(ConfigurationScope::User, environment);
    ensure!(
        scope == ConfigurationScope::User
            || !user_locations.iter().any(|user| user.file == location.file),
        "the current folder is the home folder, whose {} is the user's; leave out --scope project",
        location.file.display()
    );
    let file = ConfigFile::read(&location.file)?;
    Ok(InstallTarget {
        client,
        scope,
        location,
        file,
        is_found,
    })
}

/// Returns the existing configurations of a client among the possible ones.
pub(super) fn existing_locations<'a>(
    client: &ClientConfiguration,
    locations: &'a [ConfigurationPath],
) -> Vec<&'a ConfigurationPath> {
    let exists = |spot: &ConfigurationPath| {
        spot.file.exists() || spot.markers.iter().any(|folder| folder.is_dir())
    };
    let existing: Vec<&ConfigurationPath> = locations.iter().filter(|spot| exists(spot)).collect();
    // If only the client's program exists, its configuration is assumed at the default path.
    let default_location = locations
        .first()
        .filter(|spot| spot.system == OperatingSystem::Linux);
    match default_location {
        Some(usual)
            if existing.is_empty() && client.programs.iter().any(|name| has_program(name)) =>
        {
            vec![usual]
        }
        _ => existing,
    }
}
