//! What a guest says, message by message, within the bounds of the call.

use bytesize::ByteSize;
use toolbay_guest_mcp::{GuestMessage, GuestNotification, RequestOutcome, read};
use toolbay_model::{JsonSize, Limit};
use wasmtime::Store;

use crate::account::MemoryBudget;
use crate::host_functions::HostFunctions;
use crate::state::StoreState;

/// What came of a request to a guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RequestReply {
    /// A response.
    Outcome(RequestOutcome),
    /// An HTTP response with this status that contains none; its body begins with this.
    Other(u16, String),
    /// Something that cannot be read, and why.
    Wrong(String),
}

/// What one message was.
pub(super) enum MessageKind {
    /// The response.
    Outcome(RequestOutcome),
    /// A request of the guest: its id, as JSON text, and its method.
    Request(String, String),
    /// Nothing that ends the wait.
    Nothing,
    /// No message, and why.
    Wrong(String),
}

/// Takes in what a guest says in one call.
pub(super) struct MessageIntake {
    account: MemoryBudget,
    imports: HostFunctions,
    /// Bytes that it may still say.
    room: usize,
    /// Bytes that it may say in all.
    most: usize,
}

impl MessageIntake {
    /// That of the call that this store is for.
    pub(super) fn of(store: &Store<StoreState>) -> Self {
        let (state, most) = (store.data(), store.hostcall_fuel());
        Self { account: state.account.clone(), imports: state.imports.clone(), room: most, most }
    }

    /// Draws bytes that were said, or that wait to be heard, from what the call may pass on and from its memory.
    ///
    /// # Errors
    ///
    /// Ends the call: it has used up either.
    pub(super) fn take(&mut self, bytes: usize) -> wasmtime::Result<()> {
        self.room = self.room.checked_sub(bytes).ok_or(Limit::Transfer(ByteSize::b(self.most as u64)))?;
        self.hold(bytes)
    }

    /// Draws bytes from the memory of the call.
    ///
    /// # Errors
    ///
    /// Ends the call: it has none left.
    pub(super) fn hold(&self, bytes: usize) -> wasmtime::Result<()> {
        self.account.take(bytes).map_err(Into::into)
    }

    /// Takes in a message that may be the response to the request `id`.
    ///
    /// # Errors
    ///
    /// Ends the call: as values, the message takes more memory than the call may.
    pub(super) fn message(&self, text: &str, id: Option<u64>) -> wasmtime::Result<MessageKind> {
        let limit = self.account.limit();
        if JsonSize::of(text).memory > limit as u64 {
            return Err(Limit::Parsed(ByteSize::b(limit as u64)).into());
        }
        Ok(match read(text) {
            Ok(GuestMessage::Response(said, outcome)) if id.is_some() && said == id => MessageKind::Outcome(outcome),
            // An error without an id is one of what could not be read: there is only one request.
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
