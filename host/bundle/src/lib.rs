//! A plugin as one file: its metadata and its proposed grant in custom sections of the component,
//! and archives (`.bay`) of everything that belongs to it.
//!
//! Nothing in this crate grants a permission. A [`ProposedGrant`] is text for a person: the crate
//! has no way to turn it into a grant, and [`PluginArchive::read`] refuses every file that a server
//! would read as one. The crate has no I/O: it turns bytes into values and back, within bounds.

mod archive_error;
mod archive_reader;
mod archive_writer;
mod component_interface;
mod component_sections;
mod entry_path;
mod oci_reference;
mod package_name;
mod plugin_archive;
mod plugin_manifest;
mod plugin_reference;
mod plugins_file;
mod proposed_grant;
mod url_check;

pub use self::archive_error::ArchiveError;
pub use self::archive_reader::ArchiveLimits;
pub use self::component_interface::ComponentInterface;
pub use self::component_sections::{read_manifest, write_manifest};
pub use self::entry_path::{check_plugin_id, is_document};
pub use self::oci_reference::{OciReference, parse_digest};
pub use self::package_name::PackageName;
pub use self::plugin_archive::PluginArchive;
pub use self::plugin_manifest::PluginManifest;
pub use self::plugin_reference::PluginReference;
pub use self::plugins_file::{
    MAX_PLUGINS_FILE_BYTES, PLUGINS_FILE_NAME, PluginEntry, PluginsFile, ReferencePin,
};
pub use self::proposed_grant::ProposedGrant;
pub use self::url_check::check_url;
