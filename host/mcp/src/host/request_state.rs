//! `requestState`: the state of a call that waits for answers. The server seals it and sends it to
//! the client, which returns it when it repeats the request with the answers. The server need not
//! store the state, and the client can neither read nor change it (MCP 2026-07-28, "Multi
//! Round-Trip Requests").
//!
//! A state is valid for one entry of one request of one caller, for ten minutes.

mod binding;
mod record_folder;
mod record_tally;
mod sealing;
mod state_identity;
mod state_lifetime;
#[cfg(test)]
mod tests;
mod used_states;

use std::fmt;
use std::io;
use std::sync::Arc;

use toolbay_model::{ApprovalState, CallJournal};
use toolbay_private::{KEY_BYTES, PrivateFolder};

pub(crate) use self::binding::RequestBinding;
use self::sealing::StateClaim;
use self::state_identity::StateIdentity;
pub(crate) use self::state_lifetime::{STATE_LIFETIME, unix_millis_now};
use self::state_lifetime::{StateId, as_millis};
use self::used_states::UsedStates;
pub(crate) use self::used_states::{EntryTicket, TicketRefused};

/// Maximum size of a state, in bytes: the largest journal that an operator can allow (1 MiB),
/// encrypted and encoded as base64.
pub(crate) const MAX_STATE_BYTES: usize = 2 << 20;

/// Seals states and unseals them, each for one entry. Cheap to clone.
#[derive(Clone)]
pub struct RequestStates(Arc<StatesInner>);

/// Function that returns the Unix time in milliseconds.
type Clock = Box<dyn Fn() -> u64 + Send + Sync>;

struct StatesInner {
    used: UsedStates,
    now: Clock,
}

/// The contents of an unsealed state.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct OpenedState {
    /// The keys of the questions that were asked.
    pub(crate) question_keys: Vec<String>,
    /// The recorded state with which the call must continue.
    pub(crate) journal: CallJournal,
    /// The ticket that limits the state to one entry.
    pub(crate) ticket: EntryTicket,
}

/// The reason that a state is not accepted.
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
    /// Another server has asked a person for an approval with it. Only that server has recorded
    /// whether it was used.
    OtherServer,
    /// The record of used states was lost, so it is unknown whether it was used before.
    Unrecorded,
    /// The plugin or its grant has changed.
    Outdated,
}

impl InvalidState {
    /// Returns the reason as a word for programs.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Tampered => "tampered",
            Self::Expired => "expired",
            Self::Foreign => "foreign",
            Self::Used => "used",
            Self::OtherServer => "elsewhere",
            Self::Unrecorded => "unrecorded",
            Self::Outdated => "outdated",
        }
    }
}

/// Writes the reason and the remedy, for people and models.
impl fmt::Display for InvalidState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reason = match self {
            Self::Tampered => "was changed, or was not made by this server",
            Self::Expired => "is older than 10 minutes",
            Self::Foreign => {
                "belongs to another request: its method and its parameters must be those that it was made for"
            }
            Self::Used => "was used before",
            Self::OtherServer => {
                "is for an approval that another server with the same key has requested: only that server accepts it"
            }
            Self::Unrecorded => "was made before the server lost its record of used states",
            Self::Outdated => "was made before the plugin or its grant changed",
        };
        write!(
            f,
            "requestState {reason}. Send the request again without requestState."
        )
    }
}

impl RequestStates {
    /// Creates states with this key. The record of used states lasts as long as this value.
    ///
    /// # Errors
    ///
    /// The cryptographic library rejects the key.
    pub fn in_memory(key: &[u8; KEY_BYTES]) -> io::Result<Self> {
        let mut server = [0; KEY_BYTES];
        getrandom::fill(&mut server).map_err(|error| io::Error::other(error.to_string()))?;
        let used = UsedStates::in_memory(StateIdentity::with_shared_key(key, server)?);
        Ok(Self::from_parts(used, Box::new(unix_millis_now)))
    }

    /// Opens the states whose key and record of used states are in this directory. Both outlive the
    /// server, and all servers that use the directory share them. If `key` is given, it replaces
    /// the key in the directory, for servers on several machines. Each of them then has a separate
    /// record, and an approval is accepted only by the server that has requested it.
    ///
    /// If a part of the record is lost, no state that was issued before is accepted.
    ///
    /// # Errors
    ///
    /// The directory cannot be read or written.
    pub fn open(folder: PrivateFolder, key: Option<[u8; KEY_BYTES]>) -> io::Result<Self> {
        Self::open_with_clock(folder, key, Box::new(unix_millis_now))
    }

    fn open_with_clock(
        folder: PrivateFolder,
        key: Option<[u8; KEY_BYTES]>,
        now: Clock,
    ) -> io::Result<Self> {
        Ok(Self::from_parts(UsedStates::open(folder, key, now())?, now))
    }

    fn from_parts(used: UsedStates, now: Clock) -> Self {
        Self(Arc::new(StatesInner { used, now }))
    }

    /// Seals the recorded state of a call, with the keys of the questions that are asked now.
    ///
    /// # Errors
    ///
    /// The state would be longer than [`MAX_STATE_BYTES`], or the system provides no random bytes.
    /// The error is a message for the log.
    pub(crate) fn seal(
        &self,
        binding: RequestBinding,
        question_keys: Vec<String>,
        journal: CallJournal,
    ) -> Result<String, String> {
        let mut id = StateId::default();
        getrandom::fill(&mut id)
            .map_err(|error| format!("the system provides no random bytes: {error}"))?;
        let expires = (self.0.now)() + as_millis(STATE_LIFETIME);
        let identity = self.0.used.identity();
        // Only the server that has the record can tell whether an approval was used.
        let server = (journal.approval != ApprovalState::Unasked).then_some(identity.server);
        let state = identity.seal.seal(&StateClaim {
            id,
            expires,
            server,
            binding,
            asked: question_keys,
            journal,
        });
        let state = state.ok_or("a request state cannot be encrypted")?;
        if state.len() > MAX_STATE_BYTES {
            return Err(format!(
                "a request state would have {} bytes, and the maximum is {MAX_STATE_BYTES}",
                state.len()
            ));
        }
        Ok(state)
    }

    /// Unseals a state of the request that `binding` describes. This does not mark the state as
    /// used.
    ///
    /// # Errors
    ///
    /// The state is not accepted.
    pub(crate) fn unseal(
        &self,
        state: &str,
        binding: RequestBinding,
    ) -> Result<OpenedState, InvalidState> {
        if state.len() > MAX_STATE_BYTES {
            return Err(InvalidState::Tampered);
        }
        let identity = self.0.used.identity();
        let StateClaim {
            id,
            expires,
            server,
            binding: sealed_binding,
            asked,
            journal,
        } = identity.seal.open(state).ok_or(InvalidState::Tampered)?;
        if sealed_binding != binding {
            return Err(InvalidState::Foreign);
        }
        if server.is_some_and(|server| server != identity.server) {
            return Err(InvalidState::OtherServer);
        }
        if expires <= (self.0.now)() {
            return Err(InvalidState::Expired);
        }
        if expires.saturating_sub(as_millis(STATE_LIFETIME)) < identity.not_before {
            return Err(InvalidState::Unrecorded);
        }
        Ok(OpenedState {
            question_keys: asked,
            journal,
            ticket: EntryTicket {
                id,
                expires,
                epoch: identity.epoch,
            },
        })
    }

    /// Uses the entry that a state grants to `caller`. When this returns, the use is recorded.
    ///
    /// # Errors
    ///
    /// The entry was used before, the record is full or lost, or the record cannot be written.
    pub(crate) async fn redeem(
        &self,
        ticket: EntryTicket,
        caller: &str,
    ) -> Result<(), TicketRefused> {
        let caller = caller.to_owned();
        self.with_used_states(move |used, now| used.redeem(ticket, &caller, now))
            .await
    }

    /// Restores an entry that was not started.
    pub(crate) async fn restore(&self, ticket: EntryTicket) {
        if let Err(error) = self
            .with_used_states(move |used, now| used.restore(ticket, now))
            .await
        {
            tracing::warn!("a request state that was not used cannot be used again: {error}");
        }
    }

    /// Runs `work`, which reads and writes the record, on a blocking thread if it does I/O.
    async fn with_used_states<T: Send + 'static>(
        &self,
        work: impl FnOnce(&UsedStates, u64) -> Result<T, TicketRefused> + Send + 'static,
    ) -> Result<T, TicketRefused> {
        let states = Arc::clone(&self.0);
        if !states.used.does_blocking_io() {
            return work(&states.used, (states.now)());
        }
        let work = tokio::task::spawn_blocking(move || work(&states.used, (states.now)()));
        work.await
            .unwrap_or_else(|error| Err(TicketRefused::Unwritten(io::Error::other(error))))
    }
}

impl fmt::Debug for RequestStates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RequestStates(…)")
    }
}
