//! `wasi:keyvalue@0.2.0-draft2`: signed numbers, cursors that are keys, and compare-and-swap.

use toolbay_state::{BucketChange, ChangeOutcome, MAX_KEY_BYTES, PageStart, ValueVersion};
use wasmtime::component::{ComponentType, Linker, Lower, Resource, ResourceType};

use super::batch;
use super::guest_result::{KeyValueError, KeyValueResult};
use super::operation::{
    BucketHandle, CompareOperation, add_store, apply_change_in, get_bucket, get_value, increment,
    list_keys,
};
use crate::store::state::StoreState;

const STORE_INTERFACE: &str = "wasi:keyvalue/store@0.2.0-draft2";
const ATOMICS_INTERFACE: &str = "wasi:keyvalue/atomics@0.2.0-draft2";
const BATCH_INTERFACE: &str = "wasi:keyvalue/batch@0.2.0-draft2";

/// Memory that the handle of a comparison uses for its key and names, in bytes.
const COMPARISON_MEMORY_BYTES: usize = 2 * MAX_KEY_BYTES;

type CasHandle = Resource<CompareOperation>;

/// A page of keys (`store.key-response`).
#[derive(ComponentType, Lower)]
#[component(record)]
struct KeyResponse {
    keys: Vec<String>,
    cursor: Option<String>,
}

/// Error of a swap (`atomics.cas-error`).
#[derive(ComponentType, Lower)]
#[component(variant)]
enum CasError {
    #[component(name = "store-error")]
    Store(KeyValueError),
    #[component(name = "cas-failed")]
    Failed(CasHandle),
}

pub(super) fn add(linker: &mut Linker<StoreState>) -> wasmtime::Result<()> {
    add_store(linker, STORE_INTERFACE)?;
    linker.instance(STORE_INTERFACE)?.func_wrap_async(
        "[method]bucket.list-keys",
        |mut store, (bucket, cursor): (BucketHandle, Option<String>)| {
            Box::new(async move {
                let start = cursor.map_or(PageStart::First, PageStart::After);
                let page = list_keys(store.data_mut(), &bucket, start).await?;
                Ok((page.map(|page| {
                    let cursor = if page.more {
                        page.keys.last().cloned()
                    } else {
                        None
                    };
                    KeyResponse {
                        keys: page.keys,
                        cursor,
                    }
                }),))
            })
        },
    )?;
    let mut atomics = linker.instance(ATOMICS_INTERFACE)?;
    atomics.resource(
        "cas",
        ResourceType::host::<CompareOperation>(),
        |mut store, rep| {
            store.data_mut().table().delete(CasHandle::new_own(rep))?;
            Ok(())
        },
    )?;
    atomics.func_wrap_async(
        "[static]cas.new",
        |mut store, (bucket, key): (BucketHandle, String)| {
            Box::new(async move { Ok((start_comparison(store.data_mut(), &bucket, key).await?,)) })
        },
    )?;
    atomics.func_wrap_async("[method]cas.current", |mut store, (cas,): (CasHandle,)| {
        Box::new(async move { Ok((refresh_comparison(store.data_mut(), &cas).await?,)) })
    })?;
    atomics.func_wrap_async("swap", |mut store, (cas, value): (CasHandle, Vec<u8>)| {
        Box::new(async move { Ok((swap(store.data_mut(), cas, value).await?,)) })
    })?;
    atomics.func_wrap_async(
        "increment",
        |mut store, (bucket, key, delta): (BucketHandle, String, i64)| {
            Box::new(async move {
                let range = i64::MIN.into()..=i64::MAX.into();
                let sum = increment(store.data_mut(), &bucket, key, delta.into(), range).await?;
                Ok((sum.map(|sum| i64::try_from(sum).unwrap_or(i64::MAX)),))
            })
        },
    )?;
    batch::add(linker, BATCH_INTERFACE)
}

async fn start_comparison(
    state: &mut StoreState,
    handle: &BucketHandle,
    key: String,
) -> KeyValueResult<CasHandle> {
    let bucket = get_bucket(state, handle)?;
    if key.len() > MAX_KEY_BYTES {
        return Ok(Err(KeyValueError::Other(
            toolbay_state::StateError::Key(key.len()).to_string(),
        )));
    }
    let memory = state.memory_budget.reserve(COMPARISON_MEMORY_BYTES)?;
    let expected = match get_value(state, &bucket, key.clone()).await? {
        Ok(value) => ValueVersion::from_value(value.as_deref()),
        Err(error) => return Ok(Err(error)),
    };
    Ok(Ok(state.table().push(CompareOperation {
        bucket,
        key,
        expected,
        _memory: memory,
    })?))
}

/// Returns the current value. Later swaps compare with it.
async fn refresh_comparison(
    state: &mut StoreState,
    cas: &CasHandle,
) -> KeyValueResult<Option<Vec<u8>>> {
    let (bucket, key) = {
        let comparison = state.table().get(cas)?;
        (comparison.bucket.clone(), comparison.key.clone())
    };
    let value = get_value(state, &bucket, key).await?;
    if let Ok(value) = &value {
        state.table().get_mut(cas)?.expected = ValueVersion::from_value(value.as_deref());
    }
    Ok(value)
}

async fn swap(
    state: &mut StoreState,
    cas: CasHandle,
    value: Vec<u8>,
) -> wasmtime::Result<Result<(), CasError>> {
    let comparison = state.table().delete(cas)?;
    let change = BucketChange::Swap {
        key: comparison.key.clone(),
        expected: comparison.expected,
        value,
    };
    Ok(
        match apply_change_in(state, &comparison.bucket, change).await? {
            Ok(ChangeOutcome::Conflict(expected)) => {
                Err(CasError::Failed(state.table().push(CompareOperation {
                    expected,
                    ..comparison
                })?))
            }
            Ok(ChangeOutcome::Done | ChangeOutcome::Number(_)) => Ok(()),
            Err(error) => Err(CasError::Store(error)),
        },
    )
}
