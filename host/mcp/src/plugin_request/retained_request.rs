//! The text of a request, retained while the plugin runs and the user considers a question. It
//! takes less memory than parsed values.

use serde_json::value::RawValue;
use toolbay_background::QuotaPortion;
use toolbay_model::{CallError, CallFailure, CallRejection, CallRequest, SchemaViolation};

use crate::host::caller::Caller;
use crate::plugin_request::entry_params::{ParamsReader, ReadExtent};
use crate::plugin_request::params_memory::{ParamsMemory, busy_rejection};
use crate::plugin_request::parsed_call::with_listed_uri;
use crate::protocol::jsonrpc::Error;
use crate::session::client_session::Session;

/// The retained text of a request.
pub(super) struct RetainedRequest {
    params: Option<Box<RawValue>>,
    read: ParamsReader,
    /// Reservation for the bytes of the text.
    _held: QuotaPortion,
}

/// A retained request that was parsed again.
pub(super) struct ReparsedRequest {
    pub(super) request: CallRequest,
    /// Corrected errors in its arguments.
    pub(super) corrected: Vec<SchemaViolation>,
    /// Reservation for the bytes that it takes.
    pub(super) held: QuotaPortion,
}

impl RetainedRequest {
    pub(super) fn retain(
        session: &Session,
        caller: &Caller,
        params: Option<&RawValue>,
        read: ParamsReader,
    ) -> Result<Self, CallRejection> {
        let held = session
            .request_quota
            .try_reserve(&caller.name, params.map_or(0, |params| params.get().len()))
            .map_err(busy_rejection)?;
        Ok(Self {
            params: params.map(ToOwned::to_owned),
            read,
            _held: held,
        })
    }

    /// Parses the retained request again and reserves the bytes that it takes.
    ///
    /// # Errors
    ///
    /// There is no memory for it now.
    pub(super) fn parse_again(&self, session: &Session) -> Result<ReparsedRequest, CallFailure> {
        let params = self.params.as_deref();
        // It was parsed before, so it is not malformed.
        let memory =
            ParamsMemory::reserve(session, &session.opener, params).map_err(internal_failure)?;
        let held = memory.into_reservation().map_err(CallFailure::Rejected)?;
        let mut parsed = (self.read)(params, ReadExtent::Whole).map_err(internal_failure)?;
        let memory = ParamsMemory::Reserved(held)
            .unpack_arguments(session, params, &mut parsed)
            .map_err(internal_failure)?;
        Ok(ReparsedRequest {
            held: memory.into_reservation().map_err(CallFailure::Rejected)?,
            request: with_listed_uri(session, parsed.request),
            corrected: parsed.corrected,
        })
    }
}

fn internal_failure(error: Error) -> CallFailure {
    CallFailure::Call(CallError::Internal(error.message))
}
