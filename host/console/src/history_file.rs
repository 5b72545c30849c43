//! The file that keeps the statistics of charts when the server ends.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rustix::fs::{FlockOperation, flock, renameat};
use tokio::time::{MissedTickBehavior, interval};
use toolbay_private::{PrivateFolder, TEMPORARY_PREFIX};

use crate::activity::ServerActivity;
use crate::chart_history::ChartHistory;

/// Name of the file.
const FILE_NAME: &str = "console-charts.json";

/// Name of the file that the server locks. The other one is replaced when it is written.
const LOCK_NAME: &str = "console-charts.lock";

/// Maximum size of the file that is read, in bytes. A complete one has less than 256 KiB.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// Time after which new statistics are written.
const WRITE_INTERVAL: Duration = Duration::from_mins(1);

/// The file with the statistics of charts. It is locked: of several servers with one folder, one
/// writes the file.
#[derive(Debug)]
pub struct HistoryFile {
    folder: PrivateFolder,
    activity: Arc<ServerActivity>,
    /// The text that was read or written last.
    written: String,
    lock: std::fs::File,
}

impl HistoryFile {
    /// Opens the file in `folder`, and adds its statistics to `activity`. A damaged file is replaced
    /// later. Blocks.
    ///
    /// # Errors
    ///
    /// Returns a one-line reason if the folder cannot be used, or if another server uses it.
    pub fn open(folder: &Path, activity: &Arc<ServerActivity>) -> Result<Self, String> {
        let folder = PrivateFolder::open(folder, "the charts of the console")?;
        let shown = folder.path.join(FILE_NAME);
        let file_error = |error: io::Error| format!("cannot use {}: {error}", shown.display());
        let lock = folder.open_or_create(LOCK_NAME).map_err(file_error)?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive).map_err(|error| {
            if error == rustix::io::Errno::WOULDBLOCK {
                format!("another server uses {}", shown.display())
            } else {
                file_error(error.into())
            }
        })?;
        let written = match read_history(&folder, SystemTime::now()) {
            Ok(history) => {
                activity.add_charts(&history);
                history.to_json()
            }
            Err(why) => {
                tracing::warn!(
                    "the charts of the console start empty: {}: {why}",
                    shown.display()
                );
                String::new()
            }
        };
        Ok(Self {
            folder,
            activity: Arc::clone(activity),
            written,
            lock,
        })
    }

    /// Writes new statistics each minute, and once more when `stop` completes. Then returns. Blocks
    /// no thread of the runtime.
    pub async fn keep(mut self, stop: impl Future<Output = ()>) {
        let mut stop = pin!(stop);
        let mut ticks = interval(WRITE_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // The first tick is immediate.
        ticks.tick().await;
        let mut is_last = false;
        while !is_last {
            tokio::select! {
                biased;
                () = stop.as_mut() => is_last = true,
                _ = ticks.tick() => {}
            }
            let writing = tokio::task::spawn_blocking(move || {
                self.write();
                self
            });
            match writing.await {
                Ok(file) => self = file,
                Err(error) => {
                    return tracing::warn!(%error, "the charts of the console are no longer written");
                }
            }
        }
    }

    /// Writes the statistics if they have changed. Blocks.
    pub fn write(&mut self) {
        let text = self.activity.charts().to_json();
        if text == self.written {
            return;
        }
        match replace_file(&self.folder, text.as_bytes()) {
            Ok(()) => self.written = text,
            Err(error) => tracing::warn!(
                "failed to write the charts of the console to {}: {error}",
                self.folder.path.join(FILE_NAME).display()
            ),
        }
    }
}

impl Drop for HistoryFile {
    fn drop(&mut self) {
        // Nothing is written here, because that blocks.
        // A process that is being started can have a copy of the descriptor, which would keep the
        // lock.
        let _ = flock(&self.lock, FlockOperation::Unlock);
    }
}

/// Reads the file. Returns an empty history if there is none.
fn read_history(folder: &PrivateFolder, now: SystemTime) -> Result<ChartHistory, String> {
    let file = match folder.open_file(FILE_NAME) {
        Ok((file, _)) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(ChartHistory::default()),
        Err(error) => return Err(error.to_string()),
    };
    let mut text = String::new();
    file.take(MAX_FILE_BYTES + 1)
        .read_to_string(&mut text)
        .map_err(|error| format!("it is damaged: {error}"))?;
    if text.len() as u64 > MAX_FILE_BYTES {
        return Err(format!("it is larger than {MAX_FILE_BYTES} bytes"));
    }
    ChartHistory::from_json(&text, now)
}

/// Replaces the file, so that a reader sees the whole old or the whole new content.
fn replace_file(folder: &PrivateFolder, content: &[u8]) -> io::Result<()> {
    let temporary = format!("{TEMPORARY_PREFIX}{FILE_NAME}");
    let mut file = folder.open_or_create(&temporary)?;
    file.set_len(0)?;
    file.write_all(content)?;
    file.sync_all()?;
    renameat(&folder.handle, &temporary, &folder.handle, FILE_NAME)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::call_note::CallNote;
    use crate::call_note::tests::note;
    use crate::call_series::SeriesBucket;
    use crate::chart_history::ChartRange;

    fn call() -> CallNote {
        CallNote {
            at: SystemTime::now(),
            ..note("t", "ok")
        }
    }

    fn count(activity: &ServerActivity) -> u64 {
        let chart = activity.charts().bars(ChartRange::Week, SystemTime::now());
        chart.bars.iter().map(SeriesBucket::calls).sum()
    }

    #[test]
    fn statistics_survive_the_end_of_the_server() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("state");
        for round in 0..3 {
            let activity = Arc::<ServerActivity>::default();
            let mut file = HistoryFile::open(&folder, &activity).unwrap();
            assert_eq!(count(&activity), round);
            activity.record_call(call());
            assert_eq!(count(&activity), round + 1);
            file.write();
        }
        let names = fs::read_dir(&folder).unwrap().count();
        assert_eq!(names, 2, "no temporary file is left");
    }

    #[tokio::test]
    async fn newest_statistics_are_written_when_the_server_ends() {
        let dir = tempfile::tempdir().unwrap();
        let activity = Arc::<ServerActivity>::default();
        let file = HistoryFile::open(dir.path(), &activity).unwrap();
        let (sender, stop) = tokio::sync::oneshot::channel::<()>();
        let kept = tokio::spawn(file.keep(async move { drop(stop.await) }));
        activity.record_call(call());
        drop(sender);
        kept.await.unwrap();
        let again = Arc::<ServerActivity>::default();
        HistoryFile::open(dir.path(), &again).unwrap();
        assert_eq!(count(&again), 1);
    }

    #[test]
    fn one_of_several_servers_writes_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let activity = Arc::<ServerActivity>::default();
        let first = HistoryFile::open(dir.path(), &activity).unwrap();
        let why = HistoryFile::open(dir.path(), &Arc::default()).unwrap_err();
        assert!(why.contains("another server"), "{why}");
        drop(first);
        HistoryFile::open(dir.path(), &activity).unwrap();
    }

    #[test]
    fn a_damaged_file_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(FILE_NAME);
        let long = " ".repeat(usize::try_from(MAX_FILE_BYTES).unwrap() + 1);
        let damaged: [&[u8]; 5] = [b"", b"{", b"\xff\xfe", b"{\"version\":9}", long.as_bytes()];
        for content in damaged {
            fs::write(&path, content).unwrap();
            let activity = Arc::<ServerActivity>::default();
            let mut file = HistoryFile::open(dir.path(), &activity).unwrap();
            assert_eq!(count(&activity), 0);
            activity.record_call(call());
            file.write();
            drop(file);
            let again = Arc::<ServerActivity>::default();
            drop(HistoryFile::open(dir.path(), &again).unwrap());
            assert_eq!(count(&again), 1);
        }
        // A rest of an interrupted write does not matter.
        fs::write(
            dir.path().join(format!("{TEMPORARY_PREFIX}{FILE_NAME}")),
            &long,
        )
        .unwrap();
        let activity = Arc::<ServerActivity>::default();
        activity.record_call(call());
        HistoryFile::open(dir.path(), &activity).unwrap().write();
        assert!(fs::metadata(&path).unwrap().len() < 10_000);
    }
}
