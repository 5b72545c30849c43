//! Name resolution.

use std::borrow::Cow;
use std::io;
use std::net::{IpAddr, ToSocketAddrs as _};

use futures_util::future::BoxFuture;

use crate::hosts_file;

/// A name resolver.
///
/// Callers limit the number of concurrent lookups, for the server and for each plugin. A lookup is
/// never cancelled: its future is polled until it ends, even if no caller waits for it any more.
pub trait NameResolver: Send + Sync + 'static {
    /// Returns the addresses of a name, in the order in which they should be tried.
    ///
    /// # Errors
    ///
    /// Returns an error if the name cannot be resolved.
    fn resolve(&self, name: String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>>;
}

/// The resolver of the system: `/etc/hosts` and then `getaddrinfo`, on a blocking thread.
///
/// A name of more than one label is absolute: the search domains of `/etc/resolv.conf` do not apply
/// to it.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemResolver;

impl NameResolver for SystemResolver {
    fn resolve(&self, name: String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
        Box::pin(async move { tokio::task::spawn_blocking(move || lookup_blocking(&name)).await? })
    }
}

fn lookup_blocking(name: &str) -> io::Result<Vec<IpAddr>> {
    let asked = absolute_name(name);
    // `getaddrinfo` of glibc and of musl finds no name with a trailing dot in `/etc/hosts`.
    if asked.ends_with('.') {
        let listed = hosts_file::lookup(name);
        if !listed.is_empty() {
            return Ok(listed);
        }
    }
    // The port does not affect the addresses.
    Ok((&*asked, 0)
        .to_socket_addrs()?
        .map(|address| address.ip())
        .collect())
}

/// Returns the name in the form for `getaddrinfo`. A trailing dot prevents the use of search
/// domains: with the settings of Kubernetes, `api.example.com` would first be looked up as
/// `api.example.com.NAMESPACE.svc.cluster.local`.
///
/// A name of one label, such as `redis`, only has a meaning in the local network, and a grant must
/// contain it in full. It is looked up unchanged.
fn absolute_name(name: &str) -> Cow<'_, str> {
    if name.contains('.') && !name.ends_with('.') {
        Cow::Owned(format!("{name}."))
    } else {
        Cow::Borrowed(name)
    }
}

#[cfg(test)]
mod tests {
    use super::{NameResolver, SystemResolver, absolute_name};

    #[tokio::test]
    async fn the_system_knows_localhost() {
        let addresses = SystemResolver
            .resolve("localhost".to_owned())
            .await
            .unwrap();
        assert!(
            !addresses.is_empty() && addresses.iter().all(std::net::IpAddr::is_loopback),
            "{addresses:?}"
        );
    }

    #[test]
    fn a_name_of_several_labels_is_absolute() {
        let cases = [
            ("api.example.com", "api.example.com."),
            ("a.b", "a.b."),
            ("a.b.", "a.b."),
            ("redis", "redis"),
            ("", ""),
        ];
        for (name, asked) in cases {
            assert_eq!(absolute_name(name), asked);
        }
    }
}
