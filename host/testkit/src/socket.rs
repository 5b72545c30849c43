//! A TCP connection to a server from a selected local address. Every end of the connection is a
//! value, because a program that attacks a server must handle every reaction of the server.

mod reply;

use std::fmt;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

use socket2::{Domain, Protocol, SockAddr, Socket as Raw, Type};

pub use self::reply::HttpReply;

/// Maximum size of one read, in bytes.
const READ_BUFFER_BYTES: usize = 64 << 10;

/// A connection and the received bytes that have not been parsed as a reply.
#[derive(Debug)]
pub struct ClientSocket {
    stream: TcpStream,
    buffer: Vec<u8>,
}

/// The reason why no more data can be received or sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConnectionEnd {
    /// The server closed the connection.
    Closed,
    /// The server reset the connection, or the connection could not be established.
    ConnectionFailed(ErrorKind),
    /// The timeout of the caller elapsed.
    TimedOut,
    /// The received bytes are not HTTP. The text is the reason.
    InvalidHttp(String),
}

impl ClientSocket {
    /// Connects to `server` from `address`, which must be an address of this machine. Each read and
    /// write waits for at most `patience`.
    pub fn connect(
        server: SocketAddr,
        address: IpAddr,
        patience: Duration,
    ) -> Result<Self, ConnectionEnd> {
        let connect = || -> io::Result<TcpStream> {
            let socket = Raw::new(
                Domain::for_address(server),
                Type::STREAM,
                Some(Protocol::TCP),
            )?;
            socket.bind(&SockAddr::from(SocketAddr::new(address, 0)))?;
            socket.connect_timeout(&SockAddr::from(server), patience)?;
            socket.set_tcp_nodelay(true)?;
            let stream = TcpStream::from(socket);
            stream.set_write_timeout(Some(patience))?;
            stream.set_read_timeout(Some(patience))?;
            Ok(stream)
        };
        Ok(Self {
            stream: connect().map_err(|error| ConnectionEnd::from_io(&error))?,
            buffer: Vec::new(),
        })
    }

    /// Sets the timeout of each read.
    pub fn set_read_timeout(&self, patience: Duration) -> Result<(), ConnectionEnd> {
        self.stream
            .set_read_timeout(Some(patience))
            .map_err(|error| ConnectionEnd::from_io(&error))
    }

    /// Sends bytes.
    pub fn send(&mut self, bytes: &[u8]) -> Result<(), ConnectionEnd> {
        self.stream
            .write_all(bytes)
            .map_err(|error| ConnectionEnd::from_io(&error))
    }

    /// Reads some bytes. Returns the number of received bytes that have not been parsed as a reply.
    pub fn read(&mut self) -> Result<usize, ConnectionEnd> {
        let mut piece = vec![0; READ_BUFFER_BYTES];
        loop {
            match self.stream.read(&mut piece) {
                Ok(0) => return Err(ConnectionEnd::Closed),
                Ok(count) => {
                    self.buffer
                        .extend_from_slice(piece.get(..count).unwrap_or_default());
                    return Ok(self.buffer.len());
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(ConnectionEnd::from_io(&error)),
            }
        }
    }

    /// Returns the next reply, if all of it has arrived. Skips informational replies (1xx).
    /// `to_head` is true if the request method was HEAD.
    pub fn take_reply(&mut self, to_head: bool) -> Result<Option<HttpReply>, ConnectionEnd> {
        loop {
            let Some((reply, length)) =
                HttpReply::parse(&self.buffer, to_head).map_err(ConnectionEnd::InvalidHttp)?
            else {
                return Ok(None);
            };
            if !reply.is_complete {
                return Ok(None);
            }
            self.buffer.drain(..length);
            if reply.status >= 200 {
                return Ok(Some(reply));
            }
        }
    }

    /// Waits for the next complete reply.
    pub fn wait_for_reply(&mut self, to_head: bool) -> Result<HttpReply, ConnectionEnd> {
        loop {
            if let Some(reply) = self.take_reply(to_head)? {
                return Ok(reply);
            }
            self.read()?;
        }
    }

    /// Returns the received part of the next reply, such as a stream that has not ended or one that
    /// was cut off. Returns `None` if the head is not complete.
    pub fn partial_reply(&self) -> Result<Option<HttpReply>, ConnectionEnd> {
        Ok(HttpReply::parse(&self.buffer, false)
            .map_err(ConnectionEnd::InvalidHttp)?
            .map(|(reply, _)| reply))
    }

    /// Closes the sending side.
    pub fn shutdown_write(&self) -> Result<(), ConnectionEnd> {
        self.stream
            .shutdown(Shutdown::Write)
            .map_err(|error| ConnectionEnd::from_io(&error))
    }

    /// Ends the connection with a reset.
    pub fn reset(self) {
        let raw = Raw::from(self.stream);
        // If this fails, the connection is closed without a reset, which is acceptable.
        drop(raw.set_linger(Some(Duration::ZERO)));
    }
}

impl ConnectionEnd {
    fn from_io(error: &io::Error) -> Self {
        match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut => Self::TimedOut,
            kind => Self::ConnectionFailed(kind),
        }
    }
}

impl fmt::Display for ConnectionEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed => f.write_str("the server closed the connection"),
            Self::ConnectionFailed(kind) => write!(f, "the connection broke: {kind}"),
            Self::TimedOut => f.write_str("nothing happened in time"),
            Self::InvalidHttp(why) => write!(f, "what the server sent is not HTTP: {why}"),
        }
    }
}

impl std::error::Error for ConnectionEnd {}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, TcpListener};

    use super::*;

    const PATIENCE: Duration = Duration::from_mins(1);

    fn pair() -> (ClientSocket, TcpStream, SocketAddr) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = listener.local_addr().unwrap();
        let socket =
            ClientSocket::connect(server, Ipv4Addr::new(127, 0, 0, 2).into(), PATIENCE).unwrap();
        let (stream, from) = listener.accept().unwrap();
        (socket, stream, from)
    }

    #[test]
    fn replies_come_one_after_the_other_from_an_address_of_choice() {
        let (mut socket, mut stream, from) = pair();
        assert_eq!(from.ip(), Ipv4Addr::new(127, 0, 0, 2));
        socket.send(b"hello").unwrap();
        let mut heard = [0; 5];
        stream.read_exact(&mut heard).unwrap();
        assert_eq!(&heard, b"hello");
        stream
            .write_all(
                b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi",
            )
            .unwrap();
        stream.write_all(b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\nHTTP/1.1 200 OK\r\n\r\nfor ever").unwrap();
        let first = socket.wait_for_reply(false).unwrap();
        assert_eq!(
            (first.status, first.body.as_slice()),
            (200, b"hi".as_slice())
        );
        assert_eq!(socket.wait_for_reply(false).unwrap().status, 202);
        drop(stream);
        assert_eq!(
            socket.wait_for_reply(false).unwrap_err(),
            ConnectionEnd::Closed
        );
        let begun = socket.partial_reply().unwrap().unwrap();
        assert_eq!(
            (begun.is_complete, begun.body.as_slice()),
            (false, b"for ever".as_slice())
        );
    }

    #[test]
    fn every_end_is_told_apart() {
        let (mut socket, mut stream, _) = pair();
        socket.set_read_timeout(Duration::from_millis(10)).unwrap();
        assert_eq!(
            socket.wait_for_reply(false).unwrap_err(),
            ConnectionEnd::TimedOut
        );
        socket.set_read_timeout(PATIENCE).unwrap();
        socket.shutdown_write().unwrap();
        assert_eq!(stream.read(&mut [0]).unwrap(), 0);
        stream.write_all(b"no HTTP\r\n\r\n").unwrap();
        assert!(matches!(
            socket.wait_for_reply(false).unwrap_err(),
            ConnectionEnd::InvalidHttp(_)
        ));
        let (socket, mut stream, server) = pair();
        socket.reset();
        assert_eq!(
            stream.read(&mut [0]).unwrap_err().kind(),
            ErrorKind::ConnectionReset
        );
        drop(stream);
        let refused = ClientSocket::connect(
            SocketAddr::new(server.ip(), 1),
            Ipv4Addr::LOCALHOST.into(),
            PATIENCE,
        );
        assert!(matches!(
            refused.unwrap_err(),
            ConnectionEnd::ConnectionFailed(_)
        ));
    }
}
