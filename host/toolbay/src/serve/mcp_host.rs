//! Implements the protocol's [`Host`] for the service.

use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use futures_util::future::BoxFuture;
use toolbay_mcp::{
    CallerRights, CallerView, ClientShare, Host, ListPage, MetricsForm, OperatorAnswer, PageCache,
    PendingQuestions, ProtocolOptions, RequestStates, ResourceUpdates, TaskTable, TrafficSource,
    TransportTraffic,
};
use toolbay_model::{JsonText, ListedResource, Prompt, QuestionSubject, Skill, Tool};

use crate::approval::ruling::{self, ApprovalSubject};
use crate::call::client_share::ServerShare;
use crate::call::service::CallService;
use crate::serve::instructions;
use crate::serve::metrics_collector::render_metrics;

impl Host for CallService {
    fn options(&self) -> &ProtocolOptions {
        CallService::options(self)
    }

    fn wait_for_change(&self, listing: u64) -> BoxFuture<'_, Option<u64>> {
        Box::pin(async move {
            let snapshot = self
                .catalog()
                .wait_for(|snapshot| snapshot.list_generation > listing)
                .await;
            Some(snapshot.list_generation).filter(|now| *now > listing)
        })
    }

    fn is_complete(&self) -> bool {
        self.catalog().snapshot().complete
    }

    fn wait_for_instructions(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            self.catalog()
                .wait_for(|snapshot| snapshot.complete || snapshot.first_loaded)
                .await;
        })
    }

    fn wait_until_complete(&self) -> BoxFuture<'_, ()> {
        Box::pin(CallService::wait_until_complete(self))
    }

    fn wait_for_tool<'a>(&'a self, tool: &'a str) -> BoxFuture<'a, ()> {
        Box::pin(CallService::wait_for_tool(self, tool))
    }

    fn tools(&self, after: Option<&str>, limit: usize, rights: &CallerRights) -> ListPage<Tool> {
        let snapshot = self.catalog().snapshot();
        let (items, more) = snapshot.page_of_tools(after, limit, |name| rights.allow(name));
        ListPage {
            items,
            more,
            view: self.views().digests(&snapshot, rights),
        }
    }

    fn prompts(
        &self,
        after: Option<&str>,
        limit: usize,
        rights: &CallerRights,
    ) -> ListPage<Prompt> {
        let snapshot = self.catalog().snapshot();
        let (items, more) = snapshot.page_of_prompts(after, limit, |name| rights.allow(name));
        ListPage {
            items,
            more,
            view: self.views().digests(&snapshot, rights),
        }
    }

    fn resources(
        &self,
        after: Option<&str>,
        limit: usize,
        rights: &CallerRights,
    ) -> ListPage<ListedResource> {
        let snapshot = self.catalog().snapshot();
        let (items, more) = snapshot.page_of_resources(after, limit, |uri| rights.allow(uri));
        ListPage {
            items,
            more,
            view: self.views().digests(&snapshot, rights),
        }
    }

    fn templates(
        &self,
        after: Option<&str>,
        limit: usize,
        rights: &CallerRights,
    ) -> ListPage<ListedResource> {
        let snapshot = self.catalog().snapshot();
        let (items, more) = snapshot.page_of_templates(after, limit, |uri| rights.allow(uri));
        ListPage {
            items,
            more,
            view: self.views().digests(&snapshot, rights),
        }
    }

    fn skills(&self, after: Option<&str>, limit: usize, rights: &CallerRights) -> ListPage<Skill> {
        let snapshot = self.catalog().snapshot();
        let (items, more) = snapshot.page_of_skills(after, limit, |uri| rights.allow(uri));
        ListPage {
            items,
            more,
            view: self.views().digests(&snapshot, rights),
        }
    }

    fn skill(&self, uri: &str, rights: &CallerRights) -> Option<Arc<Skill>> {
        self.catalog()
            .snapshot()
            .skill(uri, |uri| rights.allow(uri))
    }

    fn folder(
        &self,
        uri: &str,
        after: Option<&str>,
        limit: usize,
        rights: &CallerRights,
    ) -> Option<ListPage<ListedResource>> {
        let snapshot = self.catalog().snapshot();
        let (items, more) = snapshot.page_of_folder(uri, after, limit, |uri| rights.allow(uri))?;
        Some(ListPage {
            items,
            more,
            view: self.views().digests(&snapshot, rights),
        })
    }

    fn view(&self, rights: &CallerRights) -> CallerView {
        self.views().digests(&self.catalog().snapshot(), rights)
    }

    fn updates(&self) -> &ResourceUpdates {
        CallService::updates(self)
    }

    fn request_states(&self) -> &RequestStates {
        CallService::request_states(self)
    }

    fn tasks(&self) -> &TaskTable {
        CallService::tasks(self)
    }

    fn listings(&self) -> &PageCache {
        CallService::listings(self)
    }

    fn tool(&self, name: &str) -> Option<Arc<Tool>> {
        self.catalog()
            .snapshot()
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
        self.catalog().snapshot().find_spelling(uri)
    }

    fn client(&self, name: &str) -> Arc<dyn ClientShare> {
        Arc::new(ServerShare::new(self.clone(), name))
    }

    fn instructions(&self, rights: &CallerRights) -> String {
        instructions::render(
            &self.catalog().snapshot(),
            rights,
            &CallService::instructions(self),
        )
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
            .waiting_approvals()
            .and_then(|waiting| waiting.register(subject))
            .unwrap_or_default();
        let (service, caller) = (self.clone(), put.caller.to_owned());
        Some(elsewhere.on_withdrawn(move || service.record_withdrawn(&caller, &asked, began)))
    }

    fn metrics(
        &self,
        form: MetricsForm,
        traffic: TransportTraffic,
    ) -> BoxFuture<'_, Option<String>> {
        let service = self.clone();
        Box::pin(async move {
            tokio::task::spawn_blocking(move || render_metrics(&service, form, traffic))
                .await
                .ok()
                .flatten()
        })
    }

    fn register_traffic_source(&self, traffic: TrafficSource) {
        CallService::set_traffic_source(self, traffic);
    }

    fn spawn(&self, work: BoxFuture<'static, ()>) {
        self.sandbox().dispatch(work);
    }
}
