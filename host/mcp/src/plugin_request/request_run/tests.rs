//! Tests of `request_run`.

use parking_lot::Mutex;

use futures_util::future::BoxFuture;
use serde_json::value::to_raw_value;
use toolbay_model::{
    CallObserver, CallRejection, CallReply, CallResult, ContentBlock, ContentBody, ToolOutput,
};

use super::*;
use crate::exchange::outbox;
use crate::host::interface::{ClientCall, ClientShare, QueuePlace};
use crate::protocol::jsonrpc::RequestId;
use crate::protocol::revision::Revision;
use crate::session::client_session::{SessionChannel, ShutdownTokens};
use crate::testing::stub_host::StubServer;

/// The events of the only place, in order.
type Steps = Arc<Mutex<Vec<&'static str>>>;

struct RecordingShare(Steps);

struct RecordingPlace(Steps);

impl ClientShare for RecordingShare {
    fn existing_uris(&self, _uris: Vec<String>) -> BoxFuture<'_, Vec<String>> {
        Box::pin(std::future::ready(Vec::new()))
    }

    fn enqueue(&self, _tool: &str) -> Result<Box<dyn QueuePlace>, CallRejection> {
        Ok(Box::new(RecordingPlace(Arc::clone(&self.0))))
    }
}

impl QueuePlace for RecordingPlace {
    fn call(
        &mut self,
        _call: ClientCall,
        _observer: Arc<dyn CallObserver>,
    ) -> BoxFuture<'_, CallResult> {
        self.0.lock().push("called");
        let text = ContentBlock {
            body: ContentBody::Text("x".repeat(1 << 20)),
            audience: Vec::new(),
            priority: None,
            last_modified: None,
        };
        let output = ToolOutput {
            content: vec![text],
            ..ToolOutput::default()
        };
        Box::pin(std::future::ready(CallResult {
            result: Ok(CallReply::Tool(output)),
            usage: None,
        }))
    }

    fn response_encoded(&mut self, _error: Option<i32>) {
        self.0.lock().push("encoded");
    }
}

impl Drop for RecordingPlace {
    fn drop(&mut self) {
        self.0.lock().push("released");
    }
}

#[tokio::test]
async fn a_call_counts_until_its_response_is_encoded_and_has_its_place_until_that_is_sent() {
    let host = StubServer::new();
    let steps = Steps::default();
    let caller = Arc::new(Caller::local(Arc::new(RecordingShare(Arc::clone(&steps)))));
    let intake = host.options().request_quota(true);
    let session = Session::new(
        host.server(),
        Arc::clone(&caller),
        intake,
        SessionChannel::Shared,
        ShutdownTokens::default(),
    );
    let params = to_raw_value(&serde_json::json!({"name": "a"})).unwrap();
    let request = Request {
        id: RequestId::Number(1.into()),
        method: "tools/call".into(),
        params: Some(&params),
    };
    let revision = Revision::NEWEST_SESSION;
    let rules = RequestContext {
        revision,
        capabilities: crate::protocol::capabilities::CapabilityNames::default(),
        min_log_level: None,
        trace: None,
    };
    let calling = begin_call(
        &session,
        &caller,
        &request,
        crate::dispatch::methods::call_tool::read,
        rules,
    )
    .unwrap();
    let (outbox, messages) = outbox::channel();
    let ended = run_call(calling, &session, &outbox).await;
    assert!(ended.bytes() > 1 << 20, "the response is there");
    assert_eq!(*steps.lock(), ["called", "encoded"]);
    ended.send(&session, &outbox).await;
    assert_eq!(*steps.lock(), ["called", "encoded", "released"]);
    assert!(messages.recv().await.is_some());
}
