//! What a guest says, message by message, within the bounds of the call.

use bytesize::ByteSize;
use toolbay_guest_mcp::{Message, Notice, Outcome, read};
use toolbay_model::{JsonSize, Limit};
use wasmtime::Store;

use crate::account::Account;
use crate::imports::Imports;
use crate::state::State;

/// What came of a request to a guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Said {
    /// A response.
    Outcome(Outcome),
    /// An HTTP response with this status that contains none; its body begins with this.
    Other(u16, String),
    /// Something that cannot be read, and why.
    Wrong(String),
}

/// What one message was.
pub(super) enum Heard {
    /// The response.
    Outcome(Outcome),
    /// A request of the guest: its id, as JSON text, and its method.
    Request(String, String),
    /// Nothing that ends the wait.
    Nothing,
    /// No message, and why.
    Wrong(String),
}

/// Takes in what a guest says in one call.
pub(super) struct Intake {
    account: Account,
    imports: Imports,
    /// Bytes that it may still say.
    room: usize,
    /// Bytes that it may say in all.
    most: usize,
}

impl Intake {
    /// That of the call that this store is for.
    pub(super) fn of(store: &Store<State>) -> Self {
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
    pub(super) fn message(&self, text: &str, id: Option<u64>) -> wasmtime::Result<Heard> {
        let limit = self.account.limit();
        if JsonSize::of(text).memory > limit as u64 {
            return Err(Limit::Parsed(ByteSize::b(limit as u64)).into());
        }
        Ok(match read(text) {
            Ok(Message::Response(said, outcome)) if id.is_some() && said == id => Heard::Outcome(outcome),
            // An error without an id is one of what could not be read: there is only one request.
            Ok(Message::Response(None, outcome @ Outcome::Problem(_))) if id.is_some() => Heard::Outcome(outcome),
            Ok(Message::Response(..)) => Heard::Nothing,
            Ok(Message::Request { id, method }) => Heard::Request(id, method),
            Ok(Message::Notice(notice)) => {
                self.notice(notice, id);
                Heard::Nothing
            }
            Err(why) => Heard::Wrong(why),
        })
    }

    fn notice(&self, notice: Notice, id: Option<u64>) {
        match notice {
            Notice::Progress(token, progress) if token == id => {
                self.imports.progress(progress.progress, progress.total, progress.message.as_deref());
            }
            Notice::Log(level, text) => self.imports.log(level, &text),
            Notice::Updated(uri) => self.imports.resource_updated(&uri),
            Notice::Progress(..) | Notice::Other => {}
        }
    }
}
