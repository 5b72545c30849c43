//! Results of operations for the guest.

use serde::{Deserialize, Serialize};
use toolbay_state::StateError;
use wasmtime::component::{ComponentType, Lower};

use crate::capability::memory_budget::BudgetExceeded;
use crate::store::state::StoreState;

/// Error of an operation (`store.error`).
#[derive(Debug, Deserialize, Serialize, ComponentType, Lower)]
#[component(variant)]
pub(super) enum KeyValueError {
    #[component(name = "no-such-store")]
    NoSuchStore,
    #[component(name = "access-denied")]
    AccessDenied,
    #[component(name = "other")]
    Other(String),
}

/// Result for the guest, or an error that ends the call.
pub(super) type KeyValueResult<T> = wasmtime::Result<Result<T, KeyValueError>>;

/// Converts the store's result of an operation.
pub(super) fn to_guest_result<T>(
    state: &mut StoreState,
    result: Result<T, StateError>,
) -> KeyValueResult<T> {
    let error = match result {
        Ok(value) => return Ok(Ok(value)),
        Err(StateError::Stopped) if state.memory_budget.is_exceeded() => {
            return Err(BudgetExceeded.into());
        }
        // Only the deadline stops an operation that the call still waits for.
        Err(StateError::Stopped) => return Err(state.keyvalue.deadline_limit().into()),
        Err(error) => error,
    };
    state.keyvalue.record_error(&error);
    Ok(Err(KeyValueError::Other(error.to_string())))
}
