//! The host that the protocol serves: a list of tools, its changes, and calls.

use std::sync::Arc;
use std::time::Duration;

use bytesize::ByteSize;
use futures_util::future::BoxFuture;
use serde_json::{Map, Value};
use toolbay_model::{Answer, Observer, Rejection, Tool, Trace};

use crate::access::Rights;
use crate::capabilities::Capabilities;
use crate::listings::Listings;
use crate::quota::{Portion, Quota};
use crate::view::View;

/// The host behind the protocol.
pub trait Host: Send + Sync + 'static {
    /// The options of the protocol.
    fn options(&self) -> &Options;

    /// Waits until the number of the tool list ([`View::listing`]) is greater than `listing`, and returns it; `None` if
    /// the list cannot change any more.
    fn changed(&self, listing: u64) -> BoxFuture<'_, Option<u64>>;

    /// Whether every plugin that existed at startup has been loaded or refused.
    fn is_complete(&self) -> bool;

    /// Waits until [`Host::is_complete`], for at most the time that the host's configuration allows.
    fn complete(&self) -> BoxFuture<'_, ()>;

    /// At most `limit` tools in the order of their names: those after `after` that `rights` allow.
    fn page(&self, after: Option<&str>, limit: usize, rights: &Rights) -> Page;

    /// The tool list as a caller with these rights sees it now.
    fn view(&self, rights: &Rights) -> View;

    /// The pages of the tool list that were written. It is the host that keeps them, because all sessions share them.
    fn listings(&self) -> &Listings;

    /// The tool with this name, including its prefix; `None` if there is none.
    fn tool(&self, name: &str) -> Option<Arc<Tool>>;

    /// A new client's share of the host: its own rate limits and its own queue. `name` is the caller's, for the log.
    fn client(&self, name: &str) -> Arc<dyn Client>;

    /// Spawns a future that makes calls on the runtime on which the host runs them.
    fn spawn(&self, work: BoxFuture<'static, ()>);
}

/// So many callers or requests can take what is there for all.
const SHARES: usize = 4;

/// Options of the protocol that do not depend on the transport.
#[derive(Clone, Debug)]
pub struct Options {
    /// Tools per page of `tools/list`, at least 1.
    pub page_size: usize,
    /// Whether results include `_meta["dev.toolbay/usage"]`.
    pub usage: bool,
    /// Largest message in bytes: a line over stdio, a body over HTTP.
    pub request: ByteSize,
    /// Bytes that all requests may take together while they are read, wait and run. The values of arguments count. One
    /// request can take a quarter of it, and so can one caller if there can be several.
    pub requests: ByteSize,
    /// How long running calls may continue after the client disconnects or the server is told to stop.
    pub grace: Duration,
    /// Text that every client receives as `instructions`. Empty sends none.
    pub instructions: String,
}

impl Options {
    /// The bytes that requests may take, for a transport with one caller or one with many.
    pub(crate) fn intake(&self, many: bool) -> Arc<Quota> {
        let all = self.bytes_of_requests();
        Quota::new(all, if many { all / SHARES } else { all })
    }

    /// The bytes that one request may take once it is parsed.
    pub(crate) fn bytes_of_one(&self) -> usize {
        self.bytes_of_requests() / SHARES
    }

    fn bytes_of_requests(&self) -> usize {
        usize::try_from(self.requests.as_u64()).unwrap_or(usize::MAX)
    }
}

/// A page of the list of tools.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// The tools, in the order of their names.
    pub tools: Vec<Arc<Tool>>,
    /// Whether there are further tools after these.
    pub more: bool,
    /// The list that the page is part of.
    pub view: View,
}

/// One client's share of the host.
pub trait Client: Send + Sync {
    /// Takes a place in the client's queue for a call of `tool`.
    ///
    /// # Errors
    ///
    /// The client exceeded its rate limit, or its queue is full. The host has counted the rejection.
    fn queue(&self, tool: &str) -> Result<Box<dyn Place>, Rejection>;

    /// Takes note of a call of `tool` that the protocol itself rejected.
    fn rejected(&self, _tool: &str, _rejection: Rejection) {}
}

/// A place in a client's queue. Dropping it before the call ends cancels the call.
pub trait Place: Send {
    /// Makes the call as soon as it is admitted. Dropping the future cancels the call.
    ///
    /// The future must run on the runtime of [`Host::spawn`]. The place is held until it is dropped.
    fn call(&mut self, call: Call, observer: Arc<dyn Observer>) -> BoxFuture<'_, Answer>;
}

/// A call as received from a client.
#[derive(Debug)]
pub struct Call {
    /// The tool's name, including its prefix.
    pub tool: String,
    /// Whether the caller may use a tool with this name. If not, the tool is reported as unknown.
    pub permitted: bool,
    /// The arguments, not yet validated.
    pub arguments: Map<String, Value>,
    /// The capabilities that the client declared.
    pub capabilities: Capabilities,
    /// The caller's span; `None` if the call belongs to no trace.
    pub trace: Option<Trace>,
    /// The bytes that the arguments take, of those that requests may take together. The host gives back what it no longer
    /// needs.
    pub held: Portion,
}
