//! `requestState`: what a call must find as it was when its client repeats the request with the answers, sealed so that
//! the server need not keep it and the client can neither read nor change it (MCP 2026-07-28, "Multi Round-Trip Requests").
//!
//! A state is good for one entry of one request of one caller, for ten minutes.

mod binding;
mod life;
mod sealed;
#[cfg(test)]
mod tests;
mod used;

use std::fmt;
use std::io;
use std::sync::Arc;

use toolbay_model::{ApprovalState, CallJournal};
use toolbay_private::{KEY, PrivateFolder};

pub(crate) use self::binding::RequestBinding;
pub(crate) use self::life::{STATE_LIFETIME, unix_millis_now};
use self::life::{StateId, as_millis};
use self::sealed::{StateClaim, StateSeal};
pub(crate) use self::used::TicketRefused;
use self::used::UsedStates;

/// Longest state, in bytes: the largest journal that an operator can allow (1 MiB), encrypted and written as base64.
pub(crate) const MAX_STATE_BYTES: usize = 2 << 20;

/// Name of the file with the key.
const KEY_FILE: &str = "key";

/// Name of the file with what identifies the servers that share a record, where the key is from elsewhere.
const SERVER_FILE: &str = "server";

/// Seals states and opens them again, each for one entry. Cheap to clone.
#[derive(Clone)]
pub struct RequestStates(Arc<StatesInner>);

struct StatesInner {
    seal: StateSeal,
    used: UsedStates,
    /// Identifies the servers that share the record of used states.
    server: [u8; KEY],
    now: Box<dyn Fn() -> u64 + Send + Sync>,
}

/// What a state holds.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct OpenedState {
    /// The keys of the questions that were asked.
    pub(crate) asked: Vec<String>,
    /// What the call must find as it was.
    pub(crate) journal: CallJournal,
    /// What makes the state good for one entry.
    pub(crate) ticket: EntryTicket,
}

/// What a state gives: one entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EntryTicket {
    id: StateId,
    expires: u64,
}

/// Why a state is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InvalidState {
    /// It was changed, or made with another key.
    Tampered,
    /// It is too old.
    Expired,
    /// It belongs to another caller, method or request.
    Foreign,
    /// It was used before.
    Used,
    /// Another server has asked a person for an approval with it, and remembers whether it was used.
    Elsewhere,
    /// The plugin or its grant has changed.
    Outdated,
}

impl InvalidState {
    /// The word for programs.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Tampered => "tampered",
            Self::Expired => "expired",
            Self::Foreign => "foreign",
            Self::Used => "used",
            Self::Elsewhere => "elsewhere",
            Self::Outdated => "outdated",
        }
    }
}

/// What is wrong and what to do, for people and models.
impl fmt::Display for InvalidState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self {
            Self::Tampered => "was changed, or was not made by this server",
            Self::Expired => "is older than 10 minutes",
            Self::Foreign => {
                "belongs to another request: its method and its parameters must be those that it was made for"
            }
            Self::Used => "was used before",
            Self::Elsewhere => {
                "is for an approval that another server with the same key has asked for: a yes counts only on that server"
            }
            Self::Outdated => "was made before the plugin or its grant changed",
        };
        write!(f, "requestState {what}. Send the request again without requestState.")
    }
}

impl RequestStates {
    /// States with this key. Used ones are remembered as long as this value lives.
    ///
    /// # Errors
    ///
    /// The cryptographic library refuses the key.
    pub fn in_memory(key: &[u8; KEY]) -> io::Result<Self> {
        let mut server = [0; KEY];
        getrandom::fill(&mut server).map_err(|error| io::Error::other(error.to_string()))?;
        Self::from_parts(key, UsedStates::default(), server)
    }

    /// States whose key, and the record of those that were used, are in this folder: both outlive the server, and all
    /// servers that use the folder share them. `key` takes the place of the key in the folder, for servers on several
    /// machines: each of them then keeps its own record, and an approval counts only on the server that has asked for it.
    ///
    /// # Errors
    ///
    /// The folder cannot be read or written.
    pub fn open(folder: PrivateFolder, key: Option<[u8; KEY]>) -> io::Result<Self> {
        const LOST: &str = "calls that wait for answers cannot be continued";
        let (key, server) = if let Some(key) = key {
            (key, folder.key(SERVER_FILE, LOST)?)
        } else {
            // Whoever has this key has this folder.
            (folder.key(KEY_FILE, LOST)?, [0; KEY])
        };
        Self::from_parts(&key, UsedStates::in_folder(folder), server)
    }

    fn from_parts(key: &[u8; KEY], used: UsedStates, server: [u8; KEY]) -> io::Result<Self> {
        let seal = StateSeal::new(key).ok_or_else(|| io::Error::other("the key of request states cannot be used"))?;
        Ok(Self(Arc::new(StatesInner { seal, used, server, now: Box::new(unix_millis_now) })))
    }

    /// Seals what a call must find as it was, with the keys of the questions that are asked now.
    ///
    /// # Errors
    ///
    /// The state would be longer than [`MAX_STATE_BYTES`], or the system provides no random bytes; in words for the log.
    pub(crate) fn seal(
        &self,
        binding: RequestBinding,
        asked: Vec<String>,
        journal: CallJournal,
    ) -> Result<String, String> {
        let mut id = StateId::default();
        getrandom::fill(&mut id).map_err(|error| format!("the system provides no random bytes: {error}"))?;
        let expires = (self.0.now)() + as_millis(STATE_LIFETIME);
        // Whether a yes was used is known only where that is remembered.
        let server = (journal.approval != ApprovalState::Unasked).then_some(self.0.server);
        let state = self.0.seal.seal(&StateClaim { id, expires, server, binding, asked, journal });
        let state = state.ok_or("a request state cannot be encrypted")?;
        if state.len() > MAX_STATE_BYTES {
            return Err(format!("a request state would have {} bytes, and the most is {MAX_STATE_BYTES}", state.len()));
        }
        Ok(state)
    }

    /// Opens a state of the request that `binding` describes. It is not used by that.
    ///
    /// # Errors
    ///
    /// It is not accepted.
    pub(crate) fn unseal(&self, state: &str, binding: RequestBinding) -> Result<OpenedState, InvalidState> {
        if state.len() > MAX_STATE_BYTES {
            return Err(InvalidState::Tampered);
        }
        let StateClaim { id, expires, server, binding: own, asked, journal } =
            self.0.seal.open(state).ok_or(InvalidState::Tampered)?;
        if own != binding {
            return Err(InvalidState::Foreign);
        }
        if server.is_some_and(|server| server != self.0.server) {
            return Err(InvalidState::Elsewhere);
        }
        if expires <= (self.0.now)() {
            return Err(InvalidState::Expired);
        }
        Ok(OpenedState { asked, journal, ticket: EntryTicket { id, expires } })
    }

    /// Uses the entry that a state gives `caller`. When this returns, that is written down.
    ///
    /// # Errors
    ///
    /// It was used before, there is no room to remember it, or that cannot be written.
    pub(crate) async fn redeem(&self, ticket: EntryTicket, caller: &str) -> Result<(), TicketRefused> {
        let caller = caller.to_owned();
        self.with_used_states(move |used, now| used.redeem(ticket.id, ticket.expires, &caller, now)).await
    }

    /// Gives back an entry that was not begun.
    pub(crate) async fn restore(&self, ticket: EntryTicket) {
        if let Err(error) = self.with_used_states(move |used, now| used.restore(ticket.id, ticket.expires, now)).await {
            tracing::warn!("a request state that was not used cannot be used again: {error}");
        }
    }

    /// Runs what reads and writes the record, where it may block.
    async fn with_used_states<T: Send + 'static>(
        &self,
        work: impl FnOnce(&UsedStates, u64) -> Result<T, TicketRefused> + Send + 'static,
    ) -> Result<T, TicketRefused> {
        let states = Arc::clone(&self.0);
        if !states.used.does_blocking_io() {
            return work(&states.used, (states.now)());
        }
        let work = tokio::task::spawn_blocking(move || work(&states.used, (states.now)()));
        work.await.unwrap_or_else(|error| Err(TicketRefused::Unwritten(io::Error::other(error))))
    }
}

impl fmt::Debug for RequestStates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RequestStates(…)")
    }
}
