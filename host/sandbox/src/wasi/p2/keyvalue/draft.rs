//! `wasi:keyvalue@0.2.0-draft`, the version of most toolchains: unsigned numbers and numeric
//! cursors.

use toolbay_state::PageStart;
use wasmtime::component::{ComponentType, Linker, Lower};

use super::batch;
use super::guest_result::KeyValueResult;
use super::operation::{BucketHandle, add_store, increment, list_keys};
use crate::store::state::StoreState;

const STORE_INTERFACE: &str = "wasi:keyvalue/store@0.2.0-draft";
const ATOMICS_INTERFACE: &str = "wasi:keyvalue/atomics@0.2.0-draft";
const BATCH_INTERFACE: &str = "wasi:keyvalue/batch@0.2.0-draft";

/// A page of keys (`store.key-response`).
#[derive(ComponentType, Lower)]
#[component(record)]
struct KeyResponse {
    keys: Vec<String>,
    cursor: Option<u64>,
}

pub(super) fn add(linker: &mut Linker<StoreState>) -> wasmtime::Result<()> {
    add_store(linker, STORE_INTERFACE)?;
    linker.instance(STORE_INTERFACE)?.func_wrap_async(
        "[method]bucket.list-keys",
        |mut store, (bucket, cursor): (BucketHandle, Option<u64>)| {
            Box::new(async move { Ok((list_page(store.data_mut(), &bucket, cursor).await?,)) })
        },
    )?;
    linker.instance(ATOMICS_INTERFACE)?.func_wrap_async(
        "increment",
        |mut store, (bucket, key, delta): (BucketHandle, String, u64)| {
            Box::new(async move {
                let range = 0..=i128::from(u64::MAX);
                let sum = increment(store.data_mut(), &bucket, key, delta.into(), range).await?;
                Ok((sum.map(|sum| u64::try_from(sum).unwrap_or(u64::MAX)),))
            })
        },
    )?;
    batch::add(linker, BATCH_INTERFACE)
}

/// Returns a page of keys. The cursor is the number of keys before the page. The handle stores the
/// last of these keys, so that concurrent insertions and deletions do not shift the page. For a
/// cursor of another handle, the store skips that number of keys.
async fn list_page(
    state: &mut StoreState,
    handle: &BucketHandle,
    cursor: Option<u64>,
) -> KeyValueResult<KeyResponse> {
    let last_cursor = state.table().get(handle)?.last_cursor.clone();
    let start = match (cursor, last_cursor) {
        (None, _) => PageStart::First,
        (Some(cursor), Some((position, key))) if cursor == position => PageStart::After(key),
        (Some(cursor), _) => PageStart::Skip(cursor),
    };
    let page = match list_keys(state, handle, start).await? {
        Ok(page) => page,
        Err(error) => return Ok(Err(error)),
    };
    let next = cursor
        .unwrap_or_default()
        .saturating_add(page.keys.len() as u64);
    if let Some(last) = page.keys.last() {
        state.table().get_mut(handle)?.last_cursor = Some((next, last.clone()));
    }
    Ok(Ok(KeyResponse {
        keys: page.keys,
        cursor: page.more.then_some(next),
    }))
}
