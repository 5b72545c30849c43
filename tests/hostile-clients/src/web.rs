//! A server over HTTP. Several hostile clients connect at a time, while honest clients continue to
//! send requests.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result, anyhow, bail, ensure};
use parking_lot::Mutex;
use toolbay_testkit::{ClientSocket, DEADLINE, HttpServerProcess, ObservableValue, TestFolder};

use crate::attack::{Ends, attack};
use crate::honest::{Honest, PATIENCE};
use crate::plugins::{CONNECTIONS, LIST, OWN, RESUMABLE, folder, serve};
use crate::session::{Visit, repeated};
use crate::watch::Watch;

/// Number of concurrent hostile clients.
const CROWD: usize = 12;

/// Number of times that an honest client sends all requests to warm up the server.
const WARM_UP: usize = 20;

/// Size of the read and write buffers of a connection, in KiB.
const BUFFERS: u64 = 2 * 64;

/// Maximum growth of the server beyond its limits, in KiB.
const MARGIN: u64 = 32 << 10;

/// Requests of the connections that are open when the server receives the signal to stop: a call,
/// half a body, half a head, and nothing.
const OPEN: [&str; 4] = [
    "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: */*\r\n\
     MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: spin\r\nContent-Length: 185\r\n\r\n\
     {\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"spin\",\"_meta\":{\
     \"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\",\
     \"io.modelcontextprotocol/clientCapabilities\":{}}}}",
    "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: */*\r\nContent-Length: 9\r\n\r\n{",
    "POST /mcp HTTP/1.1\r\nHo",
    "",
];

/// A server over HTTP.
#[derive(Debug)]
pub(crate) struct Web {
    listener: HttpServerProcess,
    folder: TestFolder,
    honest: Vec<Honest>,
    watch: Watch,
}

impl Web {
    /// Starts a server.
    pub(crate) fn set(server: &Path) -> Result<Self> {
        let folder = folder(server)?;
        let (command, folder) = serve(&folder, &["--http", "127.0.0.1:0"]).into_parts();
        let listener = HttpServerProcess::start(command)?;
        let mut honest = ["one", "two"].map(|name| Honest::new(listener.address, name));
        let began = Instant::now();
        // Tools are unknown until all plugins are loaded.
        while let Err(error) = honest.iter_mut().try_for_each(Honest::ask) {
            ensure!(
                began.elapsed() < DEADLINE,
                "an honest client alone: {error:#}; the log:\n{}",
                listener.log.text()
            );
        }
        for _ in 0..WARM_UP {
            honest.iter_mut().try_for_each(Honest::warm_up)?;
        }
        let most = OWN + RESUMABLE + CONNECTIONS * (BUFFERS + LIST) + MARGIN;
        let watch = Watch::new(listener.process.pid(), &listener.log, most)?;
        Ok(Self {
            listener,
            folder,
            honest: honest.into(),
            watch,
        })
    }

    /// Runs these clients against the server, several at a time. Checks the server during and after
    /// the round.
    ///
    /// # Errors
    ///
    /// The server violated a property. The error contains the client, or all clients if any of them
    /// may be the cause.
    pub(crate) fn round(&mut self, visits: &[Visit]) -> Result<Ends> {
        let log = self.listener.log.clone();
        self.attacked(visits)
            .with_context(|| format!("the server's log ends:\n{}", log.tail(20)))
    }

    fn attacked(&mut self, visits: &[Visit]) -> Result<Ends> {
        let all = || repeated(visits, visits.first().map_or(0, |visit| visit.seed));
        self.watch.begin()?;
        let server = self.listener.address;
        let root = self.folder.root().display().to_string();
        let next = AtomicUsize::new(0);
        let ends = Mutex::new(Ends::new());
        let fault = Mutex::new(None);
        let over = ObservableValue::new(false);
        let asked = thread::scope(|threads| {
            let honest: Vec<_> = self
                .honest
                .iter_mut()
                .map(|one| threads.spawn(|| one.go_on(&over)))
                .collect();
            let crowd: Vec<_> = (0..CROWD)
                .map(|_| {
                    threads.spawn(|| {
                        while let Some(visit) = visits.get(next.fetch_add(1, Ordering::Relaxed)) {
                            match attack(server, &root, visit) {
                                Ok(ended) => {
                                    let mut ends = ends.lock();
                                    for (end, count) in ended {
                                        *ends.entry(end).or_default() += count;
                                    }
                                }
                                Err(error) => {
                                    let mut fault = fault.lock();
                                    fault.get_or_insert_with(|| {
                                        error.context(repeated(
                                            std::slice::from_ref(visit),
                                            visit.seed,
                                        ))
                                    });
                                }
                            }
                        }
                    })
                })
                .collect();
            for one in crowd {
                drop(one.join());
            }
            over.update(|over| *over = true);
            honest
                .into_iter()
                .map(|one| {
                    one.join()
                        .unwrap_or_else(|_| bail!("an honest client panicked"))
                })
                .collect()
        });
        // Any of the hostile clients may have caused a failure of the honest ones.
        let asked: Result<Vec<u64>> = asked;
        let asked: u64 = asked.with_context(all)?.into_iter().sum();
        if let Some(fault) = fault.into_inner() {
            return Err(fault);
        }
        let honest = &mut self.honest;
        let ask = || {
            honest
                .iter_mut()
                .try_for_each(|one| one.ask().and_then(|()| one.leave()))
        };
        self.watch.end(ask).with_context(all)?;
        let mut ends = ends.into_inner();
        ends.insert("honest requests".to_owned(), asked);
        Ok(ends)
    }

    /// Stops the server while a few clients are connected. It must exit successfully. Returns a
    /// summary.
    pub(crate) fn end(mut self) -> Result<String> {
        let honest = &mut self.honest;
        self.watch.until_threads_are_gone(|| {
            honest
                .iter_mut()
                .try_for_each(|one| one.ask().and_then(|()| one.leave()))
        })?;
        let mut open = Vec::new();
        for text in OPEN {
            let connect =
                ClientSocket::connect(self.listener.address, [127, 0, 0, 1].into(), PATIENCE);
            let mut socket = connect.map_err(|ended| anyhow!("no connection: {ended}"))?;
            socket
                .send(text.as_bytes())
                .map_err(|ended| anyhow!("no request: {ended}"))?;
            open.push(socket);
        }
        self.listener.process.terminate()?;
        let status = self.listener.process.wait_for_exit(PATIENCE)?;
        let log = self.listener.log.text();
        ensure!(
            status.code() == Some(0),
            "the server ended with {status}:\n{}",
            self.listener.log.tail(20)
        );
        ensure!(!log.contains("panicked"), "the server panicked:\n{log}");
        let slowest = self
            .honest
            .iter()
            .map(|one| one.slowest)
            .max()
            .unwrap_or_default();
        Ok(format!(
            "{}; the slowest honest answer took {slowest:?}",
            self.watch.words()
        ))
    }
}
