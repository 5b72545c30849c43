//! The skill in a folder `<id>.skill`, with its nested skills. Its files are read once and
//! retained.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::Arc;

use bytesize::ByteSize;
use rustix::fs::fstat;
use rustix::io::Errno;
use serde::Serialize;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use toolbay_model::text::clean_line;
use toolbay_model::{BudgetExhausted, ByteBudget, ByteReservation, Digest, JsonText, Skill};

use crate::folder::file_stamp::FileStamp;
use crate::folder::openat_beneath::open_file;
use crate::folder::plain_tree::PlainTree;
use crate::plain::file_resource::{FileResource, is_clean};
use crate::plain::plain_file_error::PlainFileError;
use crate::resource_uri::uri;
use crate::skill::skill_front_matter::{NAME_RULE, SkillFrontMatter, is_skill_name};

/// Name of the file that makes a folder a skill.
const MANIFEST_NAME: &str = "SKILL.md";

/// Maximum size of a skill, all files together. Every client accepts skills of this size.
const MAX_SKILL_SIZE: ByteSize = ByteSize::mib(16);

/// Memory that a file takes in addition to its content and its URI, in bytes.
const FILE_OVERHEAD_BYTES: u64 = 512;

/// Number of copies of a file's URI in memory: in the resource, in a snapshot and in the entry of
/// the skill.
const URI_COPIES: u64 = 3;

/// Maximum length of a name in a message, in bytes.
const MAX_SHOWN_NAME_BYTES: usize = 200;

/// A folder that is a skill, as it was when it was loaded.
#[derive(Debug)]
pub struct SkillFolder {
    /// The skill and its nested skills, by URI.
    pub skills: Vec<Arc<Skill>>,
    /// All files, by path.
    pub files: Vec<Arc<FileResource>>,
    /// Reservation of its memory.
    reservation: ByteReservation,
}

/// Two skill folders are equal if they are the same for clients.
impl PartialEq for SkillFolder {
    fn eq(&self, other: &Self) -> bool {
        self.skills == other.skills && self.files == other.files
    }
}

/// The source from which a skill is loaded.
pub(crate) struct SkillSource<'a> {
    /// The id of the plugin, which is the name of the skill.
    pub(crate) id: &'a str,
    /// The folder.
    pub(crate) root: &'a OwnedFd,
    /// The content of the folder.
    pub(crate) tree: &'a PlainTree,
    /// The maximum size of a file (`limits.output`).
    pub(crate) max_file_size: ByteSize,
    /// The maximum total size of the entries of the skills.
    pub(crate) max_entries_size: ByteSize,
    /// The memory budget for the files.
    pub(crate) memory: &'a ByteBudget,
    /// The version in service, if any.
    pub(crate) previous: Option<&'a SkillFolder>,
}

/// An entry of `skills/list` and `skills/get`.
#[derive(Serialize)]
struct SkillEntry<'a> {
    uri: &'a str,
    frontmatter: &'a Map<String, Value>,
    resources: Vec<SkillEntryFile<'a>>,
}

/// A file in the entry of a skill.
#[derive(Serialize)]
struct SkillEntryFile<'a> {
    uri: &'a str,
    digest: String,
    size: u64,
}

impl SkillFolder {
    /// Reads all files. Also returns warnings, for example about files that are not offered.
    /// Blocks.
    ///
    /// # Errors
    ///
    /// Returns the reason why the skill, or this version of it, cannot be offered. A skill is
    /// offered completely or not at all.
    pub(crate) fn load(source: &SkillSource<'_>) -> Result<(Self, Vec<String>), PlainFileError> {
        let SkillSource { id, tree, .. } = *source;
        if !is_skill_name(id) {
            return Err(refused(format!("{NAME_RULE}: rename the folder")));
        }
        if !tree.files.contains_key(MANIFEST_NAME) {
            let other = tree
                .files
                .keys()
                .find(|path| path.eq_ignore_ascii_case(MANIFEST_NAME));
            let hint = other
                .map(|path| format!(": rename {path} to {MANIFEST_NAME}"))
                .unwrap_or_default();
            return Err(refused(format!("it has no file {MANIFEST_NAME}{hint}")));
        }
        let (uris, mut remarks) = source.offered_uris();
        let bytes = source.check_sizes(&uris)?;
        let reservation = source.reserve_memory(bytes)?;
        let mut contents = BTreeMap::new();
        for (path, (uri, stamp)) in uris {
            contents.insert(path, (uri, source.read_file(path, stamp)?));
        }
        let (front_matters, nested_remarks) = source.parse_front_matter(&contents)?;
        remarks.extend(nested_remarks);
        let files: Vec<Arc<FileResource>> = contents
            .into_iter()
            .map(|(path, (uri, bytes))| {
                Arc::new(build_file_resource(
                    path,
                    uri,
                    bytes,
                    front_matters.get(parent_path(path)),
                ))
            })
            .collect();
        let skills: Vec<Arc<Skill>> = front_matters
            .iter()
            .map(|(folder, front_matter)| Arc::new(build_skill(id, folder, front_matter, &files)))
            .collect();
        let entries: usize = skills.iter().map(|skill| skill.size()).sum();
        if entries as u64 > source.max_entries_size.as_u64() {
            let most = source.max_entries_size.display().iec();
            return Err(refused(format!(
                "the description of its files for clients is larger than {most} (to allow more, raise describe.size)"
            )));
        }
        Ok((
            Self {
                skills,
                files,
                reservation,
            },
            remarks,
        ))
    }
}

impl SkillSource<'_> {
    /// Returns the offered files with their URIs, by path, and warnings about the others.
    fn offered_uris(&self) -> (BTreeMap<&str, (String, &FileStamp)>, Vec<String>) {
        let mut uris = BTreeMap::new();
        let mut remarks = Vec::new();
        for (path, stamp) in &self.tree.files {
            let uri = uri::for_skill(self.id, path.split('/'));
            match uri::check(&uri) {
                Ok(()) => drop(uris.insert(path.as_str(), (uri, stamp))),
                Err(why) => remarks.push(format!(
                    "{} is not offered: its URI {why}",
                    self.display_path(path)
                )),
            }
        }
        (uris, remarks)
    }

    /// Checks the sizes before anything is read. Returns the memory that all files will take, in
    /// bytes.
    fn check_sizes(
        &self,
        uris: &BTreeMap<&str, (String, &FileStamp)>,
    ) -> Result<usize, PlainFileError> {
        let mut size = 0_u64;
        for (path, (_, stamp)) in uris {
            if stamp.length > self.max_file_size.as_u64() {
                let most = self.max_file_size.display().iec();
                let path = clean_line(path, MAX_SHOWN_NAME_BYTES);
                let id = self.id;
                return Err(refused(format!(
                    "{path} is larger than {most} (to allow more, raise limits.output in {id}.toml)"
                )));
            }
            size = size.saturating_add(stamp.length);
        }
        if size > MAX_SKILL_SIZE.as_u64() {
            let [size, most] =
                [ByteSize::b(size), MAX_SKILL_SIZE].map(|size| size.display().iec().to_string());
            return Err(refused(format!(
                "its files have {size} in total, but at most {most} are allowed"
            )));
        }
        let overhead: u64 = uris
            .values()
            .map(|(uri, _)| FILE_OVERHEAD_BYTES + URI_COPIES * uri.len() as u64)
            .sum();
        Ok(usize::try_from(size.saturating_add(overhead)).unwrap_or(usize::MAX))
    }

    /// Reserves the memory for all files.
    fn reserve_memory(&self, bytes: usize) -> Result<ByteReservation, PlainFileError> {
        let previous = self.previous.map(|previous| &previous.reservation);
        self.memory
            .reserve_successor(previous, bytes)
            .map_err(|BudgetExhausted| {
                let most = ByteSize::b(self.memory.limit() as u64).display().iec();
                refused(format!(
                    "the files of all skills are larger than {most} in total (to allow more, raise describe.skills)"
                ))
            })
    }

    /// Reads a file. Fails if it has changed since the scan, because the skill could mix files of
    /// two versions.
    fn read_file(&self, path: &str, stamp: &FileStamp) -> Result<Vec<u8>, PlainFileError> {
        let changed_error = || {
            refused(format!(
                "{} changed while it was read",
                clean_line(path, MAX_SHOWN_NAME_BYTES)
            ))
        };
        let read_error =
            |error: io::Error| PlainFileError::transient(&self.display_path(path), &error);
        let file = match open_file(self.root.as_fd(), path) {
            Ok(file) => File::from(file),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::XDEV) => {
                return Err(changed_error());
            }
            Err(error @ (Errno::ACCESS | Errno::PERM)) => {
                let why = io::Error::from(error).kind();
                return Err(refused(format!(
                    "{} cannot be read: {why}",
                    clean_line(path, MAX_SHOWN_NAME_BYTES)
                )));
            }
            Err(error) => return Err(read_error(error.into())),
        };
        let is_unchanged =
            |file: &File| fstat(file).map(|stat| FileStamp::from_stat(&stat) == *stamp);
        if !is_unchanged(&file).map_err(|error| read_error(error.into()))? {
            return Err(changed_error());
        }
        let mut bytes = Vec::with_capacity(usize::try_from(stamp.length).unwrap_or_default());
        (&file)
            .take(stamp.length.saturating_add(1))
            .read_to_end(&mut bytes)
            .map_err(read_error)?;
        if bytes.len() as u64 != stamp.length
            || !is_unchanged(&file).map_err(|error| read_error(error.into()))?
        {
            return Err(changed_error());
        }
        Ok(bytes)
    }

    /// Parses the front matter of the skill and of its nested skills. Returns it by the path of the
    /// folder, with warnings about files that could belong to a nested skill.
    fn parse_front_matter<'a>(
        &self,
        contents: &BTreeMap<&'a str, (String, Vec<u8>)>,
    ) -> Result<(BTreeMap<&'a str, SkillFrontMatter>, Vec<String>), PlainFileError> {
        let mut front_matters = BTreeMap::new();
        let mut remarks = Vec::new();
        for (path, (uri, bytes)) in contents
            .iter()
            .filter(|(path, _)| file_name(path) == MANIFEST_NAME)
        {
            let folder = parent_path(path);
            let name = if folder.is_empty() {
                self.id
            } else {
                file_name(folder)
            };
            match parse_manifest(bytes, name) {
                Ok(front_matter) => drop(front_matters.insert(folder, front_matter)),
                // The whole version is refused, so that the version in service stays complete.
                Err(why) if folder.is_empty() || self.is_in_service(uri) => {
                    return Err(refused(format!(
                        "{}:{why}",
                        clean_line(path, MAX_SHOWN_NAME_BYTES)
                    )));
                }
                Err(why) => remarks.push(format!(
                    "{}:{why}; it is a file, and not a skill",
                    self.display_path(path)
                )),
            }
        }
        Ok((front_matters, remarks))
    }

    /// Returns whether the skill with this URI is in service.
    fn is_in_service(&self, uri: &str) -> bool {
        self.previous
            .is_some_and(|previous| previous.skills.iter().any(|skill| skill.uri == uri))
    }

    fn display_path(&self, path: &str) -> String {
        format!(
            "{}.skill/{}",
            self.id,
            clean_line(path, MAX_SHOWN_NAME_BYTES)
        )
    }
}

/// Parses the front matter of a `SKILL.md` in a folder with this name.
fn parse_manifest(bytes: &[u8], folder: &str) -> Result<SkillFrontMatter, String> {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return Err(" it is not valid UTF-8".to_owned());
    };
    if !is_clean(text) {
        // Clients compare the file with its digest, so it cannot be cleaned.
        let before = text
            .split_inclusive('\n')
            .take_while(|line| is_clean(line))
            .count();
        return Err(format!(
            "{}: it contains control characters: remove them",
            before + 1
        ));
    }
    SkillFrontMatter::parse(text, folder)
}

/// Creates the resource for a file of a skill. `front_matter` is that of its folder, if the folder
/// is a skill.
fn build_file_resource(
    path: &str,
    uri: String,
    bytes: Vec<u8>,
    front_matter: Option<&SkillFrontMatter>,
) -> FileResource {
    let digest = Digest::new(Sha256::digest(&bytes).into());
    match front_matter.filter(|_| file_name(path) == MANIFEST_NAME) {
        Some(SkillFrontMatter {
            name, description, ..
        }) => FileResource::from_skill(uri, path, name, Some(description.clone()), digest, bytes),
        None => FileResource::from_skill(uri, path, file_name(path), None, digest, bytes),
    }
}

/// Builds the skill in a folder, with the files in it.
fn build_skill(
    id: &str,
    folder: &str,
    front_matter: &SkillFrontMatter,
    files: &[Arc<FileResource>],
) -> Skill {
    let uri = manifest_uri(id, folder);
    let uri_prefix = uri.strip_suffix(MANIFEST_NAME).unwrap_or_default();
    let contained = files
        .iter()
        .filter(|file| file.entry.resource.uri.starts_with(uri_prefix));
    let resources = contained.filter_map(|file| {
        let (digest, size) = file.skill_identity()?;
        Some(SkillEntryFile {
            uri: &file.entry.resource.uri,
            digest: format!("sha256:{digest}"),
            size,
        })
    });
    let entry = JsonText::from_serializable(&SkillEntry {
        uri: &uri,
        frontmatter: &front_matter.fields,
        resources: resources.collect(),
    });
    Skill {
        description: front_matter.description.clone(),
        entry,
        uri,
    }
}

/// Returns the URI of the `SKILL.md` in a folder of the skill `id`.
fn manifest_uri(id: &str, folder: &str) -> String {
    let segments = folder.split('/').filter(|segment| !segment.is_empty());
    uri::for_skill(id, segments.chain([MANIFEST_NAME]))
}

/// Returns the path of the folder of a file. The path of the root is empty.
fn parent_path(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// Returns the last segment of a path.
fn file_name(path: &str) -> &str {
    path.rsplit_once('/').map_or(path, |(_, name)| name)
}

fn refused(why: String) -> PlainFileError {
    PlainFileError::Refused(why)
}

#[cfg(test)]
mod tests;
