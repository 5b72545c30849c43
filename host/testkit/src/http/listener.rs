//! A server that listens, for any client.

use std::net::SocketAddr;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::DEADLINE;
use crate::log::Log;
use crate::process::Process;

/// What the server logs when it listens, before the address.
const LISTENING: &str = "listening on http://";

/// A running `toolbay serve --http`. Dropped, it is killed.
#[derive(Debug)]
pub struct Listener {
    /// Its process.
    pub process: Process,
    /// Where it listens.
    pub address: SocketAddr,
    /// What it logs.
    pub log: Log,
}

impl Listener {
    /// Starts a command, which must listen on an address of its own choice.
    pub fn start(mut command: Command) -> Result<Self> {
        let log = Log::default();
        let process = Process::start(command.stdin(Stdio::null()), |_| (), log.hear())?;
        let line = log.find(1, DEADLINE, |line| line.contains(LISTENING)).context("the server does not listen")?;
        let address = line.split(LISTENING).nth(1).and_then(|rest| rest.split('/').next()).unwrap_or_default();
        match address.parse() {
            Ok(address) => Ok(Self { process, address, log }),
            Err(error) => bail!("{address:?} is no address ({error}): {line}"),
        }
    }

    /// Where it serves MCP.
    pub fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }
}
