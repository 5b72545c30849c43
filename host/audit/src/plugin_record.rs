//! The parts of events about versions of plugins.

use serde::{Serialize, Serializer};
use toolbay_model::Digest;

/// Approval of a held version in the console. The digests of pins identify entries of the lock file.
#[derive(Debug, Default, Serialize)]
pub struct VersionApprovalRecord {
    /// The operator's name as a caller, as returned by [`truncate_name`](crate::truncate_name).
    pub caller: String,
    /// The plugin and the digests of its version in service.
    #[serde(flatten)]
    pub plugin: PluginRecord,
    /// Digest of the pin in the lock file; `None` if it has none.
    #[serde(
        rename = "base_sha256",
        serialize_with = "digest",
        skip_serializing_if = "Option::is_none"
    )]
    pub base: Option<Digest>,
    /// Digest of the pin of the approved version.
    #[serde(
        rename = "version_sha256",
        serialize_with = "digest",
        skip_serializing_if = "Option::is_none"
    )]
    pub version: Option<Digest>,
    /// Digest of its component; `None` if there are only plain files.
    #[serde(
        rename = "held_plugin_sha256",
        serialize_with = "digest",
        skip_serializing_if = "Option::is_none"
    )]
    pub component: Option<Digest>,
    /// Digest of its grant; `None` if there is none.
    #[serde(
        rename = "held_grant_sha256",
        serialize_with = "digest",
        skip_serializing_if = "Option::is_none"
    )]
    pub grant: Option<Digest>,
    /// `ok`, or `failed` if the approval was not stored.
    pub outcome: &'static str,
}

/// The state of a plugin at the time of an event.
#[derive(Clone, Debug, Default, Serialize)]
pub struct PluginRecord {
    /// The id of the plugin, as returned by [`truncate_name`](crate::truncate_name).
    pub plugin: String,
    /// SHA-256 of the component; `None` if none is in service.
    #[serde(
        rename = "plugin_sha256",
        serialize_with = "digest",
        skip_serializing_if = "Option::is_none"
    )]
    pub digest: Option<Digest>,
    /// SHA-256 of the text of the grant; `None` if the plugin has no grant.
    #[serde(
        rename = "grant_sha256",
        serialize_with = "digest",
        skip_serializing_if = "Option::is_none"
    )]
    pub grant: Option<Digest>,
}

/// Serializes a digest as hexadecimal digits.
#[expect(clippy::ref_option, reason = "serde passes the field")]
pub(crate) fn digest<S: Serializer>(
    digest: &Option<Digest>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match digest {
        Some(digest) => serializer.collect_str(digest),
        None => serializer.serialize_none(),
    }
}
