//! Resolves host names, as the call's
//! [`CallSockets`](crate::capability::sockets::call_sockets::CallSockets) allow.

use wasmtime::component::{Accessor, Linker};
use wasmtime_wasi::p3::bindings::sockets::ip_name_lookup::ErrorCode;
use wasmtime_wasi::p3::bindings::sockets::types::IpAddress;

use super::version::versioned;
use crate::capability::sockets::call_sockets::{LOOKUP_MEMORY_BYTES, ResolveFailure};
use crate::store::state::StoreState;

pub(super) fn add(linker: &mut Linker<StoreState>) -> wasmtime::Result<()> {
    let mut names = linker.instance(versioned!("wasi:sockets/ip-name-lookup"))?;
    names.func_wrap_concurrent("resolve-addresses", |store, (name,): (String,)| {
        Box::pin(async move { Ok((resolve(store, name).await?,)) })
    })
}

async fn resolve(
    store: &Accessor<StoreState>,
    name: String,
) -> wasmtime::Result<Result<Vec<IpAddress>, ErrorCode>> {
    let (memory, lookup) = store.with(|mut access| {
        let state = access.data_mut();
        let memory = state.memory_budget.reserve(LOOKUP_MEMORY_BYTES)?;
        wasmtime::error::Ok((memory, state.call_sockets.resolve(&name)))
    })?;
    let resolved = match lookup {
        Ok(addresses) => addresses.await,
        Err(failure) => Err(failure),
    };
    drop(memory);
    Ok(match resolved {
        Ok(addresses) if addresses.is_empty() => Err(ErrorCode::NameUnresolvable),
        Ok(addresses) => Ok(addresses.into_iter().map(IpAddress::from).collect()),
        Err(failure) => Err(to_error_code(failure)),
    })
}

fn to_error_code(failure: ResolveFailure) -> ErrorCode {
    match failure {
        ResolveFailure::Denied => ErrorCode::AccessDenied,
        ResolveFailure::Malformed => ErrorCode::InvalidArgument,
        ResolveFailure::Failed => ErrorCode::NameUnresolvable,
        ResolveFailure::LimitReached => ErrorCode::TemporaryResolverFailure,
    }
}
