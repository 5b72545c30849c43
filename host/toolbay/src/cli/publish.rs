//! `toolbay publish`: pushes a plugin to an OCI registry, for `toolbay add` and for other tools for
//! components.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, anyhow, bail};
use bytes::Bytes;
use clap::Args;
use toolbay_bundle::{ComponentInterface, OciReference, PluginArchive};
use toolbay_registry::{Publication, PublishedComponent};
use toolbay_sandbox::{CompileSource, Sandbox};

use super::common::{Common, Listen, Settings, block_on};
use super::output::{note, print};
use super::pack::pack_paths;
use super::plugin_download::{PluginDownloader, read_bounded};
use super::plugin_file::{load_plugin, printable_path};
use super::progress::with_progress;
use crate::config::Config;

/// First bytes of an archive, which is compressed with gzip.
const ARCHIVE_MAGIC: [u8; 2] = [0x1f, 0x8b];

/// Annotation with the names of the tools.
const TOOLS_ANNOTATION: &str = "dev.toolbay.tools";

/// Maximum length of the list of tools, in bytes. Registries limit the size of a manifest.
const MAX_TOOLS_BYTES: usize = 8 << 10;

/// Annotations that other tools also know, with the keys of the metadata.
const ANNOTATIONS: [(&str, &str); 7] = [
    ("authors", "org.opencontainers.image.authors"),
    ("summary", "org.opencontainers.image.description"),
    ("license", "org.opencontainers.image.licenses"),
    ("revision", "org.opencontainers.image.revision"),
    ("source", "org.opencontainers.image.source"),
    ("homepage", "org.opencontainers.image.url"),
    ("version", "org.opencontainers.image.version"),
];

#[derive(Args, Debug)]
pub(super) struct Publish {
    /// A .bay archive, a plugin file, or a project folder with a plugin.toml
    #[arg(value_name = "FILE")]
    path: PathBuf,
    /// Where to publish it, such as `oci://registry.example.com/acme/weather:1.2.0`
    #[arg(value_name = "REF")]
    reference: OciReference,
    /// Move a tag that names another version already
    #[arg(long)]
    replace: bool,
    /// Only show what would be published
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    settings: Settings,
}

pub(super) fn run(options: &Publish) -> anyhow::Result<ExitCode> {
    let common = Common::for_folder(None, options.settings.clone());
    let config = common.load_config(true, &Listen::default())?;
    block_on(publish(options, config))
}

async fn publish(options: &Publish, config: Config) -> anyhow::Result<ExitCode> {
    let reference = &options.reference;
    let Some(tag) = reference.tag() else {
        bail!("{reference} has no tag; a published plugin needs one, such as :1.2.0");
    };
    if reference.digest().is_some() {
        bail!("{reference} states a digest, which the registry computes; write only the tag");
    }
    let downloader = PluginDownloader::new(&config);
    let archive = read_plugin(&options.path, &downloader)?;
    let publication = publication(&config, &archive).await?;
    let prepared = publication.prepare()?;
    let digest = prepared.digest();
    let mut shown = format!("{reference}\n    manifest  sha256:{digest}\n");
    for path in archive.files.keys() {
        let _ = writeln!(shown, "    file      {path}");
    }
    for (key, value) in &publication.annotations {
        let _ = writeln!(shown, "    {key} = {value}");
    }
    print(&shown);
    if let Some(version) = &archive.manifest.version
        && tag.strip_prefix('v').unwrap_or(tag) != version
    {
        note(&format!(
            "! the tag is {tag}, and the version of the plugin is {version}"
        ));
    }
    if options.dry_run {
        print("nothing was published\n");
        return Ok(ExitCode::SUCCESS);
    }
    let registries = downloader.registries()?;
    let existing = registries.tagged_digest(reference).await?;
    let is_published = existing.as_deref() == Some(&format!("sha256:{digest}"));
    if let Some(existing) = existing.filter(|_| !is_published && !options.replace) {
        bail!(
            "{reference} exists already, with {existing}; nothing was published. Use another tag, or move this one with --replace"
        );
    }
    let line = format!("publishing {reference}; this can take minutes");
    let work = registries.push_plugin(reference, &prepared);
    Box::pin(with_progress(
        &format!("publishing {reference}"),
        &line,
        work,
    ))
    .await?;
    print(&format!("published {}\n", reference.with_digest(digest)));
    Ok(ExitCode::SUCCESS)
}

/// Reads an archive, or packs a plugin as `toolbay pack` does.
fn read_plugin(path: &Path, downloader: &PluginDownloader<'_>) -> anyhow::Result<PluginArchive> {
    if !path.is_file() {
        return pack_paths(&[path.to_owned()]);
    }
    let limits = downloader.limits();
    // A larger file could be added to no server.
    let bytes = read_bounded(path, limits.packed)?;
    if bytes.starts_with(&ARCHIVE_MAGIC) {
        return PluginArchive::read(&bytes, limits).with_context(|| printable_path(path));
    }
    pack_paths(&[path.to_owned()])
}

/// Returns what is published of a plugin. Loads it, so that nothing is published that a server would
/// refuse.
async fn publication(config: &Config, archive: &PluginArchive) -> anyhow::Result<Publication> {
    let mut annotations = BTreeMap::from([(
        "org.opencontainers.image.title".to_owned(),
        archive.id.clone(),
    )]);
    for (key, text) in archive.manifest.texts() {
        let known = ANNOTATIONS.iter().find(|(known, _)| *known == key);
        if let Some((_, annotation)) = known {
            annotations.insert((*annotation).to_owned(), text.to_owned());
        }
    }
    let mut published = None;
    if let Some(component) = archive.component() {
        let tools = tool_names(config, archive, component).await?;
        if !tools.is_empty() && tools.len() <= MAX_TOOLS_BYTES {
            annotations.insert(TOOLS_ANNOTATION.to_owned(), tools);
        }
        let interface = ComponentInterface::read(component).map_err(|why| anyhow!(why))?;
        published = Some(PublishedComponent {
            file_name: format!("{}.wasm", archive.id),
            bytes: Bytes::copy_from_slice(component),
            is_component: interface.is_component,
            imports: interface.imports,
            exports: interface.exports,
        });
    }
    // A component alone needs no archive.
    let needs_archive = archive.files.len() > usize::from(published.is_some());
    let packed = needs_archive
        .then(|| archive.write())
        .transpose()?
        .map(|bytes| (archive.file_name(), Bytes::from(bytes)));
    Ok(Publication {
        component: published,
        archive: packed,
        annotations,
        author: archive.manifest.authors.clone(),
    })
}

/// Returns the names of the tools, with commas between them.
async fn tool_names(
    config: &Config,
    archive: &PluginArchive,
    component: &[u8],
) -> anyhow::Result<String> {
    let sandbox = Sandbox::new(config.sandbox_settings()?)?;
    let source = CompileSource {
        file: component.to_vec(),
        wit: archive.wit(),
    };
    let loaded = load_plugin(&sandbox, source, config.load_policy(), &archive.id).await?;
    let names = loaded.contents.tools.iter();
    let names: Vec<&str> = names.map(|valid| valid.tool.name.as_str()).collect();
    Ok(names.join(","))
}
