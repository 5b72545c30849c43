//! Reads a guest's messages within the limits of the call.

use bytesize::ByteSize;
use toolbay_guest_mcp::{GuestMessage, GuestNotification, RequestOutcome, read};
use toolbay_model::{JsonSize, Limit};
use wasmtime::Store;

use crate::account::MemoryBudget;
use crate::host_functions::HostFunctions;
use crate::state::StoreState;

/// Result of a request to a guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RequestReply {
    /// A JSON-RPC response.
    Outcome(RequestOutcome),
    /// An HTTP response without a JSON-RPC response: its status and the beginning of its body.
    Other(u16, String),
    /// An invalid response, and the reason.
    Wrong(String),
}

/// A message from the guest.
pub(super) enum MessageKind {
    /// The response to the request.
    Outcome(RequestOutcome),
    /// A request of the guest: its ID, as JSON text, and its method.
    Request(String, String),
    /// Another message, which does not end the wait.
    Nothing,
    /// An invalid message, and the reason.
    Wrong(String),
}

/// Reads and meters the messages of a guest in one call.
pub(super) struct MessageIntake {
    account: MemoryBudget,
    imports: HostFunctions,
    /// Number of bytes that the guest may still send.
    room: usize,
    /// Number of bytes that the guest may send in total.
    most: usize,
}

impl MessageIntake {
    /// Returns the reader for the call of this store.
    pub(super) fn of(store: &Store<StoreState>) -> Self {
        let (state, most) = (store.data(), store.hostcall_fuel());
        Self { account: state.account.clone(), imports: state.imports.clone(), room: most, most }
    }

    /// Charges bytes to both the transfer budget and the memory budget of the call.
    ///
    /// # Errors
    ///
    /// Ends the call if either budget is exhausted.
    pub(super) fn take(&mut self, bytes: usize) -> wasmtime::Result<()> {
        self.room = self.room.checked_sub(bytes).ok_or(Limit::Transfer(ByteSize::b(self.most as u64)))?;
        self.hold(bytes)
    }

    /// Charges bytes to the memory budget of the call.
    ///
    /// # Errors
    ///
    /// Ends the call if the budget is exhausted.
    pub(super) fn hold(&self, bytes: usize) -> wasmtime::Result<()> {
        self.account.take(bytes).map_err(Into::into)
    }

    /// Reads a message that may be the response to the request `id`.
    ///
    /// # Errors
    ///
    /// Ends the call if the parsed message would exceed the memory limit of the call.
    pub(super) fn message(&self, text: &str, id: Option<u64>) -> wasmtime::Result<MessageKind> {
        let limit = self.account.limit();
        if JsonSize::of(text).memory > limit as u64 {
            return Err(Limit::Parsed(ByteSize::b(limit as u64)).into());
        }
        Ok(match read(text) {
            Ok(GuestMessage::Response(said, outcome)) if id.is_some() && said == id => MessageKind::Outcome(outcome),
            // An error without an ID refers to a request that the guest could not parse. Only one
            // request is pending.
            Ok(GuestMessage::Response(None, outcome @ RequestOutcome::Problem(_))) if id.is_some() => {
                MessageKind::Outcome(outcome)
            }
            Ok(GuestMessage::Response(..)) => MessageKind::Nothing,
            Ok(GuestMessage::Request { id, method }) => MessageKind::Request(id, method),
            Ok(GuestMessage::Notice(notice)) => {
                self.notice(notice, id);
                MessageKind::Nothing
            }
            Err(why) => MessageKind::Wrong(why),
        })
    }

    fn notice(&self, notice: GuestNotification, id: Option<u64>) {
        match notice {
            GuestNotification::Progress(token, progress) if token == id => {
                self.imports.progress(progress.progress, progress.total, progress.message.as_deref());
            }
            GuestNotification::Log(level, text) => self.imports.log(level, &text),
            GuestNotification::Updated(uri) => self.imports.resource_updated(&uri),
            GuestNotification::Progress(..) | GuestNotification::Other => {}
        }
    }
}
