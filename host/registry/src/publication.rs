//! What is published of a plugin.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::Serialize;
use sha2::{Digest as _, Sha256};
use toolbay_model::Digest;

use crate::manifest::{ARCHIVE_DIGEST, ARCHIVE_SIZE, Descriptor, Manifest};
use crate::media_type;
use crate::registry_error::RegistryError;

/// Time of creation in a configuration. A fixed one, so that the same plugin always has the same
/// digest.
const CREATED: &str = "1970-01-01T00:00:00Z";

/// Annotation with the name of a file.
const TITLE: &str = "org.opencontainers.image.title";

/// The plugin to publish: a component, an archive, or an archive and the component in it.
#[derive(Clone, Debug, Default)]
pub struct Publication {
    /// The component or core module.
    pub component: Option<PublishedComponent>,
    /// The archive, with the name of its file.
    pub archive: Option<(String, Bytes)>,
    /// The annotations of the manifest.
    pub annotations: BTreeMap<String, String>,
    /// The authors.
    pub author: Option<String>,
}

/// A component or core module to publish.
#[derive(Clone, Debug)]
pub struct PublishedComponent {
    /// The name of its file, such as `weather.wasm`.
    pub file_name: String,
    /// The file.
    pub bytes: Bytes,
    /// True for a component, false for a core module.
    pub is_component: bool,
    /// The names of its imports.
    pub imports: Vec<String>,
    /// The names of its exports.
    pub exports: Vec<String>,
}

/// The configuration of a component, as other tools for components read it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ComponentConfig<'a> {
    created: &'static str,
    author: Option<&'a str>,
    architecture: &'static str,
    os: &'static str,
    layer_digests: Vec<String>,
    component: Option<ComponentInterface<'a>>,
}

#[derive(Serialize)]
struct ComponentInterface<'a> {
    exports: &'a [String],
    imports: &'a [String],
    target: Option<&'a str>,
}

/// What is sent to a registry to publish a plugin. Each of its bytes is hashed once.
#[derive(Debug)]
pub struct PreparedPublication {
    /// The artifact that the tag names.
    pub(crate) artifact: Artifact,
    /// The artifact with the archive, if it is not the one that the tag names.
    pub(crate) archive: Option<Artifact>,
}

/// A manifest with the blobs that it refers to.
#[derive(Debug)]
pub(crate) struct Artifact {
    pub(crate) manifest: Bytes,
    pub(crate) digest: Digest,
    pub(crate) blobs: Vec<Blob>,
}

/// Bytes with their digest.
#[derive(Clone, Debug)]
pub(crate) struct Blob {
    pub(crate) digest: Digest,
    pub(crate) bytes: Bytes,
}

impl PreparedPublication {
    /// Returns the digest of the manifest that the tag names.
    pub fn digest(&self) -> Digest {
        self.artifact.digest
    }
}

impl Publication {
    /// Returns what is sent to a registry: for a component, its artifact and that of the archive;
    /// otherwise, the artifact of the archive.
    ///
    /// # Errors
    ///
    /// There is neither a component nor an archive.
    pub fn prepare(&self) -> Result<PreparedPublication, RegistryError> {
        let archive = self
            .archive
            .as_ref()
            .map(|(file_name, bytes)| (file_name, Blob::new(bytes.clone())));
        let archive_artifact = archive
            .as_ref()
            .map(|(file_name, blob)| self.archive_artifact(file_name, blob))
            .transpose();
        let prepared = archive_artifact.and_then(|archive_artifact| {
            let Some(component) = &self.component else {
                let artifact =
                    archive_artifact.ok_or_else(|| "there is nothing to publish".to_owned())?;
                return Ok(PreparedPublication {
                    artifact,
                    archive: None,
                });
            };
            let archive = archive.map(|(_, blob)| blob);
            Ok(PreparedPublication {
                artifact: self.component_artifact(component, archive)?,
                archive: archive_artifact,
            })
        });
        prepared.map_err(RegistryError::Settings)
    }

    fn component_artifact(
        &self,
        component: &PublishedComponent,
        archive: Option<Blob>,
    ) -> Result<Artifact, String> {
        let blob = Blob::new(component.bytes.clone());
        let layer = blob.descriptor(media_type::COMPONENT, &[(TITLE, &component.file_name)]);
        let config = ComponentConfig {
            created: CREATED,
            author: self.author.as_deref(),
            architecture: "wasm",
            os: if component.is_component {
                "wasip2"
            } else {
                "wasip1"
            },
            layer_digests: vec![layer.digest.clone()],
            component: component.is_component.then_some(ComponentInterface {
                exports: &component.exports,
                imports: &component.imports,
                target: None,
            }),
        };
        let config = serde_json::to_vec(&config).map_err(|why| why.to_string())?;
        let config = Blob::new(Bytes::from(config));
        let mut annotations = self.annotations.clone();
        let mut blobs = vec![blob];
        if let Some(archive) = archive {
            annotations.insert(ARCHIVE_DIGEST.to_owned(), archive.digest_text());
            annotations.insert(ARCHIVE_SIZE.to_owned(), archive.bytes.len().to_string());
            blobs.push(archive);
        }
        let manifest = Manifest::new(
            None,
            config.descriptor(media_type::COMPONENT_CONFIG, &[]),
            vec![layer],
            annotations,
        );
        blobs.push(config);
        Artifact::new(&manifest, blobs)
    }

    /// Returns the artifact with only the archive. A registry keeps a blob only as long as a manifest
    /// has it as a layer.
    fn archive_artifact(&self, file_name: &String, archive: &Blob) -> Result<Artifact, String> {
        let empty = Blob::new(Bytes::from_static(b"{}"));
        let manifest = Manifest::new(
            Some(media_type::ARCHIVE),
            empty.descriptor(media_type::EMPTY_CONFIG, &[]),
            vec![archive.descriptor(media_type::ARCHIVE, &[(TITLE, file_name)])],
            self.annotations.clone(),
        );
        Artifact::new(&manifest, vec![archive.clone(), empty])
    }
}

impl Artifact {
    fn new(manifest: &Manifest, blobs: Vec<Blob>) -> Result<Self, String> {
        let manifest = serde_json::to_vec(manifest).map_err(|why| why.to_string())?;
        let Blob { digest, bytes } = Blob::new(Bytes::from(manifest));
        Ok(Self {
            manifest: bytes,
            digest,
            blobs,
        })
    }
}

impl Blob {
    fn new(bytes: Bytes) -> Self {
        let digest = Digest::new(Sha256::digest(&bytes).into());
        Self { digest, bytes }
    }

    fn digest_text(&self) -> String {
        format!("{}{}", Digest::PREFIX, self.digest)
    }

    fn descriptor(&self, media_type: &str, annotations: &[(&str, &String)]) -> Descriptor {
        let annotations = annotations.iter();
        Descriptor {
            media_type: media_type.to_owned(),
            digest: self.digest_text(),
            size: self.bytes.len() as u64,
            annotations: annotations
                .map(|(key, value)| ((*key).to_owned(), (*value).clone()))
                .collect(),
        }
    }
}
