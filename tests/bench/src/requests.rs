//! The cost of an HTTP request of a fresh guest, compared with the same request of a native client.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::str::FromStr;
use std::thread;
use std::time::{Duration, Instant};

use anstream::println;
use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty};
use hyper::Request;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::HOST;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::runtime::{Builder, Runtime};
use toolbay_testkit::latency::LatencyHistogram;
use toolbay_testkit::{
    CallerMailbox, DEADLINE, ProgramLog, ServerProgram, SharedConnection, TestFolder,
    ToolbayCommand, UnclaimedPolicy, revision,
};

use crate::row::{Row, Target};

/// The guest, whose tools send HTTP requests.
pub(crate) const GUEST: &str = "web";

/// The subcommand that serves the site.
const SITE: &str = "site";

/// The tool, which requests a page like a normal plugin.
const TOOL: &str = "get";

/// The tool that returns the duration of the same request, measured by the guest's clock.
const TIMED: &str = "time";

/// Maximum ratio of a guest's time to a native client's time.
const TIMES: f64 = 1.5;

/// Number of measurements of each kind in a round.
const REQUESTS: u32 = 1000;

/// Number of requests and calls before the measurement, which open the connections.
const WARM: u32 = 50;

/// The response to every request.
const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// Its body.
const TEXT: &str = "ok";

/// The tool's result for an invalid URL: it fails before it sends a request.
const NO_URL: &str = "The request cannot be sent: its URL must begin with https:// or http://.";

/// Measures alternately a request of a native client, a call that sends the same request, and a
/// call that sends none.
pub(crate) fn measure(
    server: &Path,
    guests: &Path,
    client: &Path,
    rounds: u32,
) -> Result<Vec<Row>> {
    let started = Site::start()?;
    let site = started.address;
    let folder = folder(server, guests, site)?;
    let log = ProgramLog::default();
    let (command, _folder) = ToolbayCommand::new(&folder).args(["serve"]).into_parts();
    let connection = SharedConnection::start(command, UnclaimedPolicy::Check, log.line_handler())?;
    connection.initialize(revision::NEWEST_SESSION_REVISION)?;
    connection.wait_until_listed(DEADLINE, |tools| tools.iter().any(|tool| tool == TOOL))?;
    let mailbox = connection.open_mailbox();
    let mut bare = Bare::connect(site)?;
    let mut pooled = Pooled::start(client, site)?;
    let (asked, none) = (
        json!({"url": format!("http://{site}/")}),
        json!({"url": "none"}),
    );
    let [mut native, mut alone, mut sent, mut unsent, mut within] = [
        LatencyHistogram::new()?,
        LatencyHistogram::new()?,
        LatencyHistogram::new()?,
        LatencyHistogram::new()?,
        LatencyHistogram::new()?,
    ];
    for _ in 0..rounds {
        for n in 0..WARM + REQUESTS {
            // The order alternates, because each measurement is affected by the previous one: both
            // kinds of calls follow both native clients.
            for turn in 0..5 {
                let (latencies, took) = match if n % 2 == 0 { turn } else { 4 - turn } {
                    0 => (&mut alone, bare.request()?),
                    1 => (&mut sent, call(&mailbox, &asked, TEXT)?),
                    2 => (&mut native, pooled.request()?),
                    3 => (&mut within, timed(&mailbox, &asked)?),
                    _ => (&mut unsent, call(&mailbox, &none, NO_URL)?),
                };
                if n >= WARM {
                    latencies.add(took);
                }
            }
        }
    }
    connection.stop(DEADLINE)?;
    let mut cost = LatencyHistogram::new()?;
    for percent in 1..100 {
        let percentile = f64::from(percent);
        cost.add(
            sent.percentile(percentile)
                .saturating_sub(unsent.percentile(percentile)),
        );
    }
    Ok(vec![
        Row::new(
            "a request on a bare connection of hyper, on one thread",
            alone,
            Some(&native),
            Target::None,
        ),
        Row::new(
            "a call that sends a request",
            sent,
            Some(&unsent),
            Target::None,
        ),
        Row::new(
            "the request of a guest: the difference of calls",
            cost,
            Some(&native),
            Target::None,
        ),
        Row::new(
            "the request of a guest, by its own clock",
            within,
            Some(&native),
            Target::Times(TIMES),
        ),
    ])
}

/// Returns the duration of a call, which must return `expected`.
fn call(mailbox: &CallerMailbox<'_>, arguments: &Value, expected: &str) -> Result<Duration> {
    let began = Instant::now();
    let (text, at) = returned(mailbox, TOOL, arguments)?;
    ensure!(text == expected, "the guest returned: {text}");
    Ok(at - began)
}

/// Returns the duration of a guest's request, measured like a native client's: from just before the
/// request until its response is read.
fn timed(mailbox: &CallerMailbox<'_>, arguments: &Value) -> Result<Duration> {
    let (text, _) = returned(mailbox, TIMED, arguments)?;
    let nanoseconds = text
        .parse()
        .with_context(|| format!("the guest returned: {text}"))?;
    Ok(Duration::from_nanos(nanoseconds))
}

/// Returns the text result of a call and its time of arrival.
fn returned(
    mailbox: &CallerMailbox<'_>,
    tool: &str,
    arguments: &Value,
) -> Result<(String, Instant)> {
    let answer = mailbox.call_and_wait(tool, arguments)?;
    let result = answer
        .message
        .map_err(|error| anyhow::anyhow!("a call failed: {error}"))?;
    Ok((
        toolbay_testkit::message::result_text(&result),
        answer.received_at,
    ))
}

/// Creates a folder with the guest, which may send requests to `site`.
fn folder(server: &Path, guests: &Path, site: SocketAddr) -> Result<TestFolder> {
    let folder = TestFolder::create(&ServerProgram::new(server), "toolbay-bench-")?;
    let from = guests.join(GUEST).with_extension("wasm");
    fs::copy(&from, folder.plugin_path("web.wasm"))
        .with_context(|| format!("failed to copy {}", from.display()))?;
    let grant =
        format!("[permissions]\nhttp = [\"http://{site}\"]\nprivate_networks = [\"127.0.0.1\"]\n");
    fs::write(folder.plugin_path("web.toml"), grant)?;
    Ok(folder)
}

/// A program that writes lines until this value is dropped.
struct Helper {
    process: Child,
    output: BufReader<ChildStdout>,
}

impl Helper {
    fn start(command: &mut Command) -> Result<Self> {
        let spawned = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut process = spawned
            .with_context(|| format!("failed to start {}", command.get_program().display()))?;
        let output = BufReader::new(process.stdout.take().context("a helper has no output")?);
        Ok(Self { process, output })
    }

    /// Reads and parses the next line.
    fn line<T: FromStr>(&mut self) -> Result<T> {
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        line.trim()
            .parse()
            .ok()
            .with_context(|| format!("a helper wrote {line:?}"))
    }

    /// Requests the next line.
    fn ask(&mut self) -> Result<()> {
        Ok(self
            .process
            .stdin
            .as_mut()
            .context("a helper has no input")?
            .write_all(b"\n")?)
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        // The process may have exited.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A server that responds to every request at once. It runs in its own process, so that neither
/// client has an advantage.
struct Site {
    address: SocketAddr,
    _helper: Helper,
}

impl Site {
    fn start() -> Result<Self> {
        let mut helper = Helper::start(Command::new(std::env::current_exe()?).arg(SITE))?;
        Ok(Self {
            address: helper.line()?,
            _helper: helper,
        })
    }
}

/// Serves the site until standard input ends, which happens whenever the parent process exits.
pub(crate) fn serve_site() -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    println!("{}", listener.local_addr()?);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // The client may end the connection at any time.
            thread::spawn(move || drop(answer(&stream)));
        }
    });
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

fn answer(mut stream: &TcpStream) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    while reader.read_line(&mut line)? > 0 {
        if line == "\r\n" {
            stream.write_all(RESPONSE)?;
        }
        line.clear();
    }
    Ok(())
}

/// A native client with a warm connection pool, in its own process.
struct Pooled(Helper);

impl Pooled {
    fn start(program: &Path, site: SocketAddr) -> Result<Self> {
        Helper::start(Command::new(program).arg(format!("http://{site}/"))).map(Self)
    }

    /// Returns the duration of a request, measured by the client.
    fn request(&mut self) -> Result<Duration> {
        self.0.ask()?;
        self.0.line().map(Duration::from_nanos)
    }
}

/// An open connection of hyper, without a pool and on one thread: the minimum that hyper needs for
/// a request.
struct Bare {
    runtime: Runtime,
    /// `None` while a request is in flight.
    sender: Option<SendRequest<Empty<Bytes>>>,
    site: SocketAddr,
}

impl Bare {
    fn connect(site: SocketAddr) -> Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let connect = async move {
            let stream = tokio::net::TcpStream::connect(site).await?;
            stream.set_nodelay(true)?;
            let (sender, connection) = handshake(TokioIo::new(stream)).await?;
            tokio::spawn(connection);
            anyhow::Ok(sender)
        };
        let sender = Some(runtime.block_on(runtime.spawn(connect))??);
        Ok(Self {
            runtime,
            sender,
            site,
        })
    }

    /// Returns the duration of a request in a task.
    fn request(&mut self) -> Result<Duration> {
        let mut sender = self.sender.take().context("the last request failed")?;
        let request = Request::get("/")
            .header(HOST, self.site.to_string())
            .body(Empty::new())?;
        let requested = self.runtime.spawn(async move {
            let began = Instant::now();
            sender.ready().await?;
            let response = sender.send_request(request).await?;
            ensure!(
                response.status() == 200,
                "the site answered {}",
                response.status()
            );
            response.into_body().collect().await?;
            Ok((began.elapsed(), sender))
        });
        let (took, sender) = self.runtime.block_on(requested)??;
        self.sender = Some(sender);
        Ok(took)
    }
}
