//! Runs the steps of a load that block.

use crate::folder::load_error::LoadError;

/// Runs a step of a load on a thread that may block. `step` names the step in the error if its
/// thread panics, such as `reading it`.
pub(crate) async fn run_blocking<T: Send + 'static>(
    step: &str,
    work: impl FnOnce() -> Result<T, LoadError> + Send + 'static,
) -> Result<T, LoadError> {
    tokio::task::spawn_blocking(work)
        .await
        .unwrap_or_else(|error| Err(LoadError::Transient(format!("{step} failed: {error}"))))
}
