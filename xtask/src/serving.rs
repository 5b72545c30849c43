//! The real server, listening, for clients of other people's.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::command;

/// Compiles the plugins of a folder into what servers of this `root` keep, so that none waits for it.
pub(crate) fn compile(program: &Path, plugins: &Path, root: &Path) -> Result<()> {
    let mut compile = Command::new(program);
    compile.args(["compile", "--plugins"]).arg(plugins).env("XDG_CACHE_HOME", root.join("cache"));
    command::output(&mut compile).map(drop)
}

/// A server that runs until this is dropped.
pub(crate) struct Server {
    child: Child,
    /// Where it serves MCP.
    pub(crate) url: String,
}

impl Server {
    /// Starts `program` on a folder; what it compiles is kept under `root`.
    pub(crate) fn start(program: &Path, plugins: &Path, root: &Path) -> Result<Self> {
        let mut command = Command::new(program);
        command.args(["serve", "--http", "127.0.0.1:0", "--sse", "--plugins"]).arg(plugins);
        command.env("XDG_CACHE_HOME", root.join("cache"));
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
        let mut log = BufReader::new(child.stderr.take().context("the log is not piped")?).lines();
        let mut said = String::new();
        let url = loop {
            let Some(line) = log.next().transpose()? else { bail!("the server did not start:\n{said}") };
            if let Some(url) = line.split("listening on ").nth(1) {
                break url.trim().to_owned();
            }
            said += &line;
            said.push('\n');
        };
        // Read to its end, so that the server never waits for it.
        std::thread::spawn(move || log.for_each(drop));
        Ok(Self { child, url })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
