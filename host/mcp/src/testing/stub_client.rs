//! The client of the stub host, and the results of its calls.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use serde_json::Map;
use tokio::sync::watch;
use toolbay_model::{
    CallFailure, CallObserver, CallRejection, CallReply, CallRequest, CallResult,
    CompletionReference, CompletionRequest, CompletionResult, ContentBlock, ContentBody,
    EmbeddedResource, ProgressUpdate, PromptMessage, PromptOutput, QuestionRound, ResourceContent,
    ResourceItem, TargetKind, ToolOutput,
};

use crate::host::interface::{ClientCall, ClientShare, QueuePlace};
use crate::testing::stub_items::{ASKING, NAMES, TEMPLATES, is_known};
/// The argument that makes a tool wait until [`Stub::release`](super::stub_host::Stub::release).
pub(crate) const WAITS: &str = "wait";

/// The behaviour of a test's plugin; `None` falls back to the default reply.
pub(super) type Script =
    dyn Fn(&ClientCall) -> Option<Result<CallReply, CallFailure>> + Send + Sync;

/// The only client.
pub(super) struct StubClient {
    pub(super) script: Option<Arc<Script>>,
    /// True if waiting tools continue.
    pub(super) is_released: watch::Sender<bool>,
}

impl ClientShare for StubClient {
    fn existing_uris(&self, uris: Vec<String>) -> BoxFuture<'_, Vec<String>> {
        Box::pin(async move { uris.into_iter().filter(|uri| is_known(uri)).collect() })
    }

    fn enqueue(&self, _target: &str) -> Result<Box<dyn QueuePlace>, CallRejection> {
        Ok(Box::new(StubQueuePlace {
            script: self.script.clone(),
            is_released: self.is_released.clone(),
        }))
    }
}

/// A queue slot that is always free.
struct StubQueuePlace {
    script: Option<Arc<Script>>,
    is_released: watch::Sender<bool>,
}

impl QueuePlace for StubQueuePlace {
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
            let mut open = self.is_released.subscribe();
            let script = self.script.clone();
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
        let kind = call.request.kind();
        let target = call.request.target();
        let exists = match kind {
            TargetKind::Tool | TargetKind::Prompt => NAMES.contains(&target),
            TargetKind::Resource => is_known(target),
            TargetKind::Template => TEMPLATES.contains(&target),
        };
        let is_there = call.is_permitted && exists;
        let result = if is_there {
            Ok(reply(&call.request))
        } else {
            Err(CallFailure::unknown(kind, target))
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
