//! Reads a guest's messages within the limits of the call.

use bytesize::ByteSize;
use toolbay_guest_mcp::{GuestMessage, GuestNotification, RequestOutcome, parse_message};
use toolbay_model::{JsonSize, Limit};
use wasmtime::Store;

use crate::capability::host_functions::HostFunctions;
use crate::capability::memory_budget::MemoryBudget;
use crate::store::state::StoreState;

/// Result of a request to a guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RequestReply {
    /// A JSON-RPC response.
    Outcome(RequestOutcome),
    /// An HTTP response without a JSON-RPC response: its status and the beginning of its body.
    NotMcp(u16, String),
    /// An invalid response, and the reason.
    Malformed(String),
}

/// A message from the guest.
pub(super) enum MessageKind {
    /// The response to the request.
    Outcome(RequestOutcome),
    /// A request of the guest: its ID, as JSON text, and its method.
    Request(String, String),
    /// Another message, which does not end the wait.
    Ignored,
    /// An invalid message, and the reason.
    Malformed(String),
}

/// Reads and meters the messages of a guest in one call.
pub(super) struct GuestMessageReader {
    memory_budget: MemoryBudget,
    host_functions: HostFunctions,
    /// Number of bytes that the guest may still send.
    transfer_left: usize,
    /// Number of bytes that the guest may send in total.
    transfer_limit: usize,
}

impl GuestMessageReader {
    /// Returns the reader for the call of this store.
    pub(super) fn for_call(store: &Store<StoreState>) -> Self {
        let state = store.data();
        let limit = store.hostcall_fuel();
        Self {
            memory_budget: state.memory_budget.clone(),
            host_functions: state.imports.clone(),
            transfer_left: limit,
            transfer_limit: limit,
        }
    }

    /// Charges bytes to both the transfer budget and the memory budget of the call.
    ///
    /// # Errors
    ///
    /// Ends the call if either budget is exhausted.
    pub(super) fn charge_transfer(&mut self, bytes: usize) -> wasmtime::Result<()> {
        self.transfer_left = self
            .transfer_left
            .checked_sub(bytes)
            .ok_or(Limit::Transfer(ByteSize::b(self.transfer_limit as u64)))?;
        self.charge_memory(bytes)
    }

    /// Charges bytes to the memory budget of the call.
    ///
    /// # Errors
    ///
    /// Ends the call if the budget is exhausted.
    pub(super) fn charge_memory(&self, bytes: usize) -> wasmtime::Result<()> {
        self.memory_budget.charge(bytes).map_err(Into::into)
    }

    /// Reads a message that may be the response to the request `id`.
    ///
    /// # Errors
    ///
    /// Ends the call if the parsed message would exceed the memory limit of the call.
    pub(super) fn read_message(
        &self,
        text: &str,
        id: Option<u64>,
    ) -> wasmtime::Result<MessageKind> {
        let limit = self.memory_budget.limit();
        if JsonSize::measure(text).memory > limit as u64 {
            return Err(Limit::Parsed(ByteSize::b(limit as u64)).into());
        }
        Ok(match parse_message(text) {
            Ok(GuestMessage::Response(response_id, outcome))
                if id.is_some() && response_id == id =>
            {
                MessageKind::Outcome(outcome)
            }
            // An error without an ID refers to a request that the guest could not parse. Only one
            // request is pending.
            Ok(GuestMessage::Response(None, outcome @ RequestOutcome::Error(_)))
                if id.is_some() =>
            {
                MessageKind::Outcome(outcome)
            }
            Ok(GuestMessage::Response(..)) => MessageKind::Ignored,
            Ok(GuestMessage::Request { id, method }) => MessageKind::Request(id, method),
            Ok(GuestMessage::Notification(notification)) => {
                self.forward_notification(notification, id)?;
                MessageKind::Ignored
            }
            Err(why) => MessageKind::Malformed(why),
        })
    }

    fn forward_notification(
        &self,
        notification: GuestNotification,
        id: Option<u64>,
    ) -> Result<(), Limit> {
        match notification {
            GuestNotification::Progress(token, progress) if token == id => {
                self.host_functions.progress(
                    progress.progress,
                    progress.total,
                    progress.message.as_deref(),
                )
            }
            GuestNotification::Log(level, text) => self.host_functions.log(level, &text),
            GuestNotification::Updated(uri) => self.host_functions.resource_updated(&uri),
            GuestNotification::Progress(..) | GuestNotification::Other => Ok(()),
        }
    }
}
