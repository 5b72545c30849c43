//! A nonblocking byte stream to a server: the pipes of a process, or a connection.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::process::{ChildStdin, ChildStdout};

use anyhow::{Context, Result, bail, ensure};

use super::response::{self, Response};

/// Size of a read, in bytes.
const READ: usize = 256 * 1024;

/// The stream with its output queue and its input buffer.
pub(crate) struct Wire {
    ends: Ends,
    unsent: Vec<u8>,
    sent: usize,
    received: Vec<u8>,
    taken: usize,
    /// Length of the input that was already searched for a line end.
    searched: usize,
    space: Box<[u8]>,
    /// The session of this connection.
    pub(crate) session: Option<String>,
}

enum Ends {
    Pipes(ChildStdin, ChildStdout),
    Socket(TcpStream),
}

impl Wire {
    pub(crate) fn pipes(input: ChildStdin, output: ChildStdout) -> Result<Self> {
        rustix::io::ioctl_fionbio(&input, true).context("a pipe that waits")?;
        rustix::io::ioctl_fionbio(&output, true).context("a pipe that waits")?;
        Ok(Self::new(Ends::Pipes(input, output)))
    }

    pub(crate) fn connect(address: SocketAddr) -> io::Result<Self> {
        let socket = TcpStream::connect(address)?;
        socket.set_nodelay(true)?;
        socket.set_nonblocking(true)?;
        Ok(Self::new(Ends::Socket(socket)))
    }

    fn new(ends: Ends) -> Self {
        Self {
            ends,
            unsent: Vec::new(),
            sent: 0,
            received: Vec::new(),
            taken: 0,
            searched: 0,
            space: vec![0; READ].into_boxed_slice(),
            session: None,
        }
    }

    pub(crate) fn reads_from(&self) -> BorrowedFd<'_> {
        match &self.ends {
            Ends::Pipes(_, output) => output.as_fd(),
            Ends::Socket(socket) => socket.as_fd(),
        }
    }

    pub(crate) fn writes_to(&self) -> BorrowedFd<'_> {
        match &self.ends {
            Ends::Pipes(input, _) => input.as_fd(),
            Ends::Socket(socket) => socket.as_fd(),
        }
    }

    /// Returns whether reading and writing use the same descriptor.
    pub(crate) fn is_socket(&self) -> bool {
        matches!(self.ends, Ends::Socket(_))
    }

    /// Queues bytes for sending.
    pub(crate) fn queue(&mut self, bytes: &[u8]) {
        self.unsent.extend_from_slice(bytes);
    }

    /// Sends as much as possible without blocking. Returns whether the queue is empty.
    pub(crate) fn flush(&mut self) -> Result<bool> {
        while let Some(rest) = self.unsent.get(self.sent..)
            && !rest.is_empty()
        {
            let written = match &mut self.ends {
                Ends::Pipes(input, _) => input.write(rest),
                Ends::Socket(socket) => socket.write(rest),
            };
            match written {
                Ok(count) => self.sent += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error).context("the server does not read any more"),
            }
        }
        self.unsent.clear();
        self.sent = 0;
        Ok(true)
    }

    /// Receives the available bytes.
    pub(crate) fn fill(&mut self) -> Result<()> {
        self.received.drain(..self.taken);
        self.searched -= self.taken;
        self.taken = 0;
        loop {
            let read = match &mut self.ends {
                Ends::Pipes(_, output) => output.read(&mut self.space),
                Ends::Socket(socket) => socket.read(&mut self.space),
            };
            match read {
                Ok(0) => bail!("the server has gone"),
                Ok(count) => {
                    self.received
                        .extend_from_slice(self.space.get(..count).unwrap_or_default());
                    if count < self.space.len() {
                        return Ok(());
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error).context("nothing can be received any more"),
            }
        }
    }

    /// Returns whether the peer has closed the stream.
    pub(crate) fn has_ended(&mut self) -> bool {
        self.fill().is_err()
    }

    /// Returns the next complete line.
    pub(crate) fn line(&mut self) -> Option<&[u8]> {
        let unread = self.received.get(self.searched..).unwrap_or_default();
        let Some(end) = memchr::memchr(b'\n', unread).map(|at| self.searched + at) else {
            self.searched = self.received.len();
            return None;
        };
        let line = self.received.get(self.taken..end);
        (self.taken, self.searched) = (end + 1, end + 1);
        line
    }

    /// Returns the next complete response.
    pub(crate) fn response(&mut self) -> Result<Option<Response>> {
        let response = response::take(self.received.get(self.taken..).unwrap_or_default())?;
        if let Some(response) = &response {
            self.taken += response.length;
            self.searched = self.taken;
            let said = String::from_utf8_lossy(&response.message);
            ensure!(
                matches!(response.status, 200 | 202),
                "the server answered {}: {said}",
                response.status
            );
            if let Some(session) = &response.session {
                self.session = Some(session.clone());
            }
        }
        Ok(response)
    }
}
