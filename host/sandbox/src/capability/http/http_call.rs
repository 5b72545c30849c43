//! Outgoing HTTP of a guest. It is always linked, because language runtimes import it whether a
//! tool uses it or not. Requests that the grant allows are sent. All others are denied before a
//! name is resolved.

mod denials;
mod error_codes;
pub(crate) mod memory_bounds;
mod request_span;
mod response_recorder;

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::{HeaderName, HeaderValue};
use http::{Method, Uri};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt as _;
use toolbay_model::{CallObserver, DenialKind, Limit, Limits, TraceContext};
use toolbay_outgoing::{
    self as outgoing, ExceededLimit, PluginClient, RequestMeter, RequestTimeouts, ResponseBody,
};
use toolbay_policy::{AllowedRequest, DenialReason, FileDenial, UrlOrigin};
use toolbay_recording::HttpError;
use toolbay_secrets::{CallSecrets, WithheldCredential};
use wasmtime_wasi_http::p2::bindings::http::types::HeaderError;
use wasmtime_wasi_http::{Error, RequestOptions, WasiBody, WasiHttpHooks};

pub(crate) use self::denials::CallDenials;
use self::error_codes::{code, recordable_error};
use self::request_span::RequestSpan;
use self::response_recorder::{RecordedBody, replay_response};
use crate::capability::effects::{EffectMismatch, EffectStart, SideEffects};
use crate::capability::host_denial::HostDenial;
use crate::capability::http::pending_requests::{ResponseDriver, SendFuture};
use crate::capability::memory_budget::MemoryReservation;
use crate::context::call_context::{CallContext, PluginContext};
use crate::context::replay_log::OperationKind;

/// Maximum size of the names and values in one set of fields, in bytes. Servers commonly accept no
/// more.
pub(crate) const MAX_FIELDS_BYTES: usize = 16 << 10;

/// Maximum size of a body chunk that the host buffers before it is sent, in bytes.
pub(crate) const MAX_BODY_CHUNK_BYTES: usize = 16 << 10;

/// The outgoing HTTP of one call.
pub(crate) struct HttpCall {
    secrets: Arc<CallSecrets>,
    outlet: Option<Arc<PluginClient>>,
    is_open: bool,
    meter: Arc<RequestMeter>,
    /// The memory reservation of the next request, which is held until its response is dropped.
    pub(crate) held: Option<MemoryReservation>,
    deadline: Instant,
    trace: Option<TraceContext>,
    observer: Arc<dyn CallObserver>,
    denials: Arc<CallDenials>,
    effects: SideEffects,
    /// The first request that differs from the replayed one.
    pub(crate) diverged: Option<EffectMismatch>,
}

impl HttpCall {
    pub(crate) fn new(
        entry: &CallContext<'_>,
        secrets: Arc<CallSecrets>,
        effects: SideEffects,
    ) -> Self {
        let CallContext {
            environment,
            trace,
            observer,
            deadline,
            tape,
            ..
        } = entry;
        let PluginContext {
            limits, requests, ..
        } = environment;
        let outlet = requests.outlet();
        Self {
            is_open: tape.recorded_http().unwrap_or(outlet.is_some()),
            outlet,
            meter: Arc::new(RequestMeter::new(
                limits.http_requests,
                limits.http_bytes.as_u64(),
            )),
            held: None,
            deadline: *deadline,
            trace: trace.cloned(),
            observer: Arc::clone(observer),
            denials: Arc::new(CallDenials::new(
                Arc::clone(observer),
                Arc::clone(&secrets.filter),
            )),
            secrets,
            effects,
            diverged: None,
        }
    }

    /// Returns the denials of the call. Sockets add to them.
    pub(crate) fn denials(&self) -> Arc<CallDenials> {
        Arc::clone(&self.denials)
    }

    /// Returns whether any request can be sent.
    pub(crate) fn is_open(&self) -> bool {
        self.is_open
    }

    /// Returns the number of sent requests, and the number of bytes of requests and responses.
    pub(crate) fn usage(&self) -> (u64, u64) {
        (self.meter.requests(), self.meter.bytes())
    }

    /// Returns the first denial, which may explain a failure.
    pub(crate) fn first_denial(&self, limits: &Limits) -> Option<HostDenial> {
        match self.meter.exceeded() {
            Some(ExceededLimit::Requests) => {
                Some(HostDenial::Limit(Limit::HttpRequests(limits.http_requests)))
            }
            Some(ExceededLimit::Bytes) => {
                Some(HostDenial::Limit(Limit::HttpBytes(limits.http_bytes)))
            }
            None => self.denials.first_denial().map(HostDenial::Denied),
        }
    }

    /// Reports another denied operation. `what` is a sentence, and `remedy` is the configuration
    /// with which the operator would allow it.
    pub(crate) fn deny(&self, kind: DenialKind, what: &str, remedy: Option<&str>) {
        self.denials.report_denial(kind, what, remedy);
    }

    /// Reports that access to a file or directory was denied.
    pub(crate) fn deny_file(&self, denied: &FileDenial) {
        self.denials.report_file_denial(denied);
    }

    /// Reports that a part of a request was rejected before it could be sent.
    pub(crate) fn deny_request(&self, denied: &DenialReason) {
        self.denials.report_denial(
            DenialKind::Http,
            &denied.to_string(),
            denied.remedy().as_deref(),
        );
    }

    /// Returns the first of these headers that no tool may set, in lower case.
    pub(crate) fn find_forbidden_header<'a>(
        &mut self,
        mut names: impl Iterator<Item = &'a str>,
    ) -> Option<String> {
        let name = names.find(|name| {
            name.parse()
                .is_ok_and(|name: HeaderName| self.is_forbidden_header(&name))
        });
        name.map(str::to_ascii_lowercase)
    }

    /// Reports why headers of the guest were rejected. `find_forbidden_header` is the name of a
    /// header that no tool may set.
    pub(crate) fn deny_headers(&self, why: HeaderError, forbidden: Option<String>) {
        match (why, forbidden) {
            (HeaderError::Forbidden, Some(name)) => {
                self.deny_request(&DenialReason::ForbiddenHeader(name))
            }
            (HeaderError::InvalidSyntax, _) => self.deny_request(&DenialReason::MalformedHeader),
            // This is a mistake of the guest and not part of a request.
            (HeaderError::Forbidden | HeaderError::Immutable, _) => {}
        }
    }

    /// Starts a request: it is replayed from the recording, or has to be sent.
    fn start_effect(&self, method: &Method, uri: &Uri) -> Result<EffectStart, EffectMismatch> {
        let what = || format!("{method} {uri}");
        if [Method::GET, Method::HEAD].contains(method) {
            return self.effects.begin_read(OperationKind::Http, what);
        }
        self.effects.begin(OperationKind::Http, what)
    }

    /// Records that a request was not sent.
    fn record_unsent(&self, method: &Method, uri: &Uri) {
        if let Ok(EffectStart::Now(number)) = self
            .effects
            .begin_read(OperationKind::Http, || format!("{method} {uri}"))
        {
            response_recorder::record_failure(&self.effects, number, HttpError::HttpRequestDenied);
        }
    }

    /// Returns the result of a request that is not sent: the recorded response, or an error if the
    /// call diverges from the recording.
    fn replay(
        &mut self,
        request: http::Request<WasiBody>,
        begun: Result<EffectStart, EffectMismatch>,
        held: Option<MemoryReservation>,
    ) -> SendFuture {
        match begun {
            Ok(EffectStart::Before(response)) => {
                replay_response(&response, request.into_body(), held)
            }
            Ok(EffectStart::Now(_)) => Box::new(async { Err(Error::HttpRequestDenied) }),
            // The guest receives an error. Its later requests fail as well, with the reason.
            Err(diverged) => {
                let why = diverged.to_string();
                self.diverged.get_or_insert(diverged);
                Box::new(async { Err(Error::InternalError(Some(why))) })
            }
        }
    }

    /// Returns the outlet and the origin of the request, if the rules allow it. The rules are
    /// checked again when the request is sent.
    fn authorize(
        &self,
        request: &http::Request<WasiBody>,
    ) -> Option<(Arc<PluginClient>, UrlOrigin)> {
        let rules = self
            .outlet
            .as_ref()
            .map_or(&[][..], |outlet| outlet.rules());
        match outgoing::policy_request(request.method(), request.uri()).check(rules) {
            Ok(AllowedRequest { origin, .. }) => Some((self.outlet.clone()?, origin)),
            Err(denied) => {
                self.deny_request(&denied);
                None
            }
        }
    }

    /// Adds the secrets that requests to this origin carry. Returns the partition of connections
    /// that the request may use.
    ///
    /// # Errors
    ///
    /// Fails if a secret cannot be added, which is reported here. The request must not be sent.
    fn add_secrets(
        &self,
        request: &mut http::Request<WasiBody>,
        origin: &UrlOrigin,
    ) -> Result<outgoing::PoolPartition, WithheldCredential> {
        let key = self.secrets.add_to(request, origin).inspect_err(|why| {
            self.denials.report_denial(
                DenialKind::Http,
                &format!("A request to {origin} {why}."),
                None,
            );
        })?;
        Ok(if key.is_empty() {
            outgoing::PoolPartition::NONE
        } else {
            outgoing::PoolPartition::from_secret(&key)
        })
    }

    /// Adds the trace headers to the request. Returns the span of the request, if an observer
    /// collects it.
    fn add_trace(
        &self,
        request: &mut http::Request<WasiBody>,
        origin: &UrlOrigin,
    ) -> Option<RequestSpan> {
        let call = self.trace.as_ref()?;
        let traced = RequestSpan::start(&self.observer, call, request.method(), origin);
        let trace = traced
            .as_ref()
            .and_then(RequestSpan::trace_context)
            .unwrap_or(call);
        let fields = [
            ("traceparent", Some(trace.traceparent())),
            ("tracestate", trace.state.clone()),
        ];
        for (name, value) in fields {
            if let Some(Ok(value)) = value.map(HeaderValue::try_from) {
                request
                    .headers_mut()
                    .insert(HeaderName::from_static(name), value);
            }
        }
        traced
    }
}

impl WasiHttpHooks for HttpCall {
    fn p2_outgoing_body_chunk_size(&mut self) -> usize {
        MAX_BODY_CHUNK_BYTES
    }

    fn p2_outgoing_body_buffer_chunks(&mut self) -> usize {
        1
    }

    fn p3_outgoing_body_chunk_size(&mut self) -> usize {
        MAX_BODY_CHUNK_BYTES
    }

    /// The outgoing client sets this header.
    fn set_host_header(&mut self) -> bool {
        false
    }

    fn send_request(
        &mut self,
        mut request: http::Request<WasiBody>,
        options: Option<RequestOptions>,
        _sent: Box<dyn Future<Output = Result<(), Error>> + Send>,
    ) -> SendFuture {
        let held = self.held.take();
        // Copied before the secrets are added, so that the recording does not contain them.
        let uri = request.uri().clone();
        if self.effects.is_replay() {
            // The grant was checked when the call was recorded.
            let begun = self.start_effect(request.method(), &uri);
            return self.replay(request, begun, held);
        }
        let Some((outlet, origin)) = self.authorize(&request) else {
            self.record_unsent(request.method(), &uri);
            return Box::new(async { Err(Error::HttpRequestDenied) });
        };
        let Ok(partition) = self.add_secrets(&mut request, &origin) else {
            self.record_unsent(request.method(), &uri);
            return Box::new(async { Err(Error::HttpRequestDenied) });
        };
        let number = match self.start_effect(request.method(), &uri) {
            Ok(EffectStart::Now(number)) => number,
            begun => return self.replay(request, begun, None),
        };
        let mut traced = self.add_trace(&mut request, &origin);
        let effects = self.effects.clone();
        let (meter, denials, deadline) = (
            Arc::clone(&self.meter),
            Arc::clone(&self.denials),
            self.deadline,
        );
        let timeouts = timeouts(options);
        Box::new(async move {
            match outlet
                .send(request, &partition, timeouts, deadline.into(), &meter)
                .await
            {
                Ok(response) => {
                    let (parts, body) = response.into_parts();
                    if let Some(traced) = &mut traced {
                        traced.record_status(parts.status.as_u16());
                    }
                    let body = TracedResponseBody {
                        body,
                        traced,
                        _held: held,
                    };
                    let body = match response_recorder::start_recording(&effects, number, &parts) {
                        Some(recording) => RecordedBody::new(body, recording)
                            .map_err(|error| code(&error))
                            .boxed_unsync(),
                        None => body.map_err(|error| code(&error)).boxed_unsync(),
                    };
                    let response = http::Response::from_parts(parts, body);
                    let done: ResponseDriver = Box::new(async { Ok(()) });
                    Ok((response, done))
                }
                Err(error) => {
                    denials.report_send_error(&error);
                    if let Some(traced) = &mut traced {
                        traced.record_error(&error);
                    }
                    response_recorder::record_failure(&effects, number, recordable_error(&error));
                    Err(code(&error))
                }
            }
        })
    }
}

/// Returns the timeouts that the guest requests, or the maximum for those that it omits.
fn timeouts(options: Option<RequestOptions>) -> RequestTimeouts {
    let options = options.unwrap_or_default();
    let within = |timeout: Option<Duration>| timeout.unwrap_or(Limits::UTMOST.timeout);
    RequestTimeouts {
        connect: within(options.connect_timeout),
        first_byte: within(options.first_byte_timeout),
        between_bytes: within(options.between_bytes_timeout),
    }
}

/// The body of a response, with its memory reservation. Dropping it ends the request.
struct TracedResponseBody {
    body: ResponseBody,
    traced: Option<RequestSpan>,
    _held: Option<MemoryReservation>,
}

impl Body for TracedResponseBody {
    type Data = Bytes;
    type Error = toolbay_outgoing::SendError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        match (&frame, &mut self.traced) {
            (Some(Err(error)), Some(traced)) => traced.record_error(error),
            // The span ends with the body, not when the guest drops the rest.
            (None, _) => self.traced = None,
            _ => {}
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
