//! The server that receives notifications with `POST`.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Method, Request, Uri};
use http_body_util::Full;
use tokio::time::Instant;
use toolbay_outgoing::{
    ConnectorOptions, HttpConnector, PluginClient, RequestMeter, RequestTimeouts, SystemResolver,
};
use toolbay_policy::{AddressRange, HttpRule, OriginPattern};
use url::Url;

/// Networks that are not globally reachable and in which a webhook may be.
const PRIVATE_NETWORKS: [&str; 7] = [
    "127.0.0.0/8",
    "10.0.0.0/8",
    "172.16.0.0/12",
    "192.168.0.0/16",
    "100.64.0.0/10",
    "::1/128",
    "fc00::/7",
];

/// Maximum bytes of a notification and the head of its response.
const MAX_BYTES: u64 = 64 << 10;

/// Time limit for each part of an exchange.
const PART_TIMEOUT: Duration = Duration::from_secs(8);

/// A server that receives notifications.
pub(super) struct Webhook {
    client: Arc<PluginClient>,
    url: Uri,
}

impl Webhook {
    /// Creates the client for this URL. Its host may have a private address, because the operator
    /// chose it, but not that of a metadata service. No other origin is allowed, and redirects are
    /// not followed. Blocks, because it reads the certificates.
    ///
    /// # Errors
    ///
    /// The certificates cannot be used. The message does not contain the URL.
    pub(super) fn new(url: &Url, options: &ConnectorOptions) -> Result<Self, String> {
        let rule = HttpRule::new(OriginPattern::parse(&url.origin().ascii_serialization())?);
        let private_networks = PRIVATE_NETWORKS.map(AddressRange::parse);
        let private_networks = private_networks
            .into_iter()
            .collect::<Result<Vec<_>, _>>()?;
        let connector = HttpConnector::new(options, Arc::new(SystemResolver), 1)?;
        let client = PluginClient::new(connector, vec![rule], private_networks, 1);
        Ok(Self {
            client: Arc::new(client),
            url: url
                .as_str()
                .parse()
                .map_err(|_| "the URL cannot be requested".to_owned())?,
        })
    }

    /// Sends one notification.
    ///
    /// # Errors
    ///
    /// There is no response, or it is not a success. The message does not contain the URL's path.
    pub(super) async fn send(&self, text: String) -> Result<(), String> {
        let mut request = Request::new(Full::new(Bytes::from(text)));
        *request.method_mut() = Method::POST;
        request.uri_mut().clone_from(&self.url);
        let json = HeaderValue::from_static("application/json");
        request.headers_mut().insert(CONTENT_TYPE, json);
        let timeouts = RequestTimeouts {
            connect: PART_TIMEOUT,
            first_byte: PART_TIMEOUT,
            between_bytes: PART_TIMEOUT,
        };
        let meter = Arc::new(RequestMeter::new(1, MAX_BYTES));
        let host = self.url.host().unwrap_or_default();
        let sending = self
            .client
            .authorize(request)
            .map_err(|_| format!("{host}: the URL is not a valid target"))?
            .send(timeouts, Instant::now() + PART_TIMEOUT, &meter);
        let response = sending.await.map_err(|error| format!("{host}: {error}"))?;
        // The body is not read.
        let status = response.status();
        if status.is_success() {
            Ok(())
        } else if status.is_redirection() {
            Err(format!(
                "{host} answered with status {status}; redirects are not followed"
            ))
        } else {
            Err(format!("{host} answered with status {status}"))
        }
    }
}
