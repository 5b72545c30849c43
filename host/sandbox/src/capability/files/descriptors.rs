//! Limits the files and directories that guests have open. Each takes a descriptor of the process,
//! whose number is limited.
//!
//! Half of the descriptors are for guests. The other half is left to the server: for clients,
//! plugins, the compiler and its cache. Of the half for guests, an eighth is for the connections of
//! plugins' HTTP requests, which outlive calls. Every call that can run has a reserved share, which
//! no other call can take. All shares together are at most half of the guests' descriptors. The
//! rest is first come, first served. Regardless of other calls, a call can therefore open some
//! files, and the server can continue.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::process::{Resource, getrlimit};

use crate::context::usage_ledger::OpenFile;

/// Number of calls that share the descriptors if their number is not limited.
const DEFAULT_CALLS: usize = 64;

/// Minimum share of a call. A waiting call is not admitted if the shares would become smaller.
const MIN_SHARE: usize = 5;

/// The descriptors for the files of all guests. Not a byte budget: a call within its share is never
/// refused, whatever the total.
#[derive(Debug)]
pub(crate) struct DescriptorTable {
    /// Number of descriptors that each call can open in any case.
    share: usize,
    /// Number of descriptors for the connections of all plugins' HTTP requests.
    connections: usize,
    /// Number of open descriptors of all calls, from which on each call is limited to its share.
    shared_limit: usize,
    open: AtomicUsize,
}

/// The open files of one call. Clones share the count.
#[derive(Clone, Debug)]
pub(crate) struct CallDescriptors {
    table: Arc<DescriptorTable>,
    open: Arc<AtomicUsize>,
}

/// A permit for an open file. Dropping it releases the descriptor.
#[derive(Debug)]
pub(crate) struct OpenDescriptor(CallDescriptors);

/// Resources of an open file or directory, which are held while a handle or a stream of it exists.
#[derive(Debug)]
pub(crate) struct DescriptorHandle {
    _opened: OpenDescriptor,
    _file: Option<OpenFile>,
}

impl DescriptorHandle {
    pub(crate) fn new(opened: OpenDescriptor, file: Option<OpenFile>) -> Self {
        Self {
            _opened: opened,
            _file: file,
        }
    }
}

impl DescriptorTable {
    /// Reduces the number of concurrent calls, by at most `waiting`, to as many as there are
    /// descriptors for. If `calls` is 0, their number is not limited.
    pub(crate) fn max_calls(calls: usize, waiting: usize) -> usize {
        Self::max_calls_within(process_limit(), calls, waiting)
    }

    fn max_calls_within(descriptors: usize, calls: usize, waiting: usize) -> usize {
        if calls == 0 {
            // The number of calls is not limited.
            return usize::MAX;
        }
        calls.min((descriptors / 4 / MIN_SHARE).max(calls.saturating_sub(waiting)))
    }

    /// Creates the table for the current limit of the process and `calls` concurrent calls.
    pub(crate) fn for_process(calls: usize) -> Self {
        Self::new(process_limit(), calls)
    }

    /// Creates the table for a process that can have `descriptors` descriptors.
    fn new(descriptors: usize, calls: usize) -> Self {
        let calls = if calls == usize::MAX {
            DEFAULT_CALLS
        } else {
            calls.max(1)
        };
        let guest_descriptors = descriptors / 2;
        // A call that cannot open any file cannot use its mounts at all.
        let share = (guest_descriptors / 2 / calls).max(1);
        let connections = (guest_descriptors / 8).max(1);
        let shared_limit = guest_descriptors
            .saturating_sub(connections)
            .saturating_sub(share.saturating_mul(calls));
        Self {
            share,
            connections,
            shared_limit,
            open: AtomicUsize::new(0),
        }
    }

    /// Returns the maximum number of connections of all plugins' HTTP requests together.
    pub(crate) fn connections(&self) -> usize {
        self.connections
    }

    /// Creates the count of a new call.
    pub(crate) fn start_call(self: &Arc<Self>) -> CallDescriptors {
        CallDescriptors {
            table: Arc::clone(self),
            open: Arc::default(),
        }
    }
}

/// Returns the maximum number of descriptors of the process.
fn process_limit() -> usize {
    usize::try_from(getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)).unwrap_or(usize::MAX)
}

impl CallDescriptors {
    /// Acquires a permit for one more file. Returns `None` if this call cannot open one now.
    pub(crate) fn acquire(&self) -> Option<OpenDescriptor> {
        let open_in_call = self.open.fetch_add(1, Ordering::Relaxed);
        let open_in_total = self.table.open.fetch_add(1, Ordering::Relaxed);
        let opened = OpenDescriptor(self.clone());
        (open_in_call < self.table.share || open_in_total < self.table.shared_limit)
            .then_some(opened)
    }
}

impl Drop for OpenDescriptor {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
        self.0.table.open.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Opens files until one is refused.
    fn acquire_all(files: &CallDescriptors) -> Vec<OpenDescriptor> {
        std::iter::from_fn(|| files.acquire()).collect()
    }

    #[test]
    fn calls_that_only_wait_take_no_share_of_those_that_compute() {
        assert_eq!(DescriptorTable::max_calls_within(1 << 20, 192, 128), 192);
        assert_eq!(DescriptorTable::max_calls_within(1024, 192, 128), 64);
        assert_eq!(DescriptorTable::max_calls_within(1600, 192, 128), 80);
        assert_eq!(DescriptorTable::max_calls_within(160, 136, 128), 8);
        assert_eq!(DescriptorTable::max_calls_within(200, 136, 128), 10);
        assert_eq!(
            DescriptorTable::max_calls_within(64, 192, 128),
            64,
            "calls that compute are always admitted"
        );
        assert_eq!(DescriptorTable::max_calls_within(64, 0, 0), usize::MAX);
    }

    #[test]
    fn a_call_leaves_every_other_call_its_share() {
        let all = Arc::new(DescriptorTable::new(1024, 64));
        let greedy = all.start_call();
        let acquired = acquire_all(&greedy);
        assert_eq!(
            acquired.len(),
            192,
            "all descriptors except the shares of other calls and those for connections"
        );
        let others: Vec<CallDescriptors> = (0..63).map(|_| all.start_call()).collect();
        let theirs: Vec<Vec<OpenDescriptor>> = others.iter().map(acquire_all).collect();
        assert!(theirs.iter().all(|files| files.len() == 4));
        let open = acquired.len() + theirs.iter().map(Vec::len).sum::<usize>();
        assert!(open + all.connections() <= 512, "{open}");
        assert_eq!(
            all.open.load(Ordering::Relaxed),
            open,
            "refused descriptors do not count"
        );
        drop((acquired, theirs));
        assert_eq!(all.open.load(Ordering::Relaxed), 0);
        assert_eq!(
            acquire_all(&others[0]).len(),
            192,
            "released descriptors are available to every call"
        );
    }

    #[test]
    fn a_call_can_open_a_file_even_if_there_are_few_descriptors() {
        for most in [0, 1, 16, 64] {
            let all = Arc::new(DescriptorTable::new(most, 64));
            let calls: Vec<CallDescriptors> = (0..64).map(|_| all.start_call()).collect();
            let open: Vec<_> = calls.iter().map(CallDescriptors::acquire).collect();
            assert!(open.iter().all(Option::is_some));
            assert!(all.connections() > 0);
        }
        assert_eq!(
            DescriptorTable::new(usize::MAX, usize::MAX).share,
            usize::MAX / 4 / DEFAULT_CALLS
        );
    }
}
