//! What the functions of all versions do with a bucket, and with the keys in it.

use std::ops::RangeInclusive;

use serde::Serialize;
use serde::de::DeserializeOwned;
use toolbay_model::UseKind;
use toolbay_policy::StateGrant;
use toolbay_state::{Bucket, Change, Changed, KEY, Page, Start, Version};
use wasmtime::component::{Linker, Resource, ResourceType};

use super::answer::{Error, Fallible, answered};
use crate::account::Held;
use crate::effects::Begun;
use crate::kept::{Closed, Kept};
use crate::state::State;
use crate::tape::Kind;

/// Bytes that the handle of a bucket holds: a key, and names.
const BUCKET_HELD: usize = 2 * KEY;

/// Bytes that a list of keys holds for each key, besides its text.
pub(super) const KEY_HELD: usize = size_of::<String>();

/// Keys of an operation that its description names.
const NAMED: usize = 8;

/// A bucket that a guest has open.
pub(super) struct Open {
    bucket: Bucket,
    /// A cursor that was given to the guest, and the last key before it.
    pub(super) last: Option<(u64, String)>,
    _memory: Held,
}

/// A comparison that a guest has begun: the key, and what its value was.
pub(super) struct Comparison {
    pub(super) bucket: Bucket,
    pub(super) key: String,
    pub(super) expected: Version,
    pub(super) _memory: Held,
}

pub(super) type Handle = Resource<Open>;

/// Adds the functions of `wasi:keyvalue/store` that all versions have.
pub(super) fn add_store(linker: &mut Linker<State>, name: &str) -> wasmtime::Result<()> {
    let mut store = linker.instance(name)?;
    store.resource("bucket", ResourceType::host::<Open>(), |mut store, rep| {
        store.data_mut().table().delete(Handle::new_own(rep))?;
        Ok(())
    })?;
    store.func_wrap("open", |mut store, (name,): (String,)| Ok((open(store.data_mut(), &name)?,)))?;
    store.func_wrap_async("[method]bucket.get", |mut store, (bucket, key): (Handle, String)| {
        Box::new(async move { Ok((get(store.data_mut(), &bucket, key).await?,)) })
    })?;
    store.func_wrap_async("[method]bucket.set", |mut store, (bucket, key, value): (Handle, String, Vec<u8>)| {
        Box::new(async move {
            let set = Change::Set(vec![(key, value)]);
            Ok((change(store.data_mut(), &bucket, set).await?.map(drop),))
        })
    })?;
    store.func_wrap_async("[method]bucket.delete", |mut store, (bucket, key): (Handle, String)| {
        Box::new(async move { Ok((change(store.data_mut(), &bucket, Change::Delete(vec![key])).await?.map(drop),)) })
    })?;
    store.func_wrap_async("[method]bucket.exists", |mut store, (bucket, key): (Handle, String)| {
        Box::new(async move { Ok((exists(store.data_mut(), &bucket, key).await?,)) })
    })
}

fn open(state: &mut State, name: &str) -> Fallible<Handle> {
    let number = match state.effects.look(Kind::State, || format!("open the bucket {name}"))? {
        Begun::Now(number) => number,
        Begun::Before(answer) => return opened(state, postcard::from_bytes(&answer)?, Kept::bucket_again(name)),
    };
    let bucket = state.kept.bucket(name);
    let answer = match &bucket {
        Ok(_) => Ok(()),
        Err(closed) => Err(refusal(state, closed)),
    };
    if number.is_wanted() {
        state.effects.end(number, postcard::to_allocvec(&answer)?);
    }
    opened(state, answer, bucket.ok())
}

/// The handle of a bucket that can be opened.
fn opened(state: &mut State, answer: Result<(), Error>, bucket: Option<Bucket>) -> Fallible<Handle> {
    match (answer, bucket) {
        (Ok(()), Some(bucket)) => {
            let memory = state.account.hold(BUCKET_HELD)?;
            Ok(Ok(state.table().push(Open { bucket, last: None, _memory: memory })?))
        }
        (Ok(()), None) => Ok(Err(Error::NoSuchStore)),
        (Err(error), _) => Ok(Err(error)),
    }
}

/// Reports why a bucket cannot be opened, and says it to the guest.
fn refusal(state: &State, closed: &Closed) -> Error {
    let (why, remedy) = match closed {
        Closed::Denied => ("This tool may not keep state.", Some(StateGrant::REMEDY)),
        Closed::NoCaller => ("This tool keeps state for each caller, and this caller is not authenticated.", None),
        Closed::Off => ("The server keeps no state (state.folder is empty, or there is no home folder).", None),
        Closed::Name => return Error::NoSuchStore,
    };
    state.requests.deny(UseKind::State, why, remedy);
    if matches!(closed, Closed::Denied) { Error::AccessDenied } else { Error::Other(why.to_owned()) }
}

/// A bucket that a guest has open. The guest gave its handle, so it is there.
pub(super) fn bucket(state: &mut State, handle: &Handle) -> wasmtime::Result<Bucket> {
    Ok(state.table().get(handle)?.bucket.clone())
}

pub(super) async fn values(state: &mut State, bucket: &Bucket, keys: Vec<String>) -> Fallible<Vec<Option<Vec<u8>>>> {
    let begun = state.effects.begin(Kind::State, || named("get", bucket, &keys))?;
    once(state, begun, async move |state| {
        let Some((store, _)) = state.kept.store() else { return Ok(Err(Error::AccessDenied)) };
        let paying = state.kept.paying();
        answered(state, store.get(bucket, keys, paying.payer()).await)
    })
    .await
}

pub(super) async fn value(state: &mut State, bucket: &Bucket, key: String) -> Fallible<Option<Vec<u8>>> {
    Ok(values(state, bucket, vec![key]).await?.map(|values| values.into_iter().next().flatten()))
}

async fn get(state: &mut State, handle: &Handle, key: String) -> Fallible<Option<Vec<u8>>> {
    let bucket = bucket(state, handle)?;
    value(state, &bucket, key).await
}

async fn exists(state: &mut State, handle: &Handle, key: String) -> Fallible<bool> {
    let bucket = bucket(state, handle)?;
    let begun = state.effects.begin(Kind::State, || named("exists", &bucket, [&key]))?;
    once(state, begun, async move |state| {
        let Some((store, _)) = state.kept.store() else { return Ok(Err(Error::AccessDenied)) };
        let paying = state.kept.paying();
        answered(state, store.exists(&bucket, key, paying.payer()).await)
    })
    .await
}

pub(super) async fn keys(state: &mut State, handle: &Handle, start: Start) -> Fallible<Page> {
    let bucket = bucket(state, handle)?;
    let begun = state.effects.begin(Kind::State, || named("list keys", &bucket, []))?;
    once(state, begun, async move |state| {
        let Some((store, _)) = state.kept.store() else { return Ok(Err(Error::AccessDenied)) };
        let paying = state.kept.paying();
        answered(state, store.keys(&bucket, start, paying.payer()).await)
    })
    .await
}

pub(super) async fn change(state: &mut State, handle: &Handle, change: Change) -> Fallible<Changed> {
    let bucket = bucket(state, handle)?;
    change_in(state, &bucket, change).await
}

pub(super) async fn change_in(state: &mut State, bucket: &Bucket, change: Change) -> Fallible<Changed> {
    // What the guest gave was copied, and waits for its turn.
    let _memory = state.account.hold(change.bytes())?;
    let begun = state.effects.begin(Kind::State, || described(bucket, &change))?;
    once(state, begun, async move |state| {
        let Some((store, quota)) = state.kept.store() else { return Ok(Err(Error::AccessDenied)) };
        let paying = state.kept.paying();
        answered(state, store.change(bucket, quota, change, paying.payer()).await)
    })
    .await
}

/// Does an operation, unless the call did it before: then the answer is the one of that time.
async fn once<T: Serialize + DeserializeOwned>(
    state: &mut State,
    begun: Begun,
    operation: impl AsyncFnOnce(&mut State) -> Fallible<T>,
) -> Fallible<T> {
    let number = match begun {
        Begun::Before(answer) => return Ok(postcard::from_bytes(&answer)?),
        Begun::Now(number) => number,
    };
    let answer = operation(state).await?;
    if number.is_wanted() {
        state.effects.end(number, postcard::to_allocvec(&answer)?);
    }
    Ok(answer)
}

/// An operation, as the author knows it.
fn named<'a>(operation: &str, bucket: &Bucket, keys: impl IntoIterator<Item = &'a String>) -> String {
    let keys: Vec<&str> = keys.into_iter().take(NAMED).map(String::as_str).collect();
    format!("{operation} {} in the bucket {}", keys.join(", "), bucket.name())
}

fn described(bucket: &Bucket, change: &Change) -> String {
    match change {
        Change::Set(entries) => named("set", bucket, entries.iter().map(|(key, _)| key)),
        Change::Delete(keys) => named("delete", bucket, keys),
        Change::Increment { key, .. } => named("increment", bucket, [key]),
        Change::Swap { key, .. } => named("swap", bucket, [key]),
    }
}

pub(super) async fn increment(
    state: &mut State,
    handle: &Handle,
    key: String,
    delta: i128,
    range: RangeInclusive<i128>,
) -> Fallible<i128> {
    let changed = change(state, handle, Change::Increment { key, delta, range }).await?;
    Ok(changed.and_then(|changed| match changed {
        Changed::Number(number) => Ok(number),
        Changed::Done | Changed::Conflict(_) => Err(Error::Other("the store gave no number".to_owned())),
    }))
}
