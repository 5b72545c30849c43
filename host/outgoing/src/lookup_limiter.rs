//! Limits on concurrent name lookups.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;

use tokio::sync::Semaphore;

use crate::error::SendError;
use crate::name_resolver::NameResolver;

/// Maximum number of concurrent lookups of a server. HTTP requests and other connections have
/// separate limits. Each lookup can occupy one of the runtime's blocking threads, which also read
/// files: half of these threads stay free.
const MAX_SERVER_LOOKUPS: usize = 16;
/// Maximum number of concurrent lookups of a plugin. A plugin with slow lookups leaves most of the
/// permits to others.
const MAX_PLUGIN_LOOKUPS: usize = 4;

/// A resolver that limits the concurrent lookups of the server.
pub struct LookupLimiter {
    resolver: Arc<dyn NameResolver>,
    permits: Arc<Semaphore>,
}

/// The lookup permits of a plugin.
pub struct PluginLookups(Arc<Semaphore>);

impl PluginLookups {
    /// Creates the permits of one plugin.
    pub fn new() -> Self {
        Self(Arc::new(Semaphore::new(MAX_PLUGIN_LOOKUPS)))
    }
}

impl Default for PluginLookups {
    fn default() -> Self {
        Self::new()
    }
}

impl LookupLimiter {
    /// Creates a limiter for this resolver.
    pub fn new(resolver: Arc<dyn NameResolver>) -> Self {
        Self {
            resolver,
            permits: Arc::new(Semaphore::new(MAX_SERVER_LOOKUPS)),
        }
    }

    /// Returns the addresses of a name. Waits for a permit of the plugin, if there is one, and for
    /// a permit of the server.
    ///
    /// A lookup holds its permits until it ends, even if the caller gives up. The thread of
    /// `getaddrinfo` cannot be stopped, so a guest that gives up early must not get another thread.
    ///
    /// # Errors
    ///
    /// Returns [`SendError::NoAddress`] if the name has no address, and [`SendError::Resolve`] with
    /// the error of the resolver.
    pub async fn resolve(
        &self,
        name: &str,
        plugin: Option<&PluginLookups>,
    ) -> Result<Vec<IpAddr>, SendError> {
        let of_plugin = match plugin {
            Some(PluginLookups(places)) => Some(
                places
                    .clone()
                    .acquire_owned()
                    .await
                    .map_err(|_| shutdown_error())?,
            ),
            None => None,
        };
        let of_server = self
            .permits
            .clone()
            .acquire_owned()
            .await
            .map_err(|_| shutdown_error())?;
        let lookup = self.resolver.resolve(name.to_owned());
        let task = tokio::spawn(async move {
            let found = lookup.await;
            drop((of_plugin, of_server));
            found
        });
        match task.await {
            Ok(Ok(addresses)) if addresses.is_empty() => Err(SendError::NoAddress),
            Ok(Ok(addresses)) => Ok(addresses),
            Ok(Err(error)) => Err(resolve_error(name, &error)),
            Err(_) => Err(SendError::Resolve(format!("{name}: the resolver crashed"))),
        }
    }
}

fn resolve_error(name: &str, error: &io::Error) -> SendError {
    SendError::Resolve(format!("{name}: {error}"))
}

/// Returns the error for a closed semaphore. The semaphores in this module are never closed.
fn shutdown_error() -> SendError {
    SendError::Resolve("the server is shutting down".to_owned())
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::io;
    use std::net::{IpAddr, Ipv4Addr};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Poll;

    use futures_util::future::BoxFuture;
    use tokio::sync::Semaphore;

    use super::{LookupLimiter, MAX_PLUGIN_LOOKUPS, MAX_SERVER_LOOKUPS, PluginLookups};
    use crate::name_resolver::NameResolver;

    /// A resolver whose lookups start immediately, and end when they get a permit.
    #[derive(Clone, Default)]
    struct Slow {
        begun: Arc<AtomicUsize>,
        end: Arc<Gate>,
    }

    struct Gate(Semaphore);

    impl Default for Gate {
        fn default() -> Self {
            Self(Semaphore::new(0))
        }
    }

    impl NameResolver for Slow {
        fn resolve(&self, _: String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
            let slow = self.clone();
            Box::pin(async move {
                slow.begun.fetch_add(1, Ordering::SeqCst);
                slow.end.0.acquire().await.unwrap().forget();
                Ok(vec![Ipv4Addr::LOCALHOST.into()])
            })
        }
    }

    /// Polls all ready tasks until nothing changes any more.
    async fn settle() {
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn a_plugin_that_gives_up_keeps_its_places_until_the_lookups_end() {
        let slow = Slow::default();
        let lookups = Arc::new(LookupLimiter::new(Arc::new(slow.clone())));
        let greedy = PluginLookups::new();
        let modest = PluginLookups::new();
        for _ in 0..10 * MAX_PLUGIN_LOOKUPS {
            let mut attempt = Box::pin(lookups.resolve("slow.example", Some(&greedy)));
            let begun = std::future::poll_fn(|context| {
                Poll::Ready(attempt.as_mut().poll(context).is_pending())
            })
            .await;
            assert!(begun);
        }
        settle().await;
        assert_eq!(slow.begun.load(Ordering::SeqCst), MAX_PLUGIN_LOOKUPS);
        let other = {
            let lookups = lookups.clone();
            tokio::spawn(async move { lookups.resolve("slow.example", Some(&modest)).await })
        };
        settle().await;
        assert_eq!(
            slow.begun.load(Ordering::SeqCst),
            MAX_PLUGIN_LOOKUPS + 1,
            "another plugin has places of its own"
        );
        slow.end.0.add_permits(MAX_PLUGIN_LOOKUPS + 2);
        assert_eq!(
            other.await.unwrap().unwrap(),
            [IpAddr::from(Ipv4Addr::LOCALHOST)]
        );
        lookups
            .resolve("slow.example", Some(&greedy))
            .await
            .unwrap();
    }

    #[tokio::test]
    async fn the_server_has_a_bound_of_its_own() {
        let slow = Slow::default();
        let lookups = Arc::new(LookupLimiter::new(Arc::new(slow.clone())));
        let attempts: Vec<_> = (0..MAX_SERVER_LOOKUPS + 8)
            .map(|_| {
                let lookups = lookups.clone();
                tokio::spawn(async move {
                    lookups
                        .resolve("slow.example", Some(&PluginLookups::new()))
                        .await
                })
            })
            .collect();
        settle().await;
        assert_eq!(slow.begun.load(Ordering::SeqCst), MAX_SERVER_LOOKUPS);
        slow.end.0.add_permits(MAX_SERVER_LOOKUPS + 8);
        for attempt in attempts {
            attempt.await.unwrap().unwrap();
        }
    }
}
