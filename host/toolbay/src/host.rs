//! The service as the protocol's host.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use toolbay_mcp::{Client, Host, Listings, Options, Page, Rights, View};
use toolbay_model::Tool;

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

    fn complete(&self) -> BoxFuture<'_, ()> {
        Box::pin(Service::complete(self))
    }

    fn page(&self, after: Option<&str>, limit: usize, rights: &Rights) -> Page {
        let snapshot = self.catalog().snapshot();
        let (tools, more) = snapshot.page(after, limit, |name| rights.allow(name));
        Page { tools, more, view: self.views().of(&snapshot, rights) }
    }

    fn view(&self, rights: &Rights) -> View {
        self.views().of(&self.catalog().snapshot(), rights)
    }

    fn listings(&self) -> &Listings {
        Service::listings(self)
    }

    fn tool(&self, name: &str) -> Option<Arc<Tool>> {
        self.catalog().snapshot().tools.get(name).map(|offer| Arc::clone(&offer.tool))
    }

    fn client(&self, name: &str) -> Arc<dyn Client> {
        Arc::new(Share::new(self.clone(), name))
    }

    fn spawn(&self, work: BoxFuture<'static, ()>) {
        self.sandbox().admit(work);
    }
}
