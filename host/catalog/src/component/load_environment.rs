//! Inputs that the stages of a load share.

use std::path::Path;
use std::sync::Arc;

use toolbay_sandbox::Sandbox;

use crate::folder::folder_lock::FolderLock;
use crate::rules::load_policy::LiveRules;

/// Inputs that the stages of a load share. Cloning is cheap.
#[derive(Clone)]
pub(crate) struct LoadEnvironment {
    pub(crate) sandbox: Sandbox,
    /// Live rules. They are replaced as a whole when the configuration changes.
    pub(crate) rules: Arc<LiveRules>,
    /// The lock of the plugin folder.
    pub(crate) lock: Arc<FolderLock>,
    /// The plugin folder.
    pub(crate) folder: Arc<Path>,
}

impl LoadEnvironment {
    /// Returns the maximum size of a component file, in bytes.
    pub(crate) fn max_component_bytes(&self) -> u64 {
        self.rules.current().max_component_size.as_u64()
    }
}
