//! Implements the protocol's [`Host`] for the service.

use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use futures_util::future::BoxFuture;
use toolbay_mcp::{
    Client, Elsewhere, Host, Listings, MetricsForm, Options, Page, Put, RequestStates, Rights, Tasks, Traffic,
    TrafficSource, Updates, View,
};
use toolbay_model::{AskedAbout, Json, ListedResource, Prompt, Skill, Tool};

use crate::approval::{self, Subject};
use crate::instructions;
use crate::measured::measured;
use crate::service::Service;
use crate::share::Share;

impl Host for Service {
    fn options(&self) -> &Options {
        Service::options(self)
    }

    fn changed(&self, listing: u64) -> BoxFuture<'_, Option<u64>> {
        Box::pin(async move {
            let snapshot = self.catalog().wait_for(|snapshot| snapshot.listing > listing).await;
            Some(snapshot.listing).filter(|now| *now > listing)
        })
    }

    fn is_complete(&self) -> bool {
        self.catalog().snapshot().complete
    }

    fn introduced(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            self.catalog().wait_for(|snapshot| snapshot.complete || snapshot.introduced).await;
        })
    }

    fn complete(&self) -> BoxFuture<'_, ()> {
        Box::pin(Service::complete(self))
    }

    fn loaded<'a>(&'a self, tool: &'a str) -> BoxFuture<'a, ()> {
        Box::pin(Service::loaded(self, tool))
    }

    fn tools(&self, after: Option<&str>, limit: usize, rights: &Rights) -> Page<Tool> {
        let snapshot = self.catalog().snapshot();
        let (items, more) = snapshot.page_of_tools(after, limit, |name| rights.allow(name));
        Page { items, more, view: self.views().of(&snapshot, rights) }
    }

    fn prompts(&self, after: Option<&str>, limit: usize, rights: &Rights) -> Page<Prompt> {
        let snapshot = self.catalog().snapshot();
        let (items, more) = snapshot.page_of_prompts(after, limit, |name| rights.allow(name));
        Page { items, more, view: self.views().of(&snapshot, rights) }
    }

    fn resources(&self, after: Option<&str>, limit: usize, rights: &Rights) -> Page<ListedResource> {
        let snapshot = self.catalog().snapshot();
        let (items, more) = snapshot.page_of_resources(after, limit, |uri| rights.allow(uri));
        Page { items, more, view: self.views().of(&snapshot, rights) }
    }

    fn templates(&self, after: Option<&str>, limit: usize, rights: &Rights) -> Page<ListedResource> {
        let snapshot = self.catalog().snapshot();
        let (items, more) = snapshot.page_of_templates(after, limit, |uri| rights.allow(uri));
        Page { items, more, view: self.views().of(&snapshot, rights) }
    }

    fn skills(&self, after: Option<&str>, limit: usize, rights: &Rights) -> Page<Skill> {
        let snapshot = self.catalog().snapshot();
        let (items, more) = snapshot.page_of_skills(after, limit, |uri| rights.allow(uri));
        Page { items, more, view: self.views().of(&snapshot, rights) }
    }

    fn skill(&self, uri: &str, rights: &Rights) -> Option<Arc<Skill>> {
        self.catalog().snapshot().skill(uri, |uri| rights.allow(uri))
    }

    fn folder(&self, uri: &str, after: Option<&str>, limit: usize, rights: &Rights) -> Option<Page<ListedResource>> {
        let snapshot = self.catalog().snapshot();
        let (items, more) = snapshot.page_of_folder(uri, after, limit, |uri| rights.allow(uri))?;
        Some(Page { items, more, view: self.views().of(&snapshot, rights) })
    }

    fn view(&self, rights: &Rights) -> View {
        self.views().of(&self.catalog().snapshot(), rights)
    }

    fn updates(&self) -> &Updates {
        Service::updates(self)
    }

    fn request_states(&self) -> &RequestStates {
        Service::request_states(self)
    }

    fn tasks(&self) -> &Tasks {
        Service::tasks(self)
    }

    fn listings(&self) -> &Listings {
        Service::listings(self)
    }

    fn tool(&self, name: &str) -> Option<Arc<Tool>> {
        self.catalog().snapshot().tools.get(name).map(|offer| Arc::clone(&offer.tool))
    }

    fn portable(&self, tool: &Arc<Tool>) -> Arc<Tool> {
        let Ok(schema) = serde_json::from_str(tool.input_schema.get()) else { return Arc::clone(tool) };
        let input_schema = Json::new(&toolbay_schema::portable(&schema));
        Arc::new(Tool { input_schema, ..Tool::clone(tool) })
    }

    fn spelling(&self, uri: &str) -> Option<String> {
        self.catalog().snapshot().spelling(uri)
    }

    fn client(&self, name: &str) -> Arc<dyn Client> {
        Arc::new(Share::new(self.clone(), name))
    }

    fn instructions(&self, rights: &Rights) -> String {
        instructions::of(&self.catalog().snapshot(), rights, &Service::instructions(self))
    }

    fn elsewhere(&self, put: Put<'_>) -> Option<Elsewhere> {
        let asked: AskedAbout = *put.journal.asked_about.clone()?;
        let question = approval::text(put.questions)?;
        let [until, began] = [put.journal.until, put.journal.began].map(|at| UNIX_EPOCH + Duration::from_millis(at));
        let (caller, plugin, tool) = (put.caller.to_owned(), asked.plugin.clone(), asked.tool.clone());
        let subject = Subject { caller, plugin, tool, question, until, edition: put.journal.edition };
        let elsewhere = self.waiting().and_then(|waiting| waiting.begin(subject)).unwrap_or_default();
        let (service, caller) = (self.clone(), put.caller.to_owned());
        Some(elsewhere.or_withdrawn(move || service.withdrawn(&caller, &asked, began)))
    }

    fn metrics(&self, form: MetricsForm, traffic: Traffic) -> BoxFuture<'_, Option<String>> {
        let service = self.clone();
        Box::pin(
            async move { tokio::task::spawn_blocking(move || measured(&service, form, traffic)).await.ok().flatten() },
        )
    }

    fn serves(&self, traffic: TrafficSource) {
        Service::serves(self, traffic);
    }

    fn spawn(&self, work: BoxFuture<'static, ()>) {
        self.sandbox().admit(work);
    }
}
