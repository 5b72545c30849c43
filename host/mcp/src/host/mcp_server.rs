//! The server's side of the protocol: the host behind it, and the state that all sessions share.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use parking_lot::{Mutex, MutexGuard};
use serde_json::Value;
use toolbay_model::{JsonText, Tool};

use crate::exchange::resource_subscriptions::ResourceUpdates;
use crate::host::interface::{
    CallHost, MetricsForm, ProtocolOptions, TrafficSource, TransportTraffic,
};
use crate::host::list_source::{ListSource, LoadProgress};
use crate::host::request_state::RequestStates;
use crate::lists::page_cache::PageCache;
use crate::tasks::TaskTable;

/// The server's side of the protocol, for all transports and sessions.
pub struct McpServer {
    lists: Arc<dyn ListSource>,
    loading: Arc<dyn LoadProgress>,
    calls: Arc<dyn CallHost>,
    options: ProtocolOptions,
    /// Subscriptions to changes of resources.
    updates: ResourceUpdates,
    /// Encoded list pages, which all sessions share.
    page_cache: PageCache,
    /// Sealing of the states of calls that wait for answers.
    request_states: RequestStates,
    /// Calls that continue as tasks. They outlive sessions.
    tasks: TaskTable,
    portable_schema: SchemaRestriction,
    metrics: Option<MetricsSource>,
    /// Source of the traffic counts of a transport.
    traffic: Mutex<Option<TrafficSource>>,
}

/// Function that restricts a JSON Schema to the form
/// [`SchemaForm::Portable`](toolbay_model::SchemaForm::Portable). Takes time in proportion to the
/// schema.
pub type SchemaRestriction = fn(&Value) -> Value;

/// Function that returns the metrics as text; `None` if they are not available now. The future may
/// take long, but never blocks the calling thread.
pub type MetricsSource =
    Box<dyn Fn(MetricsForm, TransportTraffic) -> BoxFuture<'static, Option<String>> + Send + Sync>;

/// The parts of an [`McpServer`] in addition to its host.
pub struct McpServerParts {
    /// The options of the protocol.
    pub options: ProtocolOptions,
    /// Subscriptions to changes of resources. The loader of plugins reports changes here.
    pub updates: ResourceUpdates,
    /// Sealing of the states of calls that wait for answers.
    pub request_states: RequestStates,
    /// Restriction of argument schemas, for callers that need it.
    pub portable_schema: SchemaRestriction,
    /// Source of the metrics; `None` if there are none.
    pub metrics: Option<MetricsSource>,
}

impl McpServer {
    /// Creates a server for this host.
    pub fn new<H>(host: Arc<H>, parts: McpServerParts) -> Arc<Self>
    where
        H: ListSource + LoadProgress + CallHost,
    {
        let McpServerParts {
            options,
            updates,
            request_states,
            portable_schema,
            metrics,
        } = parts;
        Arc::new(Self {
            lists: host.clone(),
            loading: host.clone(),
            calls: host,
            tasks: TaskTable::new(options.tasks),
            options,
            updates,
            page_cache: PageCache::default(),
            request_states,
            portable_schema,
            metrics,
            traffic: Mutex::default(),
        })
    }

    /// Returns the lists of the host.
    pub(crate) fn lists(&self) -> &dyn ListSource {
        &*self.lists
    }

    /// Returns the load progress of the host.
    pub(crate) fn loading(&self) -> &dyn LoadProgress {
        &*self.loading
    }

    /// Returns the host of calls.
    pub(crate) fn calls(&self) -> &dyn CallHost {
        &*self.calls
    }

    /// Returns the options of the protocol.
    pub(crate) fn options(&self) -> &ProtocolOptions {
        &self.options
    }

    /// Returns the subscriptions to changes of resources.
    pub(crate) fn updates(&self) -> &ResourceUpdates {
        &self.updates
    }

    /// Returns the cache of encoded list pages.
    pub(crate) fn page_cache(&self) -> &PageCache {
        &self.page_cache
    }

    /// Returns the sealing of the states of calls that wait for answers.
    pub(crate) fn request_states(&self) -> &RequestStates {
        &self.request_states
    }

    /// Returns the calls that continue as tasks.
    pub fn tasks(&self) -> &TaskTable {
        &self.tasks
    }

    /// Returns the tool with its argument schema in the form
    /// [`SchemaForm::Portable`](toolbay_model::SchemaForm::Portable). Takes time in proportion to
    /// the schema.
    pub(crate) fn portable_tool(&self, tool: &Arc<Tool>) -> Arc<Tool> {
        let Ok(schema) = serde_json::from_str(tool.input_schema.get()) else {
            return Arc::clone(tool);
        };
        Arc::new(Tool {
            input_schema: JsonText::new(&(self.portable_schema)(&schema)),
            ..Tool::clone(tool)
        })
    }

    /// Returns the metrics as text in this form; `None` if they are not available now.
    pub(crate) async fn metrics(
        &self,
        form: MetricsForm,
        traffic: TransportTraffic,
    ) -> Option<String> {
        let metrics = self.metrics.as_ref()?;
        metrics(form, traffic).await
    }

    /// Returns the traffic of the transport; `None` if no transport counts it.
    pub fn traffic(&self) -> Option<TransportTraffic> {
        self.lock_traffic_source()
            .as_ref()
            .and_then(|source| source())
    }

    /// Registers the source of traffic counts of a transport that starts to serve. The source
    /// returns `None` once the transport has ended.
    pub(crate) fn register_traffic_source(&self, traffic: TrafficSource) {
        *self.lock_traffic_source() = Some(traffic);
    }

    // Held while a few counts are read for metrics.
    fn lock_traffic_source(&self) -> MutexGuard<'_, Option<TrafficSource>> {
        self.traffic.lock()
    }
}
