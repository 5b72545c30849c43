//! Calls of the program that embeds a server. They count as calls of one client.

use std::sync::Arc;

use serde_json::{Map, Value};
use toolbay_mcp::{ClientCall, ClientShare};
use toolbay_model::{
    CallError, CallFailure, CallJournal, CallObserver, CallReply, CallRequest, CallResult,
    QuestionKind, QuestionKindSet,
};

use crate::approval::ruling;
use crate::call::client_share::ServerShare;
use crate::call::service::CallService;

/// Caller name of these calls, for the log.
const EMBEDDER_NAME: &str = "embedder";

/// The embedder as a client of the server.
pub(super) struct EmbedderCalls {
    service: CallService,
    share: Arc<dyn ClientShare>,
}

impl EmbedderCalls {
    /// Creates the share of the embedder.
    pub(super) fn new(service: &CallService) -> Self {
        Self {
            service: service.clone(),
            share: Arc::new(ServerShare::embedder(service.clone(), EMBEDDER_NAME)),
        }
    }

    /// Calls a tool for a caller that cannot answer questions.
    pub(super) async fn call(
        &self,
        tool: String,
        arguments: Map<String, Value>,
        observer: Arc<dyn CallObserver>,
    ) -> CallResult {
        self.run_call(
            tool,
            arguments,
            observer,
            QuestionKindSet::default(),
            CallJournal::default(),
        )
        .await
    }

    /// Calls a tool for a caller that can ask a person whether the call is allowed.
    pub(super) async fn call_allowed(
        &self,
        tool: String,
        arguments: Map<String, Value>,
        observer: Arc<dyn CallObserver>,
        allow: impl AsyncFnOnce(&str) -> bool,
    ) -> CallResult {
        let needs_approval = self
            .service
            .catalog()
            .snapshot()
            .tools
            .get(&tool)
            .is_some_and(|offer| offer.approval_policy().is_some());
        let answerable = if needs_approval {
            QuestionKindSet::default().with(QuestionKind::Form)
        } else {
            QuestionKindSet::default()
        };
        let name = tool.clone();
        let first_arguments = arguments.clone();
        let mut answer = self
            .run_call(
                name,
                first_arguments,
                Arc::clone(&observer),
                answerable,
                CallJournal::default(),
            )
            .await;
        let Ok(CallReply::Questions(round)) = &mut answer.result else {
            return answer;
        };
        let Some(question) = ruling::question_text(&round.questions) else {
            // A question of the plugin itself, because its grant changed in the meantime. These are
            // not supported.
            let kinds: Vec<_> = round
                .questions
                .iter()
                .map(|question| question.kind)
                .collect();
            let failure = CallFailure::MissingCapabilities(QuestionKind::capabilities(&kinds));
            return CallResult {
                result: Err(failure),
                ..answer
            };
        };
        let mut journal = std::mem::take(&mut round.journal);
        journal.answers.insert(
            ruling::APPROVAL_KEY.to_owned(),
            ruling::answer_json(allow(&question).await),
        );
        self.run_call(
            tool,
            arguments,
            observer,
            QuestionKindSet::default(),
            journal,
        )
        .await
    }

    async fn run_call(
        &self,
        tool: String,
        arguments: Map<String, Value>,
        observer: Arc<dyn CallObserver>,
        answerable: QuestionKindSet,
        journal: CallJournal,
    ) -> CallResult {
        let client = Arc::clone(&self.share);
        let call = ClientCall::without_client(
            CallRequest::Tool {
                name: tool,
                arguments,
            },
            answerable,
            journal,
        );
        let running = self.service.sandbox().spawn(async move {
            match client.enqueue(call.request.target()) {
                Ok(mut place) => place.call(call, observer).await,
                Err(rejection) => CallResult {
                    result: Err(CallFailure::Rejected(rejection)),
                    usage: None,
                },
            }
        });
        running.await.unwrap_or_else(|error| {
            let error = CallError::Internal(format!("the call ended unexpectedly: {error}"));
            CallResult {
                result: Err(CallFailure::Call(error)),
                usage: None,
            }
        })
    }
}
