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
    let (held, begun) = store.with(|mut access| {
        let state = access.data_mut();
        let held = state.memory_budget.reserve(LOOKUP_MEMORY_BYTES)?;
        wasmtime::error::Ok((held, state.call_sockets.resolve(&name)))
    })?;
    let resolved = match begun {
        Ok(addresses) => addresses.await,
        Err(unresolved) => Err(unresolved),
    };
    drop(held);
    Ok(match resolved {
        Ok(addresses) if addresses.is_empty() => Err(ErrorCode::NameUnresolvable),
        Ok(addresses) => Ok(addresses.into_iter().map(IpAddress::from).collect()),
        Err(unresolved) => Err(error_code(unresolved)),
    })
}

fn error_code(unresolved: ResolveFailure) -> ErrorCode {
    match unresolved {
        ResolveFailure::Denied => ErrorCode::AccessDenied,
        ResolveFailure::Malformed => ErrorCode::InvalidArgument,
        ResolveFailure::Failed => ErrorCode::NameUnresolvable,
        ResolveFailure::LimitReached => ErrorCode::TemporaryResolverFailure,
    }
}
