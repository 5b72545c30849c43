//! Who may enter a guest now: rates, and permits for the server, the plugin and the client, with a bounded wait.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::config::Server;
use crate::plugin::Plugin;
use crate::rate::{Rate, RateLimit};

/// Lets calls in, or has them wait for a while, or refuses them.
#[derive(Debug)]
pub struct Admission {
    calls: Arc<Semaphore>,
    client_rate: Option<RateLimit>,
    client_calls: usize,
    queue: usize,
    wait: Duration,
}

/// One client's share. A stdio session is one client.
#[derive(Debug)]
pub struct Client {
    rate: Option<Rate>,
    /// Running at once.
    calls: Arc<Semaphore>,
    /// Running or waiting.
    places: Arc<Semaphore>,
}

/// A call that is not let in: try again after this long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Why not.
    pub why: Why,
    /// A hint, not a promise.
    pub retry_after: Duration,
}

/// Why a call is not let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// There was no room for it in time.
    Busy,
    /// The client calls more often than it may.
    ClientRate(RateLimit),
    /// The tool is called more often than it may be.
    ToolRate(RateLimit),
    /// The plugin crashed so often that it rests.
    Resting,
}

/// A place in the queue of a client: held from the arrival of a call until its answer is on its way.
#[derive(Debug)]
pub struct Place(#[expect(dead_code, reason = "held for its Drop")] OwnedSemaphorePermit);

/// The right to enter a guest, given back when dropped.
#[derive(Debug)]
pub struct Permit(#[expect(dead_code, reason = "held for its Drop")] [OwnedSemaphorePermit; 3]);

impl Admission {
    /// Admission by the numbers of the configuration.
    pub fn new(server: &Server, client_rate: Option<RateLimit>) -> Self {
        Self {
            calls: Arc::new(Semaphore::new(server.calls)),
            client_rate,
            client_calls: server.client_calls,
            queue: server.queue,
            wait: server.queue_wait,
        }
    }

    /// A new client's share.
    pub fn client(&self) -> Client {
        Client {
            rate: self.client_rate.and_then(Rate::new),
            calls: Arc::new(Semaphore::new(self.client_calls)),
            places: Arc::new(Semaphore::new(self.client_calls.saturating_add(self.queue))),
        }
    }

    /// Takes a place in the client's queue.
    ///
    /// # Errors
    ///
    /// The client calls too often, or its queue is full.
    pub fn queue(&self, client: &Client) -> Result<Place, Refused> {
        if let Some(rate) = &client.rate {
            let refused = |retry_after| Refused { why: Why::ClientRate(rate.limit()), retry_after };
            rate.take().map_err(refused)?;
        }
        Arc::clone(&client.places).try_acquire_owned().map(Place).map_err(|_| self.busy())
    }

    /// Waits for the turn of a call of the plugin's tool `name`.
    ///
    /// # Errors
    ///
    /// The plugin rests, the tool is called too often, or the turn did not come in time.
    pub async fn admit(&self, client: &Client, plugin: &Plugin, name: &str) -> Result<Permit, Refused> {
        plugin.breaker.check().map_err(|retry_after| Refused { why: Why::Resting, retry_after })?;
        if let Some(rate) = plugin.rates.get(name) {
            let refused = |retry_after| Refused { why: Why::ToolRate(rate.limit()), retry_after };
            rate.take().map_err(refused)?;
        }
        // In this order, so that a call that waits for a busy plugin holds no place of the whole server.
        let permits = async {
            let client = Arc::clone(&client.calls).acquire_owned().await.ok()?;
            let plugin = Arc::clone(&plugin.slots).acquire_owned().await.ok()?;
            let server = Arc::clone(&self.calls).acquire_owned().await.ok()?;
            Some(Permit([client, plugin, server]))
        };
        timeout(self.wait, permits).await.ok().flatten().ok_or_else(|| self.busy())
    }

    fn busy(&self) -> Refused {
        Refused { why: Why::Busy, retry_after: self.wait.clamp(Duration::from_millis(100), Duration::from_secs(5)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admission(calls: usize, client_calls: usize, queue: usize) -> Admission {
        let queue_wait = Duration::from_millis(1);
        Admission::new(&Server { calls, client_calls, queue, queue_wait, ..Server::default() }, None)
    }

    #[tokio::test]
    async fn each_of_the_three_bounds_holds() {
        let plugin = |concurrency| Plugin {
            slots: Arc::new(Semaphore::new(concurrency)),
            ..Plugin::for_test("p", None, Vec::new())
        };
        for (calls, client_calls, concurrency) in [(1, 9, 9), (9, 1, 9), (9, 9, 1)] {
            let admission = admission(calls, client_calls, 9);
            let (client, plugin) = (admission.client(), plugin(concurrency));
            let first = admission.admit(&client, &plugin, "t").await.unwrap();
            let busy = admission.admit(&client, &plugin, "t").await.unwrap_err();
            assert_eq!(busy.retry_after, Duration::from_millis(100));
            drop(first);
            admission.admit(&client, &plugin, "t").await.unwrap();
        }
    }

    #[test]
    fn the_queue_is_bounded() {
        let admission = admission(1, 1, 1);
        let client = admission.client();
        let places = [admission.queue(&client).unwrap(), admission.queue(&client).unwrap()];
        assert!(admission.queue(&client).is_err());
        assert!(admission.queue(&admission.client()).is_ok(), "another client has its own");
        drop(places);
        assert!(admission.queue(&client).is_ok());
    }
}
