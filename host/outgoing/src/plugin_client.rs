//! The HTTP client of one plugin.

use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, StatusCode, header};
use http_body::Body;
use hyper::body::Incoming;
use hyper::client::conn::TrySendError;
use tokio::time::{Instant, sleep_until, timeout_at};
use tokio_util::sync::{CancellationToken, DropGuard};
use toolbay_policy::HttpRule;

use crate::authorized_request::AuthorizedRequest;
use crate::connection::{ConnectionTasks, establish, limit_head};
use crate::connection_driver::drive_while_waiting;
use crate::connector::{HttpConnector, run_until};
use crate::deadline::{instant_after, timeout_deadline};
use crate::error::SendError;
use crate::error_classification;
use crate::header_fields::{self, MAX_HTTP_HEAD_BYTES, MAX_RESPONSE_FIELDS};
use crate::lookup_limiter::PluginLookups;
use crate::pool::{ConnectionLease, ConnectionPool, PoolCheckout, PoolKey};
use crate::pool_partition::PoolPartition;
use crate::request_meter::RequestMeter;
use crate::request_timeouts::RequestTimeouts;
use crate::response_body::{ResponseBody, ResponseContext};
use crate::upload_body::{BoxError, UploadBody};
use crate::upload_state::UploadState;

/// Sends the requests of one plugin within its rules, over connections that no other plugin uses.
/// Dropping it closes all of its connections, including those in use.
pub struct PluginClient {
    connector: Arc<HttpConnector>,
    rules: Vec<HttpRule>,
    opened: Vec<toolbay_policy::AddressRange>,
    lookups: PluginLookups,
    pool: Arc<ConnectionPool>,
    _close: DropGuard,
}

impl PluginClient {
    /// Creates a client for requests that `rules` allow, to addresses that are globally reachable
    /// or in `opened`. At most `connections` are open at once, and at least one. Idle connections
    /// count, and are closed to make room for others.
    pub fn new(
        connector: Arc<HttpConnector>,
        rules: Vec<HttpRule>,
        opened: Vec<toolbay_policy::AddressRange>,
        connections: usize,
    ) -> Self {
        let close = CancellationToken::new();
        let pool = ConnectionPool::new(connections, close.clone());
        let holder: Weak<ConnectionPool> = Arc::downgrade(&pool);
        connector.sockets.register(holder);
        Self {
            connector,
            rules,
            opened,
            lookups: PluginLookups::new(),
            pool,
            _close: close.drop_guard(),
        }
    }

    /// Returns the rules.
    pub fn rules(&self) -> &[HttpRule] {
        &self.rules
    }

    /// Sets the idle timeout of connections.
    #[cfg(test)]
    pub(crate) fn keeping(mut self, idle: Duration) -> Self {
        self.pool.keep_for(idle);
        self
    }

    /// Sends a request and returns the head of the response. The URI of the request must have a
    /// scheme and an authority.
    ///
    /// The body of the request is read while it is sent, no faster than the server accepts it, and
    /// at most until the response is dropped. Connections are reused for requests with the same
    /// `pool_partition`. Dropping the future cancels the request; an HTTP/1.1 connection is then
    /// closed.
    ///
    /// Fields that apply to a connection are removed from request and response. A redirect is a
    /// response. If the guest declares a length, hyper reads no more of the body than that: if the
    /// guest writes more later, its body is closed.
    ///
    /// # Errors
    ///
    /// Returns the reason why there is no response. See [`SendError`].
    pub async fn send<B>(
        &self,
        request: Request<B>,
        partition: &PoolPartition,
        timeouts: RequestTimeouts,
        deadline: Instant,
        meter: &Arc<RequestMeter>,
    ) -> Result<Response<ResponseBody>, SendError>
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let exchange = self.send_without_deadline(request, partition, timeouts, deadline, meter);
        timeout_at(deadline, exchange)
            .await
            .unwrap_or(Err(SendError::Deadline))
    }

    async fn send_without_deadline<B>(
        &self,
        request: Request<B>,
        partition: &PoolPartition,
        timeouts: RequestTimeouts,
        deadline: Instant,
        meter: &Arc<RequestMeter>,
    ) -> Result<Response<ResponseBody>, SendError>
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let (parts, body) = request.into_parts();
        let allowed = AuthorizedRequest::check(parts, &self.rules)?;
        let exchange = Arc::new(UploadState::new());
        let cancel = CancellationToken::new();
        let mut upload = UploadBody::new(
            body,
            allowed.body_length,
            meter.clone(),
            exchange.clone(),
            cancel.clone(),
        )?;
        let request = cancel.drop_guard();
        meter.count_request()?;
        meter.count_bytes(allowed.head_bytes)?;

        let key = PoolKey {
            origin: allowed.origin.clone(),
            partition: partition.clone(),
        };
        let until = timeout_deadline(timeouts.connect, deadline);
        let (mut lease, response) = loop {
            let mut lease = self.checkout(&key, until).await?;
            let reused = lease.reused;
            let (sender, allowance, loan) = lease.sender()?;
            let proxy = self.connector.proxy_for(&allowed.origin);
            let message = allowed.request(sender.is_http2(), proxy, upload)?;
            limit_head(sender, allowance);
            exchange.wait_for_server();
            let response = drive_while_waiting(loan, sender.send(message));
            match wait_for_head(response, &exchange, timeouts.first_byte, deadline).await? {
                Ok(response) => {
                    allowance.set(usize::MAX);
                    break (lease, response);
                }
                Err(mut error) => match error.take_message() {
                    // The server had closed the connection before any data was written to it.
                    Some(message) if reused => upload = message.into_body(),
                    _ => {
                        return Err(exchange
                            .error_or(error_classification::classify_hyper(error.error(), false)));
                    }
                },
            }
        };
        let (mut parts, incoming) = response.into_parts();
        if !exchange.is_sent() {
            // The reader of the response does not have to write the rest of the request.
            lease.release_driver();
        }
        check_head(parts.status, &parts.headers)?;
        meter.count_bytes(
            "HTTP/1.1 200\r\n\r\n".len() + header_fields::encoded_bytes(&parts.headers),
        )?;
        header_fields::remove_hop_by_hop(&mut parts.headers);
        let declared = declared_length(&allowed, parts.status, &parts.headers);
        let receipt = ResponseContext {
            lease,
            declared,
            meter: meter.clone(),
            upload: exchange,
            between_bytes: timeouts.between_bytes,
            deadline,
            request,
        };
        Ok(Response::from_parts(
            parts,
            ResponseBody::new(incoming, receipt),
        ))
    }

    /// Returns an existing connection or a new one.
    async fn checkout(&self, key: &PoolKey, until: Instant) -> Result<ConnectionLease, SendError> {
        let got = async { Ok(self.pool.checkout(key).await) };
        let slot = match run_until(until, SendError::NoConnection, got).await? {
            PoolCheckout::Existing(lease) => return Ok(lease),
            PoolCheckout::NewSlot(slot) => slot,
        };
        let room = async {
            self.connector
                .sockets
                .reserve()
                .await
                .ok_or(SendError::NoSocket)
        };
        let slot = slot.with_socket(run_until(until, SendError::NoSocket, room).await?);
        let close = self.pool.child_token();
        // A cancelled handshake closes the connection.
        let given_up = close.clone().drop_guard();
        let tasks = ConnectionTasks::new(close, slot);
        let connected = self
            .connector
            .connect(&key.origin, &self.opened, &self.lookups, until)
            .await?;
        let established = run_until(
            until,
            SendError::ConnectTimeout,
            establish(connected, &tasks),
        )
        .await?;
        let lease = self.pool.add(key.clone(), established, &tasks);
        given_up.disarm();
        Ok(lease)
    }

    /// Returns the number of connections, and the number of further connections that can be opened.
    #[cfg(test)]
    pub(crate) fn connections(&self) -> (usize, usize) {
        (self.pool.open(), self.pool.room())
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

/// Checks the head of a response. HTTP/1.1 has already limited its size; HTTP/2 counts it
/// differently.
fn check_head(status: StatusCode, fields: &HeaderMap) -> Result<(), SendError> {
    if status == StatusCode::SWITCHING_PROTOCOLS {
        return Err(SendError::Protocol(
            "the server switched to a protocol that was not requested".to_owned(),
        ));
    }
    if fields.len() > MAX_RESPONSE_FIELDS
        || header_fields::encoded_bytes(fields) > MAX_HTTP_HEAD_BYTES
    {
        return Err(SendError::HeadTooLarge);
    }
    Ok(())
}

/// Returns the length of the body that the response declares. A response without a body can also
/// declare one.
fn declared_length(
    allowed: &AuthorizedRequest,
    status: StatusCode,
    fields: &HeaderMap,
) -> Option<u64> {
    let bodyless = [StatusCode::NO_CONTENT, StatusCode::NOT_MODIFIED].contains(&status);
    if bodyless || *allowed.method() == Method::HEAD {
        return None;
    }
    fields
        .get(header::CONTENT_LENGTH)?
        .to_str()
        .ok()?
        .trim()
        .parse()
        .ok()
}
