//! Polls multiple pollables. Which one is ready first differs between runs, so a recording contains
//! the result.

use wasmtime::component::{Linker, Resource};
use wasmtime_wasi::p2::DynPollable;
use wasmtime_wasi_io::bindings::wasi::io::poll::{Host as _, HostPollable as _};

use super::version::versioned;
use crate::store::state::StoreState;

type PollableHandle = Resource<DynPollable>;

pub(super) fn replace(linker: &mut Linker<StoreState>) -> wasmtime::Result<()> {
    let mut poll = linker.instance(versioned!("wasi:io/poll"))?;
    poll.func_wrap_async("poll", |mut store, (handles,): (Vec<PollableHandle>,)| {
        Box::new(async move { Ok((self::poll(store.data_mut(), handles).await?,)) })
    })?;
    poll.func_wrap_async(
        "[method]pollable.ready",
        |mut store, (handle,): (PollableHandle,)| {
            Box::new(async move { Ok((ready(store.data_mut(), handle).await?,)) })
        },
    )
}

async fn poll(state: &mut StoreState, handles: Vec<PollableHandle>) -> wasmtime::Result<Vec<u32>> {
    if handles.len() < 2 || state.tape.is_off() {
        return state.table().poll(handles).await;
    }
    if let Some(recorded) = state.tape.next_recorded_poll() {
        let recorded_handles = recorded
            .iter()
            .map(|index| handles.get(usize::try_from(*index).ok()?).map(reborrow));
        if let Some(ready_handles) = recorded_handles
            .collect::<Option<Vec<_>>>()
            .filter(|waited| !waited.is_empty())
        {
            // These become ready soon, because a replay does not wait for time.
            for handle in ready_handles {
                state.table().block(handle).await?;
            }
            return Ok(recorded);
        }
        // The plugin polls other handles than in the recording.
    }
    let ready = state.table().poll(handles).await?;
    state.tape.record_poll(&ready);
    Ok(ready)
}

async fn ready(state: &mut StoreState, handle: PollableHandle) -> wasmtime::Result<bool> {
    match state.tape.next_recorded_poll().as_deref() {
        Some([]) => return Ok(false),
        Some([_]) => {
            state.table().block(handle).await?;
            return Ok(true);
        }
        _ => {}
    }
    let ready = state.table().ready(handle).await?;
    state.tape.record_poll(if ready { &[0] } else { &[] });
    Ok(ready)
}

fn reborrow(handle: &PollableHandle) -> PollableHandle {
    Resource::new_borrow(handle.rep())
}
