//! `toolbay serve --learn`: writes denied operations as proposed grants for the operator to review.
//!
//! Learning allows nothing. `<plugin>.toml.proposed` is not a grant until the operator renames it.
//! The file is named after the plugin, and its content is parsed and rewritten, so a guest controls
//! neither.

mod proposal;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;

use parking_lot::{Condvar, Mutex, MutexGuard};
use toolbay_catalog::{Grant, read_grant};
use toolbay_model::text::clean_line;

use self::proposal::{PermissionLines, render_proposal};
use crate::observe::call_event::{CallEvent, CallSink};

/// Suffix that is appended to the grant's file name for its proposal.
const PROPOSAL_SUFFIX: &str = ".proposed";

/// Maximum number of plugins with proposals. A person would not read more.
const MAX_PLUGINS: usize = 1_000;

/// Maximum size of a logged reason, in bytes.
const MAX_REASON_BYTES: usize = 1_000;

/// Collects denials. A thread writes them as proposals.
pub(crate) struct GrantLearner {
    shared: Arc<LearnerShared>,
    writer: Mutex<Option<JoinHandle<()>>>,
}

struct LearnerShared {
    folder: PathBuf,
    learned: Mutex<ObservedDenials>,
    changed: Condvar,
}

#[derive(Default)]
struct ObservedDenials {
    plugins: BTreeMap<String, PermissionLines>,
    /// The plugins whose proposals are not written yet.
    unwritten: BTreeSet<String>,
    is_finished: bool,
}

impl GrantLearner {
    /// Starts a thread that writes proposals to the plugin directory.
    ///
    /// # Errors
    ///
    /// The thread cannot be started.
    pub(crate) fn start(folder: PathBuf) -> io::Result<Self> {
        let shared = Arc::new(LearnerShared {
            folder,
            learned: Mutex::default(),
            changed: Condvar::new(),
        });
        let writing = Arc::clone(&shared);
        let writer = std::thread::Builder::new()
            .name("toolbay-learn".to_owned())
            .spawn(move || writing.write_all())?;
        Ok(Self {
            shared,
            writer: Mutex::new(Some(writer)),
        })
    }

    /// Records the permissions that would have allowed a denied operation. `remedy` contains the
    /// lines of TOML for `[permissions]`.
    pub(crate) fn record_denial(&self, plugin: &str, remedy: &str) {
        let mut learned = self.shared.lock_denials();
        if !learned.plugins.contains_key(plugin) && learned.plugins.len() >= MAX_PLUGINS {
            return;
        }
        if learned
            .plugins
            .entry(plugin.to_owned())
            .or_default()
            .add(remedy)
        {
            learned.unwritten.insert(plugin.to_owned());
            self.shared.changed.notify_one();
        }
    }

    /// Writes the remaining proposals, and stops the thread.
    pub(crate) fn finish(&self) {
        self.shared.lock_denials().is_finished = true;
        self.shared.changed.notify_one();
        let writer = self.writer.lock().take();
        if let Some(writer) = writer
            && writer.join().is_err()
        {
            tracing::error!("writing proposed grants failed unexpectedly");
        }
    }
}

/// Learns from the denials of all calls.
impl CallSink for &GrantLearner {
    fn record(&mut self, event: &CallEvent<'_>) {
        if let CallEvent::Denied {
            target,
            remedy: Some(remedy),
            ..
        } = event
        {
            self.record_denial(&target.plugin().id, remedy);
        }
    }
}

impl Drop for GrantLearner {
    fn drop(&mut self) {
        self.finish();
    }
}

impl LearnerShared {
    fn lock_denials(&self) -> MutexGuard<'_, ObservedDenials> {
        self.learned.lock()
    }

    /// Writes each changed proposal in turn, until [`GrantLearner::finish`] is called and all are
    /// written.
    fn write_all(&self) {
        while let Some((plugin, lines)) = self.next_unwritten() {
            let name = clean_line(&format!("{plugin}.toml{PROPOSAL_SUFFIX}"), MAX_REASON_BYTES);
            match write_proposal(&self.folder, &plugin, &lines) {
                Ok(true) => tracing::info!(
                    plugin,
                    "wrote a proposed grant: {name}; to accept it, rename it"
                ),
                Ok(false) => {}
                Err(why) => {
                    tracing::warn!(
                        plugin,
                        "cannot write the proposed grant {name}: {}",
                        clean_line(&why, MAX_REASON_BYTES)
                    );
                }
            }
        }
    }

    /// Waits for the next proposal to write. The lock is held only while its lines are copied,
    /// because guests wait for it.
    fn next_unwritten(&self) -> Option<(String, PermissionLines)> {
        let mut learned = self.lock_denials();
        loop {
            if let Some(plugin) = learned.unwritten.pop_first() {
                let lines = learned.plugins.get(&plugin).cloned().unwrap_or_default();
                return Some((plugin, lines));
            }
            if learned.is_finished {
                return None;
            }
            self.changed.wait(&mut learned);
        }
    }
}

/// Writes a plugin's proposal. Replaces a file or a link at its path, and never follows a link.
/// Returns false, and writes nothing, if the current grant already has all of these permissions.
fn write_proposal(folder: &Path, plugin: &str, lines: &PermissionLines) -> Result<bool, String> {
    let name = format!("{plugin}.toml");
    let current = read_grant(folder, plugin)
        .map_err(|error| error.reason().to_owned())?
        .unwrap_or_default();
    let Some(text) = render_proposal(&name, &current, lines)? else {
        return Ok(false);
    };
    // An invalid grant must not be written as a proposal.
    Grant::parse(&name, &text, folder)?;
    let failed = |error: io::Error| error.to_string();
    let mut file = tempfile::Builder::new()
        .prefix(".proposed-")
        .tempfile_in(folder)
        .map_err(failed)?;
    file.write_all(text.as_bytes()).map_err(failed)?;
    file.persist(folder.join(format!("{name}{PROPOSAL_SUFFIX}")))
        .map_err(|error| failed(error.error))?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    /// Returns the proposal for `weather` after these denials.
    fn learned(folder: &Path, remedies: &[&str]) -> Option<String> {
        let learner = GrantLearner::start(folder.to_owned()).unwrap();
        for remedy in remedies {
            learner.record_denial("weather", remedy);
        }
        learner.finish();
        fs::read_to_string(folder.join("weather.toml.proposed")).ok()
    }

    #[test]
    fn a_proposal_is_the_grant_with_what_it_lacks() {
        let folder = tempfile::tempdir().unwrap();
        let grant =
            "prefix = \"acme\" # ours\n\n[permissions]\nhttp = [\"https://a.example.com\"]\n";
        fs::write(folder.path().join("weather.toml"), grant).unwrap();
        let text = learned(
            folder.path(),
            &[
                "http = [\"https://b.example.com\"]",
                "tcp = [\"db.example.com:5432\"]",
            ],
        )
        .unwrap();
        let parsed = Grant::parse("weather.toml", &text, folder.path()).unwrap();
        assert_eq!(parsed.permissions.http.len(), 2, "{text}");
        assert_eq!(parsed.permissions.tcp.len(), 1);
        assert!(text.contains("prefix = \"acme\" # ours"), "{text}");
        assert_eq!(
            fs::read_to_string(folder.path().join("weather.toml")).unwrap(),
            grant
        );
    }

    #[test]
    fn a_link_in_its_place_is_replaced_and_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        let victim = elsewhere.path().join("victim");
        fs::write(&victim, "precious").unwrap();
        let proposed = folder.path().join("weather.toml.proposed");
        symlink(&victim, &proposed).unwrap();
        assert!(
            learned(folder.path(), &["http = [\"https://b.example.com\"]"])
                .unwrap()
                .contains("b.example.com")
        );
        assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
        assert!(fs::symlink_metadata(&proposed).unwrap().is_file());
        let names: Vec<_> = fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        assert_eq!(names, ["weather.toml.proposed"], "nothing else is left");
    }

    #[test]
    fn a_grant_that_is_invalid_gets_no_proposal() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("weather.toml"), "[permissions").unwrap();
        assert_eq!(
            learned(folder.path(), &["http = [\"https://b.example.com\"]"]),
            None
        );
        fs::write(folder.path().join("weather.toml"), "permissions = 3").unwrap();
        assert_eq!(
            learned(folder.path(), &["http = [\"https://b.example.com\"]"]),
            None
        );
    }

    #[test]
    fn what_the_grant_allows_by_now_needs_no_proposal() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(
            folder.path().join("weather.toml"),
            "permissions.http = [\"https://b.example.com\"]",
        )
        .unwrap();
        assert_eq!(
            learned(folder.path(), &["http = [\"https://b.example.com\"]"]),
            None
        );
    }

    #[test]
    fn no_more_plugins_are_kept_than_a_person_reads() {
        let folder = tempfile::tempdir().unwrap();
        let learner = GrantLearner::start(folder.path().join("missing")).unwrap();
        for n in 0..MAX_PLUGINS + 10 {
            learner.record_denial(&n.to_string(), "http = [\"https://b.example.com\"]");
        }
        assert_eq!(learner.shared.lock_denials().plugins.len(), MAX_PLUGINS);
    }
}
