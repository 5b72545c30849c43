//! A host for tests: three items in each list, which respond at once, without guests or a
//! directory.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use bytesize::ByteSize;
use futures_util::future::BoxFuture;
use serde_json::{Map, json};
use tokio::sync::watch;
use toolbay_model::{
    CallFailure, CallObserver, CallRejection, CallReply, CallRequest, CallResult,
    CompletionReference, CompletionRequest, CompletionResult, ContentBlock, ContentBody,
    EffectHints, EmbeddedResource, Icon, ListedResource, ProgressUpdate, Prompt, PromptArgument,
    PromptMessage, PromptOutput, QuestionRound, ResourceContent, ResourceItem, Skill, TargetKind,
    TaskSupport, Tool, ToolOutput,
};

use crate::exchange::resource_subscriptions::ResourceUpdates;
use crate::host::interface::{
    ClientCall, ClientShare, Host, ListPage, ProtocolOptions, QueuePlace, ServerInfo,
};
use crate::host::operator_answers::{OperatorAnswer, PendingQuestions};
use crate::host::request_state::RequestStates;
use crate::lists::access_rights::CallerRights;
use crate::lists::list_state::CallerView;
use crate::lists::page_cache::PageCache;
use crate::tasks::{TaskOptions, TaskTable};

/// The argument that makes a tool wait until [`Stub::release`].
pub(crate) const WAITS: &str = "wait";

/// The names of the tools and of the prompts.
const NAMES: [&str; 3] = ["a", "b", "c"];

/// The URIs of the resources.
pub(crate) const URIS: [&str; 3] = ["test://a", "test://b", "test://c/d"];

/// The templates. Each matches the resources that start with its prefix.
const TEMPLATES: [&str; 3] = ["memo://1/{id}", "memo://2/{id}", "memo://3/{id}"];

/// The directory of the skills. Each skill has only its own file.
pub(crate) const FOLDER: &str = "skill://x";

/// The URIs of the skills.
pub(crate) const SKILLS: [&str; 3] = [
    "skill://x/a/SKILL.md",
    "skill://x/b/SKILL.md",
    "skill://x/c/SKILL.md",
];

/// The prompt that asks its caller a question.
pub(crate) const ASKING: &str = "c";

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

/// The behaviour of a test's plugin; `None` falls back to the default reply.
type Script = dyn Fn(&ClientCall) -> Option<Result<CallReply, CallFailure>> + Send + Sync;

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

/// Returns a prompt with every member that a prompt can have.
pub(crate) fn prompt(name: &str) -> Arc<Prompt> {
    let argument = |name: &str, required| PromptArgument {
        name: name.to_owned(),
        title: Some("An argument".into()),
        description: Some("What it means.".into()),
        required,
    };
    Arc::new(Prompt {
        name: name.to_owned(),
        title: Some("A title".into()),
        description: Some("Asks for it.".into()),
        arguments: [argument("x", true), argument("y", false)].into(),
        icons: [Icon {
            src: "data:,".into(),
            mime_type: None,
            sizes: vec![],
            theme: None,
        }]
        .into(),
        meta: Some(json!({"a": 1}).into()),
    })
}

/// Returns a resource or a template with every member that it can have.
pub(crate) fn listed(uri: &str) -> Arc<ListedResource> {
    Arc::new(ListedResource {
        uri: uri.to_owned(),
        name: "it".into(),
        title: Some("A title".into()),
        description: Some("Contains it.".into()),
        mime_type: Some("text/plain".into()),
        size: Some(3),
        audience: vec!["user"],
        priority: Some(0.5),
        last_modified: Some("2026-01-02".into()),
        icons: [Icon {
            src: "data:,".into(),
            mime_type: None,
            sizes: vec![],
            theme: None,
        }]
        .into(),
        meta: Some(json!({"a": 1}).into()),
    })
}

/// Returns a skill with one file.
fn skill(uri: &str) -> Arc<Skill> {
    let entry = json!({"uri": uri, "frontmatter": {}, "resources": []}).into();
    Arc::new(Skill {
        uri: uri.to_owned(),
        description: "Does it.".into(),
        entry,
    })
}

fn is_known(uri: &str) -> bool {
    URIS.contains(&uri)
        || TEMPLATES
            .iter()
            .any(|template| uri.starts_with(template.trim_end_matches("{id}")))
}

/// Returns a tool with every member that a tool can have.
pub(crate) fn tool(name: &str) -> Arc<Tool> {
    Arc::new(Tool {
        name: name.to_owned(),
        title: Some("A title".into()),
        description: Some("Does it.".into()),
        input_schema: json!({"type": "object"}).into(),
        output_schema: Some(json!({"type": "object"}).into()),
        annotations: Some(EffectHints {
            read_only: Some(true),
            ..EffectHints::default()
        }),
        icons: [Icon {
            src: "data:,".into(),
            mime_type: None,
            sizes: vec![],
            theme: None,
        }]
        .into(),
        meta: Some(json!({"a": 1}).into()),
        headers: Vec::new(),
        task_support: TaskSupport::Optional,
    })
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
        Arc::new(Everybody {
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

/// The only client.
struct Everybody {
    script: Option<Arc<Script>>,
    open: watch::Sender<bool>,
}

impl ClientShare for Everybody {
    fn existing_uris(&self, uris: Vec<String>) -> BoxFuture<'_, Vec<String>> {
        Box::pin(async move { uris.into_iter().filter(|uri| is_known(uri)).collect() })
    }

    fn enqueue(&self, _target: &str) -> Result<Box<dyn QueuePlace>, CallRejection> {
        Ok(Box::new(Free {
            script: self.script.clone(),
            open: self.open.clone(),
        }))
    }
}

/// A queue slot that is always free.
struct Free {
    script: Option<Arc<Script>>,
    open: watch::Sender<bool>,
}

impl QueuePlace for Free {
    fn call(
        &mut self,
        call: ClientCall,
        observer: Arc<dyn CallObserver>,
    ) -> BoxFuture<'_, CallResult> {
        observer.progress(ProgressUpdate {
            progress: 1.0,
            total: None,
            message: Some("halfway".into()),
        });
        if let CallRequest::Tool { arguments, .. } = &call.request
            && arguments.contains_key(WAITS)
        {
            let (mut open, script) = (self.open.subscribe(), self.script.clone());
            return Box::pin(async move {
                drop(open.wait_for(|open| *open).await);
                let result = script.and_then(|script| script(&call));
                CallResult {
                    result: result.unwrap_or_else(|| Ok(reply(&call.request))),
                    usage: None,
                }
            });
        }
        if let Some(result) = self.script.as_ref().and_then(|script| script(&call)) {
            return Box::pin(std::future::ready(CallResult {
                result,
                usage: None,
            }));
        }
        // Arguments are checked strictly.
        let unreadable = call.unreadable.as_deref().cloned();
        let violations: Vec<_> = unreadable
            .into_iter()
            .chain(call.corrected.clone())
            .collect();
        if !violations.is_empty() {
            let result = Err(CallFailure::InvalidArguments {
                violations,
                example: None,
            });
            return Box::pin(std::future::ready(CallResult {
                result,
                usage: None,
            }));
        }
        let (kind, target) = (call.request.kind(), call.request.target());
        let exists = match kind {
            TargetKind::Tool | TargetKind::Prompt => NAMES.contains(&target),
            TargetKind::Resource => is_known(target),
            TargetKind::Template => TEMPLATES.contains(&target),
        };
        let is_there = call.permitted && exists;
        let result = if is_there {
            Ok(reply(&call.request))
        } else {
            Err(CallFailure::Unknown(kind, target.to_owned()))
        };
        Box::pin(std::future::ready(CallResult {
            result,
            usage: None,
        }))
    }
}

fn reply(request: &CallRequest) -> CallReply {
    let text = |text: String| ContentBlock {
        body: ContentBody::Text(text),
        audience: vec![],
        priority: None,
        last_modified: None,
    };
    match request {
        CallRequest::Tool { .. } => CallReply::Tool(ToolOutput::default()),
        CallRequest::Prompt { name, .. } if name == ASKING => {
            CallReply::Questions(QuestionRound::default())
        }
        CallRequest::Prompt { arguments, .. } => {
            let content = text(format!("{arguments:?}"));
            let messages = vec![PromptMessage {
                role: "user",
                content,
            }];
            CallReply::Prompt(PromptOutput {
                description: Some("Filled in.".into()),
                messages,
                meta: Map::new(),
            })
        }
        CallRequest::Resource { uri } => {
            let item = |mime: &str, content| ResourceItem {
                resource: EmbeddedResource {
                    uri: uri.clone(),
                    mime_type: Some(mime.into()),
                    content,
                },
                meta: Map::from_iter([("a".to_owned(), 1.into())]),
            };
            let blob = ResourceContent::Blob(Bytes::from_static(b"abc"));
            CallReply::Resource(vec![
                item("text/plain", ResourceContent::Text("abc".into())),
                item("application/octet-stream", blob),
            ])
        }
        // Echo the parameters of the request.
        CallRequest::Completion(CompletionRequest {
            reference,
            argument,
            value,
            context,
        }) => {
            let of = match reference {
                CompletionReference::Prompt(_) => TargetKind::Prompt,
                CompletionReference::Resource(_) => TargetKind::Template,
            };
            let values = vec![format!("{of} {argument}={value} {context:?}")];
            CallReply::Completion(CompletionResult {
                values,
                total: Some(7),
                has_more: true,
            })
        }
    }
}
