//! Outgoing HTTP of a guest. It is always linked, because language runtimes import it whether a
//! tool uses it or not. Requests that the grant allows are sent. All others are denied before a
//! name is resolved.

mod denials;
mod error_codes;
mod replayed_response;
mod request_span;
mod response_observer;
mod response_recorder;

use std::sync::Arc;
use std::time::Instant;

use http::Uri;
use http::header::{HeaderName, HeaderValue};
use toolbay_model::{CallObserver, DenialKind, Limit, Limits, TraceContext};
use toolbay_outgoing::{AuthorizedRequest, ExceededLimit, PluginClient, RequestMeter, SendError};
use toolbay_policy::{DenialReason, FileDenial};
use toolbay_recording::HttpError;
use toolbay_secrets::CallSecrets;
use wasmtime_wasi_http::p2::bindings::http::types::HeaderError;
use wasmtime_wasi_http::{Error, RequestOptions, WasiBody, WasiHttpHooks};

pub(crate) use self::denials::CallDenials;
use self::error_codes::{code, recordable_error};
use self::replayed_response::replay_response;
use self::request_span::RequestSpan;
use self::response_observer::ResponseObserver;
use crate::capability::effects::{EffectMismatch, EffectStart, SideEffects};
use crate::capability::host_denial::HostDenial;
use crate::capability::http::guest_request::{GuestRequest, RequestLine, timeouts};
use crate::capability::http::memory_bounds::MAX_BODY_CHUNK_BYTES;
use crate::capability::http::pending_requests::{ResponseDriver, SendFuture};
use crate::context::call_context::{CallContext, PluginContext};
use crate::context::replay_log::OperationKind;

/// The outgoing HTTP of one call.
pub(crate) struct HttpCall {
    secrets: Arc<CallSecrets>,
    /// The HTTP client of the plugin, or `None` if the plugin has no rules for requests.
    client: Option<Arc<PluginClient>>,
    is_open: bool,
    meter: Arc<RequestMeter>,
    deadline: Instant,
    trace: Option<TraceContext>,
    observer: Arc<dyn CallObserver>,
    denials: Arc<CallDenials>,
    effects: SideEffects,
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
        let client = requests.client();
        Self {
            is_open: tape.recorded_http().unwrap_or(client.is_some()),
            client,
            meter: Arc::new(RequestMeter::new(
                limits.http_requests,
                limits.http_bytes.as_u64(),
            )),
            deadline: *deadline,
            trace: trace.cloned(),
            observer: Arc::clone(observer),
            denials: Arc::new(CallDenials::new(
                Arc::clone(observer),
                Arc::clone(&secrets.filter),
            )),
            secrets,
            effects,
        }
    }

    /// Returns the denials of the call. Sockets add to them.
    pub(crate) fn denials(&self) -> Arc<CallDenials> {
        Arc::clone(&self.denials)
    }

    /// Returns whether any request can be sent.
    pub(crate) fn allows_requests(&self) -> bool {
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
    pub(crate) fn report_denial(&self, kind: DenialKind, what: &str, remedy: Option<&str>) {
        self.denials.report_denial(kind, what, remedy);
    }

    /// Reports that access to a file or directory was denied.
    pub(crate) fn report_file_denial(&self, denied: &FileDenial) {
        self.denials.report_file_denial(denied);
    }

    /// Reports that a part of a request was rejected before it could be sent.
    pub(crate) fn report_request_denial(&self, denied: &DenialReason) {
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

    /// Reports why headers of the guest were rejected. `forbidden` is the name of a header that no
    /// tool may set.
    pub(crate) fn report_header_denial(&self, why: HeaderError, forbidden: Option<String>) {
        match (why, forbidden) {
            (HeaderError::Forbidden, Some(name)) => {
                self.report_request_denial(&DenialReason::ForbiddenHeader(name));
            }
            (HeaderError::InvalidSyntax, _) => {
                self.report_request_denial(&DenialReason::MalformedHeader);
            }
            // This is a mistake of the guest and not part of a request.
            (HeaderError::Forbidden | HeaderError::Immutable, _) => {}
        }
    }

    /// Authorizes a request and starts to send it. It makes progress when the future is polled.
    ///
    /// # Errors
    ///
    /// Fails if the request differs from the replayed one. The error ends the call.
    pub(crate) fn send(&self, guest: GuestRequest) -> Result<SendFuture, EffectMismatch> {
        let GuestRequest {
            request,
            options,
            reservation,
            trailer_budget,
        } = guest;
        // Copied before the secrets are added, so that the recording does not contain them.
        let line = RequestLine::of(&request);
        if self.effects.is_replay() {
            // The grant was checked when the call was recorded.
            return Ok(match self.start_effect(&line)? {
                EffectStart::Replay(response) => {
                    replay_response(&response, request.into_body(), reservation)
                }
                EffectStart::Execute(_) => fail(Error::HttpRequestDenied),
            });
        }
        let mut request = match self.authorize(request) {
            Ok(request) => request,
            Err(error) => return Ok(self.refuse(&line, &error)),
        };
        if self.add_secrets(&mut request, line.uri()).is_err() {
            self.record_unsent(&line, HttpError::HttpRequestDenied);
            return Ok(fail(Error::HttpRequestDenied));
        }
        let number = match self.start_effect(&line)? {
            EffectStart::Execute(number) => number,
            EffectStart::Replay(response) => {
                return Ok(replay_response(&response, request.into_body(), None));
            }
        };
        let observer = ResponseObserver {
            span: self.add_trace(&mut request),
            effects: self.effects.clone(),
            number,
            trailer_budget,
            reservation,
        };
        let meter = Arc::clone(&self.meter);
        let denials = Arc::clone(&self.denials);
        let deadline = self.deadline;
        let timeouts = timeouts(options);
        Ok(Box::new(async move {
            match request.send(timeouts, deadline.into(), &meter).await {
                Ok(response) => {
                    let done: ResponseDriver = Box::new(async { Ok(()) });
                    Ok((observer.observe(response), done))
                }
                Err(error) => {
                    denials.report_send_error(&error);
                    observer.record_failure(&error);
                    Err(code(&error))
                }
            }
        }))
    }

    /// Starts a request: it is replayed from the recording, or has to be sent.
    fn start_effect(&self, line: &RequestLine) -> Result<EffectStart, EffectMismatch> {
        let what = || line.to_string();
        if line.is_read() {
            return self.effects.begin_read(OperationKind::Http, what);
        }
        self.effects.begin(OperationKind::Http, what)
    }

    /// Authorizes the request by the rules of the plugin.
    fn authorize(
        &self,
        request: http::Request<WasiBody>,
    ) -> Result<AuthorizedRequest<WasiBody>, SendError> {
        match &self.client {
            Some(client) => client.authorize(request),
            None => Err(PluginClient::denial_without_rules(&request)),
        }
    }

    /// Reports and records that a request is not sent.
    fn refuse(&self, line: &RequestLine, error: &SendError) -> SendFuture {
        self.denials.report_send_error(error);
        self.record_unsent(line, recordable_error(error));
        fail(code(error))
    }

    /// Records that a request was not sent.
    fn record_unsent(&self, line: &RequestLine, error: HttpError) {
        if let Ok(EffectStart::Execute(number)) = self
            .effects
            .begin_read(OperationKind::Http, || line.to_string())
        {
            response_recorder::record_failure(&self.effects, number, error);
        }
    }

    /// Adds the secrets that requests to this origin carry. `uri` is the URL that the guest wrote.
    ///
    /// # Errors
    ///
    /// Fails if a secret cannot be added, which is reported here. The request must not be sent.
    fn add_secrets(
        &self,
        request: &mut AuthorizedRequest<WasiBody>,
        uri: &Uri,
    ) -> Result<(), RequestRefused> {
        let mut credentials = http::Request::new(());
        *credentials.uri_mut() = uri.clone();
        let origin = request.origin();
        let key = self
            .secrets
            .add_to(&mut credentials, origin)
            .map_err(|why| {
                self.denials.report_denial(
                    DenialKind::Http,
                    &format!("A request to {origin} {why}."),
                    None,
                );
                RequestRefused
            })?;
        if key.is_empty() {
            return Ok(());
        }
        let (credentials, ()) = credentials.into_parts();
        request
            .add_credentials(credentials.headers, &credentials.uri, &key)
            .map_err(|error| {
                self.denials.report_send_error(&error);
                RequestRefused
            })
    }

    /// Adds the trace headers to the request. Returns the span of the request, if an observer
    /// collects it.
    fn add_trace(&self, request: &mut AuthorizedRequest<WasiBody>) -> Option<RequestSpan> {
        let call = self.trace.as_ref()?;
        let span = RequestSpan::start(&self.observer, call, request.method(), request.origin());
        let trace = span
            .as_ref()
            .and_then(RequestSpan::trace_context)
            .unwrap_or(call);
        let fields = [
            ("traceparent", Some(trace.traceparent())),
            ("tracestate", trace.state.clone()),
        ];
        for (name, value) in fields {
            if let Some(Ok(value)) = value.map(HeaderValue::try_from) {
                request.insert_field(HeaderName::from_static(name), value);
            }
        }
        span
    }
}

/// A request that is not sent, for a reason that was reported.
struct RequestRefused;

/// Returns the result of a request that is not sent.
fn fail(error: Error) -> SendFuture {
    Box::new(async { Err(error) })
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

    /// Denies the request. Both versions of `wasi:http` send with [`HttpCall::send`] instead.
    fn send_request(
        &mut self,
        _request: http::Request<WasiBody>,
        _options: Option<RequestOptions>,
        _sent: Box<dyn Future<Output = Result<(), Error>> + Send>,
    ) -> SendFuture {
        fail(Error::HttpRequestDenied)
    }
}
