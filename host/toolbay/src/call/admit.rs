//! Second stage of a call: waits for its permits and its memory.

use std::sync::Arc;
use std::time::SystemTime;

use toolbay_catalog::Plugin;
use toolbay_model::{CallFailure, CallRejection, RejectionReason};

use crate::call::admission::CallAdmission;
use crate::call::caller_state::CallerState;
use crate::call::host_work::{CallClient, HostWork};
use crate::call::resolve::ResolvedCall;
use crate::call::stored_results::{ResultCapacity, StoredResults};
use crate::limits::call_permit::CallPermit;
use crate::observe::call_report::CallReport;

/// A call that holds its permits. From here on, all computation for the call counts toward its
/// deadline and holds its permit.
pub(crate) struct AdmittedCall<'a> {
    pub(crate) client: CallClient<'a>,
    /// The state of the client for the plugin.
    pub(crate) record: Arc<CallerState>,
    pub(crate) work: HostWork<'a>,
    /// Sizes that the call's result may have.
    pub(crate) capacity: ResultCapacity,
}

/// Checks that the grant of a plugin has not ended.
///
/// # Errors
///
/// It has.
pub(crate) fn check_grant_end(plugin: &Plugin) -> Result<(), CallFailure> {
    let end = plugin.terms.until;
    match end.filter(|end| end.is_over(SystemTime::now())) {
        Some(end) => Err(CallFailure::Rejected(CallRejection {
            reason: RejectionReason::GrantEnded(end),
            retry_after: None,
        })),
        None => Ok(()),
    }
}

/// Waits until a call may run. Its permit is left in `held`, because the caller must hold it until
/// it has encoded the answer as JSON.
///
/// # Errors
///
/// The call was rejected.
pub(crate) async fn admit<'a>(
    admission: &CallAdmission,
    results: &StoredResults,
    client: CallClient<'a>,
    resolved: &ResolvedCall,
    held: &mut Option<Arc<CallPermit>>,
    report: &mut CallReport<'_>,
) -> Result<AdmittedCall<'a>, CallFailure> {
    let target = &resolved.target;
    let plugin = target.plugin();
    check_grant_end(plugin)?;
    let limits = &target.plugin_context().limits;
    let record = client
        .admission
        .records
        .get_or_insert_with(plugin, || CallerState::new(plugin));
    let permit = admission
        .acquire(
            client.admission,
            &resolved.activity,
            &record,
            (target.kind(), target.name()),
            limits.memory,
        )
        .await
        .map_err(CallFailure::Rejected)?;
    let permit = Arc::clone(held.insert(Arc::new(permit)));
    let capacity = results.capacity(client.admission, limits);
    let work = HostWork::start(client, permit, limits.timeout);
    report.record_admission(work.admitted);
    Ok(AdmittedCall {
        client,
        record,
        work,
        capacity,
    })
}
