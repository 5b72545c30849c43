//! The workspace's own plugins, built on first use.
//!
//! Cargo determines which plugins are up to date, so each test process runs cargo once before the
//! first use. If a runner starts a process for each test, only the first process runs cargo. It
//! records the result in a file for the other processes of that run.

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hasher as _};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use anyhow::{Context, Result, anyhow};

use crate::build::WorkspaceBuilder;
use crate::workspace::{self, CargoWorkspace};

/// The environment variable with the id of a cargo-nextest run. The id is the same in all processes
/// of the run.
const NEXTEST_RUN_ID_VARIABLE: &str = "NEXTEST_RUN_ID";

/// A file that every target folder contains.
const TARGET_FOLDER_MARKER: &str = "CACHEDIR.TAG";

/// A set of plugins that is built as a whole.
struct PluginSet {
    name: &'static str,
    build: fn(&mut WorkspaceBuilder<'_>) -> Result<PathBuf>,
    /// The output folder after the build, or the error if the build failed.
    output_folder: OnceLock<Result<PathBuf, String>>,
}

static GUESTS: PluginSet = PluginSet {
    name: "guests",
    build: |builder| builder.build_guests(),
    output_folder: OnceLock::new(),
};
static SAMPLES: PluginSet = PluginSet {
    name: "plugins",
    build: |builder| builder.build_samples(),
    output_folder: OnceLock::new(),
};
static EXAMPLES: PluginSet = PluginSet {
    name: "examples",
    build: |builder| builder.build_examples(),
    output_folder: OnceLock::new(),
};

/// Returns the component of a plugin in `tests/guests`, by the name of the plugin's folder.
pub fn guest(id: &str) -> Result<Vec<u8>> {
    GUESTS.read_plugin(id)
}

/// Returns the component of a plugin in `plugins`, by the name of the plugin's folder.
pub fn sample(id: &str) -> Result<Vec<u8>> {
    SAMPLES.read_plugin(id)
}

/// Returns the component of a plugin in `build_examples`, by the name of the plugin's folder.
pub fn example(id: &str) -> Result<Vec<u8>> {
    EXAMPLES.read_plugin(id)
}

impl PluginSet {
    fn read_plugin(&self, id: &str) -> Result<Vec<u8>> {
        let folder = self
            .output_folder
            .get_or_init(|| self.build_once().map_err(|error| format!("{error:#}")));
        let folder = folder.as_ref().map_err(|error| anyhow!("{error}"))?;
        let file = folder.join(id).with_extension("wasm");
        fs::read(&file).with_context(|| format!("failed to read {}", file.display()))
    }

    /// Builds the plugins, unless another process of the same run has done so. Returns the output
    /// folder.
    fn build_once(&self) -> Result<PathBuf> {
        let note = target_folder().join(format!("{}.built", self.name));
        let _alone = lock_file(&note)?;
        let run = std::env::var(NEXTEST_RUN_ID_VARIABLE).ok();
        if let (Some(run), Ok(noted)) = (&run, fs::read_to_string(&note))
            && let Some(folder) = noted
                .strip_prefix(run)
                .and_then(|rest| rest.strip_prefix('\n'))
        {
            return Ok(PathBuf::from(folder));
        }
        let folder = (self.build)(&mut WorkspaceBuilder::new(&CargoWorkspace::load()?).quiet())
            .with_context(|| format!("failed to build the {}", self.name))?;
        if let Some(run) = run {
            fs::write(&note, format!("{run}\n{}", folder.display()))
                .with_context(|| format!("failed to write {}", note.display()))?;
        }
        Ok(folder)
    }
}

/// Returns the cargo target folder that contains this executable.
fn target_folder() -> PathBuf {
    let program = std::env::current_exe().unwrap_or_default();
    let marked = program
        .ancestors()
        .skip(1)
        .find(|folder| folder.join(TARGET_FOLDER_MARKER).is_file());
    marked.map_or_else(|| workspace::root().join("target"), Path::to_owned)
}

/// Runs `work` unless it was already completed for the same `inputs`. Writes `inputs` to the file
/// `stamp` afterwards. If several processes use the same `stamp`, one runs `work` and the others
/// wait.
pub fn run_once(stamp: &Path, inputs: &str, work: impl FnOnce() -> Result<()>) -> Result<()> {
    let done = || fs::read_to_string(stamp).is_ok_and(|done| done == inputs);
    if done() {
        return Ok(());
    }
    let _alone = lock_file(stamp)?;
    if done() {
        return Ok(());
    }
    work()?;
    fs::write(stamp, inputs).with_context(|| format!("failed to write {}", stamp.display()))
}

/// Locks a file against other processes until the returned handle is dropped.
fn lock_file(of: &Path) -> Result<File> {
    let lock = of.with_added_extension("lock");
    let failed = || format!("failed to lock {}", lock.display());
    fs::create_dir_all(lock.parent().unwrap_or(Path::new("."))).with_context(failed)?;
    let file = File::create(&lock).with_context(failed)?;
    file.lock().with_context(failed)?;
    Ok(file)
}

/// Returns a hash of `bytes` that is the same in every process.
pub(crate) fn hash_bytes(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(bytes);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use anyhow::bail;

    use super::*;

    #[test]
    fn work_is_done_once_for_the_same_inputs() {
        let folder = tempfile::tempdir().unwrap();
        let stamp = folder.path().join("some/stamp");
        let mut times = 0;
        for inputs in ["a", "a", "b"] {
            run_once(&stamp, inputs, || {
                times += 1;
                Ok(())
            })
            .unwrap();
        }
        assert_eq!(times, 2);
        assert!(run_once(&stamp, "c", || bail!("no")).is_err());
        run_once(&stamp, "b", || bail!("it was done")).unwrap();
    }

    #[test]
    fn concurrent_callers_do_the_work_once() {
        let folder = tempfile::tempdir().unwrap();
        let stamp = folder.path().join("stamp");
        let times = AtomicU32::new(0);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    run_once(&stamp, "a", || {
                        times.fetch_add(1, Ordering::SeqCst);
                        Ok(())
                    })
                    .unwrap();
                });
            }
        });
        assert_eq!(times.into_inner(), 1);
    }

    #[test]
    fn guests_are_built_on_demand() {
        assert_eq!(guest("bare").unwrap().get(..4), Some(b"\0asm".as_slice()));
        let error = guest("nobody").unwrap_err();
        assert!(format!("{error:#}").contains("nobody.wasm"), "{error:#}");
    }
}
