//! A host for tests: three items in each list, which respond at once, without guests or a
//! directory.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytesize::ByteSize;
use futures_util::future::BoxFuture;
use tokio::sync::watch;
use toolbay_model::{CallFailure, CallReply, ListedResource, Prompt, Skill, TaskSupport, Tool};

use crate::exchange::resource_subscriptions::ResourceUpdates;
use crate::host::interface::{
    ClientCall, ClientShare, Host, ListPage, ProtocolOptions, ServerInfo,
};
use crate::host::operator_answers::{OperatorAnswer, PendingQuestions};
use crate::host::request_state::RequestStates;
use crate::lists::access_rights::CallerRights;
use crate::lists::list_state::CallerView;
use crate::lists::page_cache::PageCache;
use crate::tasks::{TaskOptions, TaskTable};
use crate::testing::stub_client::{Script, StubClient};
use crate::testing::stub_items::{
    FOLDER, NAMES, SKILLS, TEMPLATES, URIS, listed, prompt, skill, tool,
};

/// A host for tests.
pub(crate) struct Stub {
    options: ProtocolOptions,
    listings: PageCache,
    updates: ResourceUpdates,
    /// The lists as all callers see them.
    view: watch::Sender<CallerView>,
    complete: AtomicBool,
    states: RequestStates,
    tasks: TaskTable,
    script: Option<Arc<Script>>,
    /// True if waiting tools continue.
    open: watch::Sender<bool>,
    /// The support for tasks that the tools declare.
    support: Mutex<TaskSupport>,
    /// The operator's answer to the next question, instead of the client's.
    elsewhere: Mutex<Option<OperatorAnswer>>,
}

impl Stub {
    pub(crate) fn new() -> Arc<Self> {
        Self::with(|_| {})
    }

    /// Creates a host whose plugin runs `script`.
    pub(crate) fn scripted(
        states: RequestStates,
        script: impl Fn(&ClientCall) -> Option<Result<CallReply, CallFailure>> + Send + Sync + 'static,
    ) -> Arc<Self> {
        let stub = Arc::into_inner(Self::with(|_| {})).unwrap();
        Arc::new(Self {
            states,
            script: Some(Arc::new(script)),
            ..stub
        })
    }

    /// Creates a host with other options.
    pub(crate) fn with(change: impl FnOnce(&mut ProtocolOptions)) -> Arc<Self> {
        let mut options = ProtocolOptions {
            page_size: 500,
            usage: true,
            traced: false,
            request: ByteSize::mib(4),
            requests: ByteSize::mib(64),
            grace: Duration::from_secs(1),
            tasks: TaskOptions::default(),
            server: ServerInfo::default(),
            schemas: toolbay_model::SchemaForm::default(),
        };
        change(&mut options);
        let view = watch::Sender::new(CallerView {
            listing: 1,
            tools: 1,
            prompts: 1,
            resources: 1,
        });
        let (listings, updates) = (PageCache::default(), ResourceUpdates::default());
        let states = RequestStates::in_memory(&[7; 32]).unwrap();
        let tasks = TaskTable::new(options.tasks);
        Arc::new(Self {
            tasks,
            options,
            listings,
            updates,
            view,
            complete: AtomicBool::new(true),
            states,
            script: None,
            open: watch::Sender::new(false),
            support: Mutex::new(TaskSupport::Optional),
            elsewhere: Mutex::default(),
        })
    }

    /// Returns the host with other limits for tasks.
    pub(crate) fn keeping(self: Arc<Self>, options: TaskOptions) -> Arc<Self> {
        Arc::new(Self {
            tasks: TaskTable::new(options),
            ..Arc::into_inner(self).unwrap()
        })
    }

    /// Lets the operator answer the next question instead of the client.
    pub(crate) fn answered_by(&self, elsewhere: OperatorAnswer) {
        *self.elsewhere.lock().unwrap() = Some(elsewhere);
    }

    /// Lets the waiting tools continue.
    pub(crate) fn release(&self) {
        self.open.send_replace(true);
    }

    /// Returns the number of waiting calls.
    pub(crate) fn waiting(&self) -> usize {
        self.open.receiver_count()
    }

    /// Sets whether the tools can be called as tasks.
    pub(crate) fn set_task_support(&self, support: TaskSupport) {
        *self.support.lock().unwrap() = support;
    }

    /// Changes the lists.
    pub(crate) fn change_view(&self, change: impl FnOnce(&mut CallerView)) {
        self.view.send_modify(|view| {
            view.listing += 1;
            change(view);
        });
    }

    /// Sets whether the plugins that existed at startup are loaded.
    pub(crate) fn set_complete(&self, complete: bool) {
        self.complete.store(complete, Ordering::Relaxed);
        self.view.send_modify(|_| {});
    }

    fn page<T>(
        &self,
        names: &[&str],
        make: impl Fn(&str) -> Arc<T>,
        after: Option<&str>,
        limit: usize,
        rights: &CallerRights,
    ) -> ListPage<T> {
        let names = names
            .iter()
            .filter(|name| after.is_none_or(|after| **name > after) && rights.allow(name));
        let mut items: Vec<_> = names.map(|name| make(name)).collect();
        let more = items.len() > limit;
        items.truncate(limit);
        ListPage {
            items,
            more,
            view: self.view(rights),
        }
    }
}

impl Host for Stub {
    fn options(&self) -> &ProtocolOptions {
        &self.options
    }

    fn wait_for_change(&self, listing: u64) -> BoxFuture<'_, Option<u64>> {
        let mut view = self.view.subscribe();
        Box::pin(async move {
            view.wait_for(|view| view.listing > listing)
                .await
                .ok()
                .map(|view| view.listing)
        })
    }

    fn is_complete(&self) -> bool {
        self.complete.load(Ordering::Relaxed)
    }

    fn operator_answer(&self, _put: PendingQuestions<'_>) -> Option<OperatorAnswer> {
        self.elsewhere.lock().unwrap().take()
    }

    fn wait_for_instructions(&self) -> BoxFuture<'_, ()> {
        self.wait_until_complete()
    }

    fn wait_until_complete(&self) -> BoxFuture<'_, ()> {
        let mut view = self.view.subscribe();
        Box::pin(async move { drop(view.wait_for(|_| self.is_complete()).await) })
    }

    fn wait_for_tool<'a>(&'a self, _tool: &'a str) -> BoxFuture<'a, ()> {
        self.wait_until_complete()
    }

    fn tools(&self, after: Option<&str>, limit: usize, rights: &CallerRights) -> ListPage<Tool> {
        self.page(&NAMES, tool, after, limit, rights)
    }

    fn prompts(
        &self,
        after: Option<&str>,
        limit: usize,
        rights: &CallerRights,
    ) -> ListPage<Prompt> {
        self.page(&NAMES, prompt, after, limit, rights)
    }

    fn resources(
        &self,
        after: Option<&str>,
        limit: usize,
        rights: &CallerRights,
    ) -> ListPage<ListedResource> {
        self.page(&URIS, listed, after, limit, rights)
    }

    fn templates(
        &self,
        after: Option<&str>,
        limit: usize,
        rights: &CallerRights,
    ) -> ListPage<ListedResource> {
        self.page(&TEMPLATES, listed, after, limit, rights)
    }

    fn skills(&self, after: Option<&str>, limit: usize, rights: &CallerRights) -> ListPage<Skill> {
        self.page(&SKILLS, skill, after, limit, rights)
    }

    fn skill(&self, uri: &str, rights: &CallerRights) -> Option<Arc<Skill>> {
        (SKILLS.contains(&uri) && rights.allow(uri)).then(|| skill(uri))
    }

    fn folder(
        &self,
        uri: &str,
        after: Option<&str>,
        limit: usize,
        rights: &CallerRights,
    ) -> Option<ListPage<ListedResource>> {
        (uri == FOLDER).then(|| self.page(&SKILLS, listed, after, limit, rights))
    }

    fn view(&self, _rights: &CallerRights) -> CallerView {
        *self.view.borrow()
    }

    fn updates(&self) -> &ResourceUpdates {
        &self.updates
    }

    fn listings(&self) -> &PageCache {
        &self.listings
    }

    fn tasks(&self) -> &TaskTable {
        &self.tasks
    }

    fn request_states(&self) -> &RequestStates {
        &self.states
    }

    fn tool(&self, name: &str) -> Option<Arc<Tool>> {
        let support = *self.support.lock().unwrap();
        (self.is_complete() && NAMES.contains(&name)).then(|| {
            Arc::new(Tool {
                task_support: support,
                ..Tool::clone(&tool(name))
            })
        })
    }

    fn client(&self, _name: &str) -> Arc<dyn ClientShare> {
        Arc::new(StubClient {
            script: self.script.clone(),
            open: self.open.clone(),
        })
    }

    fn instructions(&self, _rights: &CallerRights) -> String {
        "Be brief.".to_owned()
    }

    fn spawn(&self, work: BoxFuture<'static, ()>) {
        tokio::spawn(work);
    }
}
