//! What an HTTP request of a fresh guest costs, beside the same request of a native client.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty};
use hyper::Request;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::HOST;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use toolbay_testkit::latency::Latencies;
use toolbay_testkit::{Connection, DEADLINE, Folder, Log, Mailbox, Program, Toolbay, Unclaimed, revision};

use crate::row::{Row, Target};

/// The guest, whose tools send what they are asked to.
pub(crate) const GUEST: &str = "web";

/// How much more than a native client a guest may need.
const TIMES: f64 = 1.5;

/// How often each is measured in a round.
const REQUESTS: u32 = 1000;

/// Requests and calls before the first one that counts: connections are open then.
const WARM: u32 = 50;

/// The response to every request.
const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// Measures in turn a request of a native client, a call that sends the same request, and a call that sends none.
pub(crate) fn measure(server: &Path, guests: &Path, rounds: u32) -> Result<Vec<Row>> {
    let site = site()?;
    let folder = folder(server, guests, site)?;
    let (log, (command, _folder)) = (Log::default(), Toolbay::new(&folder).args(["serve"]).into_parts());
    let connection = Connection::start(command, Unclaimed::Judged, log.hear())?;
    connection.initialize(revision::SESSION)?;
    connection.until_listed(DEADLINE, |tools| tools.iter().any(|tool| tool == "try_to_send"))?;
    let (mailbox, mut native) = (connection.mailbox(), Native::connect(site)?);
    let (asked, none) = (json!({"url": format!("http://{site}/")}), json!({"url": "none"}));
    let (mut alone, mut sent, mut unsent) = (Latencies::new()?, Latencies::new()?, Latencies::new()?);
    for _ in 0..rounds {
        for n in 0..WARM + REQUESTS {
            let (request, with, without) = (native.request()?, call(&mailbox, &asked)?, call(&mailbox, &none)?);
            ensure!(with.1 == "status 200", "the guest was told: {}", with.1);
            ensure!(without.1 != "status 200", "a request without a URL had a response");
            if n >= WARM {
                alone.add(request);
                sent.add(with.0);
                unsent.add(without.0);
            }
        }
    }
    connection.end(DEADLINE)?;
    let mut cost = Latencies::new()?;
    for percent in 1..100 {
        let percentile = f64::from(percent);
        cost.add(sent.percentile(percentile).saturating_sub(unsent.percentile(percentile)));
    }
    Ok(vec![
        Row::new("a call that sends a request", sent, Some(&unsent), Target::None),
        Row::new("the request of a guest: the difference", cost, Some(&alone), Target::Times(TIMES)),
    ])
}

/// How long a call took, and what it returned.
fn call(mailbox: &Mailbox<'_>, arguments: &Value) -> Result<(Duration, String)> {
    let began = Instant::now();
    let answer = mailbox.ask("try_to_send", arguments)?;
    let result = answer.what.map_err(|error| anyhow::anyhow!("a call failed: {error}"))?;
    Ok((answer.at - began, toolbay_testkit::message::text(&result)))
}

/// A folder with the guest, which may send requests to `site`.
fn folder(server: &Path, guests: &Path, site: SocketAddr) -> Result<Folder> {
    let folder = Folder::make(&Program::new(server), "toolbay-bench-")?;
    let from = guests.join(GUEST).with_extension("wasm");
    fs::copy(&from, folder.path("web.wasm")).with_context(|| format!("failed to copy {}", from.display()))?;
    let grant = format!("[permissions]\nhttp = [\"http://{site}\"]\nnetwork_private = [\"127.0.0.1\"]\n");
    fs::write(folder.path("web.toml"), grant)?;
    Ok(folder)
}

/// A server that answers every request at once.
fn site() -> Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // A connection ends as its client wishes.
            thread::spawn(move || drop(answer(&stream)));
        }
    });
    Ok(address)
}

fn answer(mut stream: &TcpStream) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let (mut reader, mut line) = (BufReader::new(stream), String::new());
    while reader.read_line(&mut line)? > 0 {
        if line == "\r\n" {
            stream.write_all(RESPONSE)?;
        }
        line.clear();
    }
    Ok(())
}

/// A native client with an open connection.
struct Native {
    runtime: Runtime,
    sender: SendRequest<Empty<Bytes>>,
    site: SocketAddr,
}

impl Native {
    fn connect(site: SocketAddr) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let sender = runtime.block_on(async {
            let stream = tokio::net::TcpStream::connect(site).await?;
            stream.set_nodelay(true)?;
            let (sender, connection) = handshake(TokioIo::new(stream)).await?;
            tokio::spawn(connection);
            anyhow::Ok(sender)
        })?;
        Ok(Self { runtime, sender, site })
    }

    /// How long a request took.
    fn request(&mut self) -> Result<Duration> {
        let request = Request::get("/").header(HOST, self.site.to_string()).body(Empty::new())?;
        let began = Instant::now();
        self.runtime.block_on(async {
            self.sender.ready().await?;
            let response = self.sender.send_request(request).await?;
            ensure!(response.status() == 200, "the site answered {}", response.status());
            response.into_body().collect().await?;
            Ok(())
        })?;
        Ok(began.elapsed())
    }
}
