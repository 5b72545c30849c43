//! The plugin folder: its watcher, its files with their stamps, and where paths in it lead.

pub(crate) mod approval_file;
pub(crate) mod description_limits;
pub(crate) mod file_reader;
pub(crate) mod file_stamp;
pub(crate) mod folder_lock;
pub(crate) mod grant_age;
pub(crate) mod known_files;
pub(crate) mod load_error;
pub(crate) mod openat_beneath;
pub(crate) mod plain_tree;
pub(crate) mod plugin_folder;
pub(crate) mod resolved_path;
pub(crate) mod source_digests;
pub(crate) mod version_approver;
pub(crate) mod watcher;
