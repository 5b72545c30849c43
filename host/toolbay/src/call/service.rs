//! Composes the stages of a call, from its name to its result: `resolve`, `admit`, `validate`,
//! `approve`, `execute`, `check` and `fit`. Each has a module of its own, and returns a type that
//! says what it has established.
//!
//! This module depends neither on JSON-RPC nor on wasmtime.

use std::collections::BTreeMap;
use std::sync::Arc;

use toolbay_catalog::{Catalog, Plugin, Snapshot};
use toolbay_mcp::ClientCall;
use toolbay_model::{CallError, CallFailure, CallObserver, CallReply, CallRequest, CallResult};
use toolbay_sandbox::Sandbox;

use crate::approval::ruling::WaitingApprovals;
use crate::call::admission::CallAdmission;
use crate::call::admit::{admit, check_grant_end};
use crate::call::approve::{EntryDecision, approve};
use crate::call::budget::BudgetLedger;
use crate::call::check::check;
use crate::call::execute::execute;
use crate::call::fit::fit;
use crate::call::host_work::CallClient;
use crate::call::offload::OffloadPool;
use crate::call::resolve::TargetLookup;
use crate::call::result_reading::read_stored_result;
use crate::call::static_answer::answer_statically;
use crate::call::stored_results::{ResultRead, StoredResults};
use crate::call::validate::validate;
use crate::config::Config;
use crate::limits::call_permit::CallPermit;
use crate::observe::call_report::CallReport;
use crate::observe::call_sinks::CallSinks;
use crate::observe::guest_observer::GuestObserver;
use crate::observe::server_observers::{EnabledObservers, ServerObservers};

/// The parts that all calls share. Cheap to clone.
#[derive(Clone)]
pub(crate) struct CallService {
    inner: Arc<ServiceParts>,
}

/// The parts of the service. Each owns the state of one concern.
struct ServiceParts {
    /// The targets of calls.
    lookup: TargetLookup,
    /// Permits, rates, and the state of plugins that have been called.
    admission: CallAdmission,
    /// Threads for slow computations.
    offload: OffloadPool,
    /// The guests.
    sandbox: Sandbox,
    /// Results that were too large for their clients.
    results: StoredResults,
    /// The observers of call events.
    observers: Arc<ServerObservers>,
    /// The used parts of budgets.
    budgets: BudgetLedger,
    /// Calls that wait for an approval in the console; `None` if there can be no console.
    waiting: Option<WaitingApprovals>,
}

impl CallService {
    /// Creates a service from these parts. Must be called on the runtime whose threads run slow
    /// computations.
    pub(crate) fn new(
        catalog: Catalog,
        sandbox: Sandbox,
        enabled: EnabledObservers,
        config: &Config,
    ) -> Self {
        let inner = ServiceParts {
            lookup: TargetLookup::new(catalog, config.server.arguments),
            admission: CallAdmission::new(
                &config.server,
                config.circuit_breaker,
                sandbox.max_calls(),
                config.caller_rate_limit,
                config.http.listen.is_some(),
            ),
            offload: OffloadPool::new(),
            sandbox,
            results: StoredResults::new(config.results),
            observers: Arc::new(ServerObservers::new(enabled, config)),
            budgets: BudgetLedger::default(),
            waiting: config
                .console
                .is_possible(&config.http)
                .then(WaitingApprovals::default),
        };
        Self {
            inner: Arc::new(inner),
        }
    }

    /// Returns the catalog of tools.
    pub(crate) fn catalog(&self) -> &Catalog {
        self.inner.lookup.catalog()
    }

    /// Returns the lookup of the targets of calls.
    pub(crate) fn lookup(&self) -> &TargetLookup {
        &self.inner.lookup
    }

    /// Returns the admission of calls.
    pub(crate) fn admission(&self) -> &CallAdmission {
        &self.inner.admission
    }

    /// Returns the threads for slow computations.
    pub(crate) fn offload(&self) -> &OffloadPool {
        &self.inner.offload
    }

    /// Returns the sandbox in which calls run.
    pub(crate) fn sandbox(&self) -> &Sandbox {
        &self.inner.sandbox
    }

    /// Returns the observers of calls.
    pub(crate) fn observers(&self) -> &Arc<ServerObservers> {
        &self.inner.observers
    }

    /// Returns the used parts of budgets.
    pub(crate) fn budgets(&self) -> &BudgetLedger {
        &self.inner.budgets
    }

    /// Returns the calls that wait for an approval in the console, or `None` if there can be no
    /// console.
    pub(crate) fn waiting_approvals(&self) -> Option<&WaitingApprovals> {
        self.inner.waiting.as_ref()
    }

    /// Answers a call of a client, and reports it to its sinks. Ends early if an operator stops the
    /// call. Must run on the guests' runtime.
    /// Dropping the future cancels the call. The call's permit is left in `held`, because the
    /// caller must hold it until it has encoded the answer as JSON.
    pub(crate) async fn answer(
        &self,
        client: CallClient<'_>,
        call: ClientCall,
        observer: Arc<dyn CallObserver>,
        sinks: &mut CallSinks,
        held: &mut Option<Arc<CallPermit>>,
    ) -> CallResult {
        let Some(stop) = sinks.stop_signal() else {
            return self
                .answer_unstopped(client, call, observer, sinks, held)
                .await;
        };
        tokio::select! {
            biased;
            answer = self.answer_unstopped(client, call, observer, sinks, held) => answer,
            () = stop.notified() => CallResult {
                result: Err(CallFailure::Call(CallError::Stopped)),
                usage: None,
            },
        }
    }

    /// Like [`Self::answer`], without the operator's stop signal.
    async fn answer_unstopped(
        &self,
        client: CallClient<'_>,
        call: ClientCall,
        observer: Arc<dyn CallObserver>,
        sinks: &mut CallSinks,
        held: &mut Option<Arc<CallPermit>>,
    ) -> CallResult {
        let parts = &*self.inner;
        let answered = match self.find_stored_result(client, &call.request) {
            Some(reading) => read_stored_result(
                &parts.sandbox,
                &parts.admission,
                client,
                reading,
                sinks,
                held,
            )
            .await
            .map(without_guest),
            None => self.run_call(client, call, observer, sinks, held).await,
        };
        answered.unwrap_or_else(|failure| CallResult {
            result: Err(failure),
            usage: None,
        })
    }

    /// Returns the stored result that a request reads, if it is one that was too large for its
    /// client.
    fn find_stored_result(
        &self,
        client: CallClient<'_>,
        request: &CallRequest,
    ) -> Option<ResultRead> {
        let CallRequest::Resource { uri } = request else {
            return None;
        };
        self.inner.results.find(&client.admission.name, uri)
    }

    /// Runs a call through its stages.
    async fn run_call(
        &self,
        client: CallClient<'_>,
        mut call: ClientCall,
        observer: Arc<dyn CallObserver>,
        sinks: &mut CallSinks,
        held: &mut Option<Arc<CallPermit>>,
    ) -> Result<CallResult, CallFailure> {
        let ServiceParts {
            lookup,
            admission,
            sandbox,
            results,
            budgets,
            ..
        } = &*self.inner;
        let resolved = lookup.resolve(admission, client, &mut call, sinks).await?;
        if !resolved.activity.latency_class.is_quick() {
            sandbox.move_to_guest_runtime().await;
        }
        let report = &mut CallReport::start(sinks, &resolved.activity.latency_class);
        let admitted = admit(admission, results, client, &resolved, held, report).await?;
        let validated = validate(&resolved, &admitted, call, report).await?;
        let observer = GuestObserver::wrap(observer, &resolved.target, report.sinks());
        if let Some(answer) = validated.static_answer {
            let input = validated.input;
            let reply = answer_statically(answer, &resolved, &admitted, input, &*observer);
            return reply.await.map(without_guest);
        }
        let approved = match approve(&resolved, &admitted, validated, report).await? {
            EntryDecision::Enter(approved) => approved,
            EntryDecision::Ask(round) => return Ok(without_guest(CallReply::Questions(round))),
        };
        // The call may have waited for its permits, its checks and the audit log.
        check_grant_end(resolved.target.plugin())?;
        let charge = budgets
            .begin(
                resolved.target.plugin(),
                client.admission.identity.as_ref(),
                resolved.target.plugin_context(),
                approved.journal.rounds == 0,
                admitted.work.deadline.into(),
            )
            .await?;
        let executed = execute(
            sandbox,
            &resolved,
            &admitted,
            &approved,
            charge.as_ref(),
            &observer,
            report,
        )
        .await;
        if let Some(charge) = charge {
            charge.settle(&executed.run.usage).await;
        }
        let checked = check(admission, &resolved, &admitted, executed, report).await;
        Ok(fit(
            results, &resolved, &admitted, &approved, checked, &*observer,
        )
        .await)
    }

    /// Removes the stored results of a caller that no longer exists.
    pub(crate) fn remove_results_of(&self, caller: &str) {
        self.inner.results.remove_caller(caller);
    }

    /// Logs, for each plugin that was called, the limits that would have sufficed for its recent
    /// calls.
    pub(crate) fn log_suggestions(&self) {
        let snapshot = self.catalog().snapshot();
        let plugins = plugins_by_id(&snapshot);
        for (plugin, suggestion) in plugins.iter().filter_map(|(id, plugin)| {
            Some((id, self.admission().activity(plugin).usage.suggest()?))
        }) {
            tracing::info!(plugin, "suggested limits: {suggestion}");
        }
    }
}

/// Returns the result of a call that entered no guest.
fn without_guest(reply: CallReply) -> CallResult {
    CallResult {
        result: Ok(reply),
        usage: None,
    }
}

/// Returns the plugins that offer anything, by id.
pub(crate) fn plugins_by_id(snapshot: &Snapshot) -> BTreeMap<&str, &Arc<Plugin>> {
    let tools = snapshot.tools.values().map(|offer| &offer.plugin);
    let prompts = snapshot.prompts.values().map(|offer| &offer.plugin);
    let resources = snapshot
        .resources
        .values()
        .chain(snapshot.templates.values())
        .map(|offer| &offer.plugin);
    // A plugin can have several of each.
    tools
        .chain(prompts)
        .chain(resources)
        .map(|plugin| (plugin.id.as_str(), plugin))
        .collect()
}
