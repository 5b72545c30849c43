//! A host for tests: three items in each list, which respond at once, without guests.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytesize::ByteSize;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::watch;
use toolbay_model::{CallFailure, CallReply, Skill, TaskSupport, Tool};

use crate::exchange::resource_subscriptions::ResourceUpdates;
use crate::host::interface::{CallHost, ClientCall, ClientShare, ProtocolOptions, ServerInfo};
use crate::host::list_source::{
    ListItems, ListPage, ListSelection, ListSource, LoadProgress, LoadedPart, PageQuery,
};
use crate::host::mcp_server::{McpServer, McpServerParts};
use crate::host::operator_answers::{OperatorAnswer, PendingQuestions};
use crate::host::request_state::RequestStates;
use crate::lists::access_rights::CallerRights;
use crate::lists::list_state::CallerView;
use crate::tasks::{TaskOptions, TaskTable};
use crate::testing::stub_client::{Script, StubClient};
use crate::testing::stub_items::{
    FOLDER, NAMES, SKILLS, TEMPLATES, URIS, listed_resource, prompt, skill, tool,
};

/// A server with a host for tests.
pub(crate) struct StubServer {
    server: Arc<McpServer>,
    host: Arc<StubHost>,
}

/// The host of the server.
struct StubHost {
    /// The lists as all callers see them.
    view: watch::Sender<CallerView>,
    complete: AtomicBool,
    script: Option<Arc<Script>>,
    /// True if waiting tools continue.
    is_released: watch::Sender<bool>,
    /// The support for tasks that the tools declare.
    support: Mutex<TaskSupport>,
    /// The operator's answer to the next question, instead of the client's.
    operator_answer: Mutex<Option<OperatorAnswer>>,
}

impl StubServer {
    pub(crate) fn new() -> Arc<Self> {
        Self::with(|_| {})
    }

    /// Creates a host whose plugin runs `script`.
    pub(crate) fn scripted(
        states: RequestStates,
        script: impl Fn(&ClientCall) -> Option<Result<CallReply, CallFailure>> + Send + Sync + 'static,
    ) -> Arc<Self> {
        let mut host = StubHost::new();
        host.script = Some(Arc::new(script));
        Self::serving(default_options(), states, Arc::new(host))
    }

    /// Creates a host with other options.
    pub(crate) fn with(change: impl FnOnce(&mut ProtocolOptions)) -> Arc<Self> {
        let mut options = default_options();
        change(&mut options);
        let states = RequestStates::in_memory(&[7; 32]).unwrap();
        Self::serving(options, states, Arc::new(StubHost::new()))
    }

    fn serving(
        options: ProtocolOptions,
        request_states: RequestStates,
        host: Arc<StubHost>,
    ) -> Arc<Self> {
        let parts = McpServerParts {
            options,
            updates: ResourceUpdates::default(),
            request_states,
            portable_schema: Value::clone,
            metrics: None,
        };
        let server = McpServer::new(Arc::clone(&host), parts);
        Arc::new(Self { server, host })
    }

    /// Returns the host with other limits for tasks.
    pub(crate) fn with_tasks(self: Arc<Self>, tasks: TaskOptions) -> Arc<Self> {
        let mut options = self.options().clone();
        options.tasks = tasks;
        let states = self.server.request_states().clone();
        Self::serving(options, states, Arc::clone(&self.host))
    }

    /// Returns the server.
    pub(crate) fn server(&self) -> Arc<McpServer> {
        Arc::clone(&self.server)
    }

    /// Returns the options of the protocol.
    pub(crate) fn options(&self) -> &ProtocolOptions {
        self.server.options()
    }

    /// Returns the subscriptions to changes of resources.
    pub(crate) fn updates(&self) -> &ResourceUpdates {
        self.server.updates()
    }

    /// Returns the calls that continue as tasks.
    pub(crate) fn tasks(&self) -> &TaskTable {
        self.server.tasks()
    }

    /// Creates a new client's share of the host.
    pub(crate) fn client(&self, name: &str) -> Arc<dyn ClientShare> {
        self.host.client(name)
    }

    /// Lets the operator answer the next question instead of the client.
    pub(crate) fn set_operator_answer(&self, answer: OperatorAnswer) {
        *self.host.operator_answer.lock() = Some(answer);
    }

    /// Lets the waiting tools continue.
    pub(crate) fn release(&self) {
        self.host.is_released.send_replace(true);
    }

    /// Returns the number of waiting calls.
    pub(crate) fn waiting(&self) -> usize {
        self.host.is_released.receiver_count()
    }

    /// Sets whether the tools can be called as tasks.
    pub(crate) fn set_task_support(&self, support: TaskSupport) {
        *self.host.support.lock() = support;
    }

    /// Changes the lists.
    pub(crate) fn change_view(&self, change: impl FnOnce(&mut CallerView)) {
        self.host.view.send_modify(|view| {
            view.version += 1;
            change(view);
        });
    }

    /// Sets whether the plugins that existed at startup are loaded.
    pub(crate) fn set_complete(&self, complete: bool) {
        self.host.complete.store(complete, Ordering::Relaxed);
        self.host.view.send_modify(|_| {});
    }
}

fn default_options() -> ProtocolOptions {
    ProtocolOptions {
        page_size: 500,
        includes_usage: true,
        is_traced: false,
        max_message_size: ByteSize::mib(4),
        max_total_request_size: ByteSize::mib(64),
        grace_period: Duration::from_secs(1),
        tasks: TaskOptions::default(),
        server: ServerInfo::default(),
        schemas: toolbay_model::SchemaForm::default(),
    }
}

impl StubHost {
    fn new() -> Self {
        Self {
            view: watch::Sender::new(CallerView {
                version: 1,
                tools: 1,
                prompts: 1,
                resources: 1,
            }),
            complete: AtomicBool::new(true),
            script: None,
            is_released: watch::Sender::new(false),
            support: Mutex::new(TaskSupport::Optional),
            operator_answer: Mutex::default(),
        }
    }
}

/// Returns the items of a page, and whether more follow.
fn page<T>(
    query: &PageQuery<'_>,
    names: &[&str],
    make: impl Fn(&str) -> Arc<T>,
) -> (Vec<Arc<T>>, bool) {
    let names = names
        .iter()
        .filter(|name| query.after.is_none_or(|after| **name > after) && query.rights.allow(name));
    let mut items: Vec<_> = names.map(|name| make(name)).collect();
    let has_more = items.len() > query.limit;
    items.truncate(query.limit);
    (items, has_more)
}

impl ListSource for StubHost {
    fn page(&self, query: &PageQuery<'_>) -> Option<ListPage> {
        let (items, more) = match query.list {
            ListSelection::Tools => {
                let (items, more) = page(query, &NAMES, tool);
                (ListItems::Tools(items), more)
            }
            ListSelection::Prompts => {
                let (items, more) = page(query, &NAMES, prompt);
                (ListItems::Prompts(items), more)
            }
            ListSelection::Resources => {
                let (items, more) = page(query, &URIS, listed_resource);
                (ListItems::Resources(items), more)
            }
            ListSelection::Templates => {
                let (items, more) = page(query, &TEMPLATES, listed_resource);
                (ListItems::Resources(items), more)
            }
            ListSelection::Skills => {
                let (items, more) = page(query, &SKILLS, skill);
                (ListItems::Skills(items), more)
            }
            ListSelection::Folder(FOLDER) => {
                let (items, more) = page(query, &SKILLS, listed_resource);
                (ListItems::Resources(items), more)
            }
            ListSelection::Folder(_) => return None,
        };
        Some(ListPage {
            items,
            has_more: more,
            view: self.view(query.rights),
        })
    }

    fn skill(&self, uri: &str, rights: &CallerRights) -> Option<Arc<Skill>> {
        (SKILLS.contains(&uri) && rights.allow(uri)).then(|| skill(uri))
    }

    fn tool(&self, name: &str) -> Option<Arc<Tool>> {
        let support = *self.support.lock();
        (self.is_complete() && NAMES.contains(&name)).then(|| {
            Arc::new(Tool {
                task_support: support,
                ..Tool::clone(&tool(name))
            })
        })
    }

    fn instructions(&self, _rights: &CallerRights) -> String {
        "Be brief.".to_owned()
    }

    fn view(&self, _rights: &CallerRights) -> CallerView {
        *self.view.borrow()
    }

    fn wait_for_change(&self, version: u64) -> BoxFuture<'_, Option<u64>> {
        let mut view = self.view.subscribe();
        Box::pin(async move {
            view.wait_for(|view| view.version > version)
                .await
                .ok()
                .map(|view| view.version)
        })
    }
}

impl LoadProgress for StubHost {
    fn is_complete(&self) -> bool {
        self.complete.load(Ordering::Relaxed)
    }

    fn wait_for<'a>(&'a self, _part: LoadedPart<'a>) -> BoxFuture<'a, ()> {
        let mut view = self.view.subscribe();
        Box::pin(async move { drop(view.wait_for(|_| self.is_complete()).await) })
    }
}

impl CallHost for StubHost {
    fn client(&self, _name: &str) -> Arc<dyn ClientShare> {
        Arc::new(StubClient {
            script: self.script.clone(),
            is_released: self.is_released.clone(),
        })
    }

    fn operator_answer(&self, _questions: PendingQuestions<'_>) -> Option<OperatorAnswer> {
        self.operator_answer.lock().take()
    }

    fn spawn(&self, work: BoxFuture<'static, ()>) {
        tokio::spawn(work);
    }
}
