//! Components that need not be read when the server starts, because they are unchanged since the
//! previous start.
//!
//! A file is unchanged if its length, its device and inode, and the times of its last changes are
//! the same, to the nanosecond. A writer of a file can set its modification time, but not its inode
//! change time: the system sets that time from its own clock, at every write and every other
//! change. The time is as coarse as the file system's clock. A file that was changed just before it
//! was read could be changed again without a new time. Such a file is not recorded, and is read
//! again at the next start.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use parking_lot::{Mutex, MutexGuard};
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use toolbay_model::Digest;

use crate::folder::file_stamp::FileStamp;
use crate::folder::plugin_folder::PluginFiles;

/// Minimum time between the last change of a file and its read. The coarsest file system has a
/// resolution of two seconds.
const MIN_FILE_AGE: Duration = Duration::from_secs(3);

/// Record of a component that was read.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct KnownFile {
    component: FileStamp,
    /// The `.wit` file next to it, if there is one.
    wit: Option<FileStamp>,
    #[serde(with = "bytes")]
    digest: Digest,
}

/// Stamps that identify a component that was read.
#[derive(Debug)]
pub(crate) struct ComponentStamps {
    component: FileStamp,
    wit: Option<FileStamp>,
}

impl ComponentStamps {
    /// Returns the stamps of files that were read after `read_start`, and that had these stamps
    /// before and after the read. Returns `None` if they do not identify the files, because a file
    /// changed too recently.
    pub(crate) fn new(
        component: FileStamp,
        wit: Option<FileStamp>,
        read_start: SystemTime,
    ) -> Option<Self> {
        let is_settled = component.is_older_than(read_start, MIN_FILE_AGE)
            && wit
                .as_ref()
                .is_none_or(|wit| wit.is_older_than(read_start, MIN_FILE_AGE));
        is_settled.then_some(Self { component, wit })
    }
}

/// Known components of one folder, during a server start.
#[derive(Debug)]
pub(crate) struct KnownFiles(Mutex<Option<KnownFileTables>>);

#[derive(Debug, Default)]
struct KnownFileTables {
    /// Files as of the previous start, by plugin.
    previous: BTreeMap<String, KnownFile>,
    /// Files as of this start, by plugin.
    current: BTreeMap<String, KnownFile>,
}

impl Default for KnownFiles {
    fn default() -> Self {
        Self(Mutex::new(Some(KnownFileTables::default())))
    }
}

impl KnownFiles {
    /// Loads the notes of the previous server.
    pub(crate) fn load_notes(&self, notes: &str) {
        if let Some(tables) = self.lock().as_mut() {
            tables.previous = serde_json::from_str(notes).unwrap_or_default();
        }
    }

    /// Returns the digest of a plugin's component, if these files are known and the component has
    /// at most `limit` bytes.
    pub(crate) fn find_digest(&self, id: &str, files: &PluginFiles, limit: u64) -> Option<Digest> {
        let mut tables = self.lock();
        let tables = tables.as_mut()?;
        let file = tables.previous.get(id)?;
        let is_same = files.component.as_ref() == Some(&file.component) && files.wit == file.wit;
        if !is_same || file.component.length > limit {
            return None;
        }
        let file = file.clone();
        let digest = file.digest;
        tables.current.insert(id.to_owned(), file);
        Some(digest)
    }

    /// Records a component that was read. Removes its record if there are no stamps.
    pub(crate) fn record(&self, id: &str, stamps: Option<ComponentStamps>, digest: Digest) {
        let mut tables = self.lock();
        let Some(tables) = tables.as_mut() else {
            return;
        };
        let file = stamps.map(|ComponentStamps { component, wit }| KnownFile {
            component,
            wit,
            digest,
        });
        tables.current.remove(id);
        tables
            .current
            .extend(file.map(|file| (id.to_owned(), file)));
    }

    /// Stops recording, because the server has started. Returns the notes for the next start, if
    /// they differ from those that were loaded.
    pub(crate) fn finish(&self) -> Option<Box<RawValue>> {
        let KnownFileTables {
            previous: before,
            current: now,
        } = self.lock().take()?;
        if now == before {
            None
        } else {
            to_raw_value(&now).ok()
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<KnownFileTables>> {
        self.0.lock()
    }
}

/// Serialization of digests as bytes.
mod bytes {
    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};
    use toolbay_model::Digest;

    pub(super) fn serialize<S: Serializer>(
        digest: &Digest,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        digest.bytes().serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Digest, D::Error> {
        <[u8; 32]>::deserialize(deserializer).map(Digest::new)
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::path::{Path, PathBuf};

    use tempfile::TempDir;

    use super::*;
    use crate::folder::file_reader::read_source_with_stamps;

    /// Returns a time that is long enough after everything that the test has done.
    fn later() -> SystemTime {
        SystemTime::now() + 2 * MIN_FILE_AGE
    }

    fn stamp(path: &Path) -> FileStamp {
        FileStamp::from_metadata(&fs::metadata(path).unwrap())
    }

    fn files(path: &Path) -> PluginFiles {
        let beside = path.with_extension("wit");
        PluginFiles {
            component: Some(stamp(path)),
            grant: None,
            misnamed_grant: None,
            wit: beside.exists().then(|| stamp(&beside)),
            prompts: None,
            resources: None,
            skill: None,
        }
    }

    /// Returns the known files of a server that starts after one that read the file.
    fn known(path: &Path) -> KnownFiles {
        let wit = path.with_extension("wit");
        let stamps = ComponentStamps::new(stamp(path), wit.exists().then(|| stamp(&wit)), later());
        let first = KnownFiles::default();
        let second = KnownFiles::default();
        first.record("a", stamps, DIGEST);
        second.load_notes(first.finish().unwrap().get());
        second
    }

    const DIGEST: Digest = Digest::new([7; 32]);

    /// Creates a folder with a component of three bytes.
    fn component() -> (TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.wasm");
        fs::write(&path, "one").unwrap();
        (dir, path)
    }

    #[test]
    fn an_unchanged_file_is_known() {
        let (_dir, path) = component();
        let known = known(&path);
        assert_eq!(
            known.find_digest("a", &files(&path), 2),
            None,
            "the limit is lower now"
        );
        assert_eq!(known.find_digest("b", &files(&path), 3), None);
        assert_eq!(known.find_digest("a", &files(&path), 3), Some(DIGEST));
        assert!(known.finish().is_none(), "nothing is new");
    }

    #[test]
    fn a_file_with_other_content_is_not_known_even_with_the_same_times() {
        let changes: [fn(&Path); 4] = [
            // In place, and as another file with the same name.
            |path| fs::write(path, "two").unwrap(),
            |path| {
                let other = path.with_extension("other");
                fs::write(&other, "two").unwrap();
                fs::rename(other, path).unwrap();
            },
            |path| {
                fs::remove_file(path).unwrap();
                fs::write(path, "two").unwrap();
            },
            |path| fs::write(path.with_extension("wit"), "package a:b;").unwrap(),
        ];
        for change in changes {
            let (dir, path) = component();
            let known = known(&path);
            let before = fs::metadata(&path).unwrap();
            // The clock of the file system advances in steps. A change is certain to show only
            // after a step.
            wait_for_a_step(dir.path());
            change(&path);
            File::options()
                .append(true)
                .open(&path)
                .unwrap()
                .set_modified(before.modified().unwrap())
                .unwrap();
            assert_eq!(
                fs::metadata(&path).unwrap().modified().unwrap(),
                before.modified().unwrap()
            );
            assert_eq!(known.find_digest("a", &files(&path), 9), None);
        }
    }

    /// Waits until the clock of the file system has advanced.
    fn wait_for_a_step(dir: &Path) {
        let probe = dir.join("probe");
        fs::write(&probe, "").unwrap();
        let first = fs::metadata(&probe).unwrap().modified().unwrap();
        while fs::metadata(&probe).unwrap().modified().unwrap() == first {
            fs::write(&probe, "").unwrap();
        }
    }

    #[test]
    fn a_file_that_has_just_changed_is_not_recorded() {
        let (dir, path) = component();
        assert!(read_source_with_stamps(&path, 9).unwrap().1.is_none());
        // It is not enough that the modification time is long ago.
        let long_ago = SystemTime::now() - 100 * MIN_FILE_AGE;
        File::options()
            .append(true)
            .open(&path)
            .unwrap()
            .set_modified(long_ago)
            .unwrap();
        assert!(read_source_with_stamps(&path, 9).unwrap().1.is_none());
        assert!(
            ComponentStamps::new(stamp(&path), None, SystemTime::now() + MIN_FILE_AGE / 2)
                .is_none()
        );
        assert!(
            ComponentStamps::new(stamp(&path), Some(stamp(&path)), SystemTime::now()).is_none()
        );
        assert!(ComponentStamps::new(stamp(&path), None, later()).is_some());
        // The modification time is in the future.
        let path = dir.path().join("b.wasm");
        fs::write(&path, "one").unwrap();
        File::options()
            .append(true)
            .open(&path)
            .unwrap()
            .set_modified(later() + MIN_FILE_AGE)
            .unwrap();
        assert!(ComponentStamps::new(stamp(&path), None, later()).is_none());
    }

    #[test]
    fn files_that_are_no_longer_read_are_no_longer_recorded() {
        let (_dir, path) = component();
        let known = known(&path);
        known.find_digest("a", &files(&path), 3).unwrap();
        known.record("a", None, DIGEST);
        assert_eq!(known.finish().unwrap().get(), "{}");
        let damaged = KnownFiles::default();
        damaged.load_notes("[1]");
        assert_eq!(damaged.find_digest("a", &files(&path), 3), None);
    }

    #[test]
    fn files_that_are_read_after_the_start_are_not_recorded() {
        let (_dir, path) = component();
        let known = known(&path);
        known.record(
            "b",
            ComponentStamps::new(stamp(&path), None, later()),
            DIGEST,
        );
        assert!(known.finish().unwrap().get().contains("\"b\""));
        known.record(
            "c",
            ComponentStamps::new(stamp(&path), None, later()),
            DIGEST,
        );
        assert!(known.finish().is_none());
        assert_eq!(known.find_digest("a", &files(&path), 3), None);
    }
}
