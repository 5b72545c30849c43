//! Sends requests with the HTTP client that plugins use and its checks, and follows redirects.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_LENGTH, LOCATION, USER_AGENT};
use http::{HeaderName, HeaderValue, Method, Request, Response};
use http_body_util::{BodyExt as _, Full};
use tokio::time::Instant;
use toolbay_bundle::check_url;
use toolbay_outgoing::{
    ConnectorOptions, HttpConnector, PluginClient, RequestMeter, RequestTimeouts, ResponseBody,
    SendError, SystemResolver,
};
use toolbay_policy::{HttpRule, OriginPattern};
use url::Url;

use crate::private_networks::{is_named, private_networks};
use crate::registry_error::RegistryError;

/// Maximum number of redirects of a request.
const MAX_REDIRECTS: u64 = 5;

/// Size that the heads of a request, its redirects and its response can have, in bytes.
const HEAD_BYTES: u64 = 1 << 20;

/// Maximum number of open connections. Requests are sent one after another, to few hosts.
const MAX_CONNECTIONS: usize = 8;

/// Time limits of requests.
#[derive(Clone, Copy, Debug)]
pub struct RegistryTimeouts {
    /// Time to connect, time to the first byte of a response, and maximum pause within it.
    pub idle: Duration,
    /// Time for one blob, with all attempts.
    pub transfer: Duration,
    /// Pause before an interrupted download continues. It grows with each attempt.
    pub retry_pause: Duration,
}

impl Default for RegistryTimeouts {
    fn default() -> Self {
        Self {
            idle: Duration::from_secs(30),
            transfer: Duration::from_mins(10),
            retry_pause: Duration::from_secs(1),
        }
    }
}

/// Sends requests. Each host has its own connections.
pub(crate) struct RegistryTransport {
    connector: Arc<HttpConnector>,
    clients: Mutex<HashMap<(String, bool), Arc<PluginClient>>>,
    idle: Duration,
}

/// A request, and how much may be received for it.
pub(crate) struct OutgoingRequest {
    pub(crate) method: Method,
    pub(crate) url: Url,
    pub(crate) fields: Vec<(HeaderName, String)>,
    /// The value of `Authorization`. Only the origin of `url` receives it.
    pub(crate) authorization: Option<String>,
    pub(crate) body: Bytes,
    /// Maximum size of the body of the response, in bytes.
    pub(crate) limit: u64,
    pub(crate) deadline: Instant,
}

impl OutgoingRequest {
    /// Creates a request without a body.
    pub(crate) fn new(method: Method, url: Url, limit: u64, deadline: Instant) -> Self {
        Self {
            method,
            url,
            fields: Vec::new(),
            authorization: None,
            body: Bytes::new(),
            limit,
            deadline,
        }
    }

    /// Adds a header.
    pub(crate) fn with(mut self, name: HeaderName, value: impl Into<String>) -> Self {
        self.fields.push((name, value.into()));
        self
    }

    /// Sets the body.
    pub(crate) fn with_body(mut self, body: Bytes) -> Self {
        self.body = body;
        self
    }
}

impl RegistryTransport {
    /// Creates a transport. Reads the certificates, which blocks.
    pub(crate) fn new(options: &ConnectorOptions, idle: Duration) -> Result<Self, RegistryError> {
        let resolver = Arc::new(SystemResolver);
        let connector = HttpConnector::new(options, resolver, MAX_CONNECTIONS)
            .map_err(RegistryError::Settings)?;
        Ok(Self {
            connector,
            clients: Mutex::default(),
            idle,
        })
    }

    /// Sends a request. If it has no body, follows redirects: to https, or from loopback to
    /// loopback. Only `named`, the address that a person named, and what shares its domain can be in
    /// a private network. Returns the response and the host that sent it.
    pub(crate) async fn send(
        &self,
        request: &OutgoingRequest,
        named: &Url,
    ) -> Result<(Response<ResponseBody>, String), RegistryError> {
        let sent = request.body.len() as u64;
        let meter = Arc::new(RequestMeter::new(
            MAX_REDIRECTS + 1,
            request
                .limit
                .saturating_add(HEAD_BYTES)
                .saturating_add(sent),
        ));
        let mut url = request.url.clone();
        for _ in 0..=MAX_REDIRECTS {
            let host = host_of(&url);
            let response =
                self.send_once(request, &url, named, &meter)
                    .await
                    .map_err(|reason| RegistryError::Connection {
                        host: host.clone(),
                        reason,
                    })?;
            let is_followed = matches!(request.method, Method::GET | Method::HEAD);
            if !response.status().is_redirection() || !is_followed {
                return Ok((response, host));
            }
            url = next_url(&url, &response).map_err(|why| RegistryError::Redirect { host, why })?;
        }
        Err(RegistryError::Redirect {
            host: host_of(&request.url),
            why: format!("it redirects more than {MAX_REDIRECTS} times"),
        })
    }

    async fn send_once(
        &self,
        request: &OutgoingRequest,
        url: &Url,
        named: &Url,
        meter: &Arc<RequestMeter>,
    ) -> Result<Response<ResponseBody>, SendError> {
        let invalid = |why: String| SendError::Protocol(why);
        let mut message = Request::builder()
            .method(request.method.clone())
            .uri(url.as_str())
            .header(USER_AGENT, concat!("toolbay/", env!("CARGO_PKG_VERSION")));
        for (name, value) in &request.fields {
            message = message.header(name, value);
        }
        if !request.body.is_empty() || request.method == Method::POST {
            message = message.header(CONTENT_LENGTH, request.body.len());
        }
        if let Some(authorization) = &request.authorization
            && url.origin() == request.url.origin()
        {
            let mut value = HeaderValue::from_str(authorization).map_err(|_| {
                invalid("the credentials have characters that HTTP does not allow".to_owned())
            })?;
            value.set_sensitive(true);
            message = message.header(AUTHORIZATION, value);
        }
        let message = message
            .body(Full::new(request.body.clone()))
            .map_err(|why| invalid(why.to_string()))?;
        let client = self.client(url, is_named(url, named)).map_err(invalid)?;
        let timeouts = RequestTimeouts {
            connect: self.idle,
            first_byte: self.idle,
            between_bytes: self.idle,
        };
        client
            .authorize(message)?
            .send(timeouts, request.deadline, meter)
            .await
    }

    /// Returns the client for the origin of a URL.
    fn client(&self, url: &Url, is_named: bool) -> Result<Arc<PluginClient>, String> {
        let origin = url.origin().ascii_serialization();
        let pattern = OriginPattern::parse(&origin)?;
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        let client = clients.entry((origin, is_named)).or_insert_with(|| {
            let networks = if is_named {
                private_networks()
            } else {
                Vec::new()
            };
            let rules = vec![HttpRule::new(pattern)];
            let connector = Arc::clone(&self.connector);
            Arc::new(PluginClient::new(connector, rules, networks, 1))
        });
        Ok(Arc::clone(client))
    }
}

/// Returns the target of a redirect.
fn next_url(url: &Url, response: &Response<ResponseBody>) -> Result<Url, String> {
    let location = response.headers().get(LOCATION);
    let next = location
        .and_then(|value| value.to_str().ok())
        .and_then(|location| url.join(location).ok())
        .ok_or_else(|| "it names no URL".to_owned())?;
    check_url(&next)?;
    if url.scheme() == "https" && next.scheme() != "https" {
        return Err(format!("{next} is not https"));
    }
    Ok(next)
}

/// Returns the host and port of a URL, for messages.
pub(crate) fn host_of(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}

/// Reads a whole body of at most `limit` bytes. `what` is for messages.
pub(crate) async fn read_body(
    response: Response<ResponseBody>,
    host: &str,
    what: &str,
    limit: u64,
) -> Result<Vec<u8>, RegistryError> {
    let mut body = response.into_body();
    let mut bytes = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|reason| RegistryError::Connection {
            host: host.to_owned(),
            reason,
        })?;
        let Ok(data) = frame.into_data() else {
            continue;
        };
        if (bytes.len() + data.len()) as u64 > limit {
            return Err(RegistryError::TooLarge {
                what: what.to_owned(),
                size: "more".to_owned(),
                limit,
            });
        }
        bytes.extend_from_slice(&data);
    }
    Ok(bytes)
}
