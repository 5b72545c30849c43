//! Implements the protocol's [`Host`] for the service.

use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use arc_swap::ArcSwap;
use futures_util::future::BoxFuture;
use toolbay_catalog::Snapshot;
use toolbay_mcp::{
    CallerRights, CallerView, ClientShare, Host, ListPage, MetricsForm, OperatorAnswer, PageCache,
    PendingQuestions, ProtocolOptions, RequestStates, ResourceUpdates, TaskTable, TrafficSource,
    TransportTraffic,
};
use toolbay_model::{JsonText, ListedResource, Prompt, QuestionSubject, Skill, Tool};

use crate::approval::ruling::{self, ApprovalSubject};
use crate::call::approval_wait::record_withdrawn;
use crate::call::client_share::ServerShare;
use crate::call::service::CallService;
use crate::config::Config;
use crate::serve::instructions;
use crate::serve::list_digests::ViewDigests;
use crate::serve::metrics_collector::render_metrics;

/// What clients see of the server besides its calls: lists, instructions and the state of the
/// protocol.
pub(crate) struct ServerHost {
    service: CallService,
    options: ProtocolOptions,
    /// Digests of the lists, per rights of callers.
    views: ViewDigests,
    /// The operator's instructions for models. Replaced when the configuration changes.
    instructions: ArcSwap<String>,
    /// Maximum time that `tools/list` waits for plugins that are still loading at startup.
    startup_wait: Duration,
    listings: PageCache,
    protocol: ProtocolState,
    tasks: TaskTable,
}

/// State of the protocol layer that its host owns.
pub(crate) struct ProtocolState {
    /// Subscriptions to changes of resources.
    pub(crate) updates: ResourceUpdates,
    /// Sealing of the states of calls that wait for answers.
    pub(crate) request_states: RequestStates,
}

impl ServerHost {
    /// Creates the host of a service.
    pub(crate) fn new(service: CallService, protocol: ProtocolState, config: &Config) -> Self {
        Self {
            service,
            options: config.protocol_options(),
            views: ViewDigests::default(),
            instructions: ArcSwap::from_pointee(config.server.instructions.clone()),
            startup_wait: config.server.startup_wait,
            listings: PageCache::default(),
            protocol,
            tasks: TaskTable::new(config.tasks.options()),
        }
    }

    /// Replaces the operator's instructions for models.
    pub(crate) fn set_instructions(&self, text: String) {
        self.instructions.store(Arc::new(text));
    }

    fn snapshot(&self) -> Arc<Snapshot> {
        self.service.catalog().snapshot()
    }
}

impl Host for ServerHost {
    fn options(&self) -> &ProtocolOptions {
        &self.options
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

    fn is_complete(&self) -> bool {
        self.snapshot().complete
    }

    fn wait_for_instructions(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            self.service
                .catalog()
                .wait_for(|snapshot| snapshot.complete || snapshot.first_loaded)
                .await;
        })
    }

    fn wait_until_complete(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.service.lookup().wait_until_complete(self.startup_wait))
    }

    fn wait_for_tool<'a>(&'a self, tool: &'a str) -> BoxFuture<'a, ()> {
        Box::pin(self.service.lookup().wait_for_tool(tool))
    }

    fn tools(&self, after: Option<&str>, limit: usize, rights: &CallerRights) -> ListPage<Tool> {
        let snapshot = self.snapshot();
        let (items, more) = snapshot.page_of_tools(after, limit, |name| rights.allow(name));
        ListPage {
            items,
            more,
            view: self.views.digests(&snapshot, rights),
        }
    }

    fn prompts(
        &self,
        after: Option<&str>,
        limit: usize,
        rights: &CallerRights,
    ) -> ListPage<Prompt> {
        let snapshot = self.snapshot();
        let (items, more) = snapshot.page_of_prompts(after, limit, |name| rights.allow(name));
        ListPage {
            items,
            more,
            view: self.views.digests(&snapshot, rights),
        }
    }

    fn resources(
        &self,
        after: Option<&str>,
        limit: usize,
        rights: &CallerRights,
    ) -> ListPage<ListedResource> {
        let snapshot = self.snapshot();
        let (items, more) = snapshot.page_of_resources(after, limit, |uri| rights.allow(uri));
        ListPage {
            items,
            more,
            view: self.views.digests(&snapshot, rights),
        }
    }

    fn templates(
        &self,
        after: Option<&str>,
        limit: usize,
        rights: &CallerRights,
    ) -> ListPage<ListedResource> {
        let snapshot = self.snapshot();
        let (items, more) = snapshot.page_of_templates(after, limit, |uri| rights.allow(uri));
        ListPage {
            items,
            more,
            view: self.views.digests(&snapshot, rights),
        }
    }

    fn skills(&self, after: Option<&str>, limit: usize, rights: &CallerRights) -> ListPage<Skill> {
        let snapshot = self.snapshot();
        let (items, more) = snapshot.page_of_skills(after, limit, |uri| rights.allow(uri));
        ListPage {
            items,
            more,
            view: self.views.digests(&snapshot, rights),
        }
    }

    fn skill(&self, uri: &str, rights: &CallerRights) -> Option<Arc<Skill>> {
        self.snapshot().skill(uri, |uri| rights.allow(uri))
    }

    fn folder(
        &self,
        uri: &str,
        after: Option<&str>,
        limit: usize,
        rights: &CallerRights,
    ) -> Option<ListPage<ListedResource>> {
        let snapshot = self.snapshot();
        let (items, more) = snapshot.page_of_folder(uri, after, limit, |uri| rights.allow(uri))?;
        Some(ListPage {
            items,
            more,
            view: self.views.digests(&snapshot, rights),
        })
    }

    fn view(&self, rights: &CallerRights) -> CallerView {
        self.views.digests(&self.snapshot(), rights)
    }

    fn updates(&self) -> &ResourceUpdates {
        &self.protocol.updates
    }

    fn request_states(&self) -> &RequestStates {
        &self.protocol.request_states
    }

    fn tasks(&self) -> &TaskTable {
        &self.tasks
    }

    fn listings(&self) -> &PageCache {
        &self.listings
    }

    fn tool(&self, name: &str) -> Option<Arc<Tool>> {
        self.snapshot()
            .tools
            .get(name)
            .map(|offer| Arc::clone(&offer.tool))
    }

    fn portable_tool(&self, tool: &Arc<Tool>) -> Arc<Tool> {
        let Ok(schema) = serde_json::from_str(tool.input_schema.get()) else {
            return Arc::clone(tool);
        };
        let input_schema = JsonText::new(&toolbay_schema::portable_schema(&schema));
        Arc::new(Tool {
            input_schema,
            ..Tool::clone(tool)
        })
    }

    fn listed_uri(&self, uri: &str) -> Option<String> {
        self.snapshot().find_spelling(uri)
    }

    fn client(&self, name: &str) -> Arc<dyn ClientShare> {
        Arc::new(ServerShare::new(self.service.clone(), name))
    }

    fn instructions(&self, rights: &CallerRights) -> String {
        instructions::render(&self.snapshot(), rights, &self.instructions.load())
    }

    fn operator_answer(&self, put: PendingQuestions<'_>) -> Option<OperatorAnswer> {
        let asked: QuestionSubject = *put.journal.subject.clone()?;
        let question = ruling::question_text(put.questions)?;
        let [until, began] =
            [put.journal.until, put.journal.began].map(|at| UNIX_EPOCH + Duration::from_millis(at));
        let (caller, plugin, tool) = (
            put.caller.to_owned(),
            asked.plugin.clone(),
            asked.tool.clone(),
        );
        let subject = ApprovalSubject {
            caller,
            plugin,
            tool,
            question,
            until,
            edition: put.journal.edition,
        };
        let elsewhere = self
            .service
            .waiting_approvals()
            .and_then(|waiting| waiting.register(subject))
            .unwrap_or_default();
        let (service, caller) = (self.service.clone(), put.caller.to_owned());
        Some(elsewhere.on_withdrawn(move || {
            record_withdrawn(
                service.catalog(),
                service.admission(),
                service.observers(),
                &caller,
                &asked,
                began,
            );
        }))
    }

    fn metrics(
        &self,
        form: MetricsForm,
        traffic: TransportTraffic,
    ) -> BoxFuture<'_, Option<String>> {
        let service = self.service.clone();
        Box::pin(async move {
            tokio::task::spawn_blocking(move || render_metrics(&service, form, traffic))
                .await
                .ok()
                .flatten()
        })
    }

    fn register_traffic_source(&self, traffic: TrafficSource) {
        self.service.observers().set_traffic_source(traffic);
    }

    fn spawn(&self, work: BoxFuture<'static, ()>) {
        self.service.sandbox().dispatch(work);
    }
}
