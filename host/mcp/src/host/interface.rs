//! The calls that the host makes for clients, and the options of the protocol.

use std::sync::Arc;
use std::time::Duration;

use bytesize::ByteSize;
use futures_util::future::BoxFuture;
use toolbay_background::{QuotaPortion, SharedQuota};
use toolbay_model::{
    ArgumentCheck, CallJournal, CallObserver, CallRejection, CallRequest, CallResult, Icon,
    QuestionKindSet, SchemaForm, SchemaViolation, TraceContext,
};

use crate::host::operator_answers::{OperatorAnswer, PendingQuestions};
use crate::lists::access_rights::CallerRights;
use crate::protocol::capabilities::CapabilityNames;
use crate::tasks::TaskOptions;

/// Makes the calls of clients.
pub trait CallHost: Send + Sync + 'static {
    /// Creates a new client's share of the host: its own rate limits and its own queue. `name` is
    /// the caller's name, for the log.
    fn client(&self, name: &str) -> Arc<dyn ClientShare>;

    /// Returns a handle through which an operator may answer one of these questions while their
    /// call waits; `None` if only the client can answer.
    fn operator_answer(&self, _questions: PendingQuestions<'_>) -> Option<OperatorAnswer> {
        None
    }

    /// Returns whether a call of this tool may wait for an operator although its client can answer
    /// no questions.
    fn may_ask_operator(&self, _tool: &str) -> bool {
        false
    }

    /// Spawns a future that makes calls, on the runtime on which the host runs calls.
    fn spawn(&self, work: BoxFuture<'static, ()>);
}

/// The output formats of metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricsForm {
    /// The text format of Prometheus, 0.0.4.
    Prometheus,
    /// OpenMetrics 1.0.
    OpenMetrics,
}

/// Function that returns the traffic of a transport; `None` once the transport has ended.
pub(crate) type TrafficSource = Box<dyn Fn() -> Option<TransportTraffic> + Send + Sync>;

/// The connections, requests and sessions that clients have open at a transport.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransportTraffic {
    /// Connections.
    pub connections: usize,
    /// Requests without a response so far, and open streams.
    pub requests: usize,
    /// Sessions.
    pub sessions: usize,
}

/// Number of shares into which the memory for requests is divided. One caller or one request can
/// take one share.
const QUOTA_SHARES: usize = 4;

/// Options of the protocol that do not depend on the transport.
#[derive(Clone, Debug)]
pub struct ProtocolOptions {
    /// Items per page of a list, at least 1.
    pub page_size: usize,
    /// If set, results include `_meta["dev.toolbay/usage"]`.
    pub includes_usage: bool,
    /// If set, calls contain their [`RequestMetadata`].
    pub is_traced: bool,
    /// Maximum size of a message, in bytes: a line over stdio, a body over HTTP.
    pub max_message_size: ByteSize,
    /// Maximum bytes that all requests take together while they are read, wait and run. The values
    /// of arguments count. One request can take a quarter of it, and so can one caller if there can
    /// be several.
    pub max_total_request_size: ByteSize,
    /// Grace period for running calls after the client disconnects or the server is stopped.
    pub grace_period: Duration,
    /// Limits on stored calls that continue as tasks, in number and time.
    pub tasks: TaskOptions,
    /// The information that the server sends about itself.
    pub server: ServerInfo,
    /// The form of argument schemas for callers without their own setting.
    pub schemas: SchemaForm,
}

/// The information that the server sends about itself in addition to its name and version (MCP
/// `Implementation`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerInfo {
    /// The display name; `None` uses the one of Toolbay.
    pub title: Option<String>,
    /// The purpose of the server.
    pub description: Option<String>,
    /// The address of its website.
    pub website_url: Option<String>,
    /// Icons that a client can display.
    pub icons: Vec<Icon>,
}

impl ProtocolOptions {
    /// Creates the quota for the bytes of requests, for a transport with one caller or with many.
    pub(crate) fn request_quota(&self, has_many_callers: bool) -> Arc<SharedQuota> {
        let total_bytes = self.total_request_bytes();
        SharedQuota::new(
            total_bytes,
            if has_many_callers {
                total_bytes / QUOTA_SHARES
            } else {
                total_bytes
            },
        )
    }

    /// Returns the maximum bytes that one request takes once it is parsed.
    pub(crate) fn max_request_bytes(&self) -> usize {
        self.total_request_bytes() / QUOTA_SHARES
    }

    fn total_request_bytes(&self) -> usize {
        usize::try_from(self.max_total_request_size.as_u64()).unwrap_or(usize::MAX)
    }
}

/// One client's share of the host.
pub trait ClientShare: Send + Sync {
    /// Takes a place in the client's queue for a call of `target`: the name of a tool or prompt, or
    /// a URI.
    ///
    /// # Errors
    ///
    /// The client exceeded its rate limit, or its queue is full. The host has counted the
    /// rejection.
    fn enqueue(&self, target: &str) -> Result<Box<dyn QueuePlace>, CallRejection>;

    /// Returns the URIs in `uris` that belong to a resource, either listed or of a template. The
    /// work counts against this client. Slow lookups do not run on the protocol's thread, and a
    /// lookup that takes too long returns nothing.
    fn existing_uris(&self, uris: Vec<String>) -> BoxFuture<'_, Vec<String>>;

    /// Records a call of `target` that the protocol itself rejected.
    fn record_rejection(&self, _target: &str, _rejection: CallRejection) {}
}

/// A place in a client's queue. Dropping it before the call ends cancels the call.
pub trait QueuePlace: Send {
    /// Makes the call as soon as it is admitted. Dropping the future cancels the call.
    ///
    /// The future must run on the runtime of [`CallHost::spawn`]. The place is held until it is
    /// dropped.
    fn call(
        &mut self,
        call: ClientCall,
        observer: Arc<dyn CallObserver>,
    ) -> BoxFuture<'_, CallResult>;

    /// Records that the response is encoded as JSON and that the call computes nothing more. Until
    /// then it counts as a running call. After that it only occupies its place, until the client
    /// receives the response. `error` is the code of the response if it is an error.
    fn response_encoded(&mut self, _error: Option<i32>) {}
}

/// The protocol and transport metadata of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestMetadata {
    /// The id of the request, as text. The client has chosen it.
    pub id: String,
    /// The revision of the protocol.
    pub revision: &'static str,
    /// If set, the request came over standard input. All other requests come over HTTP.
    pub is_local: bool,
}

/// A call as received from a client.
#[derive(Debug)]
pub struct ClientCall {
    /// The requested target and its arguments.
    pub request: CallRequest,
    /// The part of the arguments that cannot be read, such as a text with an unpaired surrogate.
    /// The arguments are then incomplete, and the call fails with this violation.
    pub unreadable: Option<Box<SchemaViolation>>,
    /// Errors in the form of the arguments that are corrected in `request`: an object that
    /// was sent as a string, or numbers for a prompt. Unless the argument check is lenient, the
    /// call fails with these violations.
    pub corrected: Vec<SchemaViolation>,
    /// If set, the caller may use the target. If not, the target is reported as unknown.
    pub is_permitted: bool,
    /// The rights of the caller. Names that they do not allow are not suggested for an unknown one.
    pub rights: CallerRights,
    /// The capabilities that the client declared.
    pub capabilities: CapabilityNames,
    /// The kinds of questions that the client can answer.
    pub answerable: QuestionKindSet,
    /// The journal of an earlier run of the same call, and the answers to its questions. Empty for
    /// the first run.
    ///
    /// If its `edition` differs from that of the plugin that would serve the call, the call fails
    /// with [`CallFailure::Outdated`](toolbay_model::CallFailure::Outdated). The host sets
    /// `edition` and `until` when a guest asks questions.
    pub journal: Arc<CallJournal>,
    /// The number of the client's session, unique in the process; `None` for a request without a
    /// session.
    pub session: Option<u64>,
    /// The caller's span; `None` if the call belongs to no trace.
    pub trace: Option<TraceContext>,
    /// The request metadata for tracing; `None` if tracing is off.
    pub metadata: Option<Box<RequestMetadata>>,
    /// The argument check in the caller's configuration.
    pub arguments: Option<ArgumentCheck>,
    /// Reservation for the bytes of the arguments, out of the bytes of all requests. The host
    /// releases what it no longer needs.
    pub reservation: QuotaPortion,
}

impl ClientCall {
    /// Creates a permitted call that no client sent. It belongs to no session and to no trace, and
    /// the memory for its arguments is not counted.
    pub fn without_client(
        request: CallRequest,
        answerable: QuestionKindSet,
        journal: CallJournal,
    ) -> Self {
        Self {
            request,
            unreadable: None,
            corrected: Vec::new(),
            is_permitted: true,
            rights: CallerRights::All,
            capabilities: CapabilityNames::default(),
            answerable,
            journal: Arc::new(journal),
            session: None,
            trace: None,
            metadata: None,
            arguments: None,
            reservation: QuotaPortion::default(),
        }
    }
}
