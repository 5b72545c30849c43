//! Who may enter a guest now: rates, and permits for the server, the plugin and the client, with a bounded wait.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::config::Server;
use crate::plugin::Plugin;
use crate::rate::{Rate, RateLimit};
use crate::sandbox::thousands;

/// Lets calls in, or has them wait for a while, or refuses them.
#[derive(Debug)]
pub struct Admission {
    calls: Arc<Semaphore>,
    /// How many permits those are.
    server_calls: usize,
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
    Busy {
        /// Where there was none.
        bound: Bound,
        /// For how many there is room.
        most: usize,
    },
    /// The client calls more often than it may.
    ClientRate(RateLimit),
    /// The tool is called more often than it may be.
    ToolRate(RateLimit),
    /// The plugin crashed so often that it rests.
    Resting,
}

/// What bounds how many calls there are at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// `server.calls`.
    Server,
    /// `limits.concurrency` of the plugin.
    Plugin,
    /// `server.client_calls`.
    Client,
    /// `server.queue`.
    Queue,
}

impl Why {
    /// The word for `_meta["dev.toolbay/error"]`.
    pub fn kind(self) -> &'static str {
        match self {
            Self::Busy { .. } => "busy",
            Self::ClientRate(_) | Self::ToolRate(_) => "rate",
            Self::Resting => "resting",
        }
    }

    /// One sentence: which bound or rate, its value, and the key that raises it.
    pub fn message(self) -> String {
        match self {
            Self::Busy { bound, most } => {
                let most = thousands(most as u64);
                match bound {
                    Bound::Server => format!("The server is busy with {most} calls (server.calls raises it)."),
                    Bound::Plugin => {
                        format!("The tool's plugin is busy with {most} calls (limits.concurrency raises it).")
                    }
                    Bound::Client => {
                        format!("The server is busy with {most} calls of this client (server.client_calls raises it).")
                    }
                    Bound::Queue => {
                        format!("{most} calls of this client are waiting already (server.queue raises it).")
                    }
                }
            }
            Self::ClientRate(limit) => format!("More than {limit} (client_rate_limit raises it)."),
            Self::ToolRate(limit) => format!("More than {limit} of this tool (rate_limit raises it)."),
            Self::Resting => "The tool's plugin crashed call after call and rests.".to_owned(),
        }
    }
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
            server_calls: server.calls,
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
        Arc::clone(&client.places).try_acquire_owned().map(Place).map_err(|_| self.busy(Bound::Queue, self.queue))
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
        let mut full = (Bound::Client, self.client_calls);
        let permits = async {
            let client = Arc::clone(&client.calls).acquire_owned().await.ok()?;
            full = (Bound::Plugin, plugin.terms.environment.limits.concurrency);
            let plugin = Arc::clone(&plugin.slots).acquire_owned().await.ok()?;
            full = (Bound::Server, self.server_calls);
            let server = Arc::clone(&self.calls).acquire_owned().await.ok()?;
            Some(Permit([client, plugin, server]))
        };
        let permit = timeout(self.wait, permits).await.ok().flatten();
        permit.ok_or_else(|| self.busy(full.0, full.1))
    }

    fn busy(&self, bound: Bound, most: usize) -> Refused {
        let retry_after = self.wait.clamp(Duration::from_millis(100), Duration::from_secs(5));
        Refused { why: Why::Busy { bound, most }, retry_after }
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
        let plugin = |concurrency| {
            let mut plugin = Plugin::for_test("p", None, Vec::new());
            plugin.terms.environment.limits.concurrency = concurrency;
            Plugin { slots: Arc::new(Semaphore::new(concurrency)), ..plugin }
        };
        let cases = [(1, 9, 9, Bound::Server), (9, 1, 9, Bound::Client), (9, 9, 1, Bound::Plugin)];
        for (calls, client_calls, concurrency, full) in cases {
            let admission = admission(calls, client_calls, 9);
            let (client, plugin) = (admission.client(), plugin(concurrency));
            let first = admission.admit(&client, &plugin, "t").await.unwrap();
            let busy = admission.admit(&client, &plugin, "t").await.unwrap_err();
            assert_eq!(busy.retry_after, Duration::from_millis(100));
            assert!(matches!(busy.why, Why::Busy { bound, most: 1 } if bound == full), "{busy:?}");
            drop(first);
            admission.admit(&client, &plugin, "t").await.unwrap();
        }
    }

    #[test]
    fn the_queue_is_bounded() {
        let admission = admission(1, 1, 1);
        let client = admission.client();
        let places = [admission.queue(&client).unwrap(), admission.queue(&client).unwrap()];
        assert_eq!(admission.queue(&client).unwrap_err().why, Why::Busy { bound: Bound::Queue, most: 1 });
        assert!(admission.queue(&admission.client()).is_ok(), "another client has its own");
        drop(places);
        assert!(admission.queue(&client).is_ok());
    }
}
