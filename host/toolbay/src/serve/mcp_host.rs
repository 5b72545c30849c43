//! Implements the protocol's interface to its host for the service: lists, progress of loading, and
//! calls.

use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use arc_swap::ArcSwap;
use futures_util::future::BoxFuture;
use serde_json::Value;
use toolbay_catalog::{Approver, Snapshot};
use toolbay_mcp::{
    CallHost, CallerRights, CallerView, ClientShare, ListItems, ListPage, ListSelection,
    ListSource, LoadProgress, LoadedPart, McpServer, McpServerParts, OperatorAnswer, PageQuery,
    PendingQuestions, RequestStates, ResourceUpdates,
};
use toolbay_model::{QuestionSubject, Skill, Tool};

use crate::approval::ruling::{self, ApprovalSubject};
use crate::call::approval_wait::record_withdrawn;
use crate::call::client_share::ServerShare;
use crate::call::service::CallService;
use crate::config::Config;
use crate::serve::instructions;
use crate::serve::list_digests::ViewDigests;
use crate::serve::metrics_collector::render_metrics;
use crate::serve::policy_resource;

/// The service, as the protocol accesses it.
pub(crate) struct ServerHost {
    service: CallService,
    /// Digests of the lists, per rights of callers.
    views: ViewDigests,
    /// The operator's instructions for models. Replaced when the configuration changes.
    instructions: ArcSwap<String>,
    /// Maximum time that `tools/list` waits for plugins that are still loading at startup.
    startup_wait: Duration,
}

/// State of the protocol that other parts of the server use, too.
pub(crate) struct ProtocolState {
    /// Subscriptions to changes of resources.
    pub(crate) updates: ResourceUpdates,
    /// Sealing of the states of calls that wait for answers.
    pub(crate) request_states: RequestStates,
}

impl ServerHost {
    /// Creates the host of a service.
    pub(crate) fn new(service: CallService, config: &Config) -> Self {
        Self {
            service,
            views: ViewDigests::default(),
            instructions: ArcSwap::from_pointee(config.server.instructions.clone()),
            startup_wait: config.server.startup_wait,
        }
    }

    /// Creates the protocol's side of the server.
    pub(crate) fn create_protocol(
        self: &Arc<Self>,
        state: ProtocolState,
        config: &Config,
    ) -> Arc<McpServer> {
        let ProtocolState {
            updates,
            request_states,
        } = state;
        let service = self.service.clone();
        let parts = McpServerParts {
            options: config.protocol_options(),
            updates,
            request_states,
            portable_schema: toolbay_schema::portable_schema,
            metrics: Some(Box::new(move |form, traffic| {
                let service = service.clone();
                Box::pin(async move {
                    tokio::task::spawn_blocking(move || render_metrics(&service, form, traffic))
                        .await
                        .ok()
                        .flatten()
                })
            })),
        };
        McpServer::new(Arc::clone(self), parts)
    }

    /// Replaces the operator's instructions for models.
    pub(crate) fn set_instructions(&self, text: String) {
        self.instructions.store(Arc::new(text));
    }

    fn snapshot(&self) -> Arc<Snapshot> {
        self.service.catalog().snapshot()
    }
}

impl ListSource for ServerHost {
    fn page(&self, query: &PageQuery<'_>) -> Option<ListPage> {
        let PageQuery {
            list,
            after,
            limit,
            rights,
        } = *query;
        let snapshot = self.snapshot();
        let (items, more) = match list {
            ListSelection::Tools => {
                let (items, more) = snapshot.page_of_tools(after, limit, |name| rights.allow(name));
                (ListItems::Tools(items), more)
            }
            ListSelection::Prompts => {
                let (items, more) =
                    snapshot.page_of_prompts(after, limit, |name| rights.allow(name));
                (ListItems::Prompts(items), more)
            }
            ListSelection::Resources => {
                let (items, more) =
                    snapshot.page_of_resources(after, limit, |uri| rights.allow(uri));
                (ListItems::Resources(items), more)
            }
            ListSelection::Templates => {
                let (items, more) =
                    snapshot.page_of_templates(after, limit, |uri| rights.allow(uri));
                (ListItems::Resources(items), more)
            }
            ListSelection::Skills => {
                let (items, more) = snapshot.page_of_skills(after, limit, |uri| rights.allow(uri));
                (ListItems::Skills(items), more)
            }
            ListSelection::Folder(uri) => {
                let (items, more) =
                    snapshot.page_of_folder(uri, after, limit, |uri| rights.allow(uri))?;
                (ListItems::Resources(items), more)
            }
        };
        Some(ListPage {
            items,
            has_more: more,
            view: self.views.digests(&snapshot, rights),
        })
    }

    fn tool(&self, name: &str) -> Option<Arc<Tool>> {
        self.snapshot()
            .tools
            .get(name)
            .map(|offer| Arc::clone(&offer.tool))
    }

    fn skill(&self, uri: &str, rights: &CallerRights) -> Option<Arc<Skill>> {
        self.snapshot().skill(uri, |uri| rights.allow(uri))
    }

    fn listed_uri(&self, uri: &str) -> Option<String> {
        self.snapshot().find_spelling(uri)
    }

    fn instructions(&self, rights: &CallerRights) -> String {
        instructions::render(&self.snapshot(), rights, &self.instructions.load())
    }

    fn policy(&self, rights: &CallerRights) -> Option<Value> {
        Some(policy_resource::render(&self.snapshot(), rights))
    }

    fn view(&self, rights: &CallerRights) -> CallerView {
        self.views.digests(&self.snapshot(), rights)
    }

    fn wait_for_change(&self, listing: u64) -> BoxFuture<'_, Option<u64>> {
        Box::pin(async move {
            let snapshot = self
                .service
                .catalog()
                .wait_for(|snapshot| snapshot.list_generation > listing)
                .await;
            Some(snapshot.list_generation).filter(|now| *now > listing)
        })
    }
}

impl LoadProgress for ServerHost {
    fn is_complete(&self) -> bool {
        self.snapshot().complete
    }

    fn wait_for<'a>(&'a self, part: LoadedPart<'a>) -> BoxFuture<'a, ()> {
        let lookup = self.service.lookup();
        match part {
            LoadedPart::Everything => Box::pin(lookup.wait_until_complete(self.startup_wait)),
            LoadedPart::Instructions => Box::pin(async {
                lookup
                    .catalog()
                    .wait_for(|snapshot| snapshot.complete || snapshot.first_loaded)
                    .await;
            }),
            LoadedPart::Tool(tool) => Box::pin(lookup.wait_for_tool(tool)),
        }
    }
}

impl CallHost for ServerHost {
    fn client(&self, name: &str) -> Arc<dyn ClientShare> {
        Arc::new(ServerShare::new(self.service.clone(), name))
    }

    fn operator_answer(&self, put: PendingQuestions<'_>) -> Option<OperatorAnswer> {
        let question_subject: QuestionSubject = *put.journal.subject.clone()?;
        let question = ruling::question_text(put.questions)?;
        let [until, asked_at] =
            [put.journal.until, put.journal.began].map(|at| UNIX_EPOCH + Duration::from_millis(at));
        let caller = put.caller.to_owned();
        let plugin = question_subject.plugin.clone();
        let tool = question_subject.tool.clone();
        let subject = ApprovalSubject {
            caller,
            plugin,
            tool,
            question,
            covered_calls: question_subject.covered_calls,
            is_for_operator: question_subject.is_for_operator,
            until,
            edition: put.journal.edition,
        };
        let operator_answer = self
            .service
            .waiting_approvals()
            .and_then(|waiting| waiting.register(subject))
            .unwrap_or_default();
        let service = self.service.clone();
        let caller = put.caller.to_owned();
        Some(operator_answer.on_withdrawn(move || {
            record_withdrawn(
                service.catalog(),
                service.admission(),
                service.observers(),
                &caller,
                &question_subject,
                asked_at,
            );
        }))
    }

    fn may_ask_operator(&self, tool: &str) -> bool {
        let snapshot = self.snapshot();
        match snapshot.tools.get(tool) {
            Some(offer) => offer.approver() == Approver::Console,
            // The tool may still be loading.
            None => !snapshot.complete,
        }
    }

    fn spawn(&self, work: BoxFuture<'static, ()>) {
        self.service.sandbox().dispatch(work);
    }
}
