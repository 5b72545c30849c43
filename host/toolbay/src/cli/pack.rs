//! `toolbay pack`: makes an archive of a plugin and everything that belongs to it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, anyhow, bail};
use sha2::{Digest as _, Sha256};
use toolbay_bundle::{PluginArchive, PluginManifest, is_document, read_manifest, write_manifest};
use toolbay_settings::project::{self, ProjectFile};

use super::manifest::{project_manifest, write_atomically};
use super::output::print;
use super::plugin_file::{printable_path, resolve_plugin_file};

/// Extensions of the files and folders that belong to a plugin. The grant, `toml`, never does.
const PLUGIN_EXTENSIONS: [&str; 5] = ["wasm", "wit", "prompts", "resources", "skill"];

pub(super) fn run(paths: &[PathBuf], output: &Path) -> anyhow::Result<ExitCode> {
    let archive = pack_paths(paths)?;
    let bytes = archive.write()?;
    fs::create_dir_all(output)
        .with_context(|| format!("failed to create {}", printable_path(output)))?;
    let path = output.join(archive.file_name());
    write_atomically(&path, &bytes, fs::Permissions::from_mode(0o644))
        .with_context(|| format!("failed to write {}", printable_path(&path)))?;
    let names = archive.files.keys().fold(String::new(), |mut names, path| {
        let _ = writeln!(names, "    {path}");
        names
    });
    print(&format!(
        "{}\n{names}sha256 {}\n",
        printable_path(&path),
        hex::encode(Sha256::digest(&bytes))
    ));
    Ok(ExitCode::SUCCESS)
}

/// Packs a project folder, or the files of a plugin.
///
/// # Errors
///
/// The files are not those of one plugin, or cannot be read.
pub(super) fn pack_paths(paths: &[PathBuf]) -> anyhow::Result<PluginArchive> {
    match paths {
        [folder] if folder.join(project::FILE_NAME).is_file() => pack_project(folder),
        [folder] if folder.is_dir() && plugin_name(folder).is_none() => bail!(
            "{} has no {}; give a project folder, or the files of a plugin",
            printable_path(folder),
            project::FILE_NAME
        ),
        paths => pack_files(paths),
    }
}

/// Packs the built component of a project, and the files of the plugin next to it.
fn pack_project(folder: &Path) -> anyhow::Result<PluginArchive> {
    let project = ProjectFile::read(folder)?;
    let manifest = project_manifest(&project)?;
    if manifest.version.is_none() {
        bail!(
            "{}: an archive needs a version; add version = \"0.1.0\"",
            project::FILE_NAME
        );
    }
    let component = resolve_plugin_file(folder)?;
    let built = read_file(&component)?;
    let stamped = write_manifest(&built, &manifest)
        .map_err(|why| anyhow!("{}: {why}", printable_path(&component)))?;
    let mut files = BTreeMap::from([(format!("{}.wasm", project.name), stamped)]);
    for extension in PLUGIN_EXTENSIONS.iter().filter(|one| **one != "wasm") {
        let name = format!("{}.{extension}", project.name);
        add_path(&mut files, &folder.join(&name), &name)?;
    }
    for extra in &project.extra_files {
        let name = extra.file_name().and_then(|name| name.to_str());
        let name = name.with_context(|| format!("{} has no name", extra.display()))?;
        let path = folder.join(extra);
        check_inside(folder, &path)?;
        add_path(&mut files, &path, name)?;
    }
    add_documents(&mut files, folder)?;
    Ok(finish(project.name, files))
}

/// Packs listed files, and those of the plugin next to them.
fn pack_files(paths: &[PathBuf]) -> anyhow::Result<PluginArchive> {
    let mut files = BTreeMap::new();
    let mut id = None;
    for path in paths {
        let name = path.file_name().and_then(|name| name.to_str());
        let name = name.with_context(|| format!("{} has no usable name", printable_path(path)))?;
        if !path.exists() {
            bail!("{} does not exist", printable_path(path));
        }
        match plugin_name(path) {
            Some(stem) => {
                let known = id.get_or_insert_with(|| stem.to_owned());
                if known != stem {
                    bail!("{known} and {stem} are two plugins; an archive has one");
                }
                for extension in PLUGIN_EXTENSIONS {
                    let sibling = path.with_extension(extension);
                    add_path(&mut files, &sibling, &format!("{stem}.{extension}"))?;
                }
            }
            None if is_document(name) => add_path(&mut files, path, name)?,
            None => bail!(
                "{} is not a file of a plugin, and not a document such as README.md or LICENSE; a grant is never packed",
                printable_path(path)
            ),
        }
    }
    let id = id.context("give a plugin file, or a folder such as NAME.prompts")?;
    Ok(finish(id, files))
}

fn finish(id: String, files: BTreeMap<String, Vec<u8>>) -> PluginArchive {
    let manifest = match files.get(&format!("{id}.wasm")) {
        Some(component) => read_manifest(component).0,
        None => PluginManifest::default(),
    };
    PluginArchive {
        id,
        manifest,
        files,
    }
}

/// Returns the plugin that a path belongs to by its name.
fn plugin_name(path: &Path) -> Option<&str> {
    let extension = path.extension()?.to_str()?;
    let stem = path.file_stem()?.to_str()?;
    PLUGIN_EXTENSIONS.contains(&extension).then_some(stem)
}

/// Checks that a file that exists is in the project folder, and that no link leads out of it.
fn check_inside(folder: &Path, path: &Path) -> anyhow::Result<()> {
    let shown = printable_path(path);
    if !path.exists() {
        return Ok(());
    }
    let real = |path: &Path| fs::canonicalize(path).with_context(|| format!("cannot read {shown}"));
    if real(path)?.starts_with(real(folder)?) {
        return Ok(());
    }
    bail!("{shown} is not in the project folder, so it is not packed")
}

/// Adds the documents in a folder, such as `README.md` and `LICENSE`.
fn add_documents(files: &mut BTreeMap<String, Vec<u8>>, folder: &Path) -> anyhow::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        if let Some(name) = name.to_str().filter(|name| is_document(name))
            && entry.path().is_file()
        {
            add_path(files, &entry.path(), name)?;
        }
    }
    Ok(())
}

/// Adds a file, or the files in a folder without those whose names begin with a dot. Does nothing
/// if it does not exist.
///
/// # Errors
///
/// It is a link, or contains one. A project of a stranger could lead to any file of this machine,
/// whose content would then be published.
fn add_path(files: &mut BTreeMap<String, Vec<u8>>, path: &Path, name: &str) -> anyhow::Result<()> {
    if path.is_symlink() {
        bail!(
            "{} is a link; an archive has only files",
            printable_path(path)
        );
    }
    if path.is_file() {
        files.insert(name.to_owned(), read_file(path)?);
        return Ok(());
    }
    if !path.is_dir() {
        return Ok(());
    }
    let shown = printable_path(path);
    for entry in fs::read_dir(path).with_context(|| format!("cannot read {shown}"))? {
        let entry = entry.with_context(|| format!("cannot read {shown}"))?;
        let entry_name = entry.file_name();
        let Some(entry_name) = entry_name.to_str() else {
            bail!("{shown} has a file whose name is not UTF-8");
        };
        if entry_name.starts_with('.') {
            continue;
        }
        add_path(files, &entry.path(), &format!("{name}/{entry_name}"))?;
    }
    Ok(())
}

fn read_file(path: &Path) -> anyhow::Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("cannot read {}", printable_path(path)))
}
