//! Outgoing HTTP of a guest. It is always linked, because language runtimes import it whether a
//! tool uses it or not. Requests that the grant allows are sent. All others are denied before a
//! name is resolved.

pub(crate) mod bounds;
mod code;
mod denials;
mod record;
mod traced;

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::{HeaderName, HeaderValue};
use http::{Method, Uri};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt as _;
use toolbay_model::{Limit, Limits, Observer, Trace, UseKind};
use toolbay_outgoing::{self as outgoing, Meter, Outlet, Received, Timeouts, Which};
use toolbay_policy::{Allowed, Denied, FileDenied, Origin};
use toolbay_recording::HttpError;
use toolbay_secrets::{Opened, Withheld};
use wasmtime_wasi_http::p2::bindings::http::types::HeaderError;
use wasmtime_wasi_http::{Error, RequestOptions, WasiBody, WasiHttpHooks};

use self::code::{code, named};
pub(crate) use self::denials::Denials;
use self::record::{Recorded, repeated};
use self::traced::Traced;
use crate::account::Held;
use crate::effects::{Begun, Diverged, Effects};
use crate::environment::{Entry, Environment};
use crate::exchanges::{Rest, Sending};
use crate::hindrance::Hindrance;
use crate::tape::Kind;

/// Maximum size of the names and values in one set of fields, in bytes. Servers commonly accept no
/// more.
pub(crate) const FIELDS: usize = 16 << 10;

/// Maximum size of a body chunk that the host buffers before it is sent, in bytes.
pub(crate) const BODY: usize = 16 << 10;

/// The outgoing HTTP of one call.
pub(crate) struct Http {
    secrets: Arc<Opened>,
    outlet: Option<Arc<Outlet>>,
    is_open: bool,
    meter: Arc<Meter>,
    /// The memory reservation of the next request, which is held until its response is dropped.
    pub(crate) held: Option<Held>,
    deadline: Instant,
    trace: Option<Trace>,
    observer: Arc<dyn Observer>,
    denials: Arc<Denials>,
    effects: Effects,
    /// The first request that differs from the replayed one.
    pub(crate) diverged: Option<Diverged>,
}

impl Http {
    pub(crate) fn new(entry: &Entry<'_>, secrets: Arc<Opened>, effects: Effects) -> Self {
        let Entry { environment, trace, observer, deadline, tape, .. } = entry;
        let Environment { limits, requests, .. } = environment;
        let outlet = requests.outlet();
        Self {
            is_open: tape.http().unwrap_or(outlet.is_some()),
            outlet,
            meter: Arc::new(Meter::new(limits.http_requests, limits.http_bytes.as_u64())),
            held: None,
            deadline: *deadline,
            trace: trace.cloned(),
            observer: Arc::clone(observer),
            denials: Arc::new(Denials::new(Arc::clone(observer), Arc::clone(&secrets.secrets))),
            secrets,
            effects,
            diverged: None,
        }
    }

    /// Returns the denials of the call. Sockets add to them.
    pub(crate) fn denials(&self) -> Arc<Denials> {
        Arc::clone(&self.denials)
    }

    /// Returns whether any request can be sent.
    pub(crate) fn is_open(&self) -> bool {
        self.is_open
    }

    /// Returns the number of sent requests, and the number of bytes of requests and responses.
    pub(crate) fn used(&self) -> (u64, u64) {
        (self.meter.requests(), self.meter.bytes())
    }

    /// Returns the first denial, which may explain a failure.
    pub(crate) fn hindrance(&self, limits: &Limits) -> Option<Hindrance> {
        match self.meter.exceeded() {
            Some(Which::Requests) => Some(Hindrance::Limit(Limit::HttpRequests(limits.http_requests))),
            Some(Which::Bytes) => Some(Hindrance::Limit(Limit::HttpBytes(limits.http_bytes))),
            None => self.denials.first().map(Hindrance::Denied),
        }
    }

    /// Reports another denied operation. `what` is a sentence, and `remedy` is the configuration
    /// with which the operator would allow it.
    pub(crate) fn deny(&self, kind: UseKind, what: &str, remedy: Option<&str>) {
        self.denials.note(kind, what, remedy);
    }

    /// Reports that access to a file or directory was denied.
    pub(crate) fn deny_file(&self, denied: &FileDenied) {
        self.denials.file(denied);
    }

    /// Reports that a part of a request was rejected before it could be sent.
    pub(crate) fn refuse(&self, denied: &Denied) {
        self.denials.note(UseKind::Http, &denied.to_string(), denied.remedy().as_deref());
    }

    /// Returns the first of these headers that no tool may set, in lower case.
    pub(crate) fn forbidden<'a>(&mut self, mut names: impl Iterator<Item = &'a str>) -> Option<String> {
        let name = names.find(|name| name.parse().is_ok_and(|name: HeaderName| self.is_forbidden_header(&name)));
        name.map(str::to_ascii_lowercase)
    }

    /// Reports why headers of the guest were rejected. `forbidden` is the name of a header that no
    /// tool may set.
    pub(crate) fn refuse_headers(&self, why: HeaderError, forbidden: Option<String>) {
        match (why, forbidden) {
            (HeaderError::Forbidden, Some(name)) => self.refuse(&Denied::ForbiddenHeader(name)),
            (HeaderError::InvalidSyntax, _) => self.refuse(&Denied::MalformedHeader),
            // This is a mistake of the guest and not part of a request.
            (HeaderError::Forbidden | HeaderError::Immutable, _) => {}
        }
    }

    /// Starts a request: it is replayed from the recording, or has to be sent.
    fn begin(&self, method: &Method, uri: &Uri) -> Result<Begun, Diverged> {
        let what = || format!("{method} {uri}");
        if [Method::GET, Method::HEAD].contains(method) {
            return self.effects.look(Kind::Http, what);
        }
        self.effects.begin(Kind::Http, what)
    }

    /// Records that a request was not sent.
    fn unsent(&self, method: &Method, uri: &Uri) {
        if let Ok(Begun::Now(number)) = self.effects.look(Kind::Http, || format!("{method} {uri}")) {
            record::failure(&self.effects, number, HttpError::HttpRequestDenied);
        }
    }

    /// Returns the result of a request that is not sent: the recorded response, or an error if the
    /// call diverges from the recording.
    fn again(
        &mut self,
        request: http::Request<WasiBody>,
        begun: Result<Begun, Diverged>,
        held: Option<Held>,
    ) -> Sending {
        match begun {
            Ok(Begun::Before(response)) => repeated(&response, request.into_body(), held),
            Ok(Begun::Now(_)) => Box::new(async { Err(Error::HttpRequestDenied) }),
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
    fn outlet(&self, request: &http::Request<WasiBody>) -> Option<(Arc<Outlet>, Origin)> {
        let rules = self.outlet.as_ref().map_or(&[][..], |outlet| outlet.rules());
        match outgoing::asked(request.method(), request.uri()).check(rules) {
            Ok(Allowed { origin, .. }) => Some((self.outlet.clone()?, origin)),
            Err(denied) => {
                self.refuse(&denied);
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
        origin: &Origin,
    ) -> Result<outgoing::Partition, Withheld> {
        let key = self.secrets.add_to(request, origin).inspect_err(|why| {
            self.denials.note(UseKind::Http, &format!("A request to {origin} {why}."), None);
        })?;
        Ok(if key.is_empty() { outgoing::Partition::NONE } else { outgoing::Partition::of(&key) })
    }

    /// Adds the trace headers to the request. Returns the span of the request, if an observer
    /// collects it.
    fn add_trace(&self, request: &mut http::Request<WasiBody>, origin: &Origin) -> Option<Traced> {
        let call = self.trace.as_ref()?;
        let traced = Traced::begin(&self.observer, call, request.method(), origin);
        let trace = traced.as_ref().and_then(Traced::own).unwrap_or(call);
        let fields = [("traceparent", Some(trace.parent())), ("tracestate", trace.state.clone())];
        for (name, value) in fields {
            if let Some(Ok(value)) = value.map(HeaderValue::try_from) {
                request.headers_mut().insert(HeaderName::from_static(name), value);
            }
        }
        traced
    }
}

impl WasiHttpHooks for Http {
    fn p2_outgoing_body_chunk_size(&mut self) -> usize {
        BODY
    }

    fn p2_outgoing_body_buffer_chunks(&mut self) -> usize {
        1
    }

    fn p3_outgoing_body_chunk_size(&mut self) -> usize {
        BODY
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
    ) -> Sending {
        let held = self.held.take();
        // Copied before the secrets are added, so that the recording does not contain them.
        let uri = request.uri().clone();
        if self.effects.plays() {
            // The grant was checked when the call was recorded.
            let begun = self.begin(request.method(), &uri);
            return self.again(request, begun, held);
        }
        let Some((outlet, origin)) = self.outlet(&request) else {
            self.unsent(request.method(), &uri);
            return Box::new(async { Err(Error::HttpRequestDenied) });
        };
        let Ok(partition) = self.add_secrets(&mut request, &origin) else {
            self.unsent(request.method(), &uri);
            return Box::new(async { Err(Error::HttpRequestDenied) });
        };
        let number = match self.begin(request.method(), &uri) {
            Ok(Begun::Now(number)) => number,
            begun => return self.again(request, begun, None),
        };
        let mut traced = self.add_trace(&mut request, &origin);
        let effects = self.effects.clone();
        let (meter, denials, deadline) = (Arc::clone(&self.meter), Arc::clone(&self.denials), self.deadline);
        let timeouts = timeouts(options);
        Box::new(async move {
            match outlet.send(request, &partition, timeouts, deadline.into(), &meter).await {
                Ok(response) => {
                    let (parts, body) = response.into_parts();
                    if let Some(traced) = &mut traced {
                        traced.answered(parts.status.as_u16());
                    }
                    let body = Receiving { body, traced, _held: held };
                    let body = match record::head(&effects, number, &parts) {
                        Some(recording) => Recorded::new(body, recording).map_err(|error| code(&error)).boxed_unsync(),
                        None => body.map_err(|error| code(&error)).boxed_unsync(),
                    };
                    let response = http::Response::from_parts(parts, body);
                    let done: Rest = Box::new(async { Ok(()) });
                    Ok((response, done))
                }
                Err(error) => {
                    denials.failed(&error);
                    if let Some(traced) = &mut traced {
                        traced.failed(&error);
                    }
                    record::failure(&effects, number, named(&error));
                    Err(code(&error))
                }
            }
        })
    }
}

/// Returns the timeouts that the guest requests, or the maximum for those that it omits.
fn timeouts(options: Option<RequestOptions>) -> Timeouts {
    let options = options.unwrap_or_default();
    let within = |timeout: Option<Duration>| timeout.unwrap_or(Limits::UTMOST.timeout);
    Timeouts {
        connect: within(options.connect_timeout),
        first_byte: within(options.first_byte_timeout),
        between_bytes: within(options.between_bytes_timeout),
    }
}

/// The body of a response, with its memory reservation. Dropping it ends the request.
struct Receiving {
    body: Received,
    traced: Option<Traced>,
    _held: Option<Held>,
}

impl Body for Receiving {
    type Data = Bytes;
    type Error = toolbay_outgoing::SendError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        match (&frame, &mut self.traced) {
            (Some(Err(error)), Some(traced)) => traced.failed(error),
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
