//! The forwarded connections, and the eviction of connections when there are too many.
//!
//! Other accounts of this machine can connect to the port too. Each account has a share, so an
//! account that keeps opening connections only evicts its own.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::task::AbortHandle;

/// Maximum number of connections.
pub(crate) const MAX_FORWARDED_CONNECTIONS: usize = 48;

/// Maximum number of connections of one account.
const MAX_PER_ACCOUNT: usize = MAX_FORWARDED_CONNECTIONS / 2;

/// A forwarded connection.
#[derive(Debug)]
pub(crate) struct ForwardedConnection {
    /// The account that opened the connection; `None` if the system does not report it.
    pub(crate) user: Option<u32>,
    pub(crate) task: AbortHandle,
    /// True if the server has sent a response on the connection.
    pub(crate) has_response: Arc<AtomicBool>,
}

/// All forwarded connections, newest last.
#[derive(Debug, Default)]
pub(crate) struct ForwardedConnections(VecDeque<ForwardedConnection>);

impl ForwardedConnections {
    /// Adds a connection. If there are too many, first closes a connection of the same account if
    /// it has used its share, or else of the account with the most connections. Closes the oldest
    /// connection without a response, or the oldest one if all have responses.
    pub(crate) fn add(&mut self, connection: ForwardedConnection) {
        self.0.retain(|one| !one.task.is_finished());
        let user = connection.user;
        let user_count = self.0.iter().filter(|one| one.user == user).count();
        if user_count >= MAX_PER_ACCOUNT {
            self.evict_one(user);
        } else if self.0.len() >= MAX_FORWARDED_CONNECTIONS {
            self.evict_one(self.busiest_user());
        }
        self.0.push_back(connection);
    }

    /// Returns the account with the most connections; `None` also stands for all connections
    /// without a reported account.
    fn busiest_user(&self) -> Option<u32> {
        let mut counts = BTreeMap::<Option<u32>, usize>::new();
        for one in &self.0 {
            *counts.entry(one.user).or_default() += 1;
        }
        counts
            .into_iter()
            .max_by_key(|(_, count)| *count)
            .and_then(|(user, _)| user)
    }

    fn evict_one(&mut self, user: Option<u32>) {
        let is_silent = |one: &ForwardedConnection| !one.has_response.load(Ordering::Relaxed);
        let silent_index = self
            .0
            .iter()
            .position(|one| one.user == user && is_silent(one));
        let at = silent_index.or_else(|| self.0.iter().position(|one| one.user == user));
        if let Some(one) = at.and_then(|at| self.0.remove(at)) {
            one.task.abort();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPERATOR: Option<u32> = Some(1_000);
    const OTHER: Option<u32> = Some(1_001);

    /// Creates a connection that stays open until it is evicted.
    fn open(user: Option<u32>, answered: bool) -> ForwardedConnection {
        let passing = tokio::spawn(std::future::pending::<()>()).abort_handle();
        ForwardedConnection {
            user,
            task: passing,
            has_response: Arc::new(AtomicBool::new(answered)),
        }
    }

    fn count(connections: &ForwardedConnections, user: Option<u32>) -> usize {
        connections.0.iter().filter(|one| one.user == user).count()
    }

    #[tokio::test]
    async fn an_account_that_keeps_opening_connections_closes_its_own() {
        let mut connections = ForwardedConnections::default();
        for answered in [true, false, true] {
            connections.add(open(OPERATOR, answered));
        }
        for number in 0..1_000 {
            connections.add(open(OTHER, number % 2 == 0));
        }
        assert_eq!(
            (count(&connections, OPERATOR), count(&connections, OTHER)),
            (3, MAX_PER_ACCOUNT)
        );
        // Several accounts together cannot evict others either.
        for other in 1..=9 {
            for _ in 0..100 {
                connections.add(open(Some(2_000 + other), true));
            }
        }
        assert_eq!(
            (count(&connections, OPERATOR), connections.0.len()),
            (3, MAX_FORWARDED_CONNECTIONS)
        );
        // All connections without a reported account count as one account.
        for _ in 0..100 {
            connections.add(open(None, true));
        }
        assert_eq!(count(&connections, OPERATOR), 3);
    }

    #[tokio::test]
    async fn connection_without_a_response_is_evicted_first() {
        let mut connections = ForwardedConnections::default();
        connections.add(open(OPERATOR, true));
        connections.add(open(OPERATOR, false));
        for _ in 0..MAX_PER_ACCOUNT - 1 {
            connections.add(open(OPERATOR, true));
        }
        assert_eq!(count(&connections, OPERATOR), MAX_PER_ACCOUNT);
        assert!(
            connections
                .0
                .iter()
                .all(|one| one.has_response.load(Ordering::Relaxed))
        );
    }
}
