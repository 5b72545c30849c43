//! Waits until the plugins are loaded, and says so: a large plugin can take minutes to compile.

use std::sync::Arc;
use std::time::Duration;

use toolbay_catalog::Snapshot;
use toolbay_model::text::line;

use super::output::complain;
use crate::server::Server;

/// How long to wait before saying so.
const PATIENCE: Duration = Duration::from_secs(1);

/// Longest file name that is printed, in bytes.
const NAME: usize = 300;

/// Waits until every plugin in the folder is loaded or refused. Prints which are still loading after [`PATIENCE`], and
/// again whenever that changes.
pub(super) async fn loaded(server: &Server) -> Arc<Snapshot> {
    let mut said = Vec::new();
    loop {
        if let Ok(snapshot) = tokio::time::timeout(PATIENCE, server.complete()).await {
            return snapshot;
        }
        let snapshot = server.snapshot();
        let loading: Vec<String> =
            snapshot.plugins.iter().filter(|(_, report)| report.is_loading()).map(|(id, _)| line(id, NAME)).collect();
        if loading != said {
            complain(&format!("loading {} (a large plugin can take minutes to compile)", loading.join(", ")));
            said = loading;
        }
    }
}
