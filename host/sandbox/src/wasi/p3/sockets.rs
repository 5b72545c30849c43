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

use super::closed_resources::ClosedFunction::{Async, Sync};
use super::closed_resources::{ClosedFunction, define_closed};
use super::socket_options;
use super::tcp_socket::{SocketReceiver, SocketSender, TcpState};
use super::version::versioned;
use crate::capability::sockets::call_sockets::{CreateSocketError, is_connectable};
use crate::store::state::StoreState;

type TcpSocketHandle = Resource<TcpState>;

/// Future for the end of a connection's stream.
type ConnectionStreamEnd = FutureReader<Result<(), ErrorCode>>;

/// The type of UDP sockets. It has no values.
enum NoUdpSocket {}

const UDP_FUNCTIONS: [ClosedFunction; 14] = [
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
    types.resource("udp-socket", ResourceType::host::<NoUdpSocket>(), |_, _| {
        Ok(())
    })?;
    types.func_wrap(
        "[static]udp-socket.create",
        |store, (_,): (IpAddressFamily,)| {
            store.data().call_sockets.gate().report_udp();
            Ok((Err::<Resource<NoUdpSocket>, _>(ErrorCode::AccessDenied),))
        },
    )?;
    define_closed(&mut types, &UDP_FUNCTIONS)?;
    types.resource(
        "tcp-socket",
        ResourceType::host::<TcpState>(),
        |mut store, rep| {
            store
                .data_mut()
                .table()
                .delete(TcpSocketHandle::new_own(rep))?;
            Ok(())
        },
    )?;
    types.func_wrap(
        "[static]tcp-socket.create",
        |mut store, (family,): (IpAddressFamily,)| Ok((create_socket(store.data_mut(), family)?,)),
    )?;
    types.func_wrap(
        "[method]tcp-socket.bind",
        |mut store, (socket, address): (TcpSocketHandle, IpSocketAddress)| {
            Ok((bind(store.data_mut(), &socket, address.into())?,))
        },
    )?;
    types.func_wrap_concurrent(
        "[method]tcp-socket.connect",
        |store, (socket, address): (TcpSocketHandle, IpSocketAddress)| {
            Box::pin(async move { Ok((connect(store, &socket, address.into()).await?,)) })
        },
    )?;
    types.func_wrap(
        "[method]tcp-socket.listen",
        |mut store, (socket,): (TcpSocketHandle,)| {
            let state = store.data_mut();
            state.table().get(&socket)?;
            let unspecified = SocketAddr::from(([0, 0, 0, 0], 0));
            // Listening is never allowed. The check reports the denial to the operator.
            let _is_allowed = state
                .call_sockets
                .gate()
                .allows(unspecified, SocketAddrUse::TcpListen);
            wasmtime::error::Ok((Err::<StreamReader<TcpSocketHandle>, _>(
                ErrorCode::AccessDenied,
            ),))
        },
    )?;
    types.func_wrap(
        "[method]tcp-socket.send",
        |store, (socket, data): (TcpSocketHandle, StreamReader<u8>)| {
            Ok((send(store, &socket, data)?,))
        },
    )?;
    types.func_wrap(
        "[method]tcp-socket.receive",
        |store, (socket,): (TcpSocketHandle,)| Ok((receive(store, &socket)?,)),
    )?;
    socket_options::add(&mut types)
}

fn create_socket(
    state: &mut StoreState,
    family: IpAddressFamily,
) -> wasmtime::Result<Result<TcpSocketHandle, ErrorCode>> {
    let descriptors = &state.descriptors;
    let resources = match state.call_sockets.reserve(|| descriptors.acquire()) {
        Ok(reserved) => reserved,
        Err(CreateSocketError::Limit) => {
            return Ok(Err(ErrorCode::Other(Some(
                "too many sockets are open".to_owned(),
            ))));
        }
        Err(CreateSocketError::Memory(error)) => return Err(error.into()),
    };
    match TcpState::new(family, resources) {
        Ok(socket) => Ok(Ok(state.table().push(socket)?)),
        Err(code) => Ok(Err(code)),
    }
}

/// Binds a socket. The system chooses the local address of a connection, so a guest may only bind
/// the unspecified address.
fn bind(
    state: &mut StoreState,
    socket: &TcpSocketHandle,
    address: SocketAddr,
) -> wasmtime::Result<Result<(), ErrorCode>> {
    let socket = state.table().get(socket)?;
    if let Err(code) = socket.check_new() {
        return Ok(Err(code));
    }
    if !socket.supports_address(address) {
        return Ok(Err(ErrorCode::InvalidArgument));
    }
    let is_allowed = state
        .call_sockets
        .gate()
        .allows(address, SocketAddrUse::TcpBind);
    Ok(if is_allowed {
        Ok(())
    } else {
        Err(ErrorCode::AccessDenied)
    })
}

async fn connect(
    store: &Accessor<StoreState>,
    socket: &TcpSocketHandle,
    address: SocketAddr,
) -> wasmtime::Result<Result<(), ErrorCode>> {
    let started = store.with(|mut access| {
        let state = access.data_mut();
        let gate = state.call_sockets.gate();
        let traffic = state.call_sockets.tcp_usage();
        let socket = state.table().get_mut(socket)?;
        if let Err(code) = socket.check_new() {
            return Ok(Err(code));
        }
        if !is_connectable(address) {
            gate.report_invalid_address(address);
            return Ok(Err(ErrorCode::InvalidArgument));
        }
        if !socket.supports_address(address) {
            return Ok(Err(ErrorCode::InvalidArgument));
        }
        if gate.allows(address, SocketAddrUse::TcpConnect) {
            return wasmtime::error::Ok(socket.start_connect());
        }
        match traffic.exceeded() {
            Some(limit) => Err(limit.into()),
            None => Ok(Err(ErrorCode::AccessDenied)),
        }
    })?;
    let connected = match started {
        Ok(tcp_socket) => tcp_socket.connect(address).await,
        Err(code) => return Ok(Err(code)),
    };
    store.with(|mut access| {
        Ok(access
            .data_mut()
            .table()
            .get_mut(socket)?
            .finish_connect(connected))
    })
}

fn send(
    mut store: StoreContextMut<'_, StoreState>,
    socket: &TcpSocketHandle,
    mut data: StreamReader<u8>,
) -> wasmtime::Result<ConnectionStreamEnd> {
    let (end_sender, stream_end) = create_end_future(&mut store)?;
    let state = store.data_mut();
    let traffic = state.call_sockets.tcp_usage();
    match state.table().get_mut(socket)?.take_half(true) {
        Ok(half) => data.pipe(&mut store, SocketSender::new(half, traffic, end_sender))?,
        Err(code) => {
            data.close(&mut store)?;
            drop(end_sender.send(Err(code)));
        }
    }
    Ok(stream_end)
}

fn receive(
    mut store: StoreContextMut<'_, StoreState>,
    socket: &TcpSocketHandle,
) -> wasmtime::Result<(StreamReader<u8>, ConnectionStreamEnd)> {
    let (end_sender, stream_end) = create_end_future(&mut store)?;
    let state = store.data_mut();
    let traffic = state.call_sockets.tcp_usage();
    let received = match state.table().get_mut(socket)?.take_half(false) {
        Ok(half) => StreamReader::new(&mut store, SocketReceiver::new(half, traffic, end_sender))?,
        Err(code) => {
            drop(end_sender.send(Err(code)));
            StreamReader::new(&mut store, std::iter::empty())?
        }
    };
    Ok((received, stream_end))
}

fn create_end_future(
    store: &mut StoreContextMut<'_, StoreState>,
) -> wasmtime::Result<(oneshot::Sender<Result<(), ErrorCode>>, ConnectionStreamEnd)> {
    let (end_sender, end_receiver) = oneshot::channel();
    let stream_end = FutureReader::new(store, async move {
        wasmtime::error::Ok(end_receiver.await.unwrap_or(Ok(())))
    })?;
    Ok((end_sender, stream_end))
}
