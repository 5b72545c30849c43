//! Turns what was downloaded into an archive, which is checked completely in memory.

use anyhow::{anyhow, bail};
use bytesize::ByteSize;
use sha2::{Digest as _, Sha256};
use toolbay_bundle::{PluginArchive, PluginReference, check_plugin_id, read_manifest};
use toolbay_model::Digest;

use super::output::note;
use super::plugin_download::{DownloadedPlugin, PluginDownloader};
use crate::config::Config;

/// First bytes of a WebAssembly file.
const WASM_MAGIC: &[u8] = b"\0asm";

/// Reads an archive, or makes one of a component. `name` replaces the plugin's own name.
///
/// # Errors
///
/// The bytes are not a plugin, exceed a limit, or have another component than the registry states.
pub(super) fn read_archive(
    downloader: &PluginDownloader<'_>,
    config: &Config,
    download: DownloadedPlugin,
    name: Option<&str>,
) -> anyhow::Result<PluginArchive> {
    let DownloadedPlugin {
        bytes,
        resolved,
        component: expected,
        ..
    } = download;
    let mut archive = if bytes.starts_with(WASM_MAGIC) {
        let id = match name {
            Some(name) => name.to_owned(),
            None => file_stem(&resolved)?,
        };
        check_plugin_id(&id).map_err(|why| anyhow!("{why}; choose a name with --as"))?;
        let (manifest, remarks) = read_manifest(&bytes);
        for remark in remarks {
            note(&format!("! {remark}"));
        }
        PluginArchive {
            files: [(format!("{id}.wasm"), bytes)].into(),
            manifest,
            id,
        }
    } else {
        PluginArchive::read(&bytes, downloader.limits())?
    };
    if let Some(name) = name {
        check_plugin_id(name).map_err(anyhow::Error::msg)?;
        archive.rename(name);
    }
    let component = archive.component().unwrap_or_default();
    let size = component.len() as u64;
    if size > config.server.component_size.as_u64() {
        bail!(
            "its component has {}, more than server.component_size",
            ByteSize::b(size).display().iec()
        );
    }
    let digest = Digest::new(Sha256::digest(component).into());
    if let Some(expected) = expected
        && expected != digest
    {
        bail!(
            "its archive contains a component with the digest sha256:{digest}, and not sha256:{expected}, which the registry shows to others"
        );
    }
    Ok(archive)
}

fn file_stem(reference: &PluginReference) -> anyhow::Result<String> {
    let name = match reference {
        PluginReference::File(path) => path.file_name().and_then(|name| name.to_str()),
        PluginReference::Url { url, .. } => url.path_segments().and_then(|mut all| all.next_back()),
        PluginReference::Oci(reference) => Some(reference.name()),
        _ => None,
    };
    let name = name.unwrap_or_default();
    let stem = name.strip_suffix(".wasm").unwrap_or(name);
    if stem.is_empty() {
        bail!("the plugin has no name; choose one with --as");
    }
    Ok(stem.to_owned())
}
