//! Sockets. Connections and name lookups are limited to what the grant allows, and the host memory
//! of each socket is charged to the call. UDP and listening are not available.
//!
//! A guest without a grant can create a socket, because only a connection attempt shows the host
//! and port that the denial must name. Until then, the socket uses one of the call's descriptors.

use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use toolbay_model::ByteReservation;
use wasmtime::component::{Linker, Resource, ResourceType};
use wasmtime_wasi::async_trait;
use wasmtime_wasi::p2::bindings::sockets::network::{
    ErrorCode, IpAddress, IpAddressFamily, IpSocketAddress, Network,
};
use wasmtime_wasi::p2::bindings::sockets::tcp::HostTcpSocket;
use wasmtime_wasi::p2::bindings::sockets::tcp_create_socket;
use wasmtime_wasi::p2::{
    DynPollable, Pollable, SocketError, SocketResult, TcpSocket, UdpSocket, subscribe,
};
use wasmtime_wasi::sockets::WasiSocketsView as _;

use super::counted_stream::{count_input, count_output};
use super::version::versioned;
use crate::capability::sockets::call_sockets::{
    CreateSocketError, KERNEL_BUFFER_BYTES, LOOKUP_MEMORY_BYTES, LookupResult, ResolveFailure,
    is_connectable,
};
use crate::store::state::StoreState;

type TcpHandle = Resource<TcpSocket>;
type ConnectArguments = (TcpHandle, Resource<Network>, IpSocketAddress);

pub(super) fn replace(linker: &mut Linker<StoreState>) -> wasmtime::Result<()> {
    replace_tcp(linker)?;
    replace_name_lookup(linker)?;
    let mut udp = linker.instance(versioned!("wasi:sockets/udp-create-socket"))?;
    udp.func_wrap_async("create-udp-socket", |store, (_,): (IpAddressFamily,)| {
        store.data().call_sockets.gate().report_udp();
        Box::new(async { Ok((Err::<Resource<UdpSocket>, _>(ErrorCode::AccessDenied),)) })
    })
}

fn replace_tcp(linker: &mut Linker<StoreState>) -> wasmtime::Result<()> {
    let mut create = linker.instance(versioned!("wasi:sockets/tcp-create-socket"))?;
    create.func_wrap(
        "create-tcp-socket",
        |mut store, (family,): (IpAddressFamily,)| {
            Ok((to_guest_result(create_socket(store.data_mut(), family))?,))
        },
    )?;
    let mut tcp = linker.instance(versioned!("wasi:sockets/tcp"))?;
    tcp.resource(
        "tcp-socket",
        ResourceType::host::<TcpSocket>(),
        |mut store, rep| {
            let state = store.data_mut();
            HostTcpSocket::drop(&mut state.sockets(), TcpHandle::new_own(rep))?;
            state.call_sockets.release(rep);
            Ok(())
        },
    )?;
    tcp.func_wrap(
        "[method]tcp-socket.start-connect",
        |mut store, (socket, network, address): ConnectArguments| {
            let state = store.data_mut();
            let started = to_guest_result(HostTcpSocket::start_connect(
                &mut state.sockets(),
                socket,
                network,
                address,
            ))?;
            let address = SocketAddr::from(address);
            // The access check does not run for these addresses.
            if started == Err(ErrorCode::InvalidArgument) && !is_connectable(address) {
                state.call_sockets.gate().report_invalid_address(address);
            }
            Ok((started,))
        },
    )?;
    tcp.func_wrap(
        "[method]tcp-socket.finish-connect",
        |mut store, (socket,): (TcpHandle,)| {
            let state = store.data_mut();
            let finished =
                to_guest_result(HostTcpSocket::finish_connect(&mut state.sockets(), socket))?;
            let traffic = state.call_sockets.tcp_usage();
            match finished {
                Ok((input, output)) => {
                    let table = state.sockets().table;
                    count_input(table.get_mut(&input)?, Arc::clone(&traffic));
                    count_output(table.get_mut(&output)?, traffic);
                    Ok((Ok((input, output)),))
                }
                Err(code) => match traffic.exceeded() {
                    Some(limit) => Err(limit.into()),
                    None => Ok((Err(code),)),
                },
            }
        },
    )?;
    tcp.func_wrap(
        "[method]tcp-socket.set-receive-buffer-size",
        |mut store, (socket, size): (TcpHandle, u64)| {
            let mut sockets = store.data_mut().sockets();
            Ok((to_guest_result(HostTcpSocket::set_receive_buffer_size(
                &mut sockets,
                socket,
                size.min(KERNEL_BUFFER_BYTES),
            ))?,))
        },
    )?;
    tcp.func_wrap(
        "[method]tcp-socket.set-send-buffer-size",
        |mut store, (socket, size): (TcpHandle, u64)| {
            let mut sockets = store.data_mut().sockets();
            Ok((to_guest_result(HostTcpSocket::set_send_buffer_size(
                &mut sockets,
                socket,
                size.min(KERNEL_BUFFER_BYTES),
            ))?,))
        },
    )
}

fn replace_name_lookup(linker: &mut Linker<StoreState>) -> wasmtime::Result<()> {
    let mut names = linker.instance(versioned!("wasi:sockets/ip-name-lookup"))?;
    names.resource(
        "resolve-address-stream",
        ResourceType::host::<NameLookup>(),
        |mut store, rep| {
            store
                .data_mut()
                .sockets()
                .table
                .delete(Resource::<NameLookup>::new_own(rep))?;
            Ok(())
        },
    )?;
    names.func_wrap(
        "resolve-addresses",
        |mut store, (network, name): (Resource<Network>, String)| {
            Ok((to_guest_result(start_lookup(
                store.data_mut(),
                &network,
                &name,
            ))?,))
        },
    )?;
    names.func_wrap(
        "[method]resolve-address-stream.resolve-next-address",
        |mut store, (lookup,): (Resource<NameLookup>,)| {
            let lookup = store.data_mut().sockets().table.get_mut(&lookup)?;
            Ok((lookup.next(),))
        },
    )?;
    names.func_wrap(
        "[method]resolve-address-stream.subscribe",
        |mut store, (lookup,): (Resource<NameLookup>,)| {
            let pollable: Resource<DynPollable> =
                subscribe(store.data_mut().sockets().table, lookup)?;
            Ok((pollable,))
        },
    )
}

/// Converts the result of a host function: an error code for the guest, or an error that ends the
/// call.
fn to_guest_result<T>(result: SocketResult<T>) -> wasmtime::Result<Result<T, ErrorCode>> {
    match result {
        Ok(value) => Ok(Ok(value)),
        Err(error) => error.downcast().map(Err),
    }
}

fn create_socket(state: &mut StoreState, family: IpAddressFamily) -> SocketResult<TcpHandle> {
    let descriptors = &state.descriptors;
    let resources = state
        .call_sockets
        .reserve(|| descriptors.acquire())
        .map_err(|error| match error {
            CreateSocketError::Limit => ErrorCode::NewSocketLimit.into(),
            CreateSocketError::Memory(exceeded) => SocketError::trap(exceeded),
        })?;
    let socket = tcp_create_socket::Host::create_tcp_socket(&mut state.sockets(), family)?;
    let rep = socket.rep();
    state.call_sockets.attach(rep, resources);
    let mut sockets = state.sockets();
    HostTcpSocket::set_receive_buffer_size(
        &mut sockets,
        TcpHandle::new_borrow(rep),
        KERNEL_BUFFER_BYTES,
    )?;
    HostTcpSocket::set_send_buffer_size(
        &mut sockets,
        TcpHandle::new_borrow(rep),
        KERNEL_BUFFER_BYTES,
    )?;
    Ok(socket)
}

/// Starts a lookup. Fails immediately for a name that the guest may not resolve.
fn start_lookup(
    state: &mut StoreState,
    network: &Resource<Network>,
    name: &str,
) -> SocketResult<Resource<NameLookup>> {
    state.sockets().table.get(network)?;
    let memory = state
        .memory_budget
        .reserve(LOOKUP_MEMORY_BYTES)
        .map_err(SocketError::trap)?;
    let addresses = state.call_sockets.resolve(name).map_err(to_error_code)?;
    let mut lookup = NameLookup {
        state: LookupProgress::Waiting(Box::pin(addresses)),
        _memory: memory,
    };
    // Poll once, so that the lookup starts before the guest polls it.
    let _is_pending = lookup.poll(&mut Context::from_waker(Waker::noop()));
    Ok(state.sockets().table.push(lookup)?)
}

fn to_error_code(failure: ResolveFailure) -> ErrorCode {
    match failure {
        ResolveFailure::Denied => ErrorCode::AccessDenied,
        ResolveFailure::Malformed => ErrorCode::InvalidArgument,
        ResolveFailure::Failed => ErrorCode::NameUnresolvable,
        ResolveFailure::LimitReached => ErrorCode::TemporaryResolverFailure,
    }
}

/// The addresses of a name, which the guest reads one by one (`resolve-address-stream`).
struct NameLookup {
    state: LookupProgress,
    _memory: ByteReservation,
}

enum LookupProgress {
    Waiting(Pin<Box<dyn Future<Output = LookupResult> + Send>>),
    Done(Result<std::vec::IntoIter<IpAddr>, ErrorCode>),
}

impl NameLookup {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let LookupProgress::Waiting(addresses) = &mut self.state else {
            return Poll::Ready(());
        };
        addresses.as_mut().poll(context).map(|resolved| {
            self.state = LookupProgress::Done(resolved.map(Vec::into_iter).map_err(to_error_code));
        })
    }

    fn next(&mut self) -> Result<Option<IpAddress>, ErrorCode> {
        let _is_pending = self.poll(&mut Context::from_waker(Waker::noop()));
        match &mut self.state {
            LookupProgress::Waiting(_) => Err(ErrorCode::WouldBlock),
            LookupProgress::Done(Ok(addresses)) => Ok(addresses.next().map(IpAddress::from)),
            LookupProgress::Done(Err(code)) => Err(*code),
        }
    }
}

#[async_trait]
impl Pollable for NameLookup {
    async fn ready(&mut self) {
        std::future::poll_fn(|context| self.poll(context)).await;
    }
}
