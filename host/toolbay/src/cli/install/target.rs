//! The configuration that is meant, among those that a client could have.

use std::path::Path;

use anyhow::{Context as _, ensure};
use toolbay_install::{
    ClientConfiguration, ConfigFile, ConfigurationPath, ConfigurationScope, OperatingSystem, PathEnvironment,
};

use super::around::has_program;
use crate::cli::output::complain;

/// The configuration that is meant.
#[derive(Debug)]
pub(super) struct InstallTarget {
    pub(super) client: &'static ClientConfiguration,
    pub(super) scope: ConfigurationScope,
    pub(super) spot: ConfigurationPath,
    pub(super) file: ConfigFile,
    /// The client seems to be installed, or the user said which file it is.
    pub(super) found: bool,
}

/// The file of a client, or the one that the user `named`.
pub(super) fn target(
    client: &'static ClientConfiguration,
    scope: ConfigurationScope,
    named: Option<&Path>,
    around: &PathEnvironment,
) -> anyhow::Result<InstallTarget> {
    ensure!(client.has(scope), "{} has no configuration for a project; leave out --scope project", client.title);
    let (spot, found) = if let Some(file) = named {
        (client.spot_at(&around.project.join(file), around), true)
    } else {
        let spots = client.spots(scope, around);
        let there = those_there(client, &spots);
        if let Some(other) = there.get(1) {
            complain(&format!("{} is also here: --file {}", client.title, other.file.display()));
        }
        // A project's folder is there, whoever works on it.
        let found = !there.is_empty() || scope == ConfigurationScope::Project;
        let spot = there.first().copied().or(spots.first()).context("the client has no configuration")?;
        (spot.clone(), found)
    };
    let users = client.spots(ConfigurationScope::User, around);
    ensure!(
        scope == ConfigurationScope::User || !users.iter().any(|user| user.file == spot.file),
        "the current folder is the home folder, whose {} is the user's; leave out --scope project",
        spot.file.display()
    );
    let file = ConfigFile::read(&spot.file)?;
    Ok(InstallTarget { client, scope, spot, file, found })
}

/// The configurations of a client that are there, among those that it could have.
pub(super) fn those_there<'a>(
    client: &ClientConfiguration,
    spots: &'a [ConfigurationPath],
) -> Vec<&'a ConfigurationPath> {
    let is_there = |spot: &ConfigurationPath| spot.file.exists() || spot.markers.iter().any(|folder| folder.is_dir());
    let there: Vec<&ConfigurationPath> = spots.iter().filter(|spot| is_there(spot)).collect();
    // Its program says that the client is here, but not where it has its configuration: that is where it usually is.
    let usual = spots.first().filter(|spot| spot.system == OperatingSystem::Linux);
    match usual {
        Some(usual) if there.is_empty() && client.programs.iter().any(|name| has_program(name)) => vec![usual],
        _ => there,
    }
}
