//! The runtime of the guests.

use std::io;

use tokio::runtime::{Builder, Handle, Runtime};

/// The runtime of the guests. Guests run on separate threads, so that the operating system keeps
/// scheduling the protocol's threads.
///
/// Dropping it does not wait for its threads, because the last owner can be a task on another
/// runtime, where waiting is not allowed.
pub(super) struct GuestRuntime {
    handle: Handle,
    /// `None` only during drop.
    runtime: Option<Runtime>,
}

impl GuestRuntime {
    /// Starts the threads of a runtime.
    ///
    /// # Errors
    ///
    /// The system does not provide the threads or descriptors.
    pub(super) fn start(threads: usize, max_blocking_threads: usize) -> io::Result<Self> {
        let runtime = Builder::new_multi_thread()
            .thread_name("toolbay-guest")
            .worker_threads(threads)
            .enable_all()
            .max_blocking_threads(max_blocking_threads)
            // Calls arrive through the injection queue, so check it often.
            .global_queue_interval(4)
            .build()?;
        Ok(Self {
            handle: runtime.handle().clone(),
            runtime: Some(runtime),
        })
    }

    /// Returns the handle of the runtime.
    pub(super) fn handle(&self) -> &Handle {
        &self.handle
    }
}

impl Drop for GuestRuntime {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn it_can_be_dropped_on_another_runtime() {
        let runtime = GuestRuntime::start(1, 1).unwrap();
        let work = runtime.handle().spawn(async { 7 });
        assert_eq!(work.await.unwrap(), 7);
        drop(runtime);
    }
}
