//! The configuration is read again while the server runs (`SIGHUP`).

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, SystemTime};

use crate::config::{Config, ConfigError, ConfigKeys, Flags, RemainingTokens};
use crate::server::Server;
use crate::telemetry;

/// For how long a file must not have changed before it is read again: what is being written may lack its second half, and
/// with it what limits the first.
const SETTLED: Duration = Duration::from_secs(1);

/// How often a file that goes on changing is waited for.
const TRIES: usize = 30;

/// What is in force, and where it came from.
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
    /// restart. Tokens and rights that are no longer there are removed at once. For the rest, a mistake changes nothing, and
    /// a file that was changed just now is read when it has been unchanged for a second. Blocks.
    pub(crate) fn again(&mut self, server: &Server) {
        self.remove(server);
        let Some(read) = self.settled() else {
            let file = self.config.file.display();
            tracing::error!("the configuration stays as it was: {file} changes all the time");
            return;
        };
        self.remove(server);
        let changed = read.and_then(|(next, keys)| Ok((self.config.with_live_settings(&next)?, keys)));
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
            for clamp in config.clamp_messages() {
                tracing::warn!("{clamp}");
            }
        }
        // What restricts may be among them, in a file that was cut off.
        let vanished = self.keys.removed_live_keys(&keys);
        if !vanished.is_empty() {
            let file = config.file.display();
            tracing::warn!("{file} no longer sets {}, so the defaults apply", vanished.join(", "));
        }
        if config.http.rejects_every_caller() && !self.config.http.rejects_every_caller() {
            tracing::warn!("{CLOSED}");
        }
        if !difference.after_restart.is_empty() {
            tracing::warn!("to change {}, restart the server", difference.after_restart.join(", "));
        }
        self.keys = self.keys.with_live_values(&keys);
        self.config = config;
    }

    /// Reads the file when it has been unchanged for some time; `None` if it goes on changing.
    #[expect(clippy::disallowed_methods, reason = "no event says that nobody goes on writing a file")]
    fn settled(&self) -> Option<Result<(Config, ConfigKeys), ConfigError>> {
        (0..TRIES).find_map(|_| {
            let before = ConfigStamp::of(&self.config.file);
            let pause = before.as_ref().map_or(Duration::ZERO, ConfigStamp::unsettled);
            if !pause.is_zero() {
                sleep(pause);
            }
            let read = Config::load_with_keys(&self.flags, variables());
            (ConfigStamp::of(&self.config.file) == before).then_some(read)
        })
    }

    /// Removes what the file no longer has of tokens and their rights, also if the file is refused for something else.
    fn remove(&mut self, server: &Server) {
        let remaining = RemainingTokens::read(&self.flags, variables());
        let Some(narrowed) = remaining.and_then(|remaining| self.config.with_remaining_tokens(&remaining)) else {
            return;
        };
        server.change(&narrowed);
        let left = &narrowed.http.tokens;
        let changed = self.config.http.tokens.iter().filter(|token| !left.contains(token));
        let names: Vec<&str> = changed.map(|token| token.name.as_str()).collect();
        tracing::info!("tokens were removed or have fewer rights: {}", names.join(", "));
        if narrowed.http.rejects_every_caller() {
            tracing::warn!("{CLOSED}");
        }
        self.config = narrowed;
    }
}

/// What the log says when no token is left.
const CLOSED: &str =
    "http.tokens has no entry any more: nobody is let in until one is added, or until the server is restarted";

/// A file as it was seen.
#[derive(Debug, PartialEq, Eq)]
struct ConfigStamp {
    place: (u64, u64),
    size: u64,
    changed: (i64, i64),
}

impl ConfigStamp {
    /// `None` if there is no such file.
    fn of(path: &Path) -> Option<Self> {
        let found = fs::metadata(path).ok()?;
        Some(Self {
            place: (found.dev(), found.ino()),
            size: found.size(),
            changed: (found.ctime(), found.ctime_nsec()),
        })
    }

    /// The time until the file has been unchanged for long enough.
    fn unsettled(&self) -> Duration {
        let since = |part: i64| u64::try_from(part).unwrap_or_default();
        let changed = Duration::from_secs(since(self.changed.0)) + Duration::from_nanos(since(self.changed.1));
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        // A clock that was set back makes nobody wait for longer.
        SETTLED.saturating_sub(now.saturating_sub(changed))
    }
}

/// The variables of this process. Toolbay has none whose names or values are not UTF-8.
pub(crate) fn variables() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os().filter_map(|(k, v)| Some((k.into_string().ok()?, v.into_string().ok()?)))
}
