//! `[lock]`: the treatment of plugins that differ from the lock file.

use serde::Deserialize;
use toolbay_catalog::LockMode;

/// Treatment of plugins that differ from `toolbay.lock` in the plugin directory (`[lock]`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LockConfig {
    /// `off` ignores the lock file, `warn` logs differences, and `hold` serves only approved
    /// versions. Without a lock file, every plugin is served. Default: `hold`.
    pub mode: LockMode,
}
