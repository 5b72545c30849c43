//! A plugin with everything that belongs to it.

use std::collections::{BTreeMap, BTreeSet};

use toolbay_model::text::clean_line;
use toolbay_settings::similar_name::fold_name;

use crate::archive_error::{ArchiveError, MANIFEST_FILE, MAX_SHOWN_PATH_BYTES, refused};
use crate::archive_reader::{ArchiveLimits, read_entries};
use crate::archive_writer;
use crate::component_sections::read_manifest;
use crate::entry_path::{check_entry_path, check_plugin_id};
use crate::plugin_manifest::PluginManifest;

/// Version of the format of archives.
const FORMAT: i64 = 1;

/// A plugin with everything that belongs to it: the content of a `.bay` file. It contains no grant.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PluginArchive {
    /// Id of the plugin, the name of its files.
    pub id: String,
    /// The metadata of the plugin. If there is a component, it is that of the component.
    pub manifest: PluginManifest,
    /// Content of the files, by path: `ID.wasm`, `ID.prompts/review.md`, `README.md`.
    pub files: BTreeMap<String, Vec<u8>>,
}

impl PluginArchive {
    /// Reads an archive. Everything is checked before anything is returned.
    ///
    /// # Errors
    ///
    /// The archive exceeds a limit, or it contains something that does not belong to a plugin.
    pub fn read(bytes: &[u8], limits: ArchiveLimits) -> Result<Self, ArchiveError> {
        let mut files = BTreeMap::new();
        for (path, content) in read_entries(bytes, limits)? {
            if files.contains_key(&path) {
                return Err(refused(&path, "it occurs twice"));
            }
            files.insert(path, content);
        }
        let Some(manifest) = files.remove(MANIFEST_FILE) else {
            return Err(ArchiveError(format!("it has no {MANIFEST_FILE}")));
        };
        let (id, manifest) = parse_manifest(&manifest)
            .map_err(|why| ArchiveError(format!("{MANIFEST_FILE}: {why}")))?;
        let archive = Self {
            id,
            manifest,
            files,
        };
        archive.check()?;
        Ok(archive)
    }

    /// Returns the bytes of the archive. The same content always has the same bytes.
    ///
    /// # Errors
    ///
    /// [`PluginArchive::read`] would refuse the archive.
    pub fn write(&self) -> Result<Vec<u8>, ArchiveError> {
        self.check()?;
        let mut table = self.manifest.to_table();
        table.insert("format".to_owned(), FORMAT.into());
        table.insert("name".to_owned(), self.id.as_str().into());
        archive_writer::write(&table.to_string(), &self.files)
    }

    /// Returns the component, if there is one.
    pub fn component(&self) -> Option<&[u8]> {
        self.files
            .get(&format!("{}.wasm", self.id))
            .map(Vec::as_slice)
    }

    /// Returns the text of the `.wit` file; an empty text if there is none.
    pub fn wit(&self) -> String {
        self.files
            .get(&format!("{}.wit", self.id))
            .map(|text| String::from_utf8_lossy(text).into_owned())
            .unwrap_or_default()
    }

    /// Returns the name of the archive: `NAME-VERSION.bay`, or `NAME.bay` without a version.
    pub fn file_name(&self) -> String {
        match &self.manifest.version {
            Some(version) => format!("{}-{version}.bay", self.id),
            None => format!("{}.bay", self.id),
        }
    }

    /// Gives the plugin and its files another id.
    pub fn rename(&mut self, id: &str) {
        let prefix = format!("{}.", self.id);
        let files = std::mem::take(&mut self.files).into_iter();
        self.files = files
            .map(|(path, content)| match path.strip_prefix(&prefix) {
                Some(rest) => (format!("{id}.{rest}"), content),
                None => (path, content),
            })
            .collect();
        id.clone_into(&mut self.id);
    }

    fn check(&self) -> Result<(), ArchiveError> {
        check_plugin_id(&self.id).map_err(|why| ArchiveError(format!("name: {why}")))?;
        // The version becomes part of the name of a file.
        if let Some(version) = &self.manifest.version {
            semver::Version::parse(version).map_err(|why| {
                ArchiveError(format!("version: {version:?} is not a version ({why})"))
            })?;
        }
        let mut folded = BTreeMap::new();
        let mut folders = BTreeSet::new();
        for path in self.files.keys() {
            check_entry_path(&self.id, path).map_err(|why| refused(path, &why))?;
            for (end, _) in path.match_indices('/') {
                folders.insert(path.get(..end).unwrap_or_default());
            }
            let (parent, name) = path.rsplit_once('/').unwrap_or(("", path));
            if let Some(other) = folded.insert((parent, fold_name(name)), path) {
                return Err(refused(
                    path,
                    &format!(
                        "its name differs only in case, spaces or encoding from {:?}",
                        clean_line(other, MAX_SHOWN_PATH_BYTES)
                    ),
                ));
            }
        }
        // Also folders whose names differ only in case.
        let mut folded_folders = BTreeMap::new();
        for folder in &folders {
            let parts: Vec<String> = folder.split('/').map(fold_name).collect();
            if folded_folders.insert(parts, folder).is_some() {
                return Err(refused(
                    folder,
                    "the name of a folder differs only in case, spaces or encoding from another one",
                ));
            }
        }
        if let Some(both) = self
            .files
            .keys()
            .find(|path| folders.contains(path.as_str()))
        {
            return Err(refused(both, "it is a file and a folder"));
        }
        let has_plugin = self.files.keys().any(|path| path.starts_with(&self.id));
        if !has_plugin {
            return Err(ArchiveError(format!("it has no files of {}", self.id)));
        }
        match self.component() {
            Some(component) if read_manifest(component).0 != self.manifest => {
                Err(ArchiveError(format!(
                    "{MANIFEST_FILE} states other metadata or another proposed grant than {}.wasm",
                    self.id
                )))
            }
            None if self.manifest.proposed_grant.is_some() => Err(ArchiveError(
                "it has a proposed grant, but no component that could use it".to_owned(),
            )),
            _ => Ok(()),
        }
    }
}

fn parse_manifest(bytes: &[u8]) -> Result<(String, PluginManifest), String> {
    let text = str::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned())?;
    let mut table: toml::Table =
        toml::from_str(text).map_err(|error| clean_line(error.message(), MAX_SHOWN_PATH_BYTES))?;
    match table
        .remove("format")
        .and_then(|format| format.as_integer())
    {
        Some(FORMAT) => {}
        Some(format) => {
            return Err(format!(
                "it has format {format}, and this version of Toolbay reads format {FORMAT}"
            ));
        }
        None => {
            return Err(
                "it is not that of an archive; `toolbay pack` makes an archive of a project"
                    .to_owned(),
            );
        }
    }
    let Some(toml::Value::String(id)) = table.remove("name") else {
        return Err("name is missing".to_owned());
    };
    Ok((id, PluginManifest::from_table(table)?))
}

#[cfg(test)]
mod tests;
