//! A version of a plugin: its component and its plain files under its terms.

pub(crate) mod grant_check;
pub(crate) mod grant_clamping;
pub(crate) mod offer;
pub(crate) mod plain_files;
pub(crate) mod plugin;
pub(crate) mod version_pin;
