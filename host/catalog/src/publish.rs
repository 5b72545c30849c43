//! Detects changes in the plugin folder, starts loads, assembles snapshots and publishes them.

pub(crate) mod assemble;
pub(crate) mod catalog;
pub(crate) mod folder_log;
pub(crate) mod load_log;
pub(crate) mod load_tasks;
pub(crate) mod name_compatibility;
pub(crate) mod plugin_slot;
pub(crate) mod publish_schedule;
pub(crate) mod reloader;
pub(crate) mod report;
pub(crate) mod scheduled_retry;
pub(crate) mod skill_tree;
pub(crate) mod snapshot;
pub(crate) mod snapshot_log;
pub(crate) mod version_history;
