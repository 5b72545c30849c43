//! Sockets. Connections are limited to what the grant allows, and the host memory of each socket is
//! charged to the call. UDP, listening and choosing a local address are not available.
//!
//! A guest without a grant can create a socket, because only a connection attempt shows the host
//! and port that the denial must name. Until then, the socket uses one of the call's descriptors.

use std::net::SocketAddr;

use tokio::sync::oneshot;
use wasmtime::StoreContextMut;
use wasmtime::component::{Accessor, FutureReader, Linker, Resource, ResourceType, StreamReader};
use wasmtime_wasi::p3::bindings::sockets::types::{ErrorCode, IpAddressFamily, IpSocketAddress};
use wasmtime_wasi::sockets::SocketAddrUse;

use super::closed::ClosedFunction::{Async, Sync};
use super::closed::{ClosedFunction, close};
use super::options;
use super::socket::{SocketReceiver, SocketSender, TcpState};
use super::version::versioned;
use crate::sockets::{NoSocket, is_of_a_host};
use crate::state::StoreState;

type Handle = Resource<TcpState>;

/// Future for the end of a connection's stream.
type ConnectionStreamEnd = FutureReader<Result<(), ErrorCode>>;

/// A UDP socket; no value exists.
enum Udp {}

const UDP: [ClosedFunction; 14] = [
    Sync("[method]udp-socket.bind"),
    Sync("[method]udp-socket.connect"),
    Sync("[method]udp-socket.disconnect"),
    Async("[method]udp-socket.send"),
    Async("[method]udp-socket.receive"),
    Sync("[method]udp-socket.get-local-address"),
    Sync("[method]udp-socket.get-remote-address"),
    Sync("[method]udp-socket.get-address-family"),
    Sync("[method]udp-socket.get-unicast-hop-limit"),
    Sync("[method]udp-socket.set-unicast-hop-limit"),
    Sync("[method]udp-socket.get-receive-buffer-size"),
    Sync("[method]udp-socket.set-receive-buffer-size"),
    Sync("[method]udp-socket.get-send-buffer-size"),
    Sync("[method]udp-socket.set-send-buffer-size"),
];

pub(super) fn add(linker: &mut Linker<StoreState>) -> wasmtime::Result<()> {
    let mut types = linker.instance(versioned!("wasi:sockets/types"))?;
    types.resource("udp-socket", ResourceType::host::<Udp>(), |_, _| Ok(()))?;
    types.func_wrap("[static]udp-socket.create", |store, (_,): (IpAddressFamily,)| {
        store.data().sockets.gate().refuse_udp();
        Ok((Err::<Resource<Udp>, _>(ErrorCode::AccessDenied),))
    })?;
    close(&mut types, &UDP)?;
    types.resource("tcp-socket", ResourceType::host::<TcpState>(), |mut store, rep| {
        store.data_mut().table().delete(Handle::new_own(rep))?;
        Ok(())
    })?;
    types.func_wrap("[static]tcp-socket.create", |mut store, (family,): (IpAddressFamily,)| {
        Ok((create(store.data_mut(), family)?,))
    })?;
    types.func_wrap("[method]tcp-socket.bind", |mut store, (socket, address): (Handle, IpSocketAddress)| {
        Ok((bind(store.data_mut(), &socket, address.into())?,))
    })?;
    types.func_wrap_concurrent(
        "[method]tcp-socket.connect",
        |store, (socket, address): (Handle, IpSocketAddress)| {
            Box::pin(async move { Ok((connect(store, &socket, address.into()).await?,)) })
        },
    )?;
    types.func_wrap("[method]tcp-socket.listen", |mut store, (socket,): (Handle,)| {
        let state = store.data_mut();
        state.table().get(&socket)?;
        let nowhere = SocketAddr::from(([0, 0, 0, 0], 0));
        // It never is: the check reports the denial to the operator.
        let _is_allowed = state.sockets.gate().allows(nowhere, SocketAddrUse::TcpListen);
        wasmtime::error::Ok((Err::<StreamReader<Handle>, _>(ErrorCode::AccessDenied),))
    })?;
    types.func_wrap("[method]tcp-socket.send", |store, (socket, data): (Handle, StreamReader<u8>)| {
        Ok((send(store, &socket, data)?,))
    })?;
    types.func_wrap("[method]tcp-socket.receive", |store, (socket,): (Handle,)| Ok((receive(store, &socket)?,)))?;
    options::add(&mut types)
}

fn create(state: &mut StoreState, family: IpAddressFamily) -> wasmtime::Result<Result<Handle, ErrorCode>> {
    let files = &state.files;
    let room = match state.sockets.room(|| files.take()) {
        Ok(room) => room,
        Err(NoSocket::Limit) => return Ok(Err(ErrorCode::Other(Some("too many sockets are open".to_owned())))),
        Err(NoSocket::Memory(overdrawn)) => return Err(overdrawn.into()),
    };
    match TcpState::new(family, room) {
        Ok(socket) => Ok(Ok(state.table().push(socket)?)),
        Err(code) => Ok(Err(code)),
    }
}

/// Binds a socket. The system chooses the local address of a connection, so a guest may only bind
/// the unspecified address.
fn bind(state: &mut StoreState, socket: &Handle, address: SocketAddr) -> wasmtime::Result<Result<(), ErrorCode>> {
    let socket = state.table().get(socket)?;
    if let Err(code) = socket.check_new() {
        return Ok(Err(code));
    }
    if !socket.reaches(address) {
        return Ok(Err(ErrorCode::InvalidArgument));
    }
    let is_allowed = state.sockets.gate().allows(address, SocketAddrUse::TcpBind);
    Ok(if is_allowed { Ok(()) } else { Err(ErrorCode::AccessDenied) })
}

async fn connect(
    store: &Accessor<StoreState>,
    socket: &Handle,
    address: SocketAddr,
) -> wasmtime::Result<Result<(), ErrorCode>> {
    let begun = store.with(|mut access| {
        let state = access.data_mut();
        let (gate, traffic) = (state.sockets.gate(), state.sockets.traffic());
        let socket = state.table().get_mut(socket)?;
        if let Err(code) = socket.check_new() {
            return Ok(Err(code));
        }
        if !is_of_a_host(address) {
            gate.refuse_address(address);
            return Ok(Err(ErrorCode::InvalidArgument));
        }
        if !socket.reaches(address) {
            return Ok(Err(ErrorCode::InvalidArgument));
        }
        if gate.allows(address, SocketAddrUse::TcpConnect) {
            return wasmtime::error::Ok(socket.begin());
        }
        match traffic.exceeded() {
            Some(limit) => Err(limit.into()),
            None => Ok(Err(ErrorCode::AccessDenied)),
        }
    })?;
    let connected = match begun {
        Ok(unconnected) => unconnected.connect(address).await,
        Err(code) => return Ok(Err(code)),
    };
    store.with(|mut access| Ok(access.data_mut().table().get_mut(socket)?.finish(connected)))
}

fn send(
    mut store: StoreContextMut<'_, StoreState>,
    socket: &Handle,
    mut data: StreamReader<u8>,
) -> wasmtime::Result<ConnectionStreamEnd> {
    let (over, ended) = ended(&mut store)?;
    let state = store.data_mut();
    let traffic = state.sockets.traffic();
    match state.table().get_mut(socket)?.end(true) {
        Ok(end) => data.pipe(&mut store, SocketSender::new(end, traffic, over))?,
        Err(code) => {
            data.close(&mut store)?;
            drop(over.send(Err(code)));
        }
    }
    Ok(ended)
}

fn receive(
    mut store: StoreContextMut<'_, StoreState>,
    socket: &Handle,
) -> wasmtime::Result<(StreamReader<u8>, ConnectionStreamEnd)> {
    let (over, ended) = ended(&mut store)?;
    let state = store.data_mut();
    let traffic = state.sockets.traffic();
    let received = match state.table().get_mut(socket)?.end(false) {
        Ok(end) => StreamReader::new(&mut store, SocketReceiver::new(end, traffic, over))?,
        Err(code) => {
            drop(over.send(Err(code)));
            StreamReader::new(&mut store, std::iter::empty())?
        }
    };
    Ok((received, ended))
}

fn ended(
    store: &mut StoreContextMut<'_, StoreState>,
) -> wasmtime::Result<(oneshot::Sender<Result<(), ErrorCode>>, ConnectionStreamEnd)> {
    let (over, is_over) = oneshot::channel();
    let ended = FutureReader::new(store, async move { wasmtime::error::Ok(is_over.await.unwrap_or(Ok(()))) })?;
    Ok((over, ended))
}
