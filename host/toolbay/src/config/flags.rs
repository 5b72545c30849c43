//! Settings from the command line.

use std::path::PathBuf;

use toolbay_mcp::http::ListenAddress;

/// Settings from the command line. They override the file and variables.
#[derive(Clone, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a separate option")]
pub struct Flags {
    /// `--config`.
    pub config: Option<PathBuf>,
    /// `--no-config`.
    pub no_config: bool,
    /// If set, the default configuration file must exist. A server that has read a file sets this
    /// before it reads the file again: a missing file is then a mistake, not an empty
    /// configuration.
    pub requires_config: bool,
    /// `--plugins`.
    pub plugins: Option<PathBuf>,
    /// The id of the only plugin of that folder to load. Set by a plugin file on the command line.
    pub only_plugin: Option<String>,
    /// `--log`.
    pub log: Option<String>,
    /// `--http`.
    pub http: Option<ListenAddress>,
    /// `--sse`.
    pub sse: bool,
    /// `--learn`.
    pub learn: bool,
    /// `--locked`.
    pub locked: bool,
    /// `--record`.
    pub record: Option<PathBuf>,
}
