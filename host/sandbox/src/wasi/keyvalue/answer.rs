//! What operations answer to a guest.

use serde::{Deserialize, Serialize};
use toolbay_state::Error as StateError;
use wasmtime::component::{ComponentType, Lower};

use crate::account::Overdrawn;
use crate::state::State;

/// Why an operation failed (`store.error`).
#[derive(Debug, Deserialize, Serialize, ComponentType, Lower)]
#[component(variant)]
pub(super) enum Error {
    #[component(name = "no-such-store")]
    NoSuchStore,
    #[component(name = "access-denied")]
    AccessDenied,
    #[component(name = "other")]
    Other(String),
}

/// An answer for the guest, or an error that ends the call.
pub(super) type Fallible<T> = wasmtime::Result<Result<T, Error>>;

/// The answer of the store to an operation.
pub(super) fn answered<T>(state: &mut State, result: Result<T, StateError>) -> Fallible<T> {
    let error = match result {
        Ok(value) => return Ok(Ok(value)),
        Err(StateError::Stopped) if state.account.is_overdrawn() => return Err(Overdrawn.into()),
        // Nothing else stops an operation that the call still waits for.
        Err(StateError::Stopped) => return Err(state.kept.too_late().into()),
        Err(error) => error,
    };
    state.kept.failed(&error);
    Ok(Err(Error::Other(error.to_string())))
}
