//! A server process that listens on HTTP, for any client.

use std::net::SocketAddr;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::DEADLINE;
use crate::log::Log;
use crate::process::Process;

/// The server's log message before its address, up to the scheme.
const LISTENING: &str = "listening on http";

/// A running `toolbay serve --http`. Dropping it kills the server.
#[derive(Debug)]
pub struct Listener {
    /// The server's process.
    pub process: Process,
    /// The server's address.
    pub address: SocketAddr,
    /// The server's log.
    pub log: Log,
}

impl Listener {
    /// Starts a command and waits until it listens. Reads the address from the log, because the
    /// server selects the port.
    pub fn start(mut command: Command) -> Result<Self> {
        let log = Log::default();
        let process = Process::start(command.stdin(Stdio::null()), |_| (), log.hear())?;
        let line = log.find(1, DEADLINE, |line| line.contains(LISTENING)).context("the server does not listen")?;
        let url = line.split(LISTENING).nth(1).unwrap_or_default();
        let address = url.split('/').nth(2).unwrap_or_default();
        match address.parse() {
            Ok(address) => Ok(Self { process, address, log }),
            Err(error) => bail!("{address:?} is not an address ({error}): {line}"),
        }
    }

    /// Returns the URL of the MCP endpoint.
    pub fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }
}
