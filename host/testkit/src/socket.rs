//! A TCP connection to a server from a selected local address. Every end of the connection is a
//! value, because a program that attacks a server must handle every reaction of the server.

mod reply;

use std::fmt;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

use socket2::{Domain, Protocol, SockAddr, Socket as Raw, Type};

pub use self::reply::Reply;

/// Maximum size of one read, in bytes.
const PIECE: usize = 64 << 10;

/// A connection and the received bytes that have not been parsed as a reply.
#[derive(Debug)]
pub struct Socket {
    stream: TcpStream,
    arrived: Vec<u8>,
}

/// The reason why no more data can be received or sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The server closed the connection.
    Closed,
    /// The server reset the connection, or the connection could not be established.
    Broken(ErrorKind),
    /// The timeout of the caller elapsed.
    Silent,
    /// The received bytes are not HTTP. The text is the reason.
    Garbled(String),
}

impl Socket {
    /// Connects to `server` from `address`, which must be an address of this machine. Each read and
    /// write waits for at most `patience`.
    pub fn connect(server: SocketAddr, address: IpAddr, patience: Duration) -> Result<Self, Ended> {
        let connect = || -> io::Result<TcpStream> {
            let socket = Raw::new(Domain::for_address(server), Type::STREAM, Some(Protocol::TCP))?;
            socket.bind(&SockAddr::from(SocketAddr::new(address, 0)))?;
            socket.connect_timeout(&SockAddr::from(server), patience)?;
            socket.set_tcp_nodelay(true)?;
            let stream = TcpStream::from(socket);
            stream.set_write_timeout(Some(patience))?;
            stream.set_read_timeout(Some(patience))?;
            Ok(stream)
        };
        Ok(Self { stream: connect().map_err(|error| Ended::of(&error))?, arrived: Vec::new() })
    }

    /// Sets the timeout of each read.
    pub fn wait_for(&self, patience: Duration) -> Result<(), Ended> {
        self.stream.set_read_timeout(Some(patience)).map_err(|error| Ended::of(&error))
    }

    /// Sends bytes.
    pub fn send(&mut self, bytes: &[u8]) -> Result<(), Ended> {
        self.stream.write_all(bytes).map_err(|error| Ended::of(&error))
    }

    /// Reads some bytes. Returns the number of received bytes that have not been parsed as a reply.
    pub fn read(&mut self) -> Result<usize, Ended> {
        let mut piece = vec![0; PIECE];
        loop {
            match self.stream.read(&mut piece) {
                Ok(0) => return Err(Ended::Closed),
                Ok(count) => {
                    self.arrived.extend_from_slice(piece.get(..count).unwrap_or_default());
                    return Ok(self.arrived.len());
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(Ended::of(&error)),
            }
        }
    }

    /// Returns the next reply, if all of it has arrived. Skips informational replies (1xx).
    /// `to_head` is true if the request method was HEAD.
    pub fn arrived(&mut self, to_head: bool) -> Result<Option<Reply>, Ended> {
        loop {
            let Some((reply, length)) = Reply::parse(&self.arrived, to_head).map_err(Ended::Garbled)? else {
                return Ok(None);
            };
            if !reply.is_whole {
                return Ok(None);
            }
            self.arrived.drain(..length);
            if reply.status >= 200 {
                return Ok(Some(reply));
            }
        }
    }

    /// Waits for the next complete reply.
    pub fn reply(&mut self, to_head: bool) -> Result<Reply, Ended> {
        loop {
            if let Some(reply) = self.arrived(to_head)? {
                return Ok(reply);
            }
            self.read()?;
        }
    }

    /// Returns the received part of the next reply, such as a stream that has not ended or one that
    /// was cut off. Returns `None` if the head is not complete.
    pub fn begun(&self) -> Result<Option<Reply>, Ended> {
        Ok(Reply::parse(&self.arrived, false).map_err(Ended::Garbled)?.map(|(reply, _)| reply))
    }

    /// Closes the sending side.
    pub fn finish(&self) -> Result<(), Ended> {
        self.stream.shutdown(Shutdown::Write).map_err(|error| Ended::of(&error))
    }

    /// Ends the connection with a reset.
    pub fn reset(self) {
        let raw = Raw::from(self.stream);
        // If this fails, the connection is closed without a reset, which is acceptable.
        drop(raw.set_linger(Some(Duration::ZERO)));
    }
}

impl Ended {
    fn of(error: &io::Error) -> Self {
        match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut => Self::Silent,
            kind => Self::Broken(kind),
        }
    }
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed => f.write_str("the server closed the connection"),
            Self::Broken(kind) => write!(f, "the connection broke: {kind}"),
            Self::Silent => f.write_str("nothing happened in time"),
            Self::Garbled(why) => write!(f, "what the server sent is not HTTP: {why}"),
        }
    }
}

impl std::error::Error for Ended {}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, TcpListener};

    use super::*;

    const PATIENCE: Duration = Duration::from_mins(1);

    fn pair() -> (Socket, TcpStream, SocketAddr) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = listener.local_addr().unwrap();
        let socket = Socket::connect(server, Ipv4Addr::new(127, 0, 0, 2).into(), PATIENCE).unwrap();
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
        stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi").unwrap();
        stream.write_all(b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\nHTTP/1.1 200 OK\r\n\r\nfor ever").unwrap();
        let first = socket.reply(false).unwrap();
        assert_eq!((first.status, first.body.as_slice()), (200, b"hi".as_slice()));
        assert_eq!(socket.reply(false).unwrap().status, 202);
        drop(stream);
        assert_eq!(socket.reply(false).unwrap_err(), Ended::Closed);
        let begun = socket.begun().unwrap().unwrap();
        assert_eq!((begun.is_whole, begun.body.as_slice()), (false, b"for ever".as_slice()));
    }

    #[test]
    fn every_end_is_told_apart() {
        let (mut socket, mut stream, _) = pair();
        socket.wait_for(Duration::from_millis(10)).unwrap();
        assert_eq!(socket.reply(false).unwrap_err(), Ended::Silent);
        socket.wait_for(PATIENCE).unwrap();
        socket.finish().unwrap();
        assert_eq!(stream.read(&mut [0]).unwrap(), 0);
        stream.write_all(b"no HTTP\r\n\r\n").unwrap();
        assert!(matches!(socket.reply(false).unwrap_err(), Ended::Garbled(_)));
        let (socket, mut stream, server) = pair();
        socket.reset();
        assert_eq!(stream.read(&mut [0]).unwrap_err().kind(), ErrorKind::ConnectionReset);
        drop(stream);
        let refused = Socket::connect(SocketAddr::new(server.ip(), 1), Ipv4Addr::LOCALHOST.into(), PATIENCE);
        assert!(matches!(refused.unwrap_err(), Ended::Broken(_)));
    }
}
