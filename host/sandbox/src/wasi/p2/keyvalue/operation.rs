//! Operations on buckets and keys, which all versions share.

use std::ops::RangeInclusive;

use serde::Serialize;
use serde::de::DeserializeOwned;
use toolbay_model::{ByteReservation, DenialKind};
use toolbay_policy::StateGrant;
use toolbay_state::{
    BucketChange, ChangeOutcome, KeyPage, MAX_KEY_BYTES, PageStart, StateBucket, ValueVersion,
};
use wasmtime::component::{Linker, Resource, ResourceType};

use super::guest_result::{KeyValueError, KeyValueResult, to_guest_result};
use crate::capability::effects::EffectStart;
use crate::capability::keyvalue_call::{BucketError, KeyValueCall};
use crate::context::replay_log::OperationKind;
use crate::store::state::StoreState;

/// Memory that the handle of a bucket uses for a key and names, in bytes.
const BUCKET_MEMORY_BYTES: usize = 2 * MAX_KEY_BYTES;

/// Memory that a list of keys uses per key in addition to its text, in bytes.
pub(super) const KEY_OVERHEAD_BYTES: usize = size_of::<String>();

/// Maximum number of keys in the description of an operation.
const MAX_NAMED_KEYS: usize = 8;

/// A bucket that a guest has opened.
pub(super) struct OpenBucket {
    bucket: StateBucket,
    /// The last cursor that the guest received, and the key before it.
    pub(super) last_cursor: Option<(u64, String)>,
    _memory: ByteReservation,
}

/// A compare-and-swap that a guest has started: the key and the expected value.
pub(super) struct CompareOperation {
    pub(super) bucket: StateBucket,
    pub(super) key: String,
    pub(super) expected: ValueVersion,
    pub(super) _memory: ByteReservation,
}

pub(super) type BucketHandle = Resource<OpenBucket>;

/// Adds the functions of `wasi:keyvalue/store` that all versions have.
pub(super) fn add_store(linker: &mut Linker<StoreState>, name: &str) -> wasmtime::Result<()> {
    let mut store = linker.instance(name)?;
    store.resource(
        "bucket",
        ResourceType::host::<OpenBucket>(),
        |mut store, rep| {
            store
                .data_mut()
                .table()
                .delete(BucketHandle::new_own(rep))?;
            Ok(())
        },
    )?;
    store.func_wrap("open", |mut store, (name,): (String,)| {
        Ok((open_bucket(store.data_mut(), &name)?,))
    })?;
    store.func_wrap_async(
        "[method]bucket.get",
        |mut store, (bucket, key): (BucketHandle, String)| {
            Box::new(async move { Ok((get(store.data_mut(), &bucket, key).await?,)) })
        },
    )?;
    store.func_wrap_async(
        "[method]bucket.set",
        |mut store, (bucket, key, value): (BucketHandle, String, Vec<u8>)| {
            Box::new(async move {
                let set = BucketChange::Set(vec![(key, value)]);
                Ok((apply_change(store.data_mut(), &bucket, set)
                    .await?
                    .map(drop),))
            })
        },
    )?;
    store.func_wrap_async(
        "[method]bucket.delete",
        |mut store, (bucket, key): (BucketHandle, String)| {
            Box::new(async move {
                Ok((
                    apply_change(store.data_mut(), &bucket, BucketChange::Delete(vec![key]))
                        .await?
                        .map(drop),
                ))
            })
        },
    )?;
    store.func_wrap_async(
        "[method]bucket.exists",
        |mut store, (bucket, key): (BucketHandle, String)| {
            Box::new(async move { Ok((exists(store.data_mut(), &bucket, key).await?,)) })
        },
    )
}

fn open_bucket(state: &mut StoreState, name: &str) -> KeyValueResult<BucketHandle> {
    let number = match state
        .effects
        .begin_read(OperationKind::State, || format!("open the bucket {name}"))?
    {
        EffectStart::Execute(number) => number,
        EffectStart::Replay(result) => {
            return push_bucket(
                state,
                postcard::from_bytes(&result)?,
                KeyValueCall::replayed_bucket(name),
            );
        }
    };
    let bucket = state.keyvalue.open_bucket(name);
    let result = match &bucket {
        Ok(_) => Ok(()),
        Err(refusal) => Err(report_refusal(state, refusal)),
    };
    if number.is_recorded() {
        state.effects.end(number, postcard::to_allocvec(&result)?);
    }
    push_bucket(state, result, bucket.ok())
}

/// Returns the handle of an opened bucket.
fn push_bucket(
    state: &mut StoreState,
    result: Result<(), KeyValueError>,
    bucket: Option<StateBucket>,
) -> KeyValueResult<BucketHandle> {
    match (result, bucket) {
        (Ok(()), Some(bucket)) => {
            let memory = state.memory_budget.reserve(BUCKET_MEMORY_BYTES)?;
            Ok(Ok(state.table().push(OpenBucket {
                bucket,
                last_cursor: None,
                _memory: memory,
            })?))
        }
        (Ok(()), None) => Ok(Err(KeyValueError::NoSuchStore)),
        (Err(error), _) => Ok(Err(error)),
    }
}

/// Reports why a bucket cannot be opened, and returns the error for the guest.
fn report_refusal(state: &StoreState, refusal: &BucketError) -> KeyValueError {
    let (why, remedy) = match refusal {
        BucketError::Denied => ("This tool may not keep state.", Some(StateGrant::REMEDY)),
        BucketError::NoCaller => (
            "This tool keeps state for each caller, and this caller is not authenticated.",
            None,
        ),
        BucketError::Disabled => (
            "The server keeps no state (state.folder is empty, or there is no home folder).",
            None,
        ),
        BucketError::InvalidName => return KeyValueError::NoSuchStore,
    };
    state
        .outgoing_http
        .report_denial(DenialKind::State, why, remedy);
    if matches!(refusal, BucketError::Denied) {
        KeyValueError::AccessDenied
    } else {
        KeyValueError::Other(why.to_owned())
    }
}

/// Returns the bucket of a handle. The guest passed the handle, so the bucket exists.
pub(super) fn get_bucket(
    state: &mut StoreState,
    handle: &BucketHandle,
) -> wasmtime::Result<StateBucket> {
    Ok(state.table().get(handle)?.bucket.clone())
}

pub(super) async fn get_values(
    state: &mut StoreState,
    bucket: &StateBucket,
    keys: Vec<String>,
) -> KeyValueResult<Vec<Option<Vec<u8>>>> {
    let effect = state.effects.begin(OperationKind::State, || {
        describe_operation("get", bucket, &keys)
    })?;
    run_once(state, effect, async move |state| {
        let Some((store, _)) = state.keyvalue.store() else {
            return Ok(Err(KeyValueError::AccessDenied));
        };
        let guard = state.keyvalue.start_operation();
        to_guest_result(state, store.get(bucket, keys, guard.payer()).await)
    })
    .await
}

pub(super) async fn get_value(
    state: &mut StoreState,
    bucket: &StateBucket,
    key: String,
) -> KeyValueResult<Option<Vec<u8>>> {
    Ok(get_values(state, bucket, vec![key])
        .await?
        .map(|values| values.into_iter().next().flatten()))
}

async fn get(
    state: &mut StoreState,
    handle: &BucketHandle,
    key: String,
) -> KeyValueResult<Option<Vec<u8>>> {
    let bucket = get_bucket(state, handle)?;
    get_value(state, &bucket, key).await
}

async fn exists(
    state: &mut StoreState,
    handle: &BucketHandle,
    key: String,
) -> KeyValueResult<bool> {
    let bucket = get_bucket(state, handle)?;
    let effect = state.effects.begin(OperationKind::State, || {
        describe_operation("exists", &bucket, [&key])
    })?;
    run_once(state, effect, async move |state| {
        let Some((store, _)) = state.keyvalue.store() else {
            return Ok(Err(KeyValueError::AccessDenied));
        };
        let guard = state.keyvalue.start_operation();
        to_guest_result(state, store.exists(&bucket, key, guard.payer()).await)
    })
    .await
}

pub(super) async fn list_keys(
    state: &mut StoreState,
    handle: &BucketHandle,
    start: PageStart,
) -> KeyValueResult<KeyPage> {
    let bucket = get_bucket(state, handle)?;
    let effect = state.effects.begin(OperationKind::State, || {
        describe_operation("list keys", &bucket, [])
    })?;
    run_once(state, effect, async move |state| {
        let Some((store, _)) = state.keyvalue.store() else {
            return Ok(Err(KeyValueError::AccessDenied));
        };
        let guard = state.keyvalue.start_operation();
        to_guest_result(state, store.keys(&bucket, start, guard.payer()).await)
    })
    .await
}

pub(super) async fn apply_change(
    state: &mut StoreState,
    handle: &BucketHandle,
    change: BucketChange,
) -> KeyValueResult<ChangeOutcome> {
    let bucket = get_bucket(state, handle)?;
    apply_change_in(state, &bucket, change).await
}

pub(super) async fn apply_change_in(
    state: &mut StoreState,
    bucket: &StateBucket,
    change: BucketChange,
) -> KeyValueResult<ChangeOutcome> {
    // The arguments were copied from the guest and wait in the queue.
    let _memory = state.memory_budget.reserve(change.bytes())?;
    let effect = state
        .effects
        .begin(OperationKind::State, || describe_change(bucket, &change))?;
    run_once(state, effect, async move |state| {
        let Some((store, quota)) = state.keyvalue.store() else {
            return Ok(Err(KeyValueError::AccessDenied));
        };
        let guard = state.keyvalue.start_operation();
        to_guest_result(
            state,
            store.change(bucket, quota, change, guard.payer()).await,
        )
    })
    .await
}

/// Performs an operation, unless an earlier run or the recording of the call has its result.
async fn run_once<T: Serialize + DeserializeOwned>(
    state: &mut StoreState,
    effect: EffectStart,
    operation: impl AsyncFnOnce(&mut StoreState) -> KeyValueResult<T>,
) -> KeyValueResult<T> {
    let number = match effect {
        EffectStart::Replay(result) => return Ok(postcard::from_bytes(&result)?),
        EffectStart::Execute(number) => number,
    };
    let result = operation(state).await?;
    if number.is_recorded() {
        state.effects.end(number, postcard::to_allocvec(&result)?);
    }
    Ok(result)
}

/// Describes an operation in terms that the plugin's author recognizes.
fn describe_operation<'a>(
    operation: &str,
    bucket: &StateBucket,
    keys: impl IntoIterator<Item = &'a String>,
) -> String {
    let keys: Vec<&str> = keys
        .into_iter()
        .take(MAX_NAMED_KEYS)
        .map(String::as_str)
        .collect();
    format!(
        "{operation} {} in the bucket {}",
        keys.join(", "),
        bucket.name()
    )
}

fn describe_change(bucket: &StateBucket, change: &BucketChange) -> String {
    match change {
        BucketChange::Set(entries) => {
            describe_operation("set", bucket, entries.iter().map(|(key, _)| key))
        }
        BucketChange::Delete(keys) => describe_operation("delete", bucket, keys),
        BucketChange::Increment { key, .. } => describe_operation("increment", bucket, [key]),
        BucketChange::Swap { key, .. } => describe_operation("swap", bucket, [key]),
    }
}

pub(super) async fn increment(
    state: &mut StoreState,
    handle: &BucketHandle,
    key: String,
    delta: i128,
    range: RangeInclusive<i128>,
) -> KeyValueResult<i128> {
    let result = apply_change(state, handle, BucketChange::Increment { key, delta, range }).await?;
    Ok(result.and_then(|outcome| match outcome {
        ChangeOutcome::Number(number) => Ok(number),
        ChangeOutcome::Done | ChangeOutcome::Conflict(_) => {
            Err(KeyValueError::Other("the store gave no number".to_owned()))
        }
    }))
}
