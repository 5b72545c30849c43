//! A local site that serves packages like a registry: files in a directory, served by Python.

use std::path::Path;
use std::process::Stdio;
use std::sync::mpsc::channel;

use anyhow::{Context as _, Result};
use toolbay_testkit::{DEADLINE, ProgramProcess, StreamEvent};

use super::Room;

/// The site. Dropping it stops the server.
#[derive(Debug)]
pub(super) struct LocalSite {
    _process: ProgramProcess,
    /// Its URL, without a trailing slash.
    pub(super) url: String,
}

impl LocalSite {
    /// Serves a directory on a free port.
    pub(super) fn serve(folder: &Path, room: &Room) -> Result<Self> {
        let (sender, lines) = channel();
        let mut python = room.command("python3");
        python
            .args([
                "-u",
                "-m",
                "http.server",
                "0",
                "--bind",
                "127.0.0.1",
                "--directory",
            ])
            .arg(folder);
        let hear = move |heard: StreamEvent<'_>| {
            if let StreamEvent::Line(line, _) = heard {
                drop(sender.send(String::from_utf8_lossy(line).into_owned()));
            }
        };
        // Python writes a line to standard error for each request.
        let process = ProgramProcess::start(python.stdin(Stdio::null()), hear, |_| ())?;
        let line = lines
            .recv_timeout(DEADLINE)
            .context("Python serves nothing")?;
        let url = line
            .split(['(', ')'])
            .nth(1)
            .with_context(|| format!("Python told no address: {line}"))?;
        Ok(Self {
            _process: process,
            url: url.trim_end_matches('/').to_owned(),
        })
    }
}
