//! Scans a folder of plain files next to the plugins: the names and stamps of the files to offer.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, Dir, FileType, Stat, fstat, statat};
use rustix::io::Errno;
use toolbay_model::text::{clean_line, format_thousands};

use crate::folder::file_stamp::FileStamp;
use crate::folder::openat_beneath::{open_file, open_folder, open_root};

/// Maximum nesting depth of folders.
const MAX_DEPTH: usize = 16;

/// Maximum number of inspected entries per allowed file. Some entries are not offered, such as
/// hidden files.
const ENTRIES_PER_FILE: usize = 4;

/// Maximum number of notes about individual files. Further notes are only counted.
const MAX_NOTES: usize = 20;

/// Maximum length of a name in a note, in bytes.
const MAX_SHOWN_NAME_BYTES: usize = 200;

/// The purpose of a folder of plain files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TreeKind {
    /// `<id>.prompts`: the files directly in it that end in `.md`.
    Prompts,
    /// `<id>.resources`: all files in it and in its subfolders.
    Resources,
    /// `<id>.skill`: all files in it and in its subfolders.
    Skill,
}

impl TreeKind {
    /// Returns a hint about the configuration key that raises the number of files.
    fn limit_hint(self) -> &'static str {
        match self {
            Self::Prompts => " (to allow more, raise describe.prompts)",
            Self::Resources => " (to allow more, raise describe.resources)",
            // Clients need not accept more.
            Self::Skill => "",
        }
    }
}

/// The content of a folder of plain files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PlainTree {
    /// The files, by path relative to the folder.
    pub(crate) files: BTreeMap<String, FileStamp>,
    /// The scanned folders, with device and inode, by path relative to the folder. The path of the
    /// folder itself is "".
    pub(crate) folders: BTreeMap<String, (u64, u64)>,
    /// Files that are not offered but were probably meant to be, with the reason.
    pub(crate) notes: Vec<String>,
    /// The reason why nothing in the folder can be offered.
    pub(crate) error: Option<TreeError>,
}

/// The reason why nothing in a folder can be offered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TreeError {
    /// A reason that persists until the files change.
    Permanent(String),
    /// A transient reason, such as too many open files.
    Transient(String),
}

impl TreeError {
    fn from_errno(error: Errno) -> Self {
        match permanent_reason(error) {
            Some(why) => Self::Permanent(format!("it {why}")),
            None => Self::Transient(format!("it cannot be read: {}", io::Error::from(error))),
        }
    }
}

/// Scans the folder at `path`, in which at most `max_files` files may be offered; `None` if there
/// is no such folder. An error is part of the result, because it concerns only this folder, and
/// other plugins must not wait until it is resolved.
pub(crate) fn scan(path: &Path, kind: TreeKind, max_files: usize) -> Option<PlainTree> {
    let root = match open_root(path) {
        Ok(root) => root,
        Err(Errno::NOENT | Errno::NOTDIR) => return None,
        Err(error) => {
            return Some(PlainTree {
                error: Some(TreeError::from_errno(error)),
                ..PlainTree::default()
            });
        }
    };
    let mut scan = TreeScan {
        root: root.as_fd(),
        kind,
        max_files,
        visited: 0,
        notes: Vec::new(),
        tree: PlainTree::default(),
    };
    let scan_result = scan.scan_folder(&root, "", 1);
    let TreeScan {
        tree, mut notes, ..
    } = scan;
    let error = match scan_result {
        Ok(()) => None,
        Err(ScanStop::Unreadable(error)) => Some(TreeError::from_errno(error)),
        Err(ScanStop::TooMany) => {
            let most = format_thousands(max_files as u64);
            let what = if tree.files.is_empty() {
                "entries"
            } else {
                "files"
            };
            let hint = kind.limit_hint();
            Some(TreeError::Permanent(format!(
                "it has too many {what}: at most {most} files are allowed{hint}"
            )))
        }
    };
    if error.is_some() {
        // The order of the scan is arbitrary, so partial results would differ between scans. The
        // identity of the folder itself is stable.
        let folders = tree
            .folders
            .into_iter()
            .filter(|(path, _)| path.is_empty())
            .collect();
        return Some(PlainTree {
            folders,
            error,
            ..PlainTree::default()
        });
    }
    notes.sort_unstable();
    if notes.len() > MAX_NOTES {
        let more = notes.len() - MAX_NOTES;
        notes.truncate(MAX_NOTES);
        notes.push(format!(
            "{} more files are not offered",
            format_thousands(more as u64)
        ));
    }
    Some(PlainTree { notes, ..tree })
}

/// The reason why a scan stopped early.
enum ScanStop {
    TooMany,
    /// The scanned folder cannot be read.
    Unreadable(Errno),
}

struct TreeScan<'a> {
    root: BorrowedFd<'a>,
    kind: TreeKind,
    max_files: usize,
    visited: usize,
    notes: Vec<String>,
    tree: PlainTree,
}

impl TreeScan<'_> {
    /// Scans one folder. Its `path` ends in a slash, unless it is the root.
    fn scan_folder(&mut self, folder: &OwnedFd, path: &str, depth: usize) -> Result<(), ScanStop> {
        let stat = fstat(folder).map_err(ScanStop::Unreadable)?;
        self.tree.folders.insert(
            path.trim_end_matches('/').to_owned(),
            (stat.st_dev, stat.st_ino),
        );
        for entry in Dir::read_from(folder).map_err(ScanStop::Unreadable)? {
            let entry = entry.map_err(ScanStop::Unreadable)?;
            let name = entry.file_name().to_bytes();
            if name == b"." || name == b".." {
                continue;
            }
            self.visited += 1;
            if self.visited
                > self
                    .max_files
                    .saturating_mul(ENTRIES_PER_FILE)
                    .saturating_add(ENTRIES_PER_FILE)
            {
                return Err(ScanStop::TooMany);
            }
            // Skip hidden files and the backups of editors.
            if name.starts_with(b".") || name.ends_with(b"~") {
                continue;
            }
            let Ok(name) = std::str::from_utf8(name) else {
                self.add_note(
                    path,
                    &String::from_utf8_lossy(name),
                    "its name is not valid UTF-8",
                );
                continue;
            };
            let stat = match statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => stat,
                // It was deleted after it was listed.
                Err(Errno::NOENT) => continue,
                // The entries of the folder can be listed but not inspected, which applies to all
                // of them.
                Err(error) => return Err(ScanStop::Unreadable(error)),
            };
            self.visit_entry(folder, path, name, &stat, depth)?;
        }
        Ok(())
    }

    fn visit_entry(
        &mut self,
        folder: &OwnedFd,
        path: &str,
        name: &str,
        stat: &Stat,
        depth: usize,
    ) -> Result<(), ScanStop> {
        let is_folder = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
        if self.kind == TreeKind::Prompts {
            if is_folder {
                self.add_note(path, name, "prompts must be directly in the folder");
                return Ok(());
            }
            if name.strip_suffix(".md").is_none() {
                self.add_note(path, name, "its name must end in .md");
                return Ok(());
            }
        }
        if is_folder {
            if depth >= MAX_DEPTH {
                self.add_note(
                    path,
                    name,
                    &format!("folders can be nested at most {MAX_DEPTH} levels deep"),
                );
                return Ok(());
            }
            return match open_folder(folder.as_fd(), name) {
                Ok(inner) => match self.scan_folder(&inner, &format!("{path}{name}/"), depth + 1) {
                    Err(ScanStop::Unreadable(error)) => {
                        let prefix = format!("{path}{name}/");
                        let scanned = self
                            .tree
                            .files
                            .range(prefix.clone()..)
                            .map(|(file, _)| file);
                        let scanned_files: Vec<String> = scanned
                            .take_while(|file| file.starts_with(&prefix))
                            .cloned()
                            .collect();
                        for file in &scanned_files {
                            self.tree.files.remove(file);
                        }
                        self.note_unreadable(path, name, error)
                    }
                    result => result,
                },
                // It was deleted or replaced after it was listed: that causes another event.
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(()),
                Err(error) => self.note_unreadable(path, name, error),
            };
        }
        let stamp = match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => FileStamp::from_stat(stat),
            FileType::Symlink => match self.link_target_stamp(&format!("{path}{name}")) {
                Ok(Some(stamp)) => stamp,
                Ok(None) => {
                    self.add_note(path, name, "only links to files are followed");
                    return Ok(());
                }
                Err(Errno::XDEV) => {
                    self.add_note(path, name, "it is a link that leaves the folder");
                    return Ok(());
                }
                Err(Errno::NOENT | Errno::LOOP) => {
                    self.add_note(path, name, "it is a link that leads nowhere");
                    return Ok(());
                }
                Err(error) => return self.note_unreadable(path, name, error),
            },
            _ => {
                self.add_note(path, name, "it is not a regular file");
                return Ok(());
            }
        };
        self.tree.files.insert(format!("{path}{name}"), stamp);
        if self.tree.files.len() > self.max_files {
            Err(ScanStop::TooMany)
        } else {
            Ok(())
        }
    }

    /// Returns the stamp of the target of a link, if it is a regular file.
    fn link_target_stamp(&self, path: &str) -> Result<Option<FileStamp>, Errno> {
        let stat = fstat(open_file(self.root, path)?)?;
        let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        Ok(is_file.then(|| FileStamp::from_stat(&stat)))
    }

    fn note_unreadable(&mut self, path: &str, name: &str, error: Errno) -> Result<(), ScanStop> {
        let why = permanent_reason(error).ok_or(ScanStop::Unreadable(error))?;
        self.add_note(path, name, &format!("it {why}"));
        Ok(())
    }

    fn add_note(&mut self, path: &str, name: &str, why: &str) {
        self.notes.push(format!(
            "{} is not offered: {why}",
            clean_line(&format!("{path}{name}"), MAX_SHOWN_NAME_BYTES)
        ));
    }
}

/// Describes an error that persists until the files change; `None` for others, such as too many
/// open files.
fn permanent_reason(error: Errno) -> Option<String> {
    matches!(
        error,
        Errno::ACCESS | Errno::PERM | Errno::LOOP | Errno::NAMETOOLONG
    )
    .then(|| format!("cannot be read: {}", io::Error::from(error).kind()))
}

#[cfg(test)]
mod tests;
