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

use crate::folder::PluginFiles;
use crate::stamp::FileStamp;

/// A file must not have changed for so long before it is read. The coarsest file system counts two seconds.
const SETTLED: Duration = Duration::from_secs(3);

/// A component that was read.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct KnownFile {
    component: FileStamp,
    /// The `.wit` file beside it, if there is one.
    wit: Option<FileStamp>,
    #[serde(with = "bytes")]
    digest: Digest,
}

/// What identifies a component that was read.
#[derive(Debug)]
pub(crate) struct ComponentStamps {
    component: FileStamp,
    wit: Option<FileStamp>,
}

impl ComponentStamps {
    /// Those of files that were read after `now`, and that had them before and after; `None` if they identify nothing.
    pub(crate) fn new(component: FileStamp, wit: Option<FileStamp>, now: SystemTime) -> Option<Self> {
        let settled = component.is_older(now, SETTLED) && wit.as_ref().is_none_or(|wit| wit.is_older(now, SETTLED));
        settled.then_some(Self { component, wit })
    }
}

/// The components of one folder, while a server starts.
#[derive(Debug)]
pub(crate) struct KnownFiles(Mutex<Option<KnownComponent>>);

#[derive(Debug, Default)]
struct KnownComponent {
    /// As of the start before, by plugin.
    before: BTreeMap<String, KnownFile>,
    /// As of now.
    now: BTreeMap<String, KnownFile>,
}

impl Default for KnownFiles {
    fn default() -> Self {
        Self(Mutex::new(Some(KnownComponent::default())))
    }
}

impl KnownFiles {
    /// Takes what a server noted before.
    pub(crate) fn recall(&self, notes: &str) {
        if let Some(known) = self.lock().as_mut() {
            known.before = serde_json::from_str(notes).unwrap_or_default();
        }
    }

    /// The digest of a plugin's component, if these files are known and have at most `limit` bytes.
    pub(crate) fn digest(&self, id: &str, files: &PluginFiles, limit: u64) -> Option<Digest> {
        let mut known = self.lock();
        let known = known.as_mut()?;
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
    pub(crate) fn note(&self, id: &str, stamps: Option<ComponentStamps>, digest: Digest) {
        let mut known = self.lock();
        let Some(known) = known.as_mut() else { return };
        let file = stamps.map(|ComponentStamps { component, wit }| KnownFile { component, wit, digest });
        known.now.remove(id);
        known.now.extend(file.map(|file| (id.to_owned(), file)));
    }

    /// The start is over: the notes for the next one, if they are others than those that were recalled. What is read
    /// later is not noted.
    pub(crate) fn finish(&self) -> Option<Box<RawValue>> {
        let KnownComponent { before, now } = self.lock().take()?;
        if now == before { None } else { to_raw_value(&now).ok() }
    }

    fn lock(&self) -> MutexGuard<'_, Option<KnownComponent>> {
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
    use std::path::{Path, PathBuf};

    use tempfile::TempDir;

    use super::*;
    use crate::read::read_stamped;

    /// Long enough after anything that the test has done.
    fn later() -> SystemTime {
        SystemTime::now() + 2 * SETTLED
    }

    fn stamp(path: &Path) -> FileStamp {
        FileStamp::of(&fs::metadata(path).unwrap())
    }

    fn files(path: &Path) -> PluginFiles {
        let beside = path.with_extension("wit");
        PluginFiles {
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
        let stamps = ComponentStamps::new(stamp(path), wit.exists().then(|| stamp(&wit)), later());
        let (first, second) = (KnownFiles::default(), KnownFiles::default());
        first.note("a", stamps, DIGEST);
        second.recall(first.finish().unwrap().get());
        second
    }

    const DIGEST: Digest = Digest::new([7; 32]);

    /// A folder with a component of three bytes.
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
        assert_eq!(known.digest("a", &files(&path), 2), None, "the limit is lower now");
        assert_eq!(known.digest("b", &files(&path), 3), None);
        assert_eq!(known.digest("a", &files(&path), 3), Some(DIGEST));
        assert!(known.finish().is_none(), "nothing is new");
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
            let (dir, path) = component();
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
        let (dir, path) = component();
        assert!(read_stamped(&path, 9).unwrap().1.is_none());
        // Not if only its modification is said to be long ago.
        let long_ago = SystemTime::now() - 100 * SETTLED;
        File::options().append(true).open(&path).unwrap().set_modified(long_ago).unwrap();
        assert!(read_stamped(&path, 9).unwrap().1.is_none());
        assert!(ComponentStamps::new(stamp(&path), None, SystemTime::now() + SETTLED / 2).is_none());
        assert!(ComponentStamps::new(stamp(&path), Some(stamp(&path)), SystemTime::now()).is_none());
        assert!(ComponentStamps::new(stamp(&path), None, later()).is_some());
        // Of the future.
        let path = dir.path().join("b.wasm");
        fs::write(&path, "one").unwrap();
        File::options().append(true).open(&path).unwrap().set_modified(later() + SETTLED).unwrap();
        assert!(ComponentStamps::new(stamp(&path), None, later()).is_none());
    }

    #[test]
    fn what_is_no_longer_read_is_no_longer_noted() {
        let (_dir, path) = component();
        let known = known(&path);
        known.digest("a", &files(&path), 3).unwrap();
        known.note("a", None, DIGEST);
        assert_eq!(known.finish().unwrap().get(), "{}");
        let damaged = KnownFiles::default();
        damaged.recall("[1]");
        assert_eq!(damaged.digest("a", &files(&path), 3), None);
    }

    #[test]
    fn what_is_read_after_the_start_is_not_kept() {
        let (_dir, path) = component();
        let known = known(&path);
        known.note("b", ComponentStamps::new(stamp(&path), None, later()), DIGEST);
        assert!(known.finish().unwrap().get().contains("\"b\""));
        known.note("c", ComponentStamps::new(stamp(&path), None, later()), DIGEST);
        assert!(known.finish().is_none());
        assert_eq!(known.digest("a", &files(&path), 3), None);
    }
}
