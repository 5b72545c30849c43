//! Lookup of the user that opened a TCP connection within this machine, with Linux's
//! `sock_diag(7)`.
//!
//! The kernel finds the connection in a hash table, and responds while the request is sent. So a
//! lookup takes microseconds, regardless of the number of sockets. It does not block, and it does
//! not need `/proc/net/tcp`, which a confined process cannot open.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::sync::OnceLock;

use parking_lot::Mutex;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send, socket_with,
};

/// Type of a request for a socket, and of a message about one (`SOCK_DIAG_BY_FAMILY`).
const SOCKET_MESSAGE: u16 = 20;

/// Type of a message with an error (`NLMSG_ERROR`).
const ERROR_MESSAGE: u16 = 2;

/// Flag of a request (`NLM_F_REQUEST`).
const REQUEST_FLAG: u16 = 1;

/// Length of a request, in bytes: the header of a message, and an `inet_diag_req_v2`.
const REQUEST_BYTES: u32 = 16 + 56;

/// Size of the buffer for a reply, in bytes. A reply of today's kernels has 124.
const REPLY_BYTES: usize = 1024;

/// The protocol (`IPPROTO_TCP`).
const TCP: u8 = 6;

/// The address families (`AF_INET`, `AF_INET6`).
const IPV4: u8 = 2;
const IPV6: u8 = 10;

/// The socket for requests to the kernel. A confined process cannot create another one.
static KERNEL: OnceLock<Mutex<KernelSocket>> = OnceLock::new();

/// A socket for requests to the kernel.
struct KernelSocket {
    socket: OwnedFd,
    /// The number of the last request. The kernel repeats it in its reply.
    sequence: u32,
}

/// A socket of this machine.
#[derive(Clone, Copy, Debug)]
struct FoundSocket {
    local: SocketAddr,
    remote: SocketAddr,
    user: u32,
    /// 0 if no process has the socket open.
    inode: u32,
}

/// Opens the socket for lookups, if it is not open yet. A process that confines itself must call
/// this function first.
///
/// # Errors
///
/// Returns an error if the kernel does not support such sockets.
pub fn open_user_lookup() -> io::Result<()> {
    kernel().map(drop)
}

fn kernel() -> io::Result<&'static Mutex<KernelSocket>> {
    if let Some(kernel) = KERNEL.get() {
        return Ok(kernel);
    }
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(
        AddressFamily::NETLINK,
        SocketType::DGRAM,
        flags,
        Some(netlink::SOCK_DIAG),
    )?;
    Ok(KERNEL.get_or_init(|| {
        Mutex::new(KernelSocket {
            socket,
            sequence: 0,
        })
    }))
}

/// Returns the user that opened the connection from `peer` to `local`. `None` if `peer` is not an
/// end of a connection on this machine, or if no process has the connection open any more.
///
/// # Errors
///
/// Returns an error if the kernel does not support the request, or rejects it.
pub fn connection_user(peer: SocketAddr, local: SocketAddr) -> io::Result<Option<u32>> {
    let peer = canonical(peer);
    let local = canonical(local);
    let socket = find_socket(peer, local)?;
    // For a socket without an inode, kernels report the superuser as its user.
    Ok(socket
        .filter(|candidate| {
            candidate.local == peer && candidate.remote == local && candidate.inode != 0
        })
        .map(|socket| socket.user))
}

/// Returns whether users of connections to this address can be looked up. A socket must listen on
/// the address. The first request can take longer, because the kernel may load a module for it.
pub fn can_find_users(listening: SocketAddr) -> bool {
    let listening = canonical(listening);
    let ip = match listening.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    let address = SocketAddr::new(ip, listening.port());
    // No connection has these ends. The kernel responds with the listening socket instead.
    matches!(find_socket(address, address), Ok(Some(_)))
}

/// Returns the socket with these ends, or else the one that listens at `local`.
fn find_socket(local: SocketAddr, remote: SocketAddr) -> io::Result<Option<FoundSocket>> {
    if local.is_ipv4() != remote.is_ipv4() {
        return Ok(None);
    }
    // Held for two system calls that do not block.
    let mut kernel = kernel()?.lock();
    kernel.sequence = kernel.sequence.wrapping_add(1);
    send(
        &kernel.socket,
        &request(local, remote, kernel.sequence),
        SendFlags::empty(),
    )?;
    let mut buffer = [0_u8; REPLY_BYTES];
    let reply = loop {
        let (length, _) = recv(&kernel.socket, &mut buffer, RecvFlags::DONTWAIT)?;
        let reply = buffer.get(..length).unwrap_or_default();
        // An earlier request may have failed between its two system calls.
        if u32::from_ne_bytes(field(reply, 8)?) == kernel.sequence {
            break reply;
        }
    };
    match u16::from_ne_bytes(field(reply, 4)?) {
        SOCKET_MESSAGE => parse_socket(reply).map(Some),
        ERROR_MESSAGE => {
            let error = io::Error::from_raw_os_error(
                i32::from_ne_bytes(field(reply, 16)?).saturating_neg(),
            );
            if error.kind() == ErrorKind::NotFound {
                Ok(None)
            } else {
                Err(error)
            }
        }
        other => Err(io::Error::other(format!(
            "the kernel sent a message of the unknown type {other}"
        ))),
    }
}

fn request(local: SocketAddr, remote: SocketAddr, sequence: u32) -> Vec<u8> {
    let mut message: Vec<u8> = Vec::new();
    message.extend(REQUEST_BYTES.to_ne_bytes());
    message.extend(SOCKET_MESSAGE.to_ne_bytes());
    message.extend(REQUEST_FLAG.to_ne_bytes());
    message.extend(sequence.to_ne_bytes());
    // The sender (`nlmsg_pid`), which the kernel determines.
    message.extend([0_u8; 4]);
    message.extend([if local.is_ipv4() { IPV4 } else { IPV6 }, TCP, 0, 0]);
    // All states.
    message.extend(u32::MAX.to_ne_bytes());
    for end in [local, remote] {
        message.extend(end.port().to_be_bytes());
    }
    for end in [local, remote] {
        message.extend(match end.ip() {
            IpAddr::V4(ip) => (u128::from(ip.to_bits()) << 96).to_be_bytes(),
            IpAddr::V6(ip) => ip.octets(),
        });
    }
    // Any interface, and any cookie (`INET_DIAG_NOCOOKIE`).
    message.extend([0_u8; 4]);
    message.extend([0xff_u8; 8]);
    message
}

/// Parses a message with an `inet_diag_msg`.
fn parse_socket(reply: &[u8]) -> io::Result<FoundSocket> {
    let [family] = field(reply, 16)?;
    let parse_end = |port: usize, address: usize| -> io::Result<SocketAddr> {
        let ip = if family == IPV4 {
            IpAddr::from(field::<4>(reply, address)?)
        } else {
            // Sockets for IPv6 can also have IPv4 connections, between mapped addresses.
            IpAddr::from(field::<16>(reply, address)?)
        };
        Ok(canonical(SocketAddr::new(
            ip,
            u16::from_be_bytes(field(reply, port)?),
        )))
    };
    Ok(FoundSocket {
        local: parse_end(20, 24)?,
        remote: parse_end(22, 40)?,
        user: u32::from_ne_bytes(field(reply, 80)?),
        inode: u32::from_ne_bytes(field(reply, 84)?),
    })
}

/// Returns the `N` bytes at this position of a message.
fn field<const N: usize>(message: &[u8], at: usize) -> io::Result<[u8; N]> {
    let bytes = message.get(at..).and_then(|rest| rest.first_chunk::<N>());
    bytes.copied().ok_or_else(|| {
        io::Error::new(
            ErrorKind::UnexpectedEof,
            "the kernel's message is too short",
        )
    })
}

fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn user_of_a_connection_is_found() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let local = listener.local_addr().unwrap();
        assert!(can_find_users(local));
        let user = Some(rustix::process::geteuid().as_raw());
        // The second is a socket for IPv6 with an IPv4 connection.
        for host in ["127.0.0.1", "::ffff:127.0.0.1"] {
            let stream =
                TcpStream::connect((host.parse::<IpAddr>().unwrap(), local.port())).unwrap();
            let (accepted, peer) = listener.accept().unwrap();
            assert_eq!(connection_user(peer, local).unwrap(), user, "{host}");
            assert_eq!(
                connection_user(stream.local_addr().unwrap(), local).unwrap(),
                user,
                "{host}"
            );
            assert_eq!(
                connection_user(local, peer).unwrap(),
                user,
                "the other direction"
            );
            // No process has this end of the connection open.
            drop(stream);
            assert_eq!(connection_user(peer, local).unwrap(), None, "{host}");
            drop(accepted);
        }
    }

    #[test]
    fn missing_connection_has_no_user() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let local = listener.local_addr().unwrap();
        let other = SocketAddr::new(local.ip(), if local.port() == 1 { 2 } else { 1 });
        assert_eq!(connection_user(other, local).unwrap(), None);
        // A listening socket is not an end of a connection.
        assert_eq!(connection_user(local, other).unwrap(), None);
        assert_eq!(
            connection_user("[::1]:1".parse().unwrap(), local).unwrap(),
            None
        );
        assert!(!can_find_users(other), "nobody listens there");
    }

    #[test]
    fn a_short_message_is_an_error() {
        for length in 0..88 {
            assert_eq!(
                parse_socket(&vec![0; length]).unwrap_err().kind(),
                ErrorKind::UnexpectedEof,
                "{length}"
            );
        }
        assert!(parse_socket(&[0; 88]).is_ok());
        assert_eq!(
            request(
                "127.0.0.1:1".parse().unwrap(),
                "127.0.0.1:2".parse().unwrap(),
                1
            )
            .len(),
            72
        );
        assert_eq!(
            request("[::1]:1".parse().unwrap(), "[::1]:2".parse().unwrap(), 1).len(),
            72
        );
    }
}
