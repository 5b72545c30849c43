//! A server process that listens on HTTP, for any client.

use std::net::SocketAddr;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::DEADLINE;
use crate::log::ProgramLog;
use crate::process::ProgramProcess;

/// The server's log message before its address, up to the scheme.
const LISTENING_MESSAGE: &str = "listening on http";

/// A running `toolbay serve --http`. Dropping it kills the server.
#[derive(Debug)]
pub struct HttpServerProcess {
    /// The server's process.
    pub process: ProgramProcess,
    /// The server's address.
    pub address: SocketAddr,
    /// The server's log.
    pub log: ProgramLog,
}

impl HttpServerProcess {
    /// Starts a command and waits until it listens. Reads the address from the log, because the
    /// server selects the port.
    pub fn start(mut command: Command) -> Result<Self> {
        let log = ProgramLog::default();
        let process =
            ProgramProcess::start(command.stdin(Stdio::null()), |_| (), log.line_handler())?;
        let line = log
            .wait_for_matching(1, DEADLINE, |line| line.contains(LISTENING_MESSAGE))
            .context("the server does not listen")?;
        let url = line.split(LISTENING_MESSAGE).nth(1).unwrap_or_default();
        let address = url.split('/').nth(2).unwrap_or_default();
        match address.parse() {
            Ok(address) => Ok(Self {
                process,
                address,
                log,
            }),
            Err(error) => bail!("{address:?} is not an address ({error}): {line}"),
        }
    }

    /// Returns the URL of the MCP endpoint.
    pub fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }
}
