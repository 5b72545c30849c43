//! A host without guests: its tools, prompts and resources respond at once.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

use bytesize::ByteSize;
use futures_util::future::BoxFuture;
use serde_json::{Map, Value, json};
use toolbay_mcp::{
    CallHost, CallerRights, CallerView, ClientCall, ClientShare, ListItems, ListPage,
    ListSelection, ListSource, LoadProgress, LoadedPart, McpServer, McpServerParts, PageQuery,
    ProtocolOptions, QueuePlace, RequestStates, ResourceUpdates, ServerInfo, TaskOptions,
};
use toolbay_model::{
    CallError, CallFailure, CallObserver, CallRejection, CallReply, CallRequest, CallResult,
    CallUsage, CompletionResult, ContentBlock, ContentBody, EffectHints, EmbeddedResource,
    ListedResource, LogLevel, ProgressUpdate, Prompt, PromptArgument, PromptMessage, PromptOutput,
    RejectionReason, ResourceContent, ResourceItem, Skill, TaskSupport, Tool, ToolOutput,
};

/// Number of items per page.
const PAGE: usize = 2;

/// The stub host.
struct Stub {
    tools: BTreeMap<String, Arc<Tool>>,
    prompts: BTreeMap<String, Arc<Prompt>>,
    resources: BTreeMap<String, Arc<ListedResource>>,
    skills: BTreeMap<String, Arc<Skill>>,
}

/// Creates a server whose host has tools and prompts of these names, and resources and skills whose
/// URIs contain them. A call of `b` is rejected, a call of `c` crashes, and any other call succeeds.
pub(crate) fn server(names: impl IntoIterator<Item = String>, request: ByteSize) -> Arc<McpServer> {
    let options = ProtocolOptions {
        page_size: PAGE,
        includes_usage: true,
        is_traced: false,
        max_message_size: request,
        max_total_request_size: ByteSize::mib(256),
        grace_period: Duration::from_mins(1),
        tasks: TaskOptions::default(),
        server: ServerInfo::default(),
        schemas: toolbay_model::SchemaForm::default(),
    };
    let names: Vec<String> = names.into_iter().collect();
    let host = Stub {
        tools: all(&names, tool),
        prompts: all(&names, prompt),
        resources: all(&names, resource),
        skills: all(&names, skill),
    };
    let parts = McpServerParts {
        options,
        updates: ResourceUpdates::default(),
        request_states: RequestStates::in_memory(&[7; 32])
            .unwrap_or_else(|error| unreachable!("any key is good: {error}")),
        portable_schema: Value::clone,
        metrics: None,
    };
    McpServer::new(Arc::new(host), parts)
}

/// Creates one item for each name.
fn all<T>(names: &[String], make: fn(String) -> T) -> BTreeMap<String, Arc<T>> {
    names
        .iter()
        .map(|name| (name.clone(), Arc::new(make(name.clone()))))
        .collect()
}

/// Returns the items of a page, and whether more follow.
fn page<T>(query: &PageQuery<'_>, items: &BTreeMap<String, Arc<T>>) -> (Vec<Arc<T>>, bool) {
    let start = query.after.map_or(Bound::Unbounded, Bound::Excluded);
    let items = items
        .range::<str, _>((start, Bound::Unbounded))
        .filter(|(name, _)| query.rights.allow(name));
    let mut items = items.map(|(_, item)| Arc::clone(item));
    let page = items.by_ref().take(query.limit).collect();
    (page, items.next().is_some())
}

fn prompt(name: String) -> Prompt {
    let argument = PromptArgument {
        name: "x".to_owned(),
        title: None,
        description: None,
        required: true,
    };
    Prompt {
        name,
        title: Some("A title".to_owned()),
        description: Some("Asks for it.".to_owned()),
        arguments: [argument].into(),
        icons: [].into(),
        meta: None,
    }
}

fn resource(uri: String) -> ListedResource {
    ListedResource {
        uri,
        name: "it".to_owned(),
        title: None,
        description: Some("Contains it.".to_owned()),
        mime_type: Some("text/plain".to_owned()),
        size: Some(2),
        audience: vec!["user"],
        priority: Some(0.5),
        last_modified: None,
        icons: [].into(),
        meta: None,
    }
}

fn skill(uri: String) -> Skill {
    let entry = json!({"uri": uri, "frontmatter": {"name": "it", "description": "Does it."}, "resources": []}).into();
    Skill {
        uri,
        description: "Does it.".to_owned(),
        entry,
    }
}

fn tool(name: String) -> Tool {
    Tool {
        name,
        title: Some("A title".to_owned()),
        description: Some("Does it.".to_owned()),
        input_schema: json!({"type": "object"}).into(),
        output_schema: Some(json!({"type": "object"}).into()),
        annotations: Some(EffectHints {
            read_only: Some(true),
            ..EffectHints::default()
        }),
        icons: [].into(),
        meta: None,
        headers: Vec::new(),
        task_support: TaskSupport::Optional,
    }
}

impl ListSource for Stub {
    fn page(&self, query: &PageQuery<'_>) -> Option<ListPage> {
        let (items, more) = match query.list {
            ListSelection::Tools => {
                let (items, more) = page(query, &self.tools);
                (ListItems::Tools(items), more)
            }
            ListSelection::Prompts => {
                let (items, more) = page(query, &self.prompts);
                (ListItems::Prompts(items), more)
            }
            ListSelection::Skills => {
                let (items, more) = page(query, &self.skills);
                (ListItems::Skills(items), more)
            }
            ListSelection::Folder(uri) if !self.resources.contains_key(uri) => return None,
            ListSelection::Resources | ListSelection::Templates | ListSelection::Folder(_) => {
                let (items, more) = page(query, &self.resources);
                (ListItems::Resources(items), more)
            }
        };
        Some(ListPage {
            items,
            has_more: more,
            view: self.view(query.rights),
        })
    }

    fn tool(&self, name: &str) -> Option<Arc<Tool>> {
        self.tools.get(name).map(Arc::clone)
    }

    fn skill(&self, uri: &str, rights: &CallerRights) -> Option<Arc<Skill>> {
        self.skills
            .get(uri)
            .filter(|_| rights.allow(uri))
            .map(Arc::clone)
    }

    fn instructions(&self, _rights: &CallerRights) -> String {
        "Ask for a.".to_owned()
    }

    fn view(&self, _rights: &CallerRights) -> CallerView {
        CallerView {
            version: 1,
            tools: 1,
            prompts: 1,
            resources: 1,
        }
    }

    fn wait_for_change(&self, _listing: u64) -> BoxFuture<'_, Option<u64>> {
        Box::pin(std::future::pending())
    }
}

impl LoadProgress for Stub {
    fn is_complete(&self) -> bool {
        true
    }

    fn wait_for<'a>(&'a self, _part: LoadedPart<'a>) -> BoxFuture<'a, ()> {
        Box::pin(std::future::ready(()))
    }
}

impl CallHost for Stub {
    fn client(&self, _name: &str) -> Arc<dyn ClientShare> {
        Arc::new(Everybody {
            names: self.tools.keys().cloned().collect(),
            uris: self.resources.keys().cloned().collect(),
        })
    }

    fn spawn(&self, work: BoxFuture<'static, ()>) {
        tokio::spawn(work);
    }
}

/// The only client. It has access to all URIs and an unlimited queue.
struct Everybody {
    names: Arc<[String]>,
    uris: BTreeSet<String>,
}

impl ClientShare for Everybody {
    fn existing_uris(&self, uris: Vec<String>) -> BoxFuture<'_, Vec<String>> {
        Box::pin(async move {
            uris.into_iter()
                .filter(|uri| self.uris.contains(uri))
                .collect()
        })
    }

    fn enqueue(&self, _target: &str) -> Result<Box<dyn QueuePlace>, CallRejection> {
        Ok(Box::new(Free {
            names: Arc::clone(&self.names),
        }))
    }
}

/// A queue place that is available at once.
struct Free {
    names: Arc<[String]>,
}

impl QueuePlace for Free {
    fn call(
        &mut self,
        call: ClientCall,
        observer: Arc<dyn CallObserver>,
    ) -> BoxFuture<'_, CallResult> {
        let kind = call.request.kind();
        let target = call.request.target().to_owned();
        let result = if !call.is_permitted || !self.names.contains(&target) {
            Err(CallFailure::unknown(kind, target))
        } else {
            observer.log(LogLevel::Warning, "Soon.");
            observer.progress(ProgressUpdate {
                progress: 1.0,
                total: None,
                message: Some("Halfway.".to_owned()),
            });
            observer.resource_updated(&target);
            match target.as_str() {
                "b" => Err(CallFailure::Rejected(CallRejection {
                    reason: RejectionReason::Disabled,
                    retry_after: Some(Duration::from_millis(7)),
                })),
                "c" => Err(CallFailure::Call(CallError::Trap {
                    cause: "unreachable".to_owned(),
                    stderr: None,
                })),
                _ => Ok(reply(call.request)),
            }
        };
        Box::pin(std::future::ready(CallResult {
            result,
            usage: Some(CallUsage::default()),
        }))
    }
}

/// Returns a reply that repeats the request.
fn reply(request: CallRequest) -> CallReply {
    match request {
        CallRequest::Tool { arguments, .. } => CallReply::Tool(output(arguments)),
        CallRequest::Prompt { arguments, .. } => {
            let message = |text| PromptMessage {
                role: "user",
                content: text_block(text),
            };
            let messages = arguments.into_values().map(message).collect();
            CallReply::Prompt(PromptOutput {
                description: None,
                messages,
                meta: Map::new(),
            })
        }
        CallRequest::Resource { uri } => {
            let content = ResourceContent::Text(uri.clone());
            let resource = EmbeddedResource {
                uri,
                mime_type: None,
                content,
            };
            CallReply::Resource(vec![ResourceItem {
                resource,
                meta: Map::new(),
            }])
        }
        CallRequest::Completion(request) => CallReply::Completion(CompletionResult {
            values: vec![request.value],
            total: None,
            has_more: false,
        }),
    }
}

fn text_block(text: String) -> ContentBlock {
    ContentBlock {
        body: ContentBody::Text(text),
        audience: Vec::new(),
        priority: None,
        last_modified: None,
    }
}

/// Returns the arguments, as text and as structured content.
fn output(arguments: Map<String, Value>) -> ToolOutput {
    let structured = Value::Object(arguments);
    let content = vec![text_block(structured.to_string())];
    ToolOutput {
        content,
        structured: Some(structured),
        meta: Map::new(),
    }
}
