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
use toolbay_model::text::line;
use toolbay_model::{Digest, JsonText, Skill};

use crate::beneath::open_file;
use crate::file_resource::{FileResource, is_plain};
use crate::shelf::{SkillMemory, SkillReservation};
use crate::skill_matter::{RULE, SkillMatter, is_skill_name};
use crate::stamp::FileStamp;
use crate::tree::PlainTree;
use crate::uri;
use crate::wrong::PlainFileError;

/// Name of the file that makes a folder a skill.
const MANIFEST: &str = "SKILL.md";

/// Maximum size of a skill, all files together. Every client accepts skills of this size.
const LARGEST: ByteSize = ByteSize::mib(16);

/// Memory that a file takes in addition to its content and its URI, in bytes.
const OVERHEAD: u64 = 512;

/// Number of copies of a file's URI in memory: in the resource, in a snapshot and in the entry of
/// the skill.
const URIS: u64 = 3;

/// Maximum length of a name in a message, in bytes.
const SHOWN: usize = 200;

/// A folder that is a skill, as it was when it was loaded.
#[derive(Debug)]
pub struct SkillFolder {
    /// The skill and its nested skills, by URI.
    pub skills: Vec<Arc<Skill>>,
    /// All files, by path.
    pub files: Vec<Arc<FileResource>>,
    /// Reservation of its memory.
    room: SkillReservation,
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
    pub(crate) output: ByteSize,
    /// The maximum total size of the entries of the skills.
    pub(crate) size: ByteSize,
    /// The memory budget for the files.
    pub(crate) shelf: &'a Arc<SkillMemory>,
    /// The version in service, if any.
    pub(crate) former: Option<&'a SkillFolder>,
}

/// An entry of `skills/list` and `skills/get`.
#[derive(Serialize)]
struct SkillEntry<'a> {
    uri: &'a str,
    frontmatter: &'a Map<String, Value>,
    resources: Vec<EntryFile<'a>>,
}

/// A file in the entry of a skill.
#[derive(Serialize)]
struct EntryFile<'a> {
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
    /// Returns why the skill cannot be offered, or why this version of it cannot. A skill is
    /// offered completely or not at all.
    pub(crate) fn load(found: &SkillSource<'_>) -> Result<(Self, Vec<String>), PlainFileError> {
        let SkillSource { id, tree, shelf, former, .. } = *found;
        if !is_skill_name(id) {
            return Err(refused(format!("{RULE}: rename the folder")));
        }
        if !tree.files.contains_key(MANIFEST) {
            let other = tree.files.keys().find(|path| path.eq_ignore_ascii_case(MANIFEST));
            let hint = other.map(|path| format!(": rename {path} to {MANIFEST}")).unwrap_or_default();
            return Err(refused(format!("it has no file {MANIFEST}{hint}")));
        }
        let (uris, mut remarks) = found.uris();
        let bytes = found.check_sizes(&uris)?;
        let room = shelf.take(bytes, former.map(|former| &former.room)).map_err(|most| {
            let most = most.display().iec();
            refused(format!(
                "the files of all skills are larger than {most} in total (to allow more, raise describe.skills)"
            ))
        })?;
        let mut contents = BTreeMap::new();
        for (path, (uri, stamp)) in uris {
            contents.insert(path, (uri, found.read(path, stamp)?));
        }
        let (matters, nested) = found.matters(&contents)?;
        remarks.extend(nested);
        let files: Vec<Arc<FileResource>> = contents
            .into_iter()
            .map(|(path, (uri, bytes))| Arc::new(file(path, uri, bytes, matters.get(folder_of(path)))))
            .collect();
        let skills: Vec<Arc<Skill>> =
            matters.iter().map(|(folder, matter)| Arc::new(skill(id, folder, matter, &files))).collect();
        let entries: usize = skills.iter().map(|skill| skill.size()).sum();
        if entries as u64 > found.size.as_u64() {
            let most = found.size.display().iec();
            return Err(refused(format!(
                "what clients are told of its files is larger than {most} (to allow more, raise describe.size)"
            )));
        }
        Ok((Self { skills, files, room }, remarks))
    }
}

impl SkillSource<'_> {
    /// Returns the offered files with their URIs, by path, and warnings about the others.
    fn uris(&self) -> (BTreeMap<&str, (String, &FileStamp)>, Vec<String>) {
        let (mut uris, mut remarks) = (BTreeMap::new(), Vec::new());
        for (path, stamp) in &self.tree.files {
            let uri = uri::of_skill(self.id, path.split('/'));
            match uri::check(&uri) {
                Ok(()) => drop(uris.insert(path.as_str(), (uri, stamp))),
                Err(why) => remarks.push(format!("{} is not offered: its URI {why}", self.shown(path))),
            }
        }
        (uris, remarks)
    }

    /// Checks the sizes before anything is read. Returns the memory that all files will take, in
    /// bytes.
    fn check_sizes(&self, uris: &BTreeMap<&str, (String, &FileStamp)>) -> Result<u64, PlainFileError> {
        let mut size = 0_u64;
        for (path, (_, stamp)) in uris {
            if stamp.length > self.output.as_u64() {
                let most = self.output.display().iec();
                let (path, id) = (line(path, SHOWN), self.id);
                return Err(refused(format!(
                    "{path} is larger than {most} (to allow more, raise limits.output in {id}.toml)"
                )));
            }
            size = size.saturating_add(stamp.length);
        }
        if size > LARGEST.as_u64() {
            let [size, most] = [ByteSize::b(size), LARGEST].map(|size| size.display().iec().to_string());
            return Err(refused(format!("its files have {size} in total, but at most {most} are allowed")));
        }
        let beside: u64 = uris.values().map(|(uri, _)| OVERHEAD + URIS * uri.len() as u64).sum();
        Ok(size.saturating_add(beside))
    }

    /// Reads a file, which must be as the scan found it. Otherwise, it is being changed, and the
    /// skill could mix files of two versions.
    fn read(&self, path: &str, stamp: &FileStamp) -> Result<Vec<u8>, PlainFileError> {
        let changed = || refused(format!("{} changed while it was read", line(path, SHOWN)));
        let hindered = |error: io::Error| PlainFileError::hindered(&self.shown(path), &error);
        let file = match open_file(self.root.as_fd(), path) {
            Ok(file) => File::from(file),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::XDEV) => return Err(changed()),
            Err(error @ (Errno::ACCESS | Errno::PERM)) => {
                let why = io::Error::from(error).kind();
                return Err(refused(format!("{} cannot be read: {why}", line(path, SHOWN))));
            }
            Err(error) => return Err(hindered(error.into())),
        };
        let same = |file: &File| fstat(file).map(|stat| FileStamp::of_entry(&stat) == *stamp);
        if !same(&file).map_err(|error| hindered(error.into()))? {
            return Err(changed());
        }
        let mut bytes = Vec::with_capacity(usize::try_from(stamp.length).unwrap_or_default());
        (&file).take(stamp.length.saturating_add(1)).read_to_end(&mut bytes).map_err(hindered)?;
        if bytes.len() as u64 != stamp.length || !same(&file).map_err(|error| hindered(error.into()))? {
            return Err(changed());
        }
        Ok(bytes)
    }

    /// Parses the front matter of the skill and of its nested skills. Returns it by the path of the
    /// folder, with warnings about files that could belong to a nested skill.
    fn matters<'a>(
        &self,
        contents: &BTreeMap<&'a str, (String, Vec<u8>)>,
    ) -> Result<(BTreeMap<&'a str, SkillMatter>, Vec<String>), PlainFileError> {
        let (mut matters, mut remarks) = (BTreeMap::new(), Vec::new());
        for (path, (uri, bytes)) in contents.iter().filter(|(path, _)| name_of(path) == MANIFEST) {
            let folder = folder_of(path);
            let name = if folder.is_empty() { self.id } else { name_of(folder) };
            match matter(bytes, name) {
                Ok(matter) => drop(matters.insert(folder, matter)),
                // The version in service stays complete.
                Err(why) if folder.is_empty() || self.was_skill(uri) => {
                    return Err(refused(format!("{}:{why}", line(path, SHOWN))));
                }
                Err(why) => remarks.push(format!("{}:{why}; it is a file, and not a skill", self.shown(path))),
            }
        }
        Ok((matters, remarks))
    }

    /// Returns whether the skill with this URI is in service.
    fn was_skill(&self, uri: &str) -> bool {
        self.former.is_some_and(|former| former.skills.iter().any(|skill| skill.uri == uri))
    }

    fn shown(&self, path: &str) -> String {
        format!("{}.skill/{}", self.id, line(path, SHOWN))
    }
}

/// Parses the front matter of a `SKILL.md` in a folder with this name.
fn matter(bytes: &[u8], folder: &str) -> Result<SkillMatter, String> {
    let Ok(text) = std::str::from_utf8(bytes) else { return Err(" it is not valid UTF-8".to_owned()) };
    if !is_plain(text) {
        // Clients compare the file with its digest, so it cannot be cleaned.
        let before = text.split_inclusive('\n').take_while(|line| is_plain(line)).count();
        return Err(format!("{}: it contains control characters: remove them", before + 1));
    }
    SkillMatter::of(text, folder)
}

/// Creates the resource for a file of a skill. `matter` is the front matter of its folder if that
/// is a skill.
fn file(path: &str, uri: String, bytes: Vec<u8>, matter: Option<&SkillMatter>) -> FileResource {
    let digest = Digest::new(Sha256::digest(&bytes).into());
    match matter.filter(|_| name_of(path) == MANIFEST) {
        Some(SkillMatter { name, description, .. }) => {
            FileResource::kept(uri, path, name, Some(description.clone()), digest, bytes)
        }
        None => FileResource::kept(uri, path, name_of(path), None, digest, bytes),
    }
}

/// Builds the skill in a folder, with the files in it.
fn skill(id: &str, folder: &str, matter: &SkillMatter, files: &[Arc<FileResource>]) -> Skill {
    let uri = uri_of(id, folder);
    let beneath = uri.strip_suffix(MANIFEST).unwrap_or_default();
    let within = files.iter().filter(|file| file.entry.resource.uri.starts_with(beneath));
    let resources = within.filter_map(|file| {
        let (digest, size) = file.identity()?;
        Some(EntryFile { uri: &file.entry.resource.uri, digest: format!("sha256:{digest}"), size })
    });
    let entry =
        JsonText::written(&SkillEntry { uri: &uri, frontmatter: &matter.fields, resources: resources.collect() });
    Skill { description: matter.description.clone(), entry, uri }
}

/// Returns the URI of the `SKILL.md` in a folder of the skill `id`.
fn uri_of(id: &str, folder: &str) -> String {
    let within = folder.split('/').filter(|segment| !segment.is_empty());
    uri::of_skill(id, within.chain([MANIFEST]))
}

/// Returns the path of the folder of a file. The path of the root is empty.
fn folder_of(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// Returns the last segment of a path.
fn name_of(path: &str) -> &str {
    path.rsplit_once('/').map_or(path, |(_, name)| name)
}

fn refused(why: String) -> PlainFileError {
    PlainFileError::Refused(why)
}

#[cfg(test)]
mod tests;
