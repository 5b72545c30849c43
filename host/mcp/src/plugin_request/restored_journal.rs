//! The journal of an earlier run of a call, restored from the request state that its client sends
//! with the answers.

use std::sync::Arc;

use toolbay_model::CallJournal;

use crate::host::interface::ClientCall;
use crate::host::request_state::{EntryTicket, InvalidState, RequestBinding, TicketRefused};
use crate::plugin_request::input_responses::RetryInput;
use crate::protocol::jsonrpc::{Error, INVALID_REQUEST};
use crate::response::call_response;
use crate::session::client_session::Session;

/// Restores the journal of an earlier run into a call, with the answers to its questions. Returns
/// the ticket of the request state, which is used up; `None` if the client sent no state.
///
/// # Errors
///
/// The request state is invalid, or the server cannot record its use.
pub(super) async fn restore(
    session: &Session,
    call: &mut ClientCall,
    retry: Box<RetryInput>,
) -> Result<Option<EntryTicket>, Error> {
    let RetryInput {
        mut responses,
        state,
    } = *retry;
    let Some(state) = state else {
        call.journal = Arc::new(CallJournal {
            answers: responses,
            ..CallJournal::default()
        });
        return Ok(None);
    };
    let states = session.server.request_states();
    let caller = &session.opener.name;
    let opened = states
        .unseal(&state, RequestBinding::new(caller, &call.request))
        .map_err(call_response::invalid_state_error)?;
    states
        .redeem(opened.ticket, caller)
        .await
        .map_err(|refused| match refused {
            TicketRefused::Used => call_response::invalid_state_error(InvalidState::Used),
            TicketRefused::Lost => call_response::invalid_state_error(InvalidState::Unrecorded),
            TicketRefused::Full => {
                Error::new(INVALID_REQUEST, format!("{refused}: try again later"))
            }
            TicketRefused::Unwritten(_) => call_response::internal_error(&refused.to_string()),
        })?;
    let mut journal = opened.journal;
    // Accepting answers to questions that were not asked could change answers that the call has
    // already acted on.
    let answers = opened
        .question_keys
        .into_iter()
        .filter_map(|key| responses.remove_entry(&key));
    journal.answers.extend(answers);
    call.journal = Arc::new(journal);
    Ok(Some(opened.ticket))
}
