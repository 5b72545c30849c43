//! The HTTP client that sends requests to the receiver and limits the size of responses.

use std::error::Error as _;
use std::io;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HOST, RETRY_AFTER, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use url::{Host, Url};

use crate::settings::OtelSettings;
use crate::signal::SignalKind;

/// Maximum size of a response body, in bytes.
const MAX_RESPONSE_BYTES: usize = 64 << 10;

/// Content type of requests.
const PROTOBUF_CONTENT_TYPE: HeaderValue = HeaderValue::from_static("application/x-protobuf");

/// The client of one signal. It reuses its connection.
pub(crate) struct SignalClient {
    host: Host<String>,
    port: u16,
    path: Uri,
    headers: HeaderMap,
    tls: Option<TlsConnector>,
    timeout: Duration,
    connection: Option<SendRequest<Full<Bytes>>>,
}

/// A failed export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ExportFailure {
    /// The reason, in words. The receiver may supply parts of it.
    pub(crate) reason: String,
    /// The retry policy.
    pub(crate) retry: RetryPolicy,
}

/// The retry policy of a failed request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RetryPolicy {
    /// The receiver would never accept the request.
    Never,
    /// After the sender's own backoff.
    AfterBackoff,
    /// After at least this delay, as the receiver requested.
    After(Duration),
}

impl RetryPolicy {
    /// Returns the delay that the receiver requested, if any.
    pub(crate) fn requested_delay(self) -> Option<Duration> {
        match self {
            Self::After(delay) => Some(delay),
            Self::Never | Self::AfterBackoff => None,
        }
    }
}

impl ExportFailure {
    fn retryable(why: impl Into<String>) -> Self {
        Self {
            reason: why.into(),
            retry: RetryPolicy::AfterBackoff,
        }
    }
}

impl SignalClient {
    /// Creates a client for this signal. `tls` must be set if the endpoint uses `https`.
    ///
    /// # Errors
    ///
    /// Returns the reason if the endpoint is invalid.
    pub(crate) fn new(
        settings: &OtelSettings,
        signal: SignalKind,
        tls: Option<TlsConnector>,
    ) -> Result<Self, String> {
        let endpoint = &settings.endpoint;
        OtelSettings::check_endpoint(endpoint)?;
        let invalid_url = |error: http::Error| format!("the URL cannot be used: {error}");
        let path = format!(
            "{}/v1/{}",
            endpoint.path().trim_end_matches('/'),
            signal.as_str()
        );
        let path = Uri::builder()
            .path_and_query(path)
            .build()
            .map_err(invalid_url)?;
        let host = endpoint.host().ok_or("the URL has no host")?.to_owned();
        let port = endpoint
            .port_or_known_default()
            .ok_or("the URL has no port")?;
        let mut headers = settings.headers.as_map().clone();
        let authority = HeaderValue::try_from(authority(endpoint))
            .map_err(|error| invalid_url(error.into()))?;
        headers.insert(HOST, authority);
        headers.insert(CONTENT_TYPE, PROTOBUF_CONTENT_TYPE);
        headers.insert(
            USER_AGENT,
            HeaderValue::from_static(concat!("toolbay/", env!("CARGO_PKG_VERSION"))),
        );
        Ok(Self {
            host,
            port,
            path,
            headers,
            tls,
            timeout: settings.timeout,
            connection: None,
        })
    }

    /// Sends a request. Returns the body of a successful response.
    pub(crate) async fn send(&mut self, body: Bytes) -> Result<Bytes, ExportFailure> {
        let time_limit = self.timeout;
        let result = timeout(time_limit, self.exchange(body)).await;
        if result.as_ref().is_ok_and(Result::is_ok) {
            return result.unwrap_or_else(|_| Err(ExportFailure::retryable("")));
        }
        // Close the connection: late bytes on it would belong to this request.
        self.connection = None;
        result.unwrap_or_else(|_| {
            Err(ExportFailure::retryable(format!(
                "no complete response within {time_limit:?}"
            )))
        })
    }

    async fn exchange(&mut self, body: Bytes) -> Result<Bytes, ExportFailure> {
        let open_connection = self
            .connection
            .take()
            .filter(|connection| !connection.is_closed());
        let response = match open_connection {
            // The receiver may have closed the idle connection in the meantime.
            Some(mut reused) => match self.request(&mut reused, body.clone()).await {
                Ok(response) => (reused, response),
                Err(_) => self.send_on_new_connection(body).await?,
            },
            None => self.send_on_new_connection(body).await?,
        };
        let (connection, response) = response;
        let (head, body) = response.into_parts();
        if !head.status.is_success() {
            return Err(classify_failure(head.status, &head.headers));
        }
        let body = Limited::new(body, MAX_RESPONSE_BYTES).collect().await;
        // The status reports success, so the body is not needed. But the connection cannot be
        // reused.
        let Ok(body) = body else {
            return Ok(Bytes::new());
        };
        self.connection = Some(connection);
        Ok(body.to_bytes())
    }

    /// Sends a request over a new connection.
    async fn send_on_new_connection(
        &self,
        body: Bytes,
    ) -> Result<(SendRequest<Full<Bytes>>, Response<Incoming>), ExportFailure> {
        let mut connection = self.connect().await.map_err(ExportFailure::retryable)?;
        let response = self.request(&mut connection, body).await;
        let response = response.map_err(|error| {
            ExportFailure::retryable(format!("no response: {}", root_cause_message(&error)))
        })?;
        Ok((connection, response))
    }

    async fn request(
        &self,
        connection: &mut SendRequest<Full<Bytes>>,
        body: Bytes,
    ) -> Result<Response<Incoming>, hyper::Error> {
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = Method::POST;
        request.uri_mut().clone_from(&self.path);
        request.headers_mut().clone_from(&self.headers);
        connection.ready().await?;
        connection.send_request(request).await
    }

    async fn connect(&self) -> Result<SendRequest<Full<Bytes>>, String> {
        let connect_error =
            |error: io::Error| format!("no connection: {}", io_error_message(&error));
        let stream = match &self.host {
            Host::Domain(name) => TcpStream::connect((name.as_str(), self.port)).await,
            Host::Ipv4(address) => TcpStream::connect((*address, self.port)).await,
            Host::Ipv6(address) => TcpStream::connect((*address, self.port)).await,
        };
        let stream = stream.map_err(connect_error)?;
        stream.set_nodelay(true).map_err(connect_error)?;
        let Some(tls) = &self.tls else {
            return handshake(TokioIo::new(stream)).await;
        };
        let name = match &self.host {
            Host::Domain(name) => ServerName::try_from(name.clone())
                .map_err(|_| format!("no certificate can be for the name {name}"))?,
            Host::Ipv4(address) => ServerName::from(std::net::IpAddr::from(*address)),
            Host::Ipv6(address) => ServerName::from(std::net::IpAddr::from(*address)),
        };
        let stream = tls
            .connect(name, stream)
            .await
            .map_err(|error| format!("no TLS: {error}"))?;
        handshake(TokioIo::new(stream)).await
    }
}

/// Returns the authority of a URL in the form of the `Host` header.
fn authority(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port()
        .map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

async fn handshake<S>(stream: S) -> Result<SendRequest<Full<Bytes>>, String>
where
    S: hyper::rt::Read + hyper::rt::Write + Send + Unpin + 'static,
{
    let (sender, connection) = http1::handshake(stream)
        .await
        .map_err(|error| format!("no connection: {}", root_cause_message(&error)))?;
    // The connection task ends when the sender is dropped or the receiver closes the connection.
    tokio::spawn(async move { drop(connection.await) });
    Ok(sender)
}

/// Classifies an unsuccessful response according to the OTLP specification.
fn classify_failure(status: StatusCode, headers: &HeaderMap) -> ExportFailure {
    let is_retryable = matches!(status.as_u16(), 429 | 502 | 503 | 504);
    let advice = match status.as_u16() {
        300..=399 => "; redirects are not followed",
        401 | 403 => "; check otel.headers",
        404 => "; check otel.endpoint",
        _ => "",
    };
    ExportFailure {
        reason: format!("answered with status {status}{advice}"),
        retry: if is_retryable {
            retry_after(headers).map_or(RetryPolicy::AfterBackoff, RetryPolicy::After)
        } else {
            RetryPolicy::Never
        },
    }
}

fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let at = httpdate::parse_http_date(text).ok()?;
    Some(at.duration_since(SystemTime::now()).unwrap_or_default())
}

/// Formats an I/O error without its error number.
fn io_error_message(error: &io::Error) -> String {
    if error.raw_os_error().is_some() {
        error.kind().to_string()
    } else {
        error.to_string()
    }
}

/// Formats the innermost error, which is the most specific.
fn root_cause_message(error: &hyper::Error) -> String {
    let mut cause = error.source();
    while let Some(next) = cause.and_then(std::error::Error::source) {
        cause = Some(next);
    }
    let Some(cause) = cause else {
        return error.to_string();
    };
    cause
        .downcast_ref::<io::Error>()
        .map_or_else(|| cause.to_string(), io_error_message)
}

#[cfg(test)]
mod tests {
    use http::header::RETRY_AFTER;

    use super::*;

    #[test]
    fn status_determines_the_retry_policy() {
        let failure = |status: u16, after: Option<&str>| {
            let after = after.map(|after| (RETRY_AFTER, after.parse().unwrap()));
            classify_failure(
                StatusCode::from_u16(status).unwrap(),
                &after.into_iter().collect(),
            )
        };
        for status in [429, 502, 503, 504] {
            assert_eq!(
                failure(status, None).retry,
                RetryPolicy::AfterBackoff,
                "{status}"
            );
        }
        for status in [301, 302, 400, 401, 403, 404, 405, 413, 415, 500, 501] {
            assert_eq!(
                failure(status, Some("5")).retry,
                RetryPolicy::Never,
                "{status}"
            );
        }
        assert_eq!(
            failure(503, Some(" 7 ")).retry,
            RetryPolicy::After(Duration::from_secs(7))
        );
        assert_eq!(failure(429, Some("soon")).retry, RetryPolicy::AfterBackoff);
        assert_eq!(failure(429, Some("-1")).retry, RetryPolicy::AfterBackoff);
        assert_eq!(
            failure(503, Some("Wed, 21 Oct 2015 07:28:00 GMT")).retry,
            RetryPolicy::After(Duration::ZERO)
        );
        let later = httpdate::fmt_http_date(SystemTime::now() + Duration::from_secs(100));
        let wait = failure(503, Some(&later)).retry.requested_delay().unwrap();
        assert!(
            (Duration::from_secs(90)..=Duration::from_secs(100)).contains(&wait),
            "{wait:?}"
        );
        assert_eq!(
            failure(302, None).reason,
            "answered with status 302 Found; redirects are not followed"
        );
        assert_eq!(
            failure(401, None).reason,
            "answered with status 401 Unauthorized; check otel.headers"
        );
    }
}
