//! Options of TCP sockets.

use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use rustix::net::sockopt;
use wasmtime::component::{ComponentType, LinkerInstance, Lower, Resource};
use wasmtime_wasi::p3::bindings::sockets::types::{ErrorCode, IpAddressFamily, IpSocketAddress};

use super::socket::TcpState;
use crate::sockets::KERNEL;
use crate::state::StoreState;

/// Maximum time between keep-alive probes that every system accepts, in seconds.
const LONGEST: u64 = 32_767;

/// Maximum number of keep-alive probes that every system accepts.
const MOST: u32 = 127;

type Handle = Resource<TcpState>;

pub(super) fn add(tcp: &mut LinkerInstance<'_, StoreState>) -> wasmtime::Result<()> {
    addresses(tcp)?;
    keep_alive(tcp)?;
    get(tcp, "[method]tcp-socket.get-hop-limit", |socket, fd| match socket.family {
        IpAddressFamily::Ipv4 => sockopt::ip_ttl(fd).map(|hops| u8::try_from(hops).unwrap_or(u8::MAX)),
        IpAddressFamily::Ipv6 => sockopt::ipv6_unicast_hops(fd),
    })?;
    tcp.func_wrap("[method]tcp-socket.set-hop-limit", |mut store, (socket, hops): (Handle, u8)| {
        set(store.data_mut(), &socket, hops == 0, |socket, fd| match socket.family {
            IpAddressFamily::Ipv4 => sockopt::set_ip_ttl(fd, hops.into()),
            IpAddressFamily::Ipv6 => sockopt::set_ipv6_unicast_hops(fd, Some(hops)),
        })
    })?;
    // The system doubles the size for its bookkeeping, and reports the doubled size.
    get(tcp, "[method]tcp-socket.get-receive-buffer-size", |_, fd| {
        sockopt::socket_recv_buffer_size(fd).map(|size| size as u64 / 2)
    })?;
    get(tcp, "[method]tcp-socket.get-send-buffer-size", |_, fd| {
        sockopt::socket_send_buffer_size(fd).map(|size| size as u64 / 2)
    })?;
    tcp.func_wrap("[method]tcp-socket.set-receive-buffer-size", |mut store, (socket, size): (Handle, u64)| {
        set(store.data_mut(), &socket, size == 0, |_, fd| sockopt::set_socket_recv_buffer_size(fd, within(size)))
    })?;
    tcp.func_wrap("[method]tcp-socket.set-send-buffer-size", |mut store, (socket, size): (Handle, u64)| {
        set(store.data_mut(), &socket, size == 0, |_, fd| sockopt::set_socket_send_buffer_size(fd, within(size)))
    })
}

fn addresses(tcp: &mut LinkerInstance<'_, StoreState>) -> wasmtime::Result<()> {
    tcp.func_wrap("[method]tcp-socket.get-local-address", |mut store, (socket,): (Handle,)| {
        let connection = store.data_mut().table().get(&socket)?.connection();
        let address = connection.and_then(|stream| Ok(IpSocketAddress::from(stream.local_addr()?)));
        wasmtime::error::Ok((address,))
    })?;
    tcp.func_wrap("[method]tcp-socket.get-remote-address", |mut store, (socket,): (Handle,)| {
        let connection = store.data_mut().table().get(&socket)?.connection();
        let address = connection.and_then(|stream| Ok(IpSocketAddress::from(stream.peer_addr()?)));
        wasmtime::error::Ok((address,))
    })?;
    tcp.func_wrap("[method]tcp-socket.get-is-listening", |mut store, (socket,): (Handle,)| {
        store.data_mut().table().get(&socket)?;
        wasmtime::error::Ok((false,))
    })?;
    tcp.func_wrap("[method]tcp-socket.get-address-family", |mut store, (socket,): (Handle,)| {
        wasmtime::error::Ok((store.data_mut().table().get(&socket)?.family,))
    })?;
    tcp.func_wrap("[method]tcp-socket.set-listen-backlog-size", |mut store, (socket, size): (Handle, u64)| {
        set(store.data_mut(), &socket, size == 0, |_, _| Ok(()))
    })
}

fn keep_alive(tcp: &mut LinkerInstance<'_, StoreState>) -> wasmtime::Result<()> {
    get(tcp, "[method]tcp-socket.get-keep-alive-enabled", |_, fd| sockopt::socket_keepalive(fd))?;
    tcp.func_wrap("[method]tcp-socket.set-keep-alive-enabled", |mut store, (socket, enabled): (Handle, bool)| {
        set(store.data_mut(), &socket, false, |_, fd| sockopt::set_socket_keepalive(fd, enabled))
    })?;
    get(tcp, "[method]tcp-socket.get-keep-alive-idle-time", |_, fd| sockopt::tcp_keepidle(fd).map(nanoseconds))?;
    tcp.func_wrap("[method]tcp-socket.set-keep-alive-idle-time", |mut store, (socket, time): (Handle, u64)| {
        set(store.data_mut(), &socket, time == 0, |_, fd| sockopt::set_tcp_keepidle(fd, seconds(time)))
    })?;
    get(tcp, "[method]tcp-socket.get-keep-alive-interval", |_, fd| sockopt::tcp_keepintvl(fd).map(nanoseconds))?;
    tcp.func_wrap("[method]tcp-socket.set-keep-alive-interval", |mut store, (socket, time): (Handle, u64)| {
        set(store.data_mut(), &socket, time == 0, |_, fd| sockopt::set_tcp_keepintvl(fd, seconds(time)))
    })?;
    get(tcp, "[method]tcp-socket.get-keep-alive-count", |_, fd| sockopt::tcp_keepcnt(fd))?;
    tcp.func_wrap("[method]tcp-socket.set-keep-alive-count", |mut store, (socket, count): (Handle, u32)| {
        set(store.data_mut(), &socket, count == 0, |_, fd| sockopt::set_tcp_keepcnt(fd, count.min(MOST)))
    })
}

/// Defines a function that returns an option.
fn get<T: ComponentType + Lower + Send + Sync + 'static>(
    tcp: &mut LinkerInstance<'_, StoreState>,
    name: &str,
    option: fn(&TcpState, BorrowedFd<'_>) -> rustix::io::Result<T>,
) -> wasmtime::Result<()> {
    tcp.func_wrap(name, move |mut store, (socket,): (Handle,)| {
        let socket = store.data_mut().table().get(&socket)?;
        let value = socket.descriptor().and_then(|fd| Ok(option(socket, fd).map_err(io::Error::from)?));
        wasmtime::error::Ok((value,))
    })
}

/// Sets an option. Returns an error code if `is_senseless` is set.
fn set(
    state: &mut StoreState,
    socket: &Handle,
    is_senseless: bool,
    option: impl FnOnce(&TcpState, BorrowedFd<'_>) -> rustix::io::Result<()>,
) -> wasmtime::Result<(Result<(), ErrorCode>,)> {
    let socket = state.table().get(socket)?;
    if is_senseless {
        return Ok((Err(ErrorCode::InvalidArgument),));
    }
    Ok((socket.descriptor().and_then(|fd| Ok(option(socket, fd).map_err(io::Error::from)?)),))
}

fn within(size: u64) -> usize {
    usize::try_from(size.min(KERNEL)).unwrap_or(usize::MAX)
}

/// Systems count in seconds, and none of them accepts zero.
fn seconds(nanoseconds: u64) -> Duration {
    Duration::from_secs(nanoseconds.div_ceil(1_000_000_000).clamp(1, LONGEST))
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
