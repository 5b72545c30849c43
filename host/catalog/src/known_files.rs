//! Components that need not be read at a start, because they are known to be the same as at the one before.
//!
//! A file is the same if its length, its device and inode, and the times of its last changes are, to the nanosecond. Whoever
//! can write a file can set the time at which it was modified, but not the time at which its inode changed: that one is the
//! system's clock, and every write and every other change sets it. It is as coarse as the file system's clock. A file that
//! was changed just before it was read could be changed again without another time, so such a file is not noted: it is read
//! again at the next start.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use toolbay_model::Digest;

use crate::folder::Files;
use crate::stamp::Stamp;

/// A file must not have changed for so long before it is read. The coarsest file system counts two seconds.
const SETTLED: Duration = Duration::from_secs(3);

/// A component that was read.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct KnownFile {
    component: Stamp,
    /// The `.wit` file beside it, if there is one.
    wit: Option<Stamp>,
    #[serde(with = "bytes")]
    digest: Digest,
}

impl KnownFile {
    /// What identifies a component that was read after `now`, with these stamps before and after; `None` if nothing does.
    pub(crate) fn new(component: Stamp, wit: Option<Stamp>, digest: Digest, now: SystemTime) -> Option<Self> {
        let settled = component.is_older(now, SETTLED) && wit.as_ref().is_none_or(|wit| wit.is_older(now, SETTLED));
        settled.then_some(Self { component, wit, digest })
    }
}

/// The components of one folder.
#[derive(Debug, Default)]
pub(crate) struct KnownFiles(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    /// As of the start before, by plugin.
    before: BTreeMap<String, KnownFile>,
    /// As of now.
    now: BTreeMap<String, KnownFile>,
}

impl KnownFiles {
    /// Takes what a server noted before.
    pub(crate) fn recall(&self, notes: &str) {
        self.lock().before = serde_json::from_str(notes).unwrap_or_default();
    }

    /// The digest of a plugin's component, if these files are known and have at most `limit` bytes.
    pub(crate) fn digest(&self, id: &str, files: &Files, limit: u64) -> Option<Digest> {
        let mut known = self.lock();
        let file = known.before.get(id)?;
        let same = files.component.as_ref() == Some(&file.component) && files.wit == file.wit;
        if !same || file.component.length > limit {
            return None;
        }
        let file = file.clone();
        let digest = file.digest;
        known.now.insert(id.to_owned(), file);
        Some(digest)
    }

    /// Notes what was read.
    pub(crate) fn note(&self, id: &str, file: Option<KnownFile>) {
        let mut known = self.lock();
        match file {
            Some(file) => drop(known.now.insert(id.to_owned(), file)),
            None => drop(known.now.remove(id)),
        }
    }

    /// The notes for the next start, if they are others than those that were recalled.
    pub(crate) fn news(&self) -> Option<Box<RawValue>> {
        let mut known = self.lock();
        if known.now == known.before {
            return None;
        }
        known.before = known.now.clone();
        to_raw_value(&known.now).ok()
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Digests as their bytes.
mod bytes {
    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};
    use toolbay_model::Digest;

    pub(super) fn serialize<S: Serializer>(digest: &Digest, serializer: S) -> Result<S::Ok, S::Error> {
        digest.bytes().serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Digest, D::Error> {
        <[u8; 32]>::deserialize(deserializer).map(Digest::new)
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::path::Path;

    use super::*;
    use crate::read::read_stamped;

    /// Long enough after anything that the test has done.
    fn later() -> SystemTime {
        SystemTime::now() + 2 * SETTLED
    }

    fn stamp(path: &Path) -> Stamp {
        Stamp::of(&fs::metadata(path).unwrap())
    }

    fn files(path: &Path) -> Files {
        let beside = path.with_extension("wit");
        Files {
            component: Some(stamp(path)),
            grant: None,
            wit: beside.exists().then(|| stamp(&beside)),
            prompts: None,
            resources: None,
            skill: None,
        }
    }

    /// What a server knows that starts after one that read the file.
    fn known(path: &Path) -> KnownFiles {
        let wit = path.with_extension("wit");
        let file = KnownFile::new(stamp(path), wit.exists().then(|| stamp(&wit)), Digest::new([7; 32]), later());
        let (first, second) = (KnownFiles::default(), KnownFiles::default());
        first.note("a", file);
        second.recall(first.news().unwrap().get());
        second
    }

    #[test]
    fn an_unchanged_file_is_known() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.wasm");
        fs::write(&path, "one").unwrap();
        let known = known(&path);
        assert_eq!(known.digest("a", &files(&path), 3), Some(Digest::new([7; 32])));
        assert!(known.news().is_none(), "nothing is new");
        assert_eq!(known.digest("a", &files(&path), 2), None, "the limit is lower now");
        assert_eq!(known.digest("b", &files(&path), 3), None);
    }

    #[test]
    fn a_file_with_another_content_is_not_known_whatever_its_times_were_set_to() {
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
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("a.wasm");
            fs::write(&path, "one").unwrap();
            let (known, before) = (known(&path), fs::metadata(&path).unwrap());
            // The clock of files moves in steps; only a step later does a change show for sure.
            wait_for_a_step(dir.path());
            change(&path);
            File::options().append(true).open(&path).unwrap().set_modified(before.modified().unwrap()).unwrap();
            assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), before.modified().unwrap());
            assert_eq!(known.digest("a", &files(&path), 9), None);
        }
    }

    /// Waits until the clock of files has moved on.
    fn wait_for_a_step(dir: &Path) {
        let probe = dir.join("probe");
        fs::write(&probe, "").unwrap();
        let first = fs::metadata(&probe).unwrap().modified().unwrap();
        while fs::metadata(&probe).unwrap().modified().unwrap() == first {
            fs::write(&probe, "").unwrap();
        }
    }

    #[test]
    fn a_file_that_has_just_changed_is_not_noted() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.wasm");
        fs::write(&path, "one").unwrap();
        assert!(read_stamped(&path, 9).unwrap().1.is_none());
        // Not if only its modification is said to be long ago.
        let long_ago = SystemTime::now() - 100 * SETTLED;
        File::options().append(true).open(&path).unwrap().set_modified(long_ago).unwrap();
        assert!(read_stamped(&path, 9).unwrap().1.is_none());
        let digest = Digest::new([7; 32]);
        assert!(KnownFile::new(stamp(&path), None, digest, SystemTime::now() + SETTLED / 2).is_none());
        assert!(KnownFile::new(stamp(&path), Some(stamp(&path)), digest, SystemTime::now()).is_none());
        assert!(KnownFile::new(stamp(&path), None, digest, later()).is_some());
        // Of the future.
        let path = dir.path().join("b.wasm");
        fs::write(&path, "one").unwrap();
        File::options().append(true).open(&path).unwrap().set_modified(later() + SETTLED).unwrap();
        assert!(KnownFile::new(stamp(&path), None, digest, later()).is_none());
    }

    #[test]
    fn what_is_no_longer_read_is_no_longer_noted() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.wasm");
        fs::write(&path, "one").unwrap();
        let known = known(&path);
        known.digest("a", &files(&path), 3).unwrap();
        known.note("a", None);
        assert_eq!(known.news().unwrap().get(), "{}");
        let damaged = KnownFiles::default();
        damaged.recall("[1]");
        assert_eq!(damaged.digest("a", &files(&path), 3), None);
    }
}
