//! Detects changes in the plugin folder, starts loads, and publishes snapshots.

pub(crate) mod folder_log;
pub(crate) mod load_log;
pub(crate) mod load_tasks;
pub(crate) mod plugin_slot;
pub(crate) mod publish_schedule;
pub(crate) mod reloader;
pub(crate) mod scheduled_retry;
pub(crate) mod snapshot_log;
