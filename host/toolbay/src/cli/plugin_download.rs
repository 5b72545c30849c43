//! Gets plugins from files, URLs and registries.

mod url;

use std::cell::OnceCell;
use std::fs::{self, File};
use std::io::Read as _;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow, bail};
use bytesize::ByteSize;
use sha2::{Digest as _, Sha256};
use toolbay_bundle::{ArchiveLimits, OciReference, PackageName, PluginReference};
use toolbay_model::Digest;
use toolbay_registry::{DockerConfig, PackageRegistries, RegistryClient, RegistryTimeouts};

use super::plugin_file::printable_path;
use super::progress::{DISPLAY_DELAY, Progress, with_progress};
use crate::config::Config;

/// Time for a credential helper to answer. Some open a window in which a person unlocks a keyring.
const HELPER_TIMEOUT: Duration = Duration::from_mins(1);

/// Gets plugins. Keeps the connections and tokens of registries until it is dropped.
pub(super) struct PluginDownloader<'a> {
    config: &'a Config,
    registries: OnceCell<RegistryClient>,
}

/// The bytes of a plugin, an archive or a component, and where they came from.
pub(super) struct DownloadedPlugin {
    pub(super) bytes: Vec<u8>,
    /// The SHA-256 of the bytes.
    pub(super) digest: Digest,
    /// The reference with the digest of what it named. Equal to the reference for a file.
    pub(super) resolved: PluginReference,
    /// The digest that the registry states for the component.
    pub(super) component: Option<Digest>,
}

impl<'a> PluginDownloader<'a> {
    /// Creates a downloader with the network settings of a configuration.
    pub(super) fn new(config: &'a Config) -> Self {
        Self {
            config,
            registries: OnceCell::new(),
        }
    }

    /// Returns the limits of a plugin.
    pub(super) fn limits(&self) -> ArchiveLimits {
        ArchiveLimits::for_component_size(self.config.server.component_size.as_u64())
    }

    /// Returns the client of registries. Reads the certificates when it is first used.
    ///
    /// # Errors
    ///
    /// A file of certificates cannot be used.
    pub(super) fn registries(&self) -> anyhow::Result<&RegistryClient> {
        if let Some(client) = self.registries.get() {
            return Ok(client);
        }
        let credentials = DockerConfig::new(DockerConfig::default_file(), HELPER_TIMEOUT);
        let client = RegistryClient::new(
            &self.config.http_client.options(),
            credentials,
            RegistryTimeouts::default(),
        )?;
        Ok(self.registries.get_or_init(|| client))
    }

    /// Downloads a plugin, and checks the digest that the reference states.
    ///
    /// # Errors
    ///
    /// The plugin does not exist, is larger than the limits, or has another digest.
    pub(super) async fn download(
        &self,
        reference: &PluginReference,
    ) -> anyhow::Result<DownloadedPlugin> {
        let limit = self.limits().packed;
        match reference {
            PluginReference::File(path) => {
                let bytes = read_bounded(path, limit)?;
                Ok(DownloadedPlugin {
                    digest: Digest::new(Sha256::digest(&bytes).into()),
                    bytes,
                    resolved: reference.clone(),
                    component: None,
                })
            }
            PluginReference::Url { url, digest } => {
                let message = format!("downloading {url}");
                let line = format!("{message}; this can take minutes");
                let get = url::get(url, self.config, limit);
                let bytes = with_progress(&message, &line, get).await?;
                let received = Digest::new(Sha256::digest(&bytes).into());
                if let Some(expected) = digest
                    && *expected != received
                {
                    bail!("{url} has the digest {received}, and not {expected}");
                }
                Ok(DownloadedPlugin {
                    digest: received,
                    bytes,
                    resolved: PluginReference::Url {
                        url: url.clone(),
                        digest: Some(received),
                    },
                    component: None,
                })
            }
            PluginReference::Oci(reference) => self.download_artifact(reference, limit).await,
            PluginReference::Package(package) => {
                let reference = self.locate(package).await?;
                self.download_artifact(&reference, limit).await
            }
            other => bail!("this version of Toolbay cannot read {other}"),
        }
    }

    /// Returns the artifact of a package, by the configuration of other tools for components.
    async fn locate(&self, package: &PackageName) -> anyhow::Result<OciReference> {
        let file = PackageRegistries::default_file();
        let registries = PackageRegistries::read(file.as_deref())?;
        Ok(self.registries()?.locate(package, &registries).await?)
    }

    async fn download_artifact(
        &self,
        reference: &OciReference,
        limit: u64,
    ) -> anyhow::Result<DownloadedPlugin> {
        let registries = self.registries()?;
        let plugin = registries.resolve(reference).await?;
        let started = Instant::now();
        let line = format!("downloading {reference}; this can take minutes");
        let mut display = None;
        let mut show = |received: u64, total: u64| {
            if started.elapsed() < DISPLAY_DELAY {
                return;
            }
            let size = |bytes| ByteSize::b(bytes).display().iec();
            let message = format!(
                "downloading {reference}: {} of {}",
                size(received),
                size(total)
            );
            let display = display.get_or_insert_with(|| Progress::new(None));
            display.show(0, 0, &message, line.clone());
        };
        let bytes = registries.download(&plugin, limit, &mut show).await?;
        Ok(DownloadedPlugin {
            digest: plugin.content_digest(),
            bytes,
            component: plugin.component(),
            resolved: PluginReference::Oci(plugin.reference),
        })
    }

    /// Returns a reference with the digest of what it names now. Downloads a URL for that, but not
    /// the plugin of a registry.
    ///
    /// # Errors
    ///
    /// The plugin does not exist, or cannot be read.
    pub(super) async fn resolve(
        &self,
        reference: &PluginReference,
    ) -> anyhow::Result<PluginReference> {
        match reference {
            PluginReference::Oci(reference) => {
                let plugin = self.registries()?.resolve(reference).await?;
                Ok(PluginReference::Oci(plugin.reference))
            }
            PluginReference::Package(package) => {
                let reference = self.locate(package).await?;
                let plugin = self.registries()?.resolve(&reference).await?;
                Ok(PluginReference::Oci(plugin.reference))
            }
            other => Ok(self.download(other).await?.resolved),
        }
    }
}

/// Reads a file of at most `limit` bytes.
///
/// # Errors
///
/// It is not a file, is larger, or cannot be read. The message names it.
pub(super) fn read_bounded(path: &Path, limit: u64) -> anyhow::Result<Vec<u8>> {
    let shown = printable_path(path);
    let metadata = fs::metadata(path).with_context(|| format!("cannot read {shown}"))?;
    if !metadata.is_file() {
        return Err(anyhow!("{shown} is not a file"));
    }
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(limit.saturating_add(1)).read_to_end(&mut bytes))
        .with_context(|| format!("cannot read {shown}"))?;
    if bytes.len() as u64 > limit {
        bail!("{shown} is larger than {limit} bytes");
    }
    Ok(bytes)
}
