//! Waits until the plugins are loaded, and reports progress. A large plugin can take minutes to
//! compile.

use std::sync::Arc;
use std::time::Duration;

use toolbay_catalog::{Catalog, Snapshot};
use toolbay_model::text::clean_line;

use super::progress::{DISPLAY_DELAY, Progress};
use crate::config::Config;
use crate::serve::server::Server;
use crate::serve::server_builder::ServerBuilder;

/// Interval at which the displayed progress is updated.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// Delay before a starting server logs the plugins that it waits for.
const FIRST_REPORT_DELAY: Duration = Duration::from_secs(2);

/// Interval of further log messages.
const REPORT_INTERVAL: Duration = Duration::from_secs(10);

/// Maximum number of plugins that are named at once.
const MAX_NAMES: usize = 5;

/// Maximum size of a printed file name, in bytes.
const MAX_NAME_BYTES: usize = 100;

/// Returns a builder of the server of a command: it loads the plugins once, and writes neither the
/// audit log nor the recording, which may belong to a running server.
pub(super) fn command_server(config: Config) -> ServerBuilder {
    Server::builder(config)
        .watch(false)
        .audit(false)
        .record(false)
}

/// Returns a builder of the server of a command that only shows or compares plugins. It starts none
/// of the programs that grants name: the folder can be a stranger's proposal that no one has
/// approved yet.
pub(super) fn inspection_server(config: Config) -> ServerBuilder {
    command_server(config).without_programs()
}

/// Waits until every plugin in the directory is loaded or refused. After [`DISPLAY_DELAY`], shows
/// the number of loaded plugins and the names of those that are still loading.
pub(super) async fn wait_until_loaded(server: &Server) -> Arc<Snapshot> {
    if let Ok(snapshot) = tokio::time::timeout(DISPLAY_DELAY, server.complete()).await {
        return snapshot;
    }
    let mut progress = Progress::new(Some(server.snapshot().plugins.len()));
    loop {
        let loading = LoadProgress::from_snapshot(&server.snapshot());
        let LoadProgress { done, total, names } = &loading;
        let line = format!(
            "{done} of {total} plugins are loaded; loading {names} (a large plugin can take minutes to compile)"
        );
        progress.show(*done, *total, names, line);
        if let Ok(snapshot) = tokio::time::timeout(POLL_INTERVAL, server.complete()).await {
            return snapshot;
        }
    }
}

/// Logs the plugins that a starting server still waits for: after a short delay, and then
/// periodically while they change.
pub(super) async fn log_progress(catalog: Catalog) {
    let complete = |snapshot: &Snapshot| snapshot.complete;
    let mut logged = LoadProgress::default();
    let mut pause = FIRST_REPORT_DELAY;
    while tokio::time::timeout(pause, catalog.wait_for(complete))
        .await
        .is_err()
    {
        pause = REPORT_INTERVAL;
        let loading = LoadProgress::from_snapshot(&catalog.snapshot());
        if loading == logged {
            continue;
        }
        let LoadProgress { done, total, names } = &loading;
        tracing::info!("{done} of {total} plugins are loaded; still loading {names}");
        logged = loading;
    }
    if logged != LoadProgress::default() {
        tracing::info!("all plugins are loaded or refused");
    }
}

/// Loading progress of the plugins that were in the directory at startup.
#[derive(Debug, Default, PartialEq, Eq)]
struct LoadProgress {
    /// Number of plugins that are loaded or refused.
    done: usize,
    total: usize,
    /// Names of the first plugins that are still loading.
    names: String,
}

impl LoadProgress {
    fn from_snapshot(snapshot: &Snapshot) -> Self {
        let loading: Vec<&str> = snapshot
            .plugins
            .iter()
            .filter(|(_, report)| report.is_loading())
            .map(|(id, _)| id.as_str())
            .collect();
        let total = snapshot.plugins.len();
        Self {
            done: total - loading.len(),
            total,
            names: join_names(&loading),
        }
    }
}

/// Returns the names of the first plugins, and the number of the others.
fn join_names(plugins: &[&str]) -> String {
    let names: Vec<String> = plugins
        .iter()
        .take(MAX_NAMES)
        .map(|id| clean_line(id, MAX_NAME_BYTES))
        .collect();
    match plugins.len().saturating_sub(MAX_NAMES) {
        0 => names.join(", "),
        more => format!("{} and {more} more", names.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_plugins_are_named_and_the_rest_is_counted() {
        assert_eq!(join_names(&["a"]), "a");
        assert_eq!(join_names(&["a", "b", "c", "d", "e"]), "a, b, c, d, e");
        assert_eq!(
            join_names(&["a", "b", "c", "d", "e", "f", "g"]),
            "a, b, c, d, e and 2 more"
        );
        assert!(join_names(&[&"x".repeat(1_000)]).len() < 200);
        assert_eq!(join_names(&["a\n\u{1b}[2J"]).lines().count(), 1);
    }
}
