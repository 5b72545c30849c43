//! Calls of the program that embeds a server. They count as calls of one client.

use std::sync::Arc;

use serde_json::{Map, Value};
use toolbay_mcp::{ClientCall, ClientShare};
use toolbay_model::{
    CallError, CallFailure, CallJournal, CallObserver, CallReply, CallRequest, CallResult,
    Question, QuestionKind, QuestionKindSet,
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
            vec![QuestionKind::Form]
        } else {
            Vec::new()
        };
        let mut answers = ApprovalOnly(Some(allow));
        let answered = self
            .call_answered(tool, arguments, observer, answerable, &mut answers)
            .await;
        answered.unwrap_or_else(|error| {
            failed_call(CallFailure::Call(CallError::Internal(error.to_string())))
        })
    }

    /// Calls a tool for a caller that answers questions of these kinds.
    ///
    /// # Errors
    ///
    /// The error of `answers`, which ends the call.
    pub(super) async fn call_answered(
        &self,
        tool: String,
        arguments: Map<String, Value>,
        observer: Arc<dyn CallObserver>,
        mut answerable: Vec<QuestionKind>,
        answers: &mut impl CallAnswers,
    ) -> anyhow::Result<CallResult> {
        let mut journal = CallJournal::default();
        // Bounded by `limits.ask_rounds`, and by the rounds of an approval.
        loop {
            let kinds = answerable
                .iter()
                .fold(QuestionKindSet::default(), |set, kind| set.with(*kind));
            let answer = self
                .run_call(
                    tool.clone(),
                    arguments.clone(),
                    Arc::clone(&observer),
                    kinds,
                    journal,
                )
                .await;
            let round = match answer.result {
                Ok(CallReply::Questions(round)) => round,
                result => return Ok(CallResult { result, ..answer }),
            };
            answers.begin_next_run();
            journal = round.journal;
            if let Some(question) = ruling::question_text(&round.questions) {
                let answer = ruling::answer_json(answers.allow(&question).await);
                journal
                    .answers
                    .insert(ruling::APPROVAL_KEY.to_owned(), answer);
                // The program that embeds a server is its operator.
                if journal.is_for_operator() {
                    journal.operator = Some(EMBEDDER_NAME.to_owned());
                }
                continue;
            }
            for question in round.questions {
                if let Some(answer) = answers.answer(&question).await? {
                    journal.answers.insert(question.key, answer);
                } else {
                    // In the next run, the question has the outcome that it has with a client that
                    // does not support it.
                    answerable.retain(|kind| *kind != question.kind);
                }
            }
        }
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
                Err(rejection) => failed_call(CallFailure::Rejected(rejection)),
            }
        });
        running.await.unwrap_or_else(|error| {
            let error = CallError::Internal(format!("the call ended unexpectedly: {error}"));
            failed_call(CallFailure::Call(error))
        })
    }
}

/// The answers of the caller of a tool.
pub(crate) trait CallAnswers {
    /// Asks a person whether the call is allowed, which the operator requires.
    async fn allow(&mut self, question: &str) -> bool;

    /// Returns the answer to a question of the plugin, in the form in which a client sends it.
    /// `None` if the caller cannot answer it.
    ///
    /// # Errors
    ///
    /// The call cannot continue.
    async fn answer(&mut self, question: &Question) -> anyhow::Result<Option<String>>;

    /// Reports that the plugin runs again after the answers.
    fn begin_next_run(&mut self) {}
}

/// A caller that can only ask a person whether the call is allowed.
struct ApprovalOnly<F>(Option<F>);

impl<F: AsyncFnOnce(&str) -> bool> CallAnswers for ApprovalOnly<F> {
    async fn allow(&mut self, question: &str) -> bool {
        match self.0.take() {
            Some(allow) => allow(question).await,
            None => false,
        }
    }

    async fn answer(&mut self, _question: &Question) -> anyhow::Result<Option<String>> {
        Ok(None)
    }
}

fn failed_call(failure: CallFailure) -> CallResult {
    CallResult {
        result: Err(failure),
        usage: None,
    }
}
