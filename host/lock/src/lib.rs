//! The lock file of a plugin folder. It pins the approved version of each plugin, as text that is
//! made for a review: digests, imports, permissions, and the definitions that models and users
//! read.
//!
//! [`LockFile`] reads and writes the file, and [`VersionDifference`] compares a version of a plugin
//! with its pin. This crate has no I/O, and no way to apply a grant.

mod lock_file;
mod plugin_pin;
mod text_difference;
mod version_difference;
mod warning_sign;

pub use self::lock_file::{LOCK_FILE_NAME, LockFile, LockFileError, MAX_LOCK_FILE_BYTES};
pub use self::plugin_pin::{ItemKind, ItemPin, PluginPin};
pub use self::version_difference::{ChangedField, ItemDifference, VersionDifference};
pub use self::warning_sign::{ToolOwners, WarningSigns};
