//! A program that was installed.

use super::local_site::LocalSite;

/// The program as its user starts it.
#[derive(Debug, Default)]
pub(crate) struct Installed {
    /// The command, and what stands before the program's own arguments.
    pub(super) words: Vec<String>,
    /// What a service manager starts, if the command passes on no signals.
    pub(super) service: Option<String>,
    /// Variables that it needs.
    pub(super) variables: Vec<(String, String)>,
    /// Whether it has a folder with plugins already, and makes none.
    pub(super) is_furnished: bool,
    /// Where its packages come from, while it is used.
    pub(super) _site: Option<LocalSite>,
}
