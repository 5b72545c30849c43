//! The path of a request: authorization, the host's credentials, sending.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri, header,
    response,
};
use http_body::Body;
use hyper::body::Incoming;
use hyper::client::conn::TrySendError;
use tokio::time::{Instant, sleep_until, timeout_at};
use tokio_util::sync::CancellationToken;
use toolbay_policy::UrlOrigin;

use crate::connection::limit_head;
use crate::connection_driver::drive_while_waiting;
use crate::deadline::{instant_after, timeout_deadline};
use crate::error::SendError;
use crate::error_classification;
use crate::header_fields::{self, MAX_HTTP_HEAD_BYTES, MAX_RESPONSE_FIELDS, parse_content_length};
use crate::plugin_client::PluginClient;
use crate::pool::{ConnectionLease, PoolKey};
use crate::pool_partition::PoolPartition;
use crate::request_meter::RequestMeter;
use crate::request_target::{RequestTarget, denial_without_rules};
use crate::request_timeouts::RequestTimeouts;
use crate::response_body::{ResponseBody, ResponseContext};
use crate::upload_body::{BoxError, UploadBody};
use crate::upload_state::UploadState;

/// A request that the rules of a plugin allow, and the client that sends it.
///
/// Only [`PluginClient::authorize`] creates one, so a request cannot be sent without the check. The
/// check is final: afterwards the host can add fields and replace the query, and method, origin,
/// path and the length of the body do not change.
pub struct AuthorizedRequest<B> {
    client: Arc<PluginClient>,
    target: RequestTarget,
    /// The method, the body, and the fields without those that apply to a connection. The target is
    /// written to it when the connection is known.
    request: Request<B>,
    pub(crate) partition: PoolPartition,
}

impl PluginClient {
    /// Checks a request, as the guest wrote it, against the rules of the plugin. Its URI must have
    /// a scheme and an authority. Fields that apply to a connection are removed.
    ///
    /// # Errors
    ///
    /// Returns [`SendError::Denied`] if no rule allows the request. Returns
    /// [`SendError::HostHeader`] or [`SendError::ContentLength`] if one of these fields contradicts
    /// the request or itself.
    pub fn authorize<B>(
        self: &Arc<Self>,
        mut request: Request<B>,
    ) -> Result<AuthorizedRequest<B>, SendError> {
        Ok(AuthorizedRequest {
            target: RequestTarget::check(&mut request, self.rules())?,
            client: Arc::clone(self),
            request,
            partition: PoolPartition::NONE,
        })
    }

    /// Returns the reason why a plugin without rules, and so without a client, may not send a
    /// request.
    pub fn denial_without_rules<B>(request: &Request<B>) -> SendError {
        SendError::Denied(denial_without_rules(request.method(), request.uri()))
    }
}

impl<B> AuthorizedRequest<B> {
    /// Returns the origin that the request is for.
    pub fn origin(&self) -> &UrlOrigin {
        &self.target.origin
    }

    /// Returns the method.
    pub fn method(&self) -> &Method {
        self.request.method()
    }

    /// Returns the body of a request that is not sent.
    pub fn into_body(self) -> B {
        self.request.into_body()
    }

    /// Adds a header field of the host, which replaces fields of the guest with the same name.
    /// Ignores fields that only the client may set: those that frame the message or apply to a
    /// connection.
    pub fn insert_field(&mut self, name: HeaderName, value: HeaderValue) {
        if !header_fields::is_reserved(&name) {
            self.request.headers_mut().insert(name, value);
        }
    }

    /// Adds credentials of the host: these fields, and the query of `uri`. The request then reuses
    /// only connections of requests with the same `key`, which identifies the credentials and the
    /// caller that they act for.
    ///
    /// # Errors
    ///
    /// Returns [`SendError::Denied`] if the path of `uri` is not that of the request.
    pub fn add_credentials(
        &mut self,
        fields: HeaderMap,
        uri: &Uri,
        key: &[u8],
    ) -> Result<(), SendError> {
        self.partition = PoolPartition::from_secret(key);
        if let Some(target) = uri.path_and_query() {
            self.target.replace_query(target)?;
        }
        for (name, value) in fields {
            if let Some(name) = name {
                self.insert_field(name, value);
            }
        }
        Ok(())
    }
}

impl<B> AuthorizedRequest<B>
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    /// Sends the request and returns the head of the response.
    ///
    /// The body of the request is read while it is sent, no faster than the server accepts it, and
    /// at most until the response is dropped. Connections are reused for requests with the same
    /// credentials. Dropping the future cancels the request; an HTTP/1.1 connection is then closed.
    ///
    /// Fields that apply to a connection are removed from the response. Redirects are returned, not
    /// followed. If the guest declares a length, hyper reads no more of the body than that: if the
    /// guest writes more later, its body is closed.
    ///
    /// # Errors
    ///
    /// Returns the reason why there is no response. See [`SendError`].
    pub async fn send(
        self,
        timeouts: RequestTimeouts,
        deadline: Instant,
        meter: &Arc<RequestMeter>,
    ) -> Result<Response<ResponseBody>, SendError> {
        let exchange = self.send_without_deadline(timeouts, deadline, meter);
        timeout_at(deadline, exchange)
            .await
            .unwrap_or(Err(SendError::Deadline))
    }

    async fn send_without_deadline(
        self,
        timeouts: RequestTimeouts,
        deadline: Instant,
        meter: &Arc<RequestMeter>,
    ) -> Result<Response<ResponseBody>, SendError> {
        let Self {
            client,
            target,
            request,
            partition,
        } = self;
        let head_bytes = target.head_bytes(&request)?;
        let method = request.method().clone();
        let upload_state = Arc::new(UploadState::new());
        let cancel = CancellationToken::new();
        let (parts, body) = request.into_parts();
        let upload = UploadBody::new(
            body,
            target.body_length,
            meter.clone(),
            upload_state.clone(),
            cancel.clone(),
        )?;
        let cancel = cancel.drop_guard();
        meter.count_request()?;
        meter.count_bytes(head_bytes)?;
        let attempt = RequestAttempt {
            client: &client,
            target: &target,
            partition,
            exchange: &upload_state,
            timeouts,
            deadline,
        };
        let (mut lease, response) = attempt.send(Request::from_parts(parts, upload)).await?;
        let (mut parts, incoming) = response.into_parts();
        if !upload_state.is_sent() {
            // The rest of the request must be sent even while the response is not read, so the
            // connection's own task drives the connection.
            lease.release_driver();
        }
        count_head(&parts, meter)?;
        header_fields::remove_hop_by_hop(&mut parts.headers);
        let declared = declared_length(&method, parts.status, &parts.headers);
        let context = ResponseContext {
            lease,
            declared,
            meter: meter.clone(),
            upload: upload_state,
            between_bytes: timeouts.between_bytes,
            deadline,
            cancel_request: cancel,
        };
        Ok(Response::from_parts(
            parts,
            ResponseBody::new(incoming, context),
        ))
    }
}

/// The state of sending a request, on one connection after the other.
struct RequestAttempt<'a> {
    client: &'a PluginClient,
    target: &'a RequestTarget,
    partition: PoolPartition,
    exchange: &'a UploadState,
    timeouts: RequestTimeouts,
    deadline: Instant,
}

impl RequestAttempt<'_> {
    /// Sends the request on a connection and waits for the head of the response. If a reused
    /// connection was already closed, the request is sent on another one.
    async fn send(
        self,
        mut request: Request<UploadBody>,
    ) -> Result<(ConnectionLease, Response<Incoming>), SendError> {
        let Self {
            client,
            target,
            partition,
            exchange,
            timeouts,
            deadline,
        } = self;
        let key = PoolKey {
            origin: target.origin.clone(),
            partition,
        };
        let until = timeout_deadline(timeouts.connect, deadline);
        loop {
            let mut lease = client.checkout(&key, until).await?;
            let reused = lease.reused;
            let (sender, allowance, loan) = lease.sender()?;
            let proxy = client.proxy_for(&target.origin);
            target.address(&mut request, sender.is_http2(), proxy)?;
            limit_head(sender, allowance);
            exchange.wait_for_server();
            let response = drive_while_waiting(loan, sender.send(request));
            match wait_for_head(response, exchange, timeouts.first_byte, deadline).await? {
                Ok(response) => {
                    allowance.set(usize::MAX);
                    return Ok((lease, response));
                }
                Err(mut error) => match error.take_message() {
                    // The server had closed the connection before any data was written to it.
                    Some(message) if reused => request = message,
                    _ => {
                        return Err(exchange
                            .error_or(error_classification::classify_hyper(error.error(), false)));
                    }
                },
            }
        }
    }
}

type RequestHead = Result<Response<Incoming>, TrySendError<Request<UploadBody>>>;

/// Waits for the head of a response. Fails if the server is silent for `first_byte` while the
/// request waits for the server.
async fn wait_for_head(
    response: impl Future<Output = RequestHead>,
    exchange: &UploadState,
    first_byte: Duration,
    deadline: Instant,
) -> Result<RequestHead, SendError> {
    // The deadline of the call also ends the wait, so only earlier timeouts are needed here.
    let in_time = |at: &Instant| *at < deadline;
    let Some(mut look) = instant_after(Instant::now(), first_byte).filter(in_time) else {
        return Ok(response.await);
    };
    tokio::pin!(response);
    loop {
        tokio::select! {
            biased;
            head = &mut response => return Ok(head),
            () = sleep_until(look) => {}
        }
        // Any change since the last check happened less than `first_byte` ago.
        let now = Instant::now();
        let since = exchange.waiting_for_server_since().unwrap_or(now);
        match instant_after(since, first_byte) {
            Some(at) if at <= now => return Err(SendError::FirstByteTimeout),
            Some(at) if in_time(&at) => look = at,
            _ => return Ok(response.await),
        }
    }
}

/// Checks and counts the head of a response. HTTP/1.1 has already limited its size; HTTP/2 counts it
/// differently.
fn count_head(head: &response::Parts, meter: &RequestMeter) -> Result<(), SendError> {
    if head.status == StatusCode::SWITCHING_PROTOCOLS {
        return Err(SendError::Protocol(
            "the server switched to a protocol that was not requested".to_owned(),
        ));
    }
    let bytes = header_fields::encoded_bytes(&head.headers);
    if head.headers.len() > MAX_RESPONSE_FIELDS || bytes > MAX_HTTP_HEAD_BYTES {
        return Err(SendError::HeadTooLarge);
    }
    Ok(meter.count_bytes("HTTP/1.1 200\r\n\r\n".len() + bytes)?)
}

/// Returns the length that the response declares for its body, if any. Returns `None` if there is
/// no body: such a response can declare the length that another response would have.
fn declared_length(method: &Method, status: StatusCode, fields: &HeaderMap) -> Option<u64> {
    let bodyless = [StatusCode::NO_CONTENT, StatusCode::NOT_MODIFIED].contains(&status);
    if bodyless || *method == Method::HEAD {
        return None;
    }
    parse_content_length(fields.get(header::CONTENT_LENGTH)?)
}
