//! What all plugins of a server share: certificates, names, the proxy.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use rustls::ClientConfig;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, timeout_at};
use toolbay_policy::{Host, Origin, Scheme, choose};
use url::Url;

use crate::dial::{check, dial};
use crate::error::SendError;
use crate::lookups::{Lookups, Places};
use crate::proxy::Proxy;
use crate::resolve::Resolve;
use crate::sockets::Sockets;
use crate::{roots, tls};

/// How a server reaches others. It has no `Debug`: the URL of a proxy may contain a password.
#[derive(Clone, Default)]
pub struct Options {
    /// Files of certificates (PEM) that are trusted beside those of the system.
    pub extra_ca: Vec<PathBuf>,
    /// An HTTP proxy, `http://[user:password@]host[:port]`, that every request goes through: https through a tunnel
    /// (CONNECT), http with the whole URL.
    ///
    /// The proxy resolves the names. An IP literal is filtered here; which addresses names may lead to, the proxy has
    /// to filter. The address of the proxy itself is the operator's choice and is not filtered.
    pub proxy: Option<Url>,
}

impl Options {
    /// Reads the files of certificates, and not those of the system.
    ///
    /// # Errors
    ///
    /// As [`Connector::new`].
    pub fn check(&self) -> Result<(), String> {
        self.proxy.as_ref().map(Proxy::parse).transpose()?;
        roots::check(&self.extra_ca)
    }
}

/// Without the password that the URL of the proxy may have.
impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options").field("extra_ca", &self.extra_ca).field("proxy", &self.proxy.is_some()).finish()
    }
}

/// The server's part of every request.
pub struct Connector {
    tls: Arc<ClientConfig>,
    lookups: Lookups,
    proxy: Option<Proxy>,
    pub(crate) sockets: Sockets,
}

/// A connection of bytes.
pub(crate) trait Transport: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Transport for T {}

/// A connection, and what to speak on it.
pub(crate) struct Connected {
    pub(crate) transport: Box<dyn Transport>,
    pub(crate) http2: bool,
}

impl Connector {
    /// Reads the certificates. This blocks, and is done once. All plugins together have at most so many `sockets`, at
    /// least one.
    ///
    /// # Errors
    ///
    /// Which file cannot be used and why, or what is wrong with the proxy's URL.
    pub fn new(options: &Options, resolver: Arc<dyn Resolve>, sockets: usize) -> Result<Arc<Self>, String> {
        let proxy = options.proxy.as_ref().map(Proxy::parse).transpose()?;
        let tls = tls::config(roots::load(&options.extra_ca)?)?;
        Ok(Arc::new(Self { tls, lookups: Lookups::new(resolver), proxy, sockets: Sockets::new(sockets) }))
    }

    /// The proxy that requests over plain http are written for.
    pub(crate) fn proxy_for(&self, origin: &Origin) -> Option<&Proxy> {
        self.proxy.as_ref().filter(|_| origin.scheme == Scheme::Http)
    }

    /// Connects to an origin, or to the proxy on its behalf. The caller has room for one socket.
    pub(crate) async fn connect(
        &self,
        origin: &Origin,
        opened: &[toolbay_policy::Network],
        places: &Places,
        until: Instant,
    ) -> Result<Connected, SendError> {
        let stream = if let Some(proxy) = &self.proxy {
            if let Host::Ip(address) = origin.host {
                choose(&[address], opened).map_err(SendError::Addresses)?;
            }
            let addresses = match &proxy.host {
                Host::Ip(address) => vec![*address],
                Host::Name(name) => within(until, SendError::ResolveTimeout, self.lookups.resolve(name, None)).await?,
            };
            let stream = within(until, SendError::ConnectTimeout, dial(&addresses, proxy.port, &self.sockets)).await?;
            if origin.scheme == Scheme::Http {
                stream
            } else {
                within(until, SendError::ConnectTimeout, proxy.tunnel(stream, origin)).await?
            }
        } else {
            let addresses = match &origin.host {
                Host::Ip(address) => vec![*address],
                Host::Name(name) => {
                    let lookup = self.lookups.resolve(name, Some(places));
                    within(until, SendError::ResolveTimeout, lookup).await?
                }
            };
            let addresses = choose(&addresses, opened).map_err(SendError::Addresses)?;
            let stream = within(until, SendError::ConnectTimeout, dial(&addresses, origin.port, &self.sockets)).await?;
            check(&stream, opened)?;
            stream
        };
        if origin.scheme == Scheme::Http {
            return Ok(Connected { transport: Box::new(stream), http2: false });
        }
        let handshake = tls::handshake(self.tls.clone(), &origin.host, stream);
        let (stream, http2) = within(until, SendError::ConnectTimeout, handshake).await?;
        Ok(Connected { transport: Box::new(stream), http2 })
    }
}

/// What `step` results in, or `late` if it is not over by then.
pub(crate) async fn within<T>(
    until: Instant,
    late: SendError,
    step: impl Future<Output = Result<T, SendError>>,
) -> Result<T, SendError> {
    timeout_at(until, step).await.unwrap_or(Err(late))
}
