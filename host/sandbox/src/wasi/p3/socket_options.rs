//! Options of TCP sockets.

use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use rustix::net::sockopt;
use wasmtime::component::{ComponentType, LinkerInstance, Lower, Resource};
use wasmtime_wasi::p3::bindings::sockets::types::{ErrorCode, IpAddressFamily, IpSocketAddress};

use super::tcp_socket::TcpState;
use crate::capability::sockets::call_sockets::KERNEL_BUFFER_BYTES;
use crate::store::state::StoreState;

/// Maximum time between keep-alive probes that every system accepts, in seconds.
const MAX_KEEPALIVE_SECONDS: u64 = 32_767;

/// Maximum number of keep-alive probes that every system accepts.
const MAX_KEEPALIVE_PROBES: u32 = 127;

type SocketHandle = Resource<TcpState>;

pub(super) fn add(tcp: &mut LinkerInstance<'_, StoreState>) -> wasmtime::Result<()> {
    add_addresses(tcp)?;
    add_keep_alive(tcp)?;
    define_getter(
        tcp,
        "[method]tcp-socket.get-hop-limit",
        |socket, fd| match socket.family {
            IpAddressFamily::Ipv4 => {
                sockopt::ip_ttl(fd).map(|hops| u8::try_from(hops).unwrap_or(u8::MAX))
            }
            IpAddressFamily::Ipv6 => sockopt::ipv6_unicast_hops(fd),
        },
    )?;
    tcp.func_wrap(
        "[method]tcp-socket.set-hop-limit",
        |mut store, (socket, hops): (SocketHandle, u8)| {
            set_option(
                store.data_mut(),
                &socket,
                hops == 0,
                |socket, fd| match socket.family {
                    IpAddressFamily::Ipv4 => sockopt::set_ip_ttl(fd, hops.into()),
                    IpAddressFamily::Ipv6 => sockopt::set_ipv6_unicast_hops(fd, Some(hops)),
                },
            )
        },
    )?;
    // The system doubles the size for its bookkeeping, and reports the doubled size.
    define_getter(
        tcp,
        "[method]tcp-socket.get-receive-buffer-size",
        |_, fd| sockopt::socket_recv_buffer_size(fd).map(|size| size as u64 / 2),
    )?;
    define_getter(tcp, "[method]tcp-socket.get-send-buffer-size", |_, fd| {
        sockopt::socket_send_buffer_size(fd).map(|size| size as u64 / 2)
    })?;
    tcp.func_wrap(
        "[method]tcp-socket.set-receive-buffer-size",
        |mut store, (socket, size): (SocketHandle, u64)| {
            set_option(store.data_mut(), &socket, size == 0, |_, fd| {
                sockopt::set_socket_recv_buffer_size(fd, clamp_buffer_size(size))
            })
        },
    )?;
    tcp.func_wrap(
        "[method]tcp-socket.set-send-buffer-size",
        |mut store, (socket, size): (SocketHandle, u64)| {
            set_option(store.data_mut(), &socket, size == 0, |_, fd| {
                sockopt::set_socket_send_buffer_size(fd, clamp_buffer_size(size))
            })
        },
    )
}

fn add_addresses(tcp: &mut LinkerInstance<'_, StoreState>) -> wasmtime::Result<()> {
    tcp.func_wrap(
        "[method]tcp-socket.get-local-address",
        |mut store, (socket,): (SocketHandle,)| {
            let connection = store.data_mut().table().get(&socket)?.connection();
            let address =
                connection.and_then(|stream| Ok(IpSocketAddress::from(stream.local_addr()?)));
            wasmtime::error::Ok((address,))
        },
    )?;
    tcp.func_wrap(
        "[method]tcp-socket.get-remote-address",
        |mut store, (socket,): (SocketHandle,)| {
            let connection = store.data_mut().table().get(&socket)?.connection();
            let address =
                connection.and_then(|stream| Ok(IpSocketAddress::from(stream.peer_addr()?)));
            wasmtime::error::Ok((address,))
        },
    )?;
    tcp.func_wrap(
        "[method]tcp-socket.get-is-listening",
        |mut store, (socket,): (SocketHandle,)| {
            store.data_mut().table().get(&socket)?;
            wasmtime::error::Ok((false,))
        },
    )?;
    tcp.func_wrap(
        "[method]tcp-socket.get-address-family",
        |mut store, (socket,): (SocketHandle,)| {
            wasmtime::error::Ok((store.data_mut().table().get(&socket)?.family,))
        },
    )?;
    tcp.func_wrap(
        "[method]tcp-socket.set-listen-backlog-size",
        |mut store, (socket, size): (SocketHandle, u64)| {
            set_option(store.data_mut(), &socket, size == 0, |_, _| Ok(()))
        },
    )
}

fn add_keep_alive(tcp: &mut LinkerInstance<'_, StoreState>) -> wasmtime::Result<()> {
    define_getter(tcp, "[method]tcp-socket.get-keep-alive-enabled", |_, fd| {
        sockopt::socket_keepalive(fd)
    })?;
    tcp.func_wrap(
        "[method]tcp-socket.set-keep-alive-enabled",
        |mut store, (socket, enabled): (SocketHandle, bool)| {
            set_option(store.data_mut(), &socket, false, |_, fd| {
                sockopt::set_socket_keepalive(fd, enabled)
            })
        },
    )?;
    define_getter(
        tcp,
        "[method]tcp-socket.get-keep-alive-idle-time",
        |_, fd| sockopt::tcp_keepidle(fd).map(to_nanoseconds),
    )?;
    tcp.func_wrap(
        "[method]tcp-socket.set-keep-alive-idle-time",
        |mut store, (socket, nanoseconds): (SocketHandle, u64)| {
            set_option(store.data_mut(), &socket, nanoseconds == 0, |_, fd| {
                sockopt::set_tcp_keepidle(fd, to_whole_seconds(nanoseconds))
            })
        },
    )?;
    define_getter(
        tcp,
        "[method]tcp-socket.get-keep-alive-interval",
        |_, fd| sockopt::tcp_keepintvl(fd).map(to_nanoseconds),
    )?;
    tcp.func_wrap(
        "[method]tcp-socket.set-keep-alive-interval",
        |mut store, (socket, nanoseconds): (SocketHandle, u64)| {
            set_option(store.data_mut(), &socket, nanoseconds == 0, |_, fd| {
                sockopt::set_tcp_keepintvl(fd, to_whole_seconds(nanoseconds))
            })
        },
    )?;
    define_getter(tcp, "[method]tcp-socket.get-keep-alive-count", |_, fd| {
        sockopt::tcp_keepcnt(fd)
    })?;
    tcp.func_wrap(
        "[method]tcp-socket.set-keep-alive-count",
        |mut store, (socket, count): (SocketHandle, u32)| {
            set_option(store.data_mut(), &socket, count == 0, |_, fd| {
                sockopt::set_tcp_keepcnt(fd, count.min(MAX_KEEPALIVE_PROBES))
            })
        },
    )
}

/// Defines a function that returns an option.
fn define_getter<T: ComponentType + Lower + Send + Sync + 'static>(
    tcp: &mut LinkerInstance<'_, StoreState>,
    name: &str,
    option: fn(&TcpState, BorrowedFd<'_>) -> rustix::io::Result<T>,
) -> wasmtime::Result<()> {
    tcp.func_wrap(name, move |mut store, (socket,): (SocketHandle,)| {
        let socket = store.data_mut().table().get(&socket)?;
        let value = socket
            .descriptor()
            .and_then(|fd| Ok(option(socket, fd).map_err(io::Error::from)?));
        wasmtime::error::Ok((value,))
    })
}

/// Sets an option. Returns an error code if `is_invalid` is set.
fn set_option(
    state: &mut StoreState,
    socket: &SocketHandle,
    is_invalid: bool,
    option: impl FnOnce(&TcpState, BorrowedFd<'_>) -> rustix::io::Result<()>,
) -> wasmtime::Result<(Result<(), ErrorCode>,)> {
    let socket = state.table().get(socket)?;
    if is_invalid {
        return Ok((Err(ErrorCode::InvalidArgument),));
    }
    Ok((socket
        .descriptor()
        .and_then(|fd| Ok(option(socket, fd).map_err(io::Error::from)?)),))
}

fn clamp_buffer_size(size: u64) -> usize {
    usize::try_from(size.min(KERNEL_BUFFER_BYTES)).unwrap_or(usize::MAX)
}

/// Converts nanoseconds to seconds. Systems count whole seconds, and none of them accepts zero.
fn to_whole_seconds(nanoseconds: u64) -> Duration {
    Duration::from_secs(
        nanoseconds
            .div_ceil(1_000_000_000)
            .clamp(1, MAX_KEEPALIVE_SECONDS),
    )
}

fn to_nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
