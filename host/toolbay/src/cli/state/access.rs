//! Access to the database of the state, and to the quotas of grants.

use std::io::Read as _;

use anyhow::{Context as _, anyhow, bail};
use toolbay_catalog::Grant;
use toolbay_model::CallerIdentity;
use toolbay_policy::StateGrant;
use toolbay_state::{StateDatabase, StateError};

use crate::config::Config;

/// Maximum size of a grant that is read, in bytes.
const MAX_GRANT_BYTES: u64 = 1 << 20;

pub(super) fn parse_caller(name: &str) -> anyhow::Result<CallerIdentity> {
    CallerIdentity::from_name(name).with_context(|| {
        format!("{name:?} is not the name of an authenticated caller; toolbay state list shows the names")
    })
}

/// Returns the database of the state.
pub(super) fn open_database(config: &Config) -> anyhow::Result<StateDatabase> {
    match config.database() {
        Some(database) => Ok(database),
        None => {
            bail!("the server keeps no state: state.folder is empty, or there is no home folder")
        }
    }
}

/// Converts an error to one with the details that an operator needs.
pub(super) fn with_error_details<T>(result: Result<T, StateError>) -> anyhow::Result<T> {
    result.map_err(|error| anyhow!("{}", error.details()))
}

/// Returns the state that the grant of a plugin allows. `None` if the grant allows none, or is
/// missing or invalid.
pub(super) fn granted_quota(config: &Config, plugin: &str) -> Option<StateGrant> {
    // A name from a copy must not lead to another folder.
    if plugin.contains('/') {
        return None;
    }
    let name = format!("{plugin}.toml");
    let mut text = String::new();
    std::fs::File::open(config.plugins.join(&name))
        .ok()?
        .take(MAX_GRANT_BYTES)
        .read_to_string(&mut text)
        .ok()?;
    Grant::parse(&name, &text, &config.plugins)
        .ok()?
        .permissions
        .state
}
