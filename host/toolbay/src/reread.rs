//! The configuration is read again while the server runs (`SIGHUP`).

use crate::config::{Config, ConfigError, Flags, Keys};
use crate::server::Server;
use crate::telemetry;

/// What is in force, and where it came from.
#[derive(Debug)]
pub(crate) struct Running {
    flags: Flags,
    config: Config,
    keys: Keys,
}

impl Running {
    /// Reads the configuration for the first time.
    ///
    /// # Errors
    ///
    /// One line that says where the first mistake is and what was expected.
    pub(crate) fn read(flags: Flags) -> Result<Self, ConfigError> {
        let (config, keys) = Config::load_with_keys(&flags, variables())?;
        Ok(Self { flags, config, keys })
    }

    /// What is in force.
    pub(crate) fn config(&self) -> &Config {
        &self.config
    }

    /// Reads the file again and has `server` do what it says, as far as that can change; logs what changed, and what needs a
    /// restart. A mistake changes nothing. Blocks.
    pub(crate) fn again(&mut self, server: &Server) {
        let read = Config::load_with_keys(&self.flags, variables());
        let changed = read.and_then(|(next, keys)| Ok((self.config.changed_to(&next)?, keys)));
        let (config, keys) = match changed {
            Ok(read) => read,
            Err(mistake) => {
                tracing::error!("the configuration stays as it was: {mistake}");
                return;
            }
        };
        let difference = self.keys.difference(&keys);
        if difference.live.is_empty() {
            tracing::info!(
                "the configuration was read again: nothing that can change while the server runs has changed"
            );
        } else {
            if let Err(why) = telemetry::change(&config.log) {
                tracing::error!("the log stays as it was: {why}");
            }
            server.change(&config);
            tracing::info!("the configuration was read again; changed: {}", difference.live.join(", "));
            for clamp in config.clamps() {
                tracing::warn!("{clamp}");
            }
        }
        if !difference.later.is_empty() {
            tracing::warn!("to change {}, restart the server", difference.later.join(", "));
        }
        self.keys = self.keys.changed_to(&keys);
        self.config = config;
    }
}

/// The variables of this process. Toolbay has none whose names or values are not UTF-8.
pub(crate) fn variables() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os().filter_map(|(k, v)| Some((k.into_string().ok()?, v.into_string().ok()?)))
}
