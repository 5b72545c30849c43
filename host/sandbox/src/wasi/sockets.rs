//! Sockets are refused when they are made: without a grant they could do nothing, but each would hold a descriptor.

use wasmtime::component::{Linker, Resource};
use wasmtime_wasi::p2::bindings::sockets::network::{ErrorCode, IpAddressFamily};
use wasmtime_wasi::p2::{TcpSocket, UdpSocket};

use super::version::versioned;
use crate::state::State;

pub(super) fn replace(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    let mut tcp = linker.instance(versioned!("wasi:sockets/tcp-create-socket"))?;
    tcp.func_wrap("create-tcp-socket", |_, (_,): (IpAddressFamily,)| {
        Ok((Err::<Resource<TcpSocket>, _>(ErrorCode::AccessDenied),))
    })?;
    let mut udp = linker.instance(versioned!("wasi:sockets/udp-create-socket"))?;
    udp.func_wrap_async("create-udp-socket", |_, (_,): (IpAddressFamily,)| {
        Box::new(async { Ok((Err::<Resource<UdpSocket>, _>(ErrorCode::AccessDenied),)) })
    })
}
