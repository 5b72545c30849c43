//! Says what a command waits for: a large plugin compiles for minutes.

use std::sync::Arc;
use std::time::Duration;

use toolbay_catalog::Snapshot;

use super::output::complain;
use crate::server::Server;

/// A wait that is shorter than this needs no words.
const PATIENCE: Duration = Duration::from_secs(1);

/// Loads every plugin in the folder once; after a second, says which are still being loaded, and again when that changes.
pub(super) async fn loaded(server: &Server) -> Arc<Snapshot> {
    let mut said = Vec::new();
    loop {
        if let Ok(snapshot) = tokio::time::timeout(PATIENCE, server.complete()).await {
            return snapshot;
        }
        let snapshot = server.snapshot();
        let loading: Vec<String> =
            snapshot.plugins.iter().filter(|(_, report)| report.is_loading()).map(|(id, _)| id.clone()).collect();
        if loading != said {
            complain(&format!("loading {} (a large plugin can take minutes to compile)", loading.join(", ")));
            said = loading;
        }
    }
}
