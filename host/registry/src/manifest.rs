//! Manifests, and what they say about a plugin.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use toolbay_bundle::parse_digest;
use toolbay_model::Digest;
use toolbay_model::text::clean_line;

use crate::media_type;
use crate::registry_error::MAX_SHOWN_BYTES;

/// Maximum size of a manifest, in bytes: what registries must accept, by the distribution
/// specification.
pub(crate) const MAX_MANIFEST_BYTES: u64 = 4 << 20;

/// Maximum number of items of a list in a message.
const MAX_SHOWN_ITEMS: usize = 8;

/// Annotation with the digest of the archive that contains the component.
pub(crate) const ARCHIVE_DIGEST: &str = "dev.toolbay.archive.digest";

/// Annotation with the size of that archive, in bytes.
pub(crate) const ARCHIVE_SIZE: &str = "dev.toolbay.archive.size";

/// A manifest, or an index, of which only the list of manifests is read.
#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Manifest {
    pub(crate) schema_version: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) media_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) artifact_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) config: Option<Descriptor>,
    #[serde(default)]
    pub(crate) layers: Vec<Descriptor>,
    #[serde(default, skip_serializing)]
    manifests: Vec<Descriptor>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) annotations: BTreeMap<String, String>,
}

/// A reference of a manifest to a blob or to another manifest.
#[derive(Clone, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Descriptor {
    pub(crate) media_type: String,
    pub(crate) digest: String,
    pub(crate) size: u64,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) annotations: BTreeMap<String, String>,
}

/// A plugin in a registry, as its manifest describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PluginBlob {
    /// The digest of the blob.
    pub(crate) digest: Digest,
    /// Its size in bytes.
    pub(crate) size: u64,
    /// The digest of the component, if the manifest states it.
    pub(crate) component: Option<Digest>,
    /// The name that the manifest gives to the file.
    pub(crate) file_name: Option<String>,
}

impl Manifest {
    /// Creates the manifest of an artifact.
    pub(crate) fn new(
        artifact_type: Option<&str>,
        config: Descriptor,
        layers: Vec<Descriptor>,
        annotations: BTreeMap<String, String>,
    ) -> Self {
        Self {
            schema_version: 2,
            media_type: Some(media_type::MANIFEST.to_owned()),
            artifact_type: artifact_type.map(str::to_owned),
            config: Some(config),
            layers,
            manifests: Vec::new(),
            annotations,
        }
    }

    /// Returns the blob that has the plugin: the archive if there is one, else the component.
    ///
    /// # Errors
    ///
    /// The manifest describes something else, or several plugins. Returns what it is.
    pub(crate) fn plugin_blob(&self, content_type: &str) -> Result<PluginBlob, String> {
        let kind = self.media_type.as_deref().unwrap_or(content_type);
        if [media_type::INDEX, media_type::DOCKER_INDEX].contains(&kind)
            || (self.config.is_none() && !self.manifests.is_empty())
        {
            return Err(format!(
                "is an index of {} manifests, and not a plugin: name one of them by its digest, {}",
                self.manifests.len(),
                list(self.manifests.iter().map(|one| format!("@{}", one.digest)))
            ));
        }
        if kind != media_type::MANIFEST {
            return Err(format!(
                "has the media type {}, and not {}",
                clean_line(kind, MAX_SHOWN_BYTES),
                media_type::MANIFEST
            ));
        }
        let of_type = |kind: &str| -> Vec<&Descriptor> {
            let layers = self.layers.iter();
            layers.filter(|layer| layer.media_type == kind).collect()
        };
        let archives = of_type(media_type::ARCHIVE);
        let components = of_type(media_type::COMPONENT);
        let component = match components.as_slice() {
            [] => None,
            [component] => Some(parse_digest(&component.digest)?),
            _ => return Err(format!("has {} components, and not one", components.len())),
        };
        let from = |layer: &Descriptor| -> Result<PluginBlob, String> {
            Ok(PluginBlob {
                digest: parse_digest(&layer.digest)?,
                size: layer.size,
                component,
                file_name: layer
                    .annotations
                    .get("org.opencontainers.image.title")
                    .cloned(),
            })
        };
        match (archives.as_slice(), components.as_slice()) {
            ([archive], _) => from(archive),
            ([], [layer]) => Ok(self.linked_archive(component)?.unwrap_or(from(layer)?)),
            ([], _) => Err(format!(
                "is not a plugin: none of its layers has the media type {} or {}; they have {}",
                media_type::COMPONENT,
                media_type::ARCHIVE,
                list(self.layers.iter().map(|layer| layer.media_type.clone()))
            )),
            _ => Err(format!("has {} archives, and not one", archives.len())),
        }
    }

    /// Returns the archive that the annotations name. Other tools for components accept only one
    /// layer, so it is not a layer.
    fn linked_archive(&self, component: Option<Digest>) -> Result<Option<PluginBlob>, String> {
        let Some(digest) = self.annotations.get(ARCHIVE_DIGEST) else {
            return Ok(None);
        };
        let size = self.annotations.get(ARCHIVE_SIZE);
        let size = size
            .and_then(|size| size.parse().ok())
            .ok_or_else(|| format!("has no valid annotation {ARCHIVE_SIZE}"))?;
        Ok(Some(PluginBlob {
            digest: parse_digest(digest)
                .map_err(|why| format!("annotation {ARCHIVE_DIGEST}: {why}"))?,
            size,
            component,
            file_name: None,
        }))
    }
}

/// Returns a list for a message, of bounded length.
fn list(items: impl ExactSizeIterator<Item = String>) -> String {
    let count = items.len();
    if count == 0 {
        return "none".to_owned();
    }
    let shown: Vec<String> = items
        .take(MAX_SHOWN_ITEMS)
        .map(|item| clean_line(&item, MAX_SHOWN_BYTES))
        .collect();
    let more = if count > MAX_SHOWN_ITEMS { ", …" } else { "" };
    format!("{}{more}", shown.join(", "))
}
