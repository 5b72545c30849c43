//! The interface between the protocol and the host: lists, their changes, and calls.

use std::sync::Arc;
use std::time::Duration;

use bytesize::ByteSize;
use futures_util::future::BoxFuture;
use toolbay_model::{
    ArgumentCheck, CallJournal, CallObserver, CallRejection, CallRequest, CallResult, Icon,
    ListedResource, Prompt, QuestionKindSet, SchemaForm, SchemaViolation, Skill, Tool,
    TraceContext,
};

use crate::exchange::quota::{QuotaPortion, SharedQuota};
use crate::exchange::resource_subscriptions::ResourceUpdates;
use crate::host::operator_answers::{OperatorAnswer, PendingQuestions};
use crate::host::request_state::RequestStates;
use crate::lists::access_rights::CallerRights;
use crate::lists::list_state::CallerView;
use crate::lists::page_cache::PageCache;
use crate::protocol::capabilities::CapabilityNames;
use crate::tasks::{TaskOptions, TaskTable};

/// The host behind the protocol.
pub trait Host: Send + Sync + 'static {
    /// Returns the options of the protocol.
    fn options(&self) -> &ProtocolOptions;

    /// Waits until the number of the lists ([`CallerView::listing`]) is greater than `listing`, and
    /// returns it; `None` if the lists cannot change any more.
    fn wait_for_change(&self, listing: u64) -> BoxFuture<'_, Option<u64>>;

    /// Returns whether every plugin that existed at startup has been loaded or refused.
    fn is_complete(&self) -> bool;

    /// Waits until [`Host::instructions`] is final for the plugins that existed at startup.
    fn wait_for_instructions(&self) -> BoxFuture<'_, ()>;

    /// Waits until [`Host::is_complete`], for at most the time that the host's configuration
    /// allows.
    fn wait_until_complete(&self) -> BoxFuture<'_, ()>;

    /// Waits until there is a tool with this name or until [`Host::is_complete`], for at most the
    /// time that a call may wait for that.
    fn wait_for_tool<'a>(&'a self, tool: &'a str) -> BoxFuture<'a, ()>;

    /// Returns at most `limit` tools in the order of their names: those after `after` that `rights`
    /// allow.
    fn tools(&self, after: Option<&str>, limit: usize, rights: &CallerRights) -> ListPage<Tool>;

    /// Returns at most `limit` prompts in the order of their names: those after `after` that
    /// `rights` allow.
    fn prompts(&self, after: Option<&str>, limit: usize, rights: &CallerRights)
    -> ListPage<Prompt>;

    /// Returns at most `limit` resources in the order of their URIs: those after `after` that
    /// `rights` allow.
    fn resources(
        &self,
        after: Option<&str>,
        limit: usize,
        rights: &CallerRights,
    ) -> ListPage<ListedResource>;

    /// Returns at most `limit` resource templates in the order of their text: those after `after`
    /// that `rights` allow.
    fn templates(
        &self,
        after: Option<&str>,
        limit: usize,
        rights: &CallerRights,
    ) -> ListPage<ListedResource>;

    /// Returns at most `limit` skills in the order of their URIs: those after `after` of which
    /// `rights` allow every file.
    fn skills(&self, after: Option<&str>, limit: usize, rights: &CallerRights) -> ListPage<Skill>;

    /// Returns the skill whose `SKILL.md` has this URI; `None` if there is none of which `rights`
    /// allow every file.
    fn skill(&self, uri: &str, rights: &CallerRights) -> Option<Arc<Skill>>;

    /// Returns at most `limit` files and folders directly in the folder `uri` of a skill, in the
    /// order of their URIs: those after `after` that `rights` allow. `None` if the folder does not
    /// exist or contains nothing that `rights` allow.
    fn folder(
        &self,
        uri: &str,
        after: Option<&str>,
        limit: usize,
        rights: &CallerRights,
    ) -> Option<ListPage<ListedResource>>;

    /// Returns the current view of the lists for a caller with these rights.
    fn view(&self, rights: &CallerRights) -> CallerView;

    /// Returns the subscribers to changes of resources. The host stores them because plugins report
    /// changes to it.
    fn updates(&self) -> &ResourceUpdates;

    /// Returns the cache of encoded list pages. The host stores it because all sessions share it.
    fn listings(&self) -> &PageCache;

    /// Returns the sealer of the states of calls that wait for answers. The host stores its key.
    fn request_states(&self) -> &RequestStates;

    /// Returns the calls that continue as tasks. The host stores them because they outlive
    /// sessions.
    fn tasks(&self) -> &TaskTable;

    /// Returns the tool with this name, including its prefix; `None` if there is none.
    fn tool(&self, name: &str) -> Option<Arc<Tool>>;

    /// Returns the spelling of `uri` under which a resource may be listed, if it differs from
    /// `uri`. Both spellings are equivalent by their syntax.
    fn listed_uri(&self, _uri: &str) -> Option<String> {
        None
    }

    /// Returns the tool with its argument schema in the form [`SchemaForm::Portable`]. Takes time
    /// in proportion to the schema.
    fn portable_tool(&self, tool: &Arc<Tool>) -> Arc<Tool> {
        Arc::clone(tool)
    }

    /// Creates a new client's share of the host: its own rate limits and its own queue. `name` is
    /// the caller's name, for the log.
    fn client(&self, name: &str) -> Arc<dyn ClientShare>;

    /// Returns the text for the model of a client with these rights: `instructions`. An empty text
    /// is not sent.
    fn instructions(&self, rights: &CallerRights) -> String;

    /// Returns the host's side of these questions while their call waits, such as an operator who
    /// may answer one of them; `None` if the host has no part in them.
    fn operator_answer(&self, _put: PendingQuestions<'_>) -> Option<OperatorAnswer> {
        None
    }

    /// Returns the metrics as text in this form; `None` if they are not available now. May take
    /// long, but never blocks the calling thread.
    fn metrics(
        &self,
        _form: MetricsForm,
        _traffic: TransportTraffic,
    ) -> BoxFuture<'_, Option<String>> {
        Box::pin(std::future::ready(None))
    }

    /// Registers the source of traffic counts of a transport that starts to serve. The source
    /// returns `None` once the transport has ended.
    fn register_traffic_source(&self, _traffic: TrafficSource) {}

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
pub type TrafficSource = Box<dyn Fn() -> Option<TransportTraffic> + Send + Sync>;

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
    pub usage: bool,
    /// Whether the host wants to know the [`RequestWire`] of calls.
    pub traced: bool,
    /// Maximum size of a message, in bytes: a line over stdio, a body over HTTP.
    pub request: ByteSize,
    /// Maximum bytes that all requests take together while they are read, wait and run. The values
    /// of arguments count. One request can take a quarter of it, and so can one caller if there can
    /// be several.
    pub requests: ByteSize,
    /// Grace period for running calls after the client disconnects or the server is stopped.
    pub grace: Duration,
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
    pub(crate) fn request_quota(&self, many: bool) -> Arc<SharedQuota> {
        let all = self.total_request_bytes();
        SharedQuota::new(all, if many { all / QUOTA_SHARES } else { all })
    }

    /// Returns the maximum bytes that one request takes once it is parsed.
    pub(crate) fn max_request_bytes(&self) -> usize {
        self.total_request_bytes() / QUOTA_SHARES
    }

    fn total_request_bytes(&self) -> usize {
        usize::try_from(self.requests.as_u64()).unwrap_or(usize::MAX)
    }
}

/// A page of a list.
#[derive(Clone, Debug)]
pub struct ListPage<T> {
    /// The items, in the order of their names or URIs.
    pub items: Vec<Arc<T>>,
    /// If set, more items follow these.
    pub more: bool,
    /// The view of the lists that the page is part of.
    pub view: CallerView,
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
    /// work counts against this client. Work that takes more than a moment does not run on the
    /// protocol's thread, and a lookup that takes too long finds nothing.
    fn existing_uris(&self, uris: Vec<String>) -> BoxFuture<'_, Vec<String>>;

    /// Records a call of `target` that the protocol itself rejected.
    fn record_rejection(&self, _target: &str, _rejection: CallRejection) {}
}

/// A place in a client's queue. Dropping it before the call ends cancels the call.
pub trait QueuePlace: Send {
    /// Makes the call as soon as it is admitted. Dropping the future cancels the call.
    ///
    /// The future must run on the runtime of [`Host::spawn`]. The place is held until it is
    /// dropped.
    fn call(
        &mut self,
        call: ClientCall,
        observer: Arc<dyn CallObserver>,
    ) -> BoxFuture<'_, CallResult>;

    /// Records that the response is encoded as JSON and that the call computes nothing more. Until
    /// then it counts as a running call. After that it only has its place, until the client takes
    /// the response. `error` is the code of the response if it is an error.
    fn response_encoded(&mut self, _error: Option<i32>) {}
}

/// The protocol and transport metadata of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestWire {
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
    /// What was wrong with the form of the arguments and is corrected in `request`: an object that
    /// was sent as a string, or numbers for a prompt. Unless the argument check is lenient, the
    /// call fails with these violations.
    pub corrected: Vec<SchemaViolation>,
    /// If set, the caller may use the target. If not, the target is reported as unknown.
    pub permitted: bool,
    /// The capabilities that the client declared.
    pub capabilities: CapabilityNames,
    /// The kinds of questions that the client can answer.
    pub answerable: QuestionKindSet,
    /// The journal of an earlier run of the same call, and the answers to its questions. Empty for
    /// the first run.
    ///
    /// If its `edition` is not that of what would serve the call, the call fails with
    /// [`CallFailure::Outdated`](toolbay_model::CallFailure::Outdated). The host sets it, and
    /// `until`, when a guest asks.
    pub journal: Arc<CallJournal>,
    /// The number of the client's session, unique in the process; `None` for a request without a
    /// session.
    pub session: Option<u64>,
    /// The caller's span; `None` if the call belongs to no trace.
    pub trace: Option<TraceContext>,
    /// The request metadata for tracing; `None` if tracing is off.
    pub wire: Option<Box<RequestWire>>,
    /// The argument check in the caller's configuration.
    pub arguments: Option<ArgumentCheck>,
    /// Reservation for the bytes of the arguments, out of the bytes of all requests. The host
    /// releases what it no longer needs.
    pub held: QuotaPortion,
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
            permitted: true,
            capabilities: CapabilityNames::default(),
            answerable,
            journal: Arc::new(journal),
            session: None,
            trace: None,
            wire: None,
            arguments: None,
            held: QuotaPortion::default(),
        }
    }
}
