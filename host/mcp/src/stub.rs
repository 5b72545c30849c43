//! A host for tests: three tools that respond at once, without guests or a folder.

use std::sync::Arc;
use std::time::Duration;

use bytesize::ByteSize;
use futures_util::future::BoxFuture;
use serde_json::json;
use toolbay_model::{Annotations, Answer, Icon, Observer, Output, Progress, Rejection, Tool};

use crate::access::Rights;
use crate::host::{Call, Client, Host, Options, Page, Place};
use crate::listings::Listings;
use crate::view::View;

/// The host.
pub(crate) struct Stub {
    options: Options,
    listings: Listings,
}

impl Stub {
    pub(crate) fn new() -> Arc<Self> {
        let options = Options {
            page_size: 500,
            usage: true,
            request: ByteSize::mib(1),
            requests: ByteSize::mib(64),
            grace: Duration::from_secs(1),
            instructions: String::new(),
        };
        Arc::new(Self { options, listings: Listings::default() })
    }
}

/// A tool with every member that a tool can have.
pub(crate) fn tool(name: &str) -> Arc<Tool> {
    Arc::new(Tool {
        name: name.to_owned(),
        title: Some("A title".into()),
        description: Some("Does it.".into()),
        input_schema: json!({"type": "object"}).into(),
        output_schema: Some(json!({"type": "object"}).into()),
        annotations: Some(Annotations { read_only: Some(true), ..Annotations::default() }),
        icons: [Icon { src: "data:,".into(), mime_type: None, sizes: vec![], theme: None }].into(),
        meta: Some(json!({"a": 1}).into()),
        headers: Vec::new(),
    })
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
        let names = ["a", "b", "c"].into_iter();
        let names = names.filter(|name| after.is_none_or(|after| *name > after) && rights.allow(name));
        let mut tools: Vec<_> = names.map(tool).collect();
        let more = tools.len() > limit;
        tools.truncate(limit);
        Page { tools, more, view: self.view(rights) }
    }

    fn view(&self, _rights: &Rights) -> View {
        View { listing: 1, digest: 1 }
    }

    fn listings(&self) -> &Listings {
        &self.listings
    }

    fn tool(&self, name: &str) -> Option<Arc<Tool>> {
        ["a", "b", "c"].contains(&name).then(|| tool(name))
    }

    fn client(&self, _name: &str) -> Arc<dyn Client> {
        Arc::new(Everybody)
    }

    fn spawn(&self, work: BoxFuture<'static, ()>) {
        tokio::spawn(work);
    }
}

/// The only client.
struct Everybody;

impl Client for Everybody {
    fn queue(&self, _tool: &str) -> Result<Box<dyn Place>, Rejection> {
        Ok(Box::new(Free))
    }
}

/// There is always a free place.
struct Free;

impl Place for Free {
    fn call(&mut self, _call: Call, observer: Arc<dyn Observer>) -> BoxFuture<'_, Answer> {
        observer.progress(Progress { progress: 1.0, total: None, message: Some("halfway".into()) });
        Box::pin(std::future::ready(Answer { result: Ok(Output::default()), usage: None }))
    }
}
