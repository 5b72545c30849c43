//! Settings of the memory allocator while the process runs.

/// Starts jemalloc's background thread, which returns freed memory to the system after 500 ms, also
/// for idle threads. Must not be called before the process is confined, because confinement
/// requires a single thread.
pub(crate) fn start_background_purge() {
    if let Err(error) = tikv_jemalloc_ctl::background_thread::write(true) {
        tracing::debug!("idle threads do not return freed memory to the system: {error}");
    }
}
