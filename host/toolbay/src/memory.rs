//! The memory of the process.

/// From now on, what calls have left goes back to the system half a second later, also from threads that have nothing to
/// do. It takes a thread, which must not be there before the process is confined.
pub(crate) fn return_what_is_free() {
    if let Err(error) = tikv_jemalloc_ctl::background_thread::write(true) {
        tracing::debug!("memory goes back to the system late: {error}");
    }
}
