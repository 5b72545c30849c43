//! The state that all plugins of a server share: certificates, resolver, proxy, sockets.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use rustls::ClientConfig;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};
use toolbay_policy::{NormalizedHost, UrlOrigin, UrlScheme, filter_addresses};
use url::Url;

use crate::dial::{check_peer, dial};
use crate::error::SendError;
use crate::lookup_limiter::{LookupLimiter, PluginLookups};
use crate::name_resolver::NameResolver;
use crate::proxy::ProxySettings;
use crate::socket_budget::SocketBudget;
use crate::{root_certificates, tls};

/// Options for outgoing connections of a server. `Debug` does not show the URL of the proxy, which
/// can contain a password.
#[derive(Clone, Default)]
pub struct ConnectorOptions {
    /// PEM files of certificates that are trusted in addition to those of the system.
    pub extra_ca: Vec<PathBuf>,
    /// An HTTP proxy, `http://[user:password@]host[:port]`, that forwards every request: https
    /// through a tunnel (CONNECT), http with the absolute URL.
    ///
    /// The proxy resolves the names. An IP literal is filtered here, but the proxy must filter the
    /// addresses of names. The address of the proxy itself is the operator's choice and is not
    /// filtered.
    pub proxy: Option<Url>,
}

impl ConnectorOptions {
    /// Validates the options. Reads the certificate files, but not the certificates of the system.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`HttpConnector::new`].
    pub fn check(&self) -> Result<(), String> {
        self.proxy.as_ref().map(ProxySettings::parse).transpose()?;
        root_certificates::check(&self.extra_ca)
    }
}

/// Omits the proxy's URL, which can contain a password.
impl fmt::Debug for ConnectorOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectorOptions")
            .field("extra_ca", &self.extra_ca)
            .field("proxy", &self.proxy.is_some())
            .finish()
    }
}

/// Creates connections to origins for all plugins of a server.
pub struct HttpConnector {
    tls: Arc<ClientConfig>,
    lookups: LookupLimiter,
    proxy: Option<ProxySettings>,
    pub(crate) sockets: SocketBudget,
}

/// A bidirectional byte stream.
pub(crate) trait ByteTransport: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> ByteTransport for T {}

/// A connected transport with its negotiated protocol.
pub(crate) struct NegotiatedTransport {
    pub(crate) transport: Box<dyn ByteTransport>,
    pub(crate) http2: bool,
}

impl HttpConnector {
    /// Creates a connector and reads the certificates. This blocks, and happens once. All plugins
    /// together have at most `sockets` sockets, and at least one.
    ///
    /// # Errors
    ///
    /// Returns an error if a certificate file cannot be used, or if the proxy's URL is invalid.
    pub fn new(
        options: &ConnectorOptions,
        resolver: Arc<dyn NameResolver>,
        sockets: usize,
    ) -> Result<Arc<Self>, String> {
        let proxy = options
            .proxy
            .as_ref()
            .map(ProxySettings::parse)
            .transpose()?;
        let tls = tls::client_config(root_certificates::load(&options.extra_ca)?)?;
        Ok(Arc::new(Self {
            tls,
            lookups: LookupLimiter::new(resolver),
            proxy,
            sockets: SocketBudget::new(sockets),
        }))
    }

    /// Returns the proxy to which a request for this origin must be addressed: requests over plain
    /// http, if a proxy is set.
    pub(crate) fn proxy_for(&self, origin: &UrlOrigin) -> Option<&ProxySettings> {
        self.proxy
            .as_ref()
            .filter(|_| origin.scheme == UrlScheme::Http)
    }

    /// Connects to an origin, or to the proxy on its behalf. The caller has the reservation for one
    /// socket.
    pub(crate) async fn connect(
        &self,
        origin: &UrlOrigin,
        private_networks: &[toolbay_policy::AddressRange],
        lookups: &PluginLookups,
        until: Instant,
    ) -> Result<NegotiatedTransport, SendError> {
        let stream = match &self.proxy {
            Some(proxy) => {
                self.connect_to_proxy(proxy, origin, private_networks, until)
                    .await?
            }
            None => {
                self.connect_to_origin(origin, private_networks, lookups, until)
                    .await?
            }
        };
        if origin.scheme == UrlScheme::Http {
            return Ok(NegotiatedTransport {
                transport: Box::new(stream),
                http2: false,
            });
        }
        let handshake = tls::handshake(self.tls.clone(), &origin.host, stream);
        let (stream, http2) = run_until(until, SendError::ConnectTimeout, handshake).await?;
        Ok(NegotiatedTransport {
            transport: Box::new(stream),
            http2,
        })
    }

    /// Connects to the proxy, through a tunnel to the origin if it is https. The proxy resolves the
    /// name of the origin.
    async fn connect_to_proxy(
        &self,
        proxy: &ProxySettings,
        origin: &UrlOrigin,
        private_networks: &[toolbay_policy::AddressRange],
        until: Instant,
    ) -> Result<TcpStream, SendError> {
        if let NormalizedHost::Ip(address) = origin.host {
            filter_addresses(&[address], private_networks).map_err(SendError::AddressesRefused)?;
        }
        let addresses = match &proxy.host {
            NormalizedHost::Ip(address) => vec![*address],
            NormalizedHost::Name(name) => {
                let lookup = self.lookups.resolve(name, None);
                run_until(until, SendError::ResolveTimeout, lookup).await?
            }
        };
        let dialed = dial(&addresses, proxy.port, &self.sockets);
        let stream = run_until(until, SendError::ConnectTimeout, dialed).await?;
        if origin.scheme == UrlScheme::Http {
            return Ok(stream);
        }
        let tunnel = proxy.tunnel(stream, origin);
        run_until(until, SendError::ConnectTimeout, tunnel).await
    }

    /// Resolves the name of the origin, filters its addresses, and connects to one of them.
    async fn connect_to_origin(
        &self,
        origin: &UrlOrigin,
        private_networks: &[toolbay_policy::AddressRange],
        lookups: &PluginLookups,
        until: Instant,
    ) -> Result<TcpStream, SendError> {
        let addresses = match &origin.host {
            NormalizedHost::Ip(address) => vec![*address],
            NormalizedHost::Name(name) => {
                let lookup = self.lookups.resolve(name, Some(lookups));
                run_until(until, SendError::ResolveTimeout, lookup).await?
            }
        };
        let addresses =
            filter_addresses(&addresses, private_networks).map_err(SendError::AddressesRefused)?;
        let dialed = dial(&addresses, origin.port, &self.sockets);
        let stream = run_until(until, SendError::ConnectTimeout, dialed).await?;
        check_peer(&stream, private_networks)?;
        Ok(stream)
    }
}

/// Returns the result of `step`, or the error `late` if it does not finish by `until`.
pub(crate) async fn run_until<T>(
    until: Instant,
    late: SendError,
    step: impl Future<Output = Result<T, SendError>>,
) -> Result<T, SendError> {
    timeout_at(until, step).await.unwrap_or(Err(late))
}
