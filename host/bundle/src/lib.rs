//! A plugin as one file: its metadata and its proposed grant in custom sections of the component,
//! and archives (`.bay`) of everything that belongs to it.
//!
//! Nothing in this crate grants a permission. A [`ProposedGrant`] is text for a person: the crate
//! has no way to turn it into a grant, and [`PluginArchive::read`] refuses every file that a server
//! would read as one. The crate has no I/O: it turns bytes into values and back, within bounds.

mod archive_error;
mod archive_reader;
mod archive_writer;
mod component_sections;
mod entry_path;
mod plugin_archive;
mod plugin_manifest;
mod plugin_reference;
mod proposed_grant;

pub use self::archive_error::ArchiveError;
pub use self::archive_reader::ArchiveLimits;
pub use self::component_sections::{read_manifest, write_manifest};
pub use self::entry_path::{check_plugin_id, is_document};
pub use self::plugin_archive::PluginArchive;
pub use self::plugin_manifest::PluginManifest;
pub use self::plugin_reference::PluginReference;
pub use self::proposed_grant::ProposedGrant;
