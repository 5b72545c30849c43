//! Reserves memory for the parsed parameters of a request, within the memory for all requests.

use std::time::Duration;

use bytesize::ByteSize;
use serde_json::value::RawValue;
use toolbay_background::{QuotaExhausted, QuotaPortion};
use toolbay_model::{CallRejection, CapacityLimit, RejectionReason};

use crate::host::caller::Caller;
use crate::plugin_request::entry_params::EntryParams;
use crate::protocol::json_memory;
use crate::protocol::jsonrpc::{Error, INVALID_REQUEST};
use crate::session::client_session::Session;

/// Delay after which a request that was rejected for lack of memory may be retried. Calls are
/// short.
const BUSY_RETRY_DELAY: Duration = Duration::from_secs(1);

/// The memory for the parsed parameters of a request.
pub(super) enum ParamsMemory {
    /// The bytes are reserved.
    Reserved(QuotaPortion),
    /// They exceed the memory that is available now.
    Exhausted(CallRejection),
}

impl ParamsMemory {
    /// Reserves the bytes that the parameters take once they are parsed.
    ///
    /// # Errors
    ///
    /// The parameters exceed the limit for one request.
    pub(super) fn reserve(
        session: &Session,
        caller: &Caller,
        params: Option<&RawValue>,
    ) -> Result<Self, Error> {
        let bytes = params.map_or(0, |params| json_memory::decoded_size(params.get()));
        check_decoded_size(session, bytes)?;
        Ok(
            match session.request_quota.try_reserve(&caller.name, bytes) {
                Ok(held) => Self::Reserved(held),
                Err(exhausted) => Self::Exhausted(busy_rejection(exhausted)),
            },
        )
    }

    /// Reserves the bytes that arguments sent as a string take once they are parsed, in addition to
    /// those of the string, and then parses them.
    ///
    /// # Errors
    ///
    /// As [`Self::reserve`].
    pub(super) fn unpack_arguments(
        self,
        session: &Session,
        params: Option<&RawValue>,
        parsed: &mut EntryParams,
    ) -> Result<Self, Error> {
        let Self::Reserved(mut held) = self else {
            return Ok(self);
        };
        let Some(text) = parsed.arguments_text.take() else {
            return Ok(Self::Reserved(held));
        };
        let bytes = json_memory::decoded_size(&text);
        let all = params
            .map_or(0, |params| json_memory::decoded_size(params.get()))
            .saturating_add(bytes);
        check_decoded_size(session, all)?;
        if let Err(exhausted) = held.grow(bytes) {
            return Ok(Self::Exhausted(busy_rejection(exhausted)));
        }
        parsed.unpack(&text);
        Ok(Self::Reserved(held))
    }

    /// Returns the reservation.
    ///
    /// # Errors
    ///
    /// There is none: the memory is exhausted.
    pub(super) fn into_reservation(self) -> Result<QuotaPortion, CallRejection> {
        match self {
            Self::Reserved(held) => Ok(held),
            Self::Exhausted(rejection) => Err(rejection),
        }
    }
}

/// Checks that the decoded values of a request may take this much.
///
/// # Errors
///
/// They exceed the limit for one request.
fn check_decoded_size(session: &Session, bytes: usize) -> Result<(), Error> {
    let most = session.server.options().max_request_bytes();
    if bytes > most {
        let [bytes, most] =
            [bytes, most].map(|bytes| ByteSize::b(bytes as u64).display().iec().to_string());
        let what = format!(
            "the values in the request would take {bytes} of memory, and one request may take at most {most}, a quarter of server.request_memory: send fewer values"
        );
        return Err(Error::new(INVALID_REQUEST, what));
    }
    Ok(())
}

/// Returns the rejection of a request for which there is no memory now.
pub(crate) fn busy_rejection(exhausted: QuotaExhausted) -> CallRejection {
    CallRejection {
        reason: RejectionReason::Busy {
            limit: CapacityLimit::Requests,
            capacity: exhausted.limit(),
        },
        retry_after: Some(BUSY_RETRY_DELAY),
    }
}
