//! HTTP of a guest: always linked, because runtimes import it whether a tool uses it or not. Requests are sent as far as
//! the grant allows; all others are denied before a name is resolved.

mod code;
mod denials;

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::{HeaderName, HeaderValue};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt as _;
use toolbay_model::{Limit, Limits, Trace};
use toolbay_outgoing::{self as outgoing, Meter, Outlet, Received, Timeouts, Which};
use toolbay_policy::{Allowed, Origin};
use wasmtime_wasi_http::{Error, RequestOptions, WasiBody, WasiHttpHooks};

use self::code::code;
use self::denials::Denials;
use crate::account::Held;
use crate::credential::Credential;
use crate::environment::{Entry, Environment};
use crate::hindrance::Hindrance;

/// Bytes of names and values in one set of fields; servers commonly accept no more.
pub(crate) const FIELDS: usize = 16 << 10;

/// Bytes of a body that the host holds until they are sent, in one piece.
pub(crate) const BODY: usize = 16 << 10;

/// The requests of one call.
pub(crate) struct Http {
    credentials: Arc<[Credential]>,
    outlet: Option<Arc<Outlet>>,
    meter: Arc<Meter>,
    /// What the next request holds of the call's memory until its response is gone.
    pub(crate) held: Option<Held>,
    deadline: Instant,
    trace: Option<Trace>,
    denials: Arc<Denials>,
}

type Sending = Box<dyn Future<Output = Result<Sent, Error>> + Send>;
type Sent = (http::Response<WasiBody>, Box<dyn Future<Output = Result<(), Error>> + Send>);

impl Http {
    pub(crate) fn new(entry: &Entry<'_>) -> Self {
        let Entry { environment, trace, observer, deadline, .. } = entry;
        let Environment { limits, requests, credentials, secrets, .. } = environment;
        Self {
            credentials: Arc::clone(credentials),
            outlet: requests.outlet(),
            meter: Arc::new(Meter::new(limits.http_requests, limits.http_bytes.as_u64())),
            held: None,
            deadline: *deadline,
            trace: trace.cloned(),
            denials: Arc::new(Denials::new(Arc::clone(observer), Arc::clone(secrets))),
        }
    }

    /// Whether any request can be sent.
    pub(crate) fn is_open(&self) -> bool {
        self.outlet.is_some()
    }

    /// Requests that were sent, and bytes of requests and responses.
    pub(crate) fn used(&self) -> (u64, u64) {
        (self.meter.requests(), self.meter.bytes())
    }

    /// What was first refused to the guest: it may explain a failure.
    pub(crate) fn hindrance(&self, limits: &Limits) -> Option<Hindrance> {
        match self.meter.exceeded() {
            Some(Which::Requests) => Some(Hindrance::Limit(Limit::HttpRequests(limits.http_requests))),
            Some(Which::Bytes) => Some(Hindrance::Limit(Limit::HttpBytes(limits.http_bytes))),
            None => self.denials.first().map(Hindrance::Denied),
        }
    }

    /// Reports that something else was denied. `what` is a sentence; `remedy` is what the operator would write to allow it.
    pub(crate) fn deny(&self, what: &str, remedy: Option<&str>) {
        self.denials.note(what, remedy);
    }

    /// The outlet and where the request goes, if the rules allow it. They are asked again when it is sent.
    fn outlet(&self, request: &http::Request<WasiBody>) -> Option<(Arc<Outlet>, Origin)> {
        let rules = self.outlet.as_ref().map_or(&[][..], |outlet| outlet.rules());
        match outgoing::asked(request.method(), request.uri()).check(rules) {
            Ok(Allowed { origin, .. }) => Some((self.outlet.clone()?, origin)),
            Err(denied) => {
                self.denials.note(&denied.to_string(), denied.remedy().as_deref());
                None
            }
        }
    }

    /// Adds the secrets that requests to this origin carry. Returns what separates its connection from others.
    fn add_credentials(&self, request: &mut http::Request<WasiBody>, origin: &Origin) -> outgoing::Credential {
        let mut keys = Vec::new();
        for credential in self.credentials.iter().filter(|credential| credential.is_for(origin)) {
            credential.add_to(request);
            keys.push(credential.key());
        }
        if keys.is_empty() { outgoing::Credential::NONE } else { outgoing::Credential::of(&keys.join(&b'\n')) }
    }

    /// Makes the request a part of the call's trace.
    fn add_trace(&self, request: &mut http::Request<WasiBody>) {
        let Some(trace) = &self.trace else { return };
        let fields = [("traceparent", Some(trace.parent())), ("tracestate", trace.state.clone())];
        for (name, value) in fields {
            if let Some(Ok(value)) = value.map(HeaderValue::try_from) {
                request.headers_mut().insert(HeaderName::from_static(name), value);
            }
        }
    }
}

impl WasiHttpHooks for Http {
    fn p2_outgoing_body_chunk_size(&mut self) -> usize {
        BODY
    }

    fn p2_outgoing_body_buffer_chunks(&mut self) -> usize {
        1
    }

    fn send_request(
        &mut self,
        mut request: http::Request<WasiBody>,
        options: Option<RequestOptions>,
        _sent: Box<dyn Future<Output = Result<(), Error>> + Send>,
    ) -> Sending {
        let held = self.held.take();
        let Some((outlet, origin)) = self.outlet(&request) else {
            return Box::new(async { Err(Error::HttpRequestDenied) });
        };
        self.add_trace(&mut request);
        let credential = self.add_credentials(&mut request, &origin);
        let (meter, denials, deadline) = (Arc::clone(&self.meter), Arc::clone(&self.denials), self.deadline);
        let timeouts = timeouts(options);
        Box::new(async move {
            match outlet.send(request, &credential, timeouts, deadline.into(), &meter).await {
                Ok(response) => {
                    let response = response.map(|body| Receiving { body, _held: held }.map_err(code).boxed_unsync());
                    let done: Box<dyn Future<Output = Result<(), Error>> + Send> = Box::new(async { Ok(()) });
                    Ok((response, done))
                }
                Err(error) => {
                    denials.failed(&error);
                    Err(code(error))
                }
            }
        })
    }
}

/// The timeouts that the guest asks for. Those that it leaves out are the call's.
fn timeouts(options: Option<RequestOptions>) -> Timeouts {
    let options = options.unwrap_or_default();
    let within = |timeout: Option<Duration>| timeout.unwrap_or(Limits::UTMOST.timeout);
    Timeouts {
        connect: within(options.connect_timeout),
        first_byte: within(options.first_byte_timeout),
        between_bytes: within(options.between_bytes_timeout),
    }
}

/// The body of a response, with the memory that it holds.
struct Receiving {
    body: Received,
    _held: Option<Held>,
}

impl Body for Receiving {
    type Data = Bytes;
    type Error = toolbay_outgoing::SendError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
