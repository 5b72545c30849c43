//! What is published of a plugin.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::Serialize;
use sha2::{Digest as _, Sha256};
use toolbay_model::Digest;

use crate::manifest::{ARCHIVE_DIGEST, ARCHIVE_SIZE, Descriptor, Manifest};
use crate::media_type;

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

/// A manifest with the blobs that it refers to.
pub(crate) struct Artifact {
    pub(crate) manifest: Bytes,
    pub(crate) digest: Digest,
    pub(crate) blobs: Vec<(Digest, Bytes)>,
}

impl Publication {
    /// Returns the artifact that the tag names: the component, or the archive if there is no
    /// component.
    ///
    /// # Errors
    ///
    /// There is neither.
    pub(crate) fn artifact(&self) -> Result<Artifact, String> {
        let Some(component) = &self.component else {
            return self
                .archive_artifact()
                .ok_or_else(|| "there is nothing to publish".to_owned())?;
        };
        let layer = descriptor(
            media_type::COMPONENT,
            &component.bytes,
            &[(TITLE, &component.file_name)],
        );
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
        let mut annotations = self.annotations.clone();
        let mut blobs = vec![component.bytes.clone()];
        if let Some((_, archive)) = &self.archive {
            let digest = digest_text(archive);
            annotations.insert(ARCHIVE_DIGEST.to_owned(), digest);
            annotations.insert(ARCHIVE_SIZE.to_owned(), archive.len().to_string());
            blobs.push(archive.clone());
        }
        let config = Bytes::from(config);
        let manifest = Manifest::new(
            None,
            descriptor(media_type::COMPONENT_CONFIG, &config, &[]),
            vec![layer],
            annotations,
        );
        blobs.push(config);
        Artifact::new(&manifest, blobs)
    }

    /// Returns the artifact with only the archive, if there is one. A registry keeps a blob only as
    /// long as a manifest has it as a layer.
    pub(crate) fn archive_artifact(&self) -> Option<Result<Artifact, String>> {
        let (file_name, archive) = self.archive.as_ref()?;
        let empty = Bytes::from_static(b"{}");
        let manifest = Manifest::new(
            Some(media_type::ARCHIVE),
            descriptor(media_type::EMPTY_CONFIG, &empty, &[]),
            vec![descriptor(
                media_type::ARCHIVE,
                archive,
                &[(TITLE, file_name)],
            )],
            self.annotations.clone(),
        );
        Some(Artifact::new(&manifest, vec![archive.clone(), empty]))
    }
}

impl Artifact {
    fn new(manifest: &Manifest, blobs: Vec<Bytes>) -> Result<Self, String> {
        let manifest = serde_json::to_vec(manifest).map_err(|why| why.to_string())?;
        Ok(Self {
            digest: digest_of(&manifest),
            manifest: Bytes::from(manifest),
            blobs: blobs
                .into_iter()
                .map(|blob| (digest_of(&blob), blob))
                .collect(),
        })
    }
}

fn descriptor(media_type: &str, bytes: &Bytes, annotations: &[(&str, &String)]) -> Descriptor {
    let annotations = annotations.iter();
    Descriptor {
        media_type: media_type.to_owned(),
        digest: digest_text(bytes),
        size: bytes.len() as u64,
        annotations: annotations
            .map(|(key, value)| ((*key).to_owned(), (*value).clone()))
            .collect(),
    }
}

fn digest_of(bytes: &[u8]) -> Digest {
    Digest::new(Sha256::digest(bytes).into())
}

fn digest_text(bytes: &[u8]) -> String {
    format!("sha256:{}", digest_of(bytes))
}
