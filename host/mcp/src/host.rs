//! The host that the protocol serves: lists, their changes, and calls.

use std::sync::Arc;
use std::time::Duration;

use bytesize::ByteSize;
use futures_util::future::BoxFuture;
use toolbay_model::{
    ArgumentCheck, CallJournal, CallObserver, CallRejection, CallRequest, CallResult, Icon, ListedResource, Prompt,
    QuestionKindSet, SchemaForm, SchemaViolation, Skill, Tool, TraceContext,
};

use crate::access::CallerRights;
use crate::capabilities::CapabilityNames;
use crate::elsewhere::{OperatorAnswer, PendingQuestions};
use crate::listings::PageCache;
use crate::quota::{QuotaPortion, SharedQuota};
use crate::request_state::RequestStates;
use crate::tasks::{TaskOptions, TaskTable};
use crate::updates::ResourceUpdates;
use crate::view::CallerView;

/// The host behind the protocol.
pub trait Host: Send + Sync + 'static {
    /// The options of the protocol.
    fn options(&self) -> &ProtocolOptions;

    /// Waits until the number of the lists ([`CallerView::listing`]) is greater than `listing`, and returns it; `None` if the
    /// lists cannot change any more.
    fn wait_for_change(&self, listing: u64) -> BoxFuture<'_, Option<u64>>;

    /// Whether every plugin that existed at startup has been loaded or refused.
    fn is_complete(&self) -> bool;

    /// Waits until [`Host::instructions`] says all that it ever will of the plugins that existed at startup.
    fn wait_for_instructions(&self) -> BoxFuture<'_, ()>;

    /// Waits until [`Host::is_complete`], for at most the time that the host's configuration allows.
    fn wait_until_complete(&self) -> BoxFuture<'_, ()>;

    /// Waits until there is a tool with this name or [`Host::is_complete`], for at most the time that a call waits for that.
    fn wait_for_tool<'a>(&'a self, tool: &'a str) -> BoxFuture<'a, ()>;

    /// At most `limit` tools in the order of their names: those after `after` that `rights` allow.
    fn tools(&self, after: Option<&str>, limit: usize, rights: &CallerRights) -> ListPage<Tool>;

    /// At most `limit` prompts in the order of their names: those after `after` that `rights` allow.
    fn prompts(&self, after: Option<&str>, limit: usize, rights: &CallerRights) -> ListPage<Prompt>;

    /// At most `limit` resources in the order of their URIs: those after `after` that `rights` allow.
    fn resources(&self, after: Option<&str>, limit: usize, rights: &CallerRights) -> ListPage<ListedResource>;

    /// At most `limit` resource templates in their order as text: those after `after` that `rights` allow.
    fn templates(&self, after: Option<&str>, limit: usize, rights: &CallerRights) -> ListPage<ListedResource>;

    /// At most `limit` skills in the order of their URIs: those after `after` of which `rights` allow every file.
    fn skills(&self, after: Option<&str>, limit: usize, rights: &CallerRights) -> ListPage<Skill>;

    /// The skill whose `SKILL.md` has this URI; `None` if there is none of which `rights` allow every file.
    fn skill(&self, uri: &str, rights: &CallerRights) -> Option<Arc<Skill>>;

    /// At most `limit` files and folders directly in the folder `uri` of a skill, in the order of their URIs: those after
    /// `after` that `rights` allow. `None` if there is no such folder with anything that they allow.
    fn folder(
        &self,
        uri: &str,
        after: Option<&str>,
        limit: usize,
        rights: &CallerRights,
    ) -> Option<ListPage<ListedResource>>;

    /// The lists as a caller with these rights sees them now.
    fn view(&self, rights: &CallerRights) -> CallerView;

    /// Who wants to know of changes of resources. It is the host that keeps them, because plugins report changes to it.
    fn updates(&self) -> &ResourceUpdates;

    /// The pages of the lists that were written. It is the host that keeps them, because all sessions share them.
    fn listings(&self) -> &PageCache;

    /// What seals the states of calls that wait for answers. It is the host that keeps the key.
    fn request_states(&self) -> &RequestStates;

    /// The calls that go on as tasks. It is the host that keeps them, because they outlive sessions.
    fn tasks(&self) -> &TaskTable;

    /// The tool with this name, including its prefix; `None` if there is none.
    fn tool(&self, name: &str) -> Option<Arc<Tool>>;

    /// The spelling under which there may be a resource for `uri`, if that is another one: both mean the same by their form.
    fn listed_uri(&self, _uri: &str) -> Option<String> {
        None
    }

    /// The tool with the schema of its arguments as [`SchemaForm::Portable`] has it. Takes time in proportion to the schema.
    fn portable_tool(&self, tool: &Arc<Tool>) -> Arc<Tool> {
        Arc::clone(tool)
    }

    /// A new client's share of the host: its own rate limits and its own queue. `name` is the caller's, for the log.
    fn client(&self, name: &str) -> Arc<dyn ClientShare>;

    /// Text for the model of a client with these rights: `instructions`. Empty sends none.
    fn instructions(&self, rights: &CallerRights) -> String;

    /// What the host has to do with these questions while their call waits, such as somebody besides the client who may
    /// answer one of them; `None` if nothing.
    fn operator_answer(&self, _put: PendingQuestions<'_>) -> Option<OperatorAnswer> {
        None
    }

    /// What there is to measure, as text that is read in this form; `None` if it cannot be told now. May take long, and never
    /// on the thread that asks.
    fn metrics(&self, _form: MetricsForm, _traffic: TransportTraffic) -> BoxFuture<'_, Option<String>> {
        Box::pin(std::future::ready(None))
    }

    /// Takes note of what tells what clients have open at a transport that begins to serve: `None` once it has ended.
    fn register_traffic_source(&self, _traffic: TrafficSource) {}

    /// Spawns a future that makes calls on the runtime on which the host runs them.
    fn spawn(&self, work: BoxFuture<'static, ()>);
}

/// The forms in which metrics are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricsForm {
    /// The text format of Prometheus, 0.0.4.
    Prometheus,
    /// OpenMetrics 1.0.
    OpenMetrics,
}

/// Tells what clients have open at a transport; `None` once it has ended.
pub type TrafficSource = Box<dyn Fn() -> Option<TransportTraffic> + Send + Sync>;

/// What clients have open at a transport.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransportTraffic {
    /// Connections.
    pub connections: usize,
    /// Requests that are not answered yet, and open streams.
    pub requests: usize,
    /// Sessions.
    pub sessions: usize,
}

/// So many callers or requests can take what is there for all.
const QUOTA_SHARES: usize = 4;

/// Options of the protocol that do not depend on the transport.
#[derive(Clone, Debug)]
pub struct ProtocolOptions {
    /// Items per page of a list, at least 1.
    pub page_size: usize,
    /// Whether results include `_meta["dev.toolbay/usage"]`.
    pub usage: bool,
    /// Whether the host wants to know the [`RequestWire`] of calls.
    pub traced: bool,
    /// Largest message in bytes: a line over stdio, a body over HTTP.
    pub request: ByteSize,
    /// Bytes that all requests may take together while they are read, wait and run. The values of arguments count. One
    /// request can take a quarter of it, and so can one caller if there can be several.
    pub requests: ByteSize,
    /// How long running calls may continue after the client disconnects or the server is told to stop.
    pub grace: Duration,
    /// What is kept of calls that go on as tasks, and for how long.
    pub tasks: TaskOptions,
    /// What the server says of itself.
    pub server: ServerInfo,
    /// How the schemas of arguments are written for callers of whom nothing else is said.
    pub schemas: SchemaForm,
}

/// What the server says of itself beside its name and version (MCP `Implementation`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerInfo {
    /// A display name; `None` is Toolbay's.
    pub title: Option<String>,
    /// What the server is for.
    pub description: Option<String>,
    /// The address of its website.
    pub website_url: Option<String>,
    /// Icons that a client can display.
    pub icons: Vec<Icon>,
}

impl ProtocolOptions {
    /// The bytes that requests may take, for a transport with one caller or one with many.
    pub(crate) fn request_quota(&self, many: bool) -> Arc<SharedQuota> {
        let all = self.total_request_bytes();
        SharedQuota::new(all, if many { all / QUOTA_SHARES } else { all })
    }

    /// The bytes that one request may take once it is parsed.
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
    /// Whether there are further items after these.
    pub more: bool,
    /// The lists that the page is part of.
    pub view: CallerView,
}

/// One client's share of the host.
pub trait ClientShare: Send + Sync {
    /// Takes a place in the client's queue for a call of `target`: the name of a tool or prompt, or a URI.
    ///
    /// # Errors
    ///
    /// The client exceeded its rate limit, or its queue is full. The host has counted the rejection.
    fn enqueue(&self, target: &str) -> Result<Box<dyn QueuePlace>, CallRejection>;

    /// Those of `uris` under which there is a resource, listed or of a template. That is work of this client's: what takes
    /// more than a moment is not done on the protocol's thread, and what takes too long is not found.
    fn existing_uris(&self, uris: Vec<String>) -> BoxFuture<'_, Vec<String>>;

    /// Takes note of a call of `target` that the protocol itself rejected.
    fn record_rejection(&self, _target: &str, _rejection: CallRejection) {}
}

/// A place in a client's queue. Dropping it before the call ends cancels the call.
pub trait QueuePlace: Send {
    /// Makes the call as soon as it is admitted. Dropping the future cancels the call.
    ///
    /// The future must run on the runtime of [`Host::spawn`]. The place is held until it is dropped.
    fn call(&mut self, call: ClientCall, observer: Arc<dyn CallObserver>) -> BoxFuture<'_, CallResult>;

    /// Takes note that the response is written as JSON: nothing more is computed for the call. Until then it counts as one
    /// that runs. From then on it has only its place, until the client takes the response. `error` is the code of the
    /// response if it is an error.
    fn response_encoded(&mut self, _error: Option<i32>) {}
}

/// What a request is in its protocol and on its transport.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestWire {
    /// The id of the request, as text: the client has chosen it.
    pub id: String,
    /// The revision of the protocol.
    pub revision: &'static str,
    /// Whether it came over standard input. All others come over HTTP.
    pub is_local: bool,
}

/// A call as received from a client.
#[derive(Debug)]
pub struct ClientCall {
    /// What the client asks for.
    pub request: CallRequest,
    /// What of a tool's arguments cannot be read, such as a text with half a character: then they are empty, and the call fails
    /// with it.
    pub unreadable: Option<Box<SchemaViolation>>,
    /// Whether the caller may use what it asks for. If not, that is reported as unknown.
    pub permitted: bool,
    /// The capabilities that the client declared.
    pub capabilities: CapabilityNames,
    /// The kinds of questions that the client can answer.
    pub answerable: QuestionKindSet,
    /// What an earlier run of the same call left, and the answers to its questions; empty for the first run.
    ///
    /// If its `edition` is not that of what would serve the call, the call fails with
    /// [`CallFailure::Outdated`](toolbay_model::CallFailure::Outdated). The host sets it, and `until`, when a guest asks.
    pub journal: Arc<CallJournal>,
    /// The number of the client's session, which no other session of the process has; `None` for a request that stands for
    /// itself.
    pub session: Option<u64>,
    /// The caller's span; `None` if the call belongs to no trace.
    pub trace: Option<TraceContext>,
    /// What the call is for who traces it; `None` if nobody does.
    pub wire: Option<Box<RequestWire>>,
    /// How the caller's configuration has arguments checked.
    pub arguments: Option<ArgumentCheck>,
    /// The bytes that the arguments take, of those that requests may take together. The host gives back what it no longer
    /// needs.
    pub held: QuotaPortion,
}

impl ClientCall {
    /// A permitted call that no client sent: it belongs to no session and to no trace, and the memory for its arguments is
    /// not counted.
    pub fn without_client(request: CallRequest, answerable: QuestionKindSet, journal: CallJournal) -> Self {
        Self {
            request,
            unreadable: None,
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
