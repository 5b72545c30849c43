//! Reads of stored results, which need no plugin.

use std::sync::Arc;
use std::time::Duration;

use bytesize::ByteSize;
use toolbay_model::{CallError, CallFailure, CallReply};
use toolbay_sandbox::Sandbox;

use crate::call::admission::CallAdmission;
use crate::call::host_work::{CallClient, HostWork, MAX_INLINE_BYTES};
use crate::call::offload::TooLate;
use crate::call::stored_results::ResultRead;
use crate::limits::call_permit::CallPermit;
use crate::observe::call_event::{CallEvent, CallSink as _};
use crate::observe::call_sinks::CallSinks;

/// Maximum time that reading a stored result waits for a thread.
const READ_TIMEOUT: Duration = Duration::from_secs(10);

/// Memory for reading a result, in multiples of its size: the text and its JSON, in which some
/// characters are longer.
const ENCODED_SIZE_FACTOR: u64 = 3;

/// Reads a stored result, after reserving space for its audit line. The permit is left in `held`,
/// because the caller must hold it until it has encoded the answer as JSON.
///
/// # Errors
///
/// The read was rejected, or the result does not have the requested portion.
pub(crate) async fn read_stored_result(
    sandbox: &Sandbox,
    admission: &CallAdmission,
    client: CallClient<'_>,
    reading: ResultRead,
    sinks: &mut CallSinks,
    held: &mut Option<Arc<CallPermit>>,
) -> Result<CallReply, CallFailure> {
    sinks.record(&CallEvent::StoredResultFound);
    sandbox.move_to_guest_runtime().await;
    let size = reading.size();
    // The text, and its JSON encoding, in which some characters are longer.
    let memory = ByteSize::b(size as u64)
        .as_u64()
        .saturating_mul(ENCODED_SIZE_FACTOR);
    let permit = admission
        .acquire_for_host(client.admission, ByteSize::b(memory))
        .await
        .map_err(CallFailure::Rejected)?;
    let permit = Arc::clone(held.insert(Arc::new(permit)));
    let work = HostWork::start(client, permit, READ_TIMEOUT);
    let permitted = CallEvent::Permitted {
        deadline: work.deadline,
    };
    sinks
        .commit(&permitted)
        .await
        .map_err(CallFailure::Rejected)?;
    let read = if size <= MAX_INLINE_BYTES {
        Ok(reading.read())
    } else {
        work.run(move |_| reading.read()).await
    };
    match read {
        Ok(Ok(items)) => Ok(CallReply::Resource(items)),
        Ok(Err(why)) => Err(CallError::InvalidArguments(why.to_string())),
        Err(TooLate) => Err(work.deadline_error()),
    }
    .map_err(CallFailure::Call)
}
