//! Age of a grant. A file that is still being written may lack keys that restrict a plugin.

use std::time::{Duration, SystemTime};

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::folder::file_stamp::FileStamp;

/// Time for which a grant must have been unchanged before it takes effect.
pub(crate) const SETTLE_TIME: Duration = Duration::from_secs(1);

/// State of a grant's file when it was read.
#[derive(Clone, Debug)]
pub(crate) struct GrantSighting {
    /// Its stamp; `None` if it changed while it was read.
    pub(crate) stamp: Option<FileStamp>,
    /// True if the file system takes its times from the clock of this machine.
    pub(crate) is_local: bool,
}

/// Time since which the grant of one plugin has been unchanged.
#[derive(Debug, Default)]
pub(crate) struct GrantAge(Mutex<Option<(Option<FileStamp>, Instant)>>);

impl GrantAge {
    /// Returns when the file will have been unchanged for long enough, or `None` if it already has.
    /// `sighting` is the state that has just been read, or `None` if there is no file.
    pub(crate) fn settle_time(&self, sighting: Option<&GrantSighting>) -> Option<Instant> {
        self.settle_time_at(Instant::now(), SystemTime::now(), sighting)
    }

    fn settle_time_at(
        &self,
        now: Instant,
        clock: SystemTime,
        sighting: Option<&GrantSighting>,
    ) -> Option<Instant> {
        let mut last_seen = self.0.lock();
        let stamp = sighting.map(|seen| seen.stamp.as_ref());
        if stamp == Some(None) {
            *last_seen = None;
            return Some(now + SETTLE_TIME);
        }
        let stamp = stamp.flatten();
        let since = match &*last_seen {
            Some((before, since)) if before.as_ref() == stamp => *since,
            _ => {
                *last_seen = Some((stamp.cloned(), now));
                now
            }
        };
        let local_stamp = sighting
            .filter(|sighting| sighting.is_local)
            .and_then(|sighting| sighting.stamp.as_ref());
        let age = local_stamp
            .and_then(|stamp| stamp.unchanged_for(clock))
            .unwrap_or_default();
        let remaining = SETTLE_TIME.saturating_sub(age.max(now - since));
        (!remaining.is_zero()).then(|| now + remaining)
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};

    use super::*;

    fn seen(file: &File, is_local: bool) -> GrantSighting {
        GrantSighting {
            stamp: Some(FileStamp::from_metadata(&file.metadata().unwrap())),
            is_local,
        }
    }

    #[test]
    fn a_file_settles_when_it_has_been_unchanged_for_a_second() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.toml");
        fs::write(&path, "a").unwrap();
        let file = File::options().write(true).open(&path).unwrap();
        let hour = Duration::from_hours(1);
        let half = SETTLE_TIME / 2;
        let age = GrantAge::default();
        let clock = SystemTime::now();
        let start = Instant::now();
        let at = |after: Duration, seen: Option<&GrantSighting>| {
            age.settle_time_at(start + after, clock + after, seen)
                .map(|settles| settles - start)
        };
        file.set_modified(clock - half).unwrap();
        assert_eq!(
            at(Duration::ZERO, Some(&seen(&file, true))),
            Some(half),
            "its own time counts"
        );
        assert_eq!(at(half, Some(&seen(&file, true))), None);
        // On other file systems, and with implausible times, only observed changes count.
        for (modified, is_local) in [(clock - hour, false), (clock + hour, true)] {
            file.set_modified(modified).unwrap();
            let seen = seen(&file, is_local);
            assert_eq!(at(SETTLE_TIME, Some(&seen)), Some(2 * SETTLE_TIME));
            assert_eq!(at(SETTLE_TIME + half, Some(&seen)), Some(2 * SETTLE_TIME));
            assert_eq!(at(2 * SETTLE_TIME, Some(&seen)), None);
        }
        // Another file, a file that changed while it was read, and a missing file start again.
        file.set_modified(clock + 2 * hour).unwrap();
        for seen in [
            Some(seen(&file, true)),
            Some(GrantSighting {
                stamp: None,
                is_local: true,
            }),
            None,
        ] {
            assert_eq!(
                at(3 * SETTLE_TIME, seen.as_ref()),
                Some(4 * SETTLE_TIME),
                "{seen:?}"
            );
        }
        assert_eq!(at(4 * SETTLE_TIME, None), None);
    }
}
