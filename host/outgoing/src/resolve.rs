//! From names to addresses.

use std::io;
use std::net::IpAddr;

use futures_util::future::BoxFuture;

/// Resolves names.
///
/// The number of lookups at once is bounded outside of it, for the server and for each plugin. A lookup is never cut
/// off: its future is polled until it ends, also if nobody waits for it any more.
pub trait Resolve: Send + Sync + 'static {
    /// The addresses of a name, in the order in which they should be tried.
    ///
    /// # Errors
    ///
    /// Why the name cannot be resolved.
    fn resolve(&self, name: String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>>;
}

/// The resolver of the system: `getaddrinfo`, which reads `/etc/hosts`, on a thread that may block.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemResolver;

impl Resolve for SystemResolver {
    fn resolve(&self, name: String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
        Box::pin(async move {
            // The port is of no consequence for the addresses.
            let found = tokio::net::lookup_host((name, 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Resolve, SystemResolver};

    #[tokio::test]
    async fn the_system_knows_localhost() {
        let addresses = SystemResolver.resolve("localhost".to_owned()).await.unwrap();
        assert!(!addresses.is_empty() && addresses.iter().all(std::net::IpAddr::is_loopback), "{addresses:?}");
    }
}
