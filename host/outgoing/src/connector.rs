//! What all plugins of a server share: certificates, names, the proxy.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use rustls::ClientConfig;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, timeout_at};
use toolbay_policy::{NormalizedHost, UrlOrigin, UrlScheme, choose};
use url::Url;

use crate::dial::{check, dial};
use crate::error::SendError;
use crate::lookups::{LookupLimiter, PluginLookups};
use crate::proxy::ProxySettings;
use crate::resolve::NameResolver;
use crate::sockets::SocketBudget;
use crate::{roots, tls};

/// How a server reaches others. It has no `Debug`: the URL of a proxy may contain a password.
#[derive(Clone, Default)]
pub struct ConnectorOptions {
    /// Files of certificates (PEM) that are trusted beside those of the system.
    pub extra_ca: Vec<PathBuf>,
    /// An HTTP proxy, `http://[user:password@]host[:port]`, that every request goes through: https through a tunnel
    /// (CONNECT), http with the whole URL.
    ///
    /// The proxy resolves the names. An IP literal is filtered here; which addresses names may lead to, the proxy has
    /// to filter. The address of the proxy itself is the operator's choice and is not filtered.
    pub proxy: Option<Url>,
}

impl ConnectorOptions {
    /// Reads the files of certificates, and not those of the system.
    ///
    /// # Errors
    ///
    /// As [`HttpConnector::new`].
    pub fn check(&self) -> Result<(), String> {
        self.proxy.as_ref().map(ProxySettings::parse).transpose()?;
        roots::check(&self.extra_ca)
    }
}

/// Without the password that the URL of the proxy may have.
impl fmt::Debug for ConnectorOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectorOptions")
            .field("extra_ca", &self.extra_ca)
            .field("proxy", &self.proxy.is_some())
            .finish()
    }
}

/// The server's part of every request.
pub struct HttpConnector {
    tls: Arc<ClientConfig>,
    lookups: LookupLimiter,
    proxy: Option<ProxySettings>,
    pub(crate) sockets: SocketBudget,
}

/// A connection of bytes.
pub(crate) trait ByteTransport: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> ByteTransport for T {}

/// A connection, and what to speak on it.
pub(crate) struct NegotiatedTransport {
    pub(crate) transport: Box<dyn ByteTransport>,
    pub(crate) http2: bool,
}

impl HttpConnector {
    /// Reads the certificates. This blocks, and is done once. All plugins together have at most so many `sockets`, at
    /// least one.
    ///
    /// # Errors
    ///
    /// Which file cannot be used and why, or what is wrong with the proxy's URL.
    pub fn new(
        options: &ConnectorOptions,
        resolver: Arc<dyn NameResolver>,
        sockets: usize,
    ) -> Result<Arc<Self>, String> {
        let proxy = options.proxy.as_ref().map(ProxySettings::parse).transpose()?;
        let tls = tls::config(roots::load(&options.extra_ca)?)?;
        Ok(Arc::new(Self { tls, lookups: LookupLimiter::new(resolver), proxy, sockets: SocketBudget::new(sockets) }))
    }

    /// The proxy that requests over plain http are written for.
    pub(crate) fn proxy_for(&self, origin: &UrlOrigin) -> Option<&ProxySettings> {
        self.proxy.as_ref().filter(|_| origin.scheme == UrlScheme::Http)
    }

    /// Connects to an origin, or to the proxy on its behalf. The caller has room for one socket.
    pub(crate) async fn connect(
        &self,
        origin: &UrlOrigin,
        opened: &[toolbay_policy::AddressRange],
        places: &PluginLookups,
        until: Instant,
    ) -> Result<NegotiatedTransport, SendError> {
        let stream = if let Some(proxy) = &self.proxy {
            if let NormalizedHost::Ip(address) = origin.host {
                choose(&[address], opened).map_err(SendError::Addresses)?;
            }
            let addresses = match &proxy.host {
                NormalizedHost::Ip(address) => vec![*address],
                NormalizedHost::Name(name) => {
                    within(until, SendError::ResolveTimeout, self.lookups.resolve(name, None)).await?
                }
            };
            let stream = within(until, SendError::ConnectTimeout, dial(&addresses, proxy.port, &self.sockets)).await?;
            if origin.scheme == UrlScheme::Http {
                stream
            } else {
                within(until, SendError::ConnectTimeout, proxy.tunnel(stream, origin)).await?
            }
        } else {
            let addresses = match &origin.host {
                NormalizedHost::Ip(address) => vec![*address],
                NormalizedHost::Name(name) => {
                    let lookup = self.lookups.resolve(name, Some(places));
                    within(until, SendError::ResolveTimeout, lookup).await?
                }
            };
            let addresses = choose(&addresses, opened).map_err(SendError::Addresses)?;
            let stream = within(until, SendError::ConnectTimeout, dial(&addresses, origin.port, &self.sockets)).await?;
            check(&stream, opened)?;
            stream
        };
        if origin.scheme == UrlScheme::Http {
            return Ok(NegotiatedTransport { transport: Box::new(stream), http2: false });
        }
        let handshake = tls::handshake(self.tls.clone(), &origin.host, stream);
        let (stream, http2) = within(until, SendError::ConnectTimeout, handshake).await?;
        Ok(NegotiatedTransport { transport: Box::new(stream), http2 })
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
