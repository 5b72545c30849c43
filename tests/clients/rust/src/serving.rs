//! A server that listens.

use std::process::Stdio;

use anyhow::{Context as _, Result};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

pub(crate) struct Served {
    child: Child,
    /// Where it serves MCP.
    pub(crate) url: String,
}

impl Served {
    /// Starts `command`, which must be to serve, and waits until it listens.
    pub(crate) async fn start(mut command: Command) -> Result<Self> {
        command
            .args(["--http", "127.0.0.1:0"])
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        let mut child = command.spawn()?;
        let mut log = BufReader::new(child.stderr.take().context("no log")?).lines();
        loop {
            let line = log.next_line().await?.context("the server did not start")?;
            if let Some((_, url)) = line.split_once("listening on ") {
                // Read to its end, so that the server never waits for it.
                tokio::spawn(async move { while let Ok(Some(_)) = log.next_line().await {} });
                return Ok(Self {
                    child,
                    url: url.trim().to_owned(),
                });
            }
        }
    }

    /// Asks it to end, and waits for that.
    pub(crate) async fn end(mut self) -> Result<Option<i32>> {
        let id = self.child.id().context("it has ended")?;
        Command::new("kill").arg(id.to_string()).status().await?;
        Ok(self.child.wait().await?.code())
    }
}
