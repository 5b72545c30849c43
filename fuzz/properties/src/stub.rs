//! A host without guests: its tools respond at once.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

use bytesize::ByteSize;
use futures_util::future::BoxFuture;
use serde_json::{Map, Value, json};
use toolbay_mcp::{Call, Client, Host, Listings, Options, Page, Place, Rights, View};
use toolbay_model::{
    Annotations, Answer, Body, CallError, Content, Failure, LogLevel, Observer, Output, Progress, Reason, Rejection,
    Tool, Usage,
};

/// Tools per page.
const PAGE: usize = 2;

/// The host.
pub(crate) struct Stub {
    options: Options,
    tools: BTreeMap<String, Arc<Tool>>,
    listings: Listings,
}

impl Stub {
    /// A host with these tools. A call of `b` is rejected, one of `c` crashes, and any other succeeds.
    pub(crate) fn new(names: impl IntoIterator<Item = String>, request: ByteSize) -> Self {
        let options = Options {
            page_size: PAGE,
            usage: true,
            request,
            requests: ByteSize::mib(256),
            grace: Duration::from_mins(1),
            instructions: "Ask for a.".to_owned(),
        };
        let tools = names.into_iter().map(|name| (name.clone(), Arc::new(tool(name)))).collect();
        Self { options, tools, listings: Listings::default() }
    }
}

fn tool(name: String) -> Tool {
    Tool {
        name,
        title: Some("A title".to_owned()),
        description: Some("Does it.".to_owned()),
        input_schema: json!({"type": "object"}).into(),
        output_schema: Some(json!({"type": "object"}).into()),
        annotations: Some(Annotations { read_only: Some(true), ..Annotations::default() }),
        icons: [].into(),
        meta: None,
        headers: Vec::new(),
    }
}

impl Host for Stub {
    fn options(&self) -> &Options {
        &self.options
    }

    fn changed(&self, _listing: u64) -> BoxFuture<'_, Option<u64>> {
        Box::pin(std::future::pending())
    }

    fn is_complete(&self) -> bool {
        true
    }

    fn complete(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    fn page(&self, after: Option<&str>, limit: usize, rights: &Rights) -> Page {
        let start = after.map_or(Bound::Unbounded, Bound::Excluded);
        let tools = self.tools.range::<str, _>((start, Bound::Unbounded)).filter(|(name, _)| rights.allow(name));
        let mut tools = tools.map(|(_, tool)| Arc::clone(tool));
        let page = tools.by_ref().take(limit).collect();
        Page { tools: page, more: tools.next().is_some(), view: self.view(rights) }
    }

    fn view(&self, _rights: &Rights) -> View {
        View { listing: 1, digest: 1 }
    }

    fn listings(&self) -> &Listings {
        &self.listings
    }

    fn tool(&self, name: &str) -> Option<Arc<Tool>> {
        self.tools.get(name).map(Arc::clone)
    }

    fn client(&self, _name: &str) -> Arc<dyn Client> {
        Arc::new(Everybody { names: self.tools.keys().cloned().collect() })
    }

    fn spawn(&self, work: BoxFuture<'static, ()>) {
        tokio::spawn(work);
    }
}

/// The only client: it has all tools and an unlimited queue.
struct Everybody {
    names: Arc<[String]>,
}

impl Client for Everybody {
    fn queue(&self, _tool: &str) -> Result<Box<dyn Place>, Rejection> {
        Ok(Box::new(Free { names: Arc::clone(&self.names) }))
    }
}

/// A place in a queue without waiting.
struct Free {
    names: Arc<[String]>,
}

impl Place for Free {
    fn call(&mut self, call: Call, observer: Arc<dyn Observer>) -> BoxFuture<'_, Answer> {
        let result = if !call.permitted || !self.names.contains(&call.tool) {
            Err(Failure::UnknownTool(call.tool))
        } else {
            observer.log(LogLevel::Warning, "Soon.");
            observer.progress(Progress { progress: 1.0, total: None, message: Some("Halfway.".to_owned()) });
            match call.tool.as_str() {
                "b" => Err(Failure::Rejected(Rejection {
                    reason: Reason::Disabled,
                    retry_after: Duration::from_millis(7),
                })),
                "c" => Err(Failure::Call(CallError::Trap { what: "unreachable".to_owned(), stderr: None })),
                _ => Ok(output(call.arguments)),
            }
        };
        Box::pin(std::future::ready(Answer { result, usage: Some(Usage::default()) }))
    }
}

/// Returns the arguments, as text and as structured content.
fn output(arguments: Map<String, Value>) -> Output {
    let structured = Value::Object(arguments);
    let body = Body::Text(structured.to_string());
    let content = vec![Content { body, audience: Vec::new(), priority: None, last_modified: None }];
    Output { content, structured: Some(structured), meta: Map::new() }
}
