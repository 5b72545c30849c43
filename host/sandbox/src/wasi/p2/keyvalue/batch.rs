//! `wasi:keyvalue/batch`, which is identical in all versions.

use toolbay_state::BucketChange;
use wasmtime::component::Linker;

use super::guest_result::KeyValueResult;
use super::operation::{BucketHandle, KEY_OVERHEAD_BYTES, apply_change, get_bucket, get_values};
use crate::store::state::StoreState;

pub(super) fn add(linker: &mut Linker<StoreState>, name: &str) -> wasmtime::Result<()> {
    let mut batch = linker.instance(name)?;
    batch.func_wrap_async(
        "get-many",
        |mut store, (bucket, keys): (BucketHandle, Vec<String>)| {
            Box::new(async move { Ok((get_many(store.data_mut(), &bucket, keys).await?,)) })
        },
    )?;
    batch.func_wrap_async(
        "set-many",
        |mut store, (bucket, entries): (BucketHandle, Vec<(String, Vec<u8>)>)| {
            Box::new(async move {
                Ok((
                    apply_change(store.data_mut(), &bucket, BucketChange::Set(entries))
                        .await?
                        .map(drop),
                ))
            })
        },
    )?;
    batch.func_wrap_async(
        "delete-many",
        |mut store, (bucket, keys): (BucketHandle, Vec<String>)| {
            Box::new(async move {
                Ok((
                    apply_change(store.data_mut(), &bucket, BucketChange::Delete(keys))
                        .await?
                        .map(drop),
                ))
            })
        },
    )
}

type BatchEntry = Option<(String, Vec<u8>)>;

async fn get_many(
    state: &mut StoreState,
    handle: &BucketHandle,
    keys: Vec<String>,
) -> KeyValueResult<Vec<BatchEntry>> {
    let bucket = get_bucket(state, handle)?;
    // Charge the keys twice: they are returned to the guest with their values.
    let bytes: usize = keys.iter().map(|key| key.len() + KEY_OVERHEAD_BYTES).sum();
    let _memory = state.memory_budget.reserve(2 * bytes)?;
    let values = get_values(state, &bucket, keys.clone()).await?;
    Ok(values.map(|values| {
        keys.into_iter()
            .zip(values)
            .map(|(key, value)| Some((key, value?)))
            .collect()
    }))
}
