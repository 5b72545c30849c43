//! An installed program.

use super::local_site::LocalSite;

/// The program, as its user starts it.
#[derive(Debug, Default)]
pub(crate) struct Installed {
    /// The command, and the arguments that precede the program's own.
    pub(super) words: Vec<String>,
    /// The command for a service manager, if the normal command does not forward signals.
    pub(super) service: Option<String>,
    /// Environment variables that it requires.
    pub(super) variables: Vec<(String, String)>,
    /// True if it comes with a plugin folder and does not create one.
    pub(super) is_furnished: bool,
    /// The site that serves its packages, kept alive while the program is in use.
    pub(super) _site: Option<LocalSite>,
}
