//! Reload of the configuration while the server runs (`SIGHUP`).

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, SystemTime};

use crate::config::{
    Config, ConfigError, ConfigKeys, Flags, RemainingTokens, environment_variables,
};
use crate::process::logging;
use crate::serve::server::Server;

/// Time for which a file must be unchanged before it is read again. A file that is still being
/// written may lack its last lines, which may restrict what the first lines allow.
const SETTLE_TIME: Duration = Duration::from_secs(1);

/// Maximum number of attempts to read a file that keeps changing.
const MAX_ATTEMPTS: usize = 30;

/// The effective configuration, and the flags and keys that it was read from.
#[derive(Debug)]
pub(crate) struct RunningConfig {
    flags: Flags,
    config: Config,
    keys: ConfigKeys,
}

impl RunningConfig {
    /// Reads the configuration for the first time.
    ///
    /// # Errors
    ///
    /// The first mistake and the expected value, in one line.
    pub(crate) fn read(flags: Flags) -> Result<Self, ConfigError> {
        let (config, keys) = Config::load_with_keys(&flags, environment_variables()?)?;
        let flags = Flags {
            requires_config: config.file_read,
            ..flags
        };
        Ok(Self {
            flags,
            config,
            keys,
        })
    }

    /// Returns the effective configuration.
    pub(crate) fn config(&self) -> &Config {
        &self.config
    }

    /// Reads the file again and applies the settings that can change while `server` runs. Logs the
    /// changed settings, and those that need a restart. Immediately removes tokens and rights that
    /// the file no longer contains. For everything else, an invalid file changes nothing, and a
    /// file is read only when it has been unchanged for a second. Blocks.
    pub(crate) fn reload(&mut self, server: &Server) {
        let before = self.token_names();
        self.reload_settings(server);
        // A rotated token has the same name before and after.
        let after = self.token_names();
        server.forget_tokens(before.difference(&after).map(String::as_str));
    }

    fn token_names(&self) -> BTreeSet<String> {
        let tokens = self.config.http.tokens.iter();
        tokens.map(|token| token.name.clone()).collect()
    }

    fn reload_settings(&mut self, server: &Server) {
        let Some(loaded) = self.read_settled(server) else {
            let file = self.config.file.display();
            tracing::error!("the configuration stays as it was: {file} changes continuously");
            return;
        };
        let changed =
            loaded.and_then(|(next, keys)| Ok((self.config.with_live_settings(&next)?, keys)));
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
                "the configuration was read again: no setting that applies without a restart has changed"
            );
        } else {
            if let Err(why) = logging::set_filter(&config.log) {
                tracing::error!("the log stays as it was: {why}");
            }
            server.apply_config(&config);
            tracing::info!(
                "the configuration was read again; changed: {}",
                difference.live.join(", ")
            );
            for clamp in config.clamp_messages() {
                tracing::warn!("{clamp}");
            }
        }
        // A file that was cut off may lack restrictions.
        let removed_keys = self.keys.removed_live_keys(&keys);
        if !removed_keys.is_empty() {
            let file = config.file.display();
            tracing::warn!(
                "{file} no longer sets {}, so the defaults apply",
                removed_keys.join(", ")
            );
        }
        if config.http.rejects_every_caller() && !self.config.http.rejects_every_caller() {
            tracing::warn!("{NO_TOKENS_MESSAGE}");
        }
        if !difference.after_restart.is_empty() {
            tracing::warn!(
                "to change {}, restart the server",
                difference.after_restart.join(", ")
            );
        }
        self.keys = self.keys.with_live_values(&keys);
        self.flags.requires_config |= config.file_read;
        self.config = config;
    }

    /// Reads the file when it has been unchanged for long enough. Returns `None` if it keeps
    /// changing. Removes tokens and rights at each attempt, before and after the wait.
    #[expect(
        clippy::disallowed_methods,
        reason = "no event reports that a file is complete"
    )]
    fn read_settled(
        &mut self,
        server: &Server,
    ) -> Option<Result<(Config, ConfigKeys), ConfigError>> {
        (0..MAX_ATTEMPTS).find_map(|_| {
            self.remove_tokens(server);
            let stamp = ConfigStamp::read(&self.config.file);
            let pause = stamp
                .as_ref()
                .map_or(Duration::ZERO, ConfigStamp::settle_delay);
            if !pause.is_zero() {
                sleep(pause);
            }
            self.remove_tokens(server);
            let read = environment_variables()
                .and_then(|variables| Config::load_with_keys(&self.flags, variables));
            (ConfigStamp::read(&self.config.file) == stamp).then_some(read)
        })
    }

    /// Removes the tokens and rights that the file no longer contains, even if the rest of the file
    /// is invalid.
    fn remove_tokens(&mut self, server: &Server) {
        let variables = environment_variables().unwrap_or_default();
        let remaining = RemainingTokens::read(&self.flags, variables);
        let Some(narrowed) =
            remaining.and_then(|remaining| self.config.with_remaining_tokens(&remaining))
        else {
            return;
        };
        server.apply_config(&narrowed);
        let remaining_tokens = &narrowed.http.tokens;
        let changed = self
            .config
            .http
            .tokens
            .iter()
            .filter(|token| !remaining_tokens.contains(token));
        let names: Vec<&str> = changed.map(|token| token.name.as_str()).collect();
        tracing::info!(
            "tokens were removed or have fewer rights: {}",
            names.join(", ")
        );
        if narrowed.http.rejects_every_caller() {
            tracing::warn!("{NO_TOKENS_MESSAGE}");
        }
        self.config = narrowed;
    }
}

/// Log message for a configuration without tokens.
const NO_TOKENS_MESSAGE: &str = "http.tokens has no entries any more: every caller is rejected until one is added or the server is restarted";

/// Identity, size and change time of a file.
#[derive(Debug, PartialEq, Eq)]
struct ConfigStamp {
    file_id: (u64, u64),
    size: u64,
    changed_at: (i64, i64),
}

impl ConfigStamp {
    /// Returns the stamp of the file, or `None` if it does not exist.
    fn read(path: &Path) -> Option<Self> {
        let metadata = fs::metadata(path).ok()?;
        Some(Self {
            file_id: (metadata.dev(), metadata.ino()),
            size: metadata.size(),
            changed_at: (metadata.ctime(), metadata.ctime_nsec()),
        })
    }

    /// Returns the time until the file has been unchanged for long enough.
    fn settle_delay(&self) -> Duration {
        let to_unsigned = |part: i64| u64::try_from(part).unwrap_or_default();
        let changed = Duration::from_secs(to_unsigned(self.changed_at.0))
            + Duration::from_nanos(to_unsigned(self.changed_at.1));
        let now = SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap_or_default();
        // Saturating, so that a clock that was set back does not lengthen the wait.
        SETTLE_TIME.saturating_sub(now.saturating_sub(changed))
    }
}
