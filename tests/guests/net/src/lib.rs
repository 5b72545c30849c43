//! A plugin that opens sockets, and looks at clocks and random numbers, as a test asks for.

#![allow(
    clippy::disallowed_methods,
    reason = "it waits, and looks at the clock, because a test asks for it"
)]

use std::hash::{BuildHasher as _, RandomState};
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream, ToSocketAddrs as _, UdpSocket};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde::Deserialize;
use toolbay_plugin::prelude::*;

#[derive(Deserialize, JsonSchema)]
struct Place {
    host: String,
    port: u16,
    /// What to send.
    #[serde(default)]
    text: String,
}

#[derive(Deserialize, JsonSchema)]
struct Addresses {
    /// A name whose addresses are asked for first.
    name: String,
    /// Addresses with ports to connect to afterwards.
    addresses: Vec<String>,
}

#[derive(Deserialize, JsonSchema)]
struct Many {
    address: String,
    count: u32,
}

#[derive(Deserialize, JsonSchema)]
struct Label {
    /// Tells one call from another.
    #[serde(default)]
    label: String,
}

/// Sends a text to a host, and returns all that it answers.
#[tool]
fn talk(place: Place) -> Result<String> {
    let mut stream = TcpStream::connect((place.host.as_str(), place.port))?;
    stream.write_all(place.text.as_bytes())?;
    stream.shutdown(Shutdown::Write)?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

/// Tries to connect, and returns what became of that.
#[tool]
fn try_to_connect(place: Place) -> String {
    match TcpStream::connect((place.host.as_str(), place.port)) {
        Ok(stream) => format!(
            "connected to {}",
            stream
                .peer_addr()
                .map_or_else(|e| e.to_string(), |a| a.to_string())
        ),
        Err(error) => error.to_string(),
    }
}

/// Resolves a name, and returns its addresses.
#[tool]
fn resolve(place: Place) -> String {
    match (place.host.as_str(), place.port).to_socket_addrs() {
        Ok(addresses) => addresses
            .map(|address| address.to_string())
            .collect::<Vec<_>>()
            .join(" "),
        Err(error) => error.to_string(),
    }
}

/// Resolves a name, and then tries to connect to addresses.
#[tool]
fn resolve_and_connect(asked: Addresses) -> String {
    let _resolved = (asked.name.as_str(), 1).to_socket_addrs();
    let tried = asked
        .addresses
        .iter()
        .map(|address| match TcpStream::connect(address) {
            Ok(_) => "connected".to_owned(),
            Err(error) => error.to_string(),
        });
    tried.collect::<Vec<_>>().join("; ")
}

/// Opens as many connections as it gets, up to `count`, and says how many and why no more.
#[tool]
fn hoard(many: Many) -> String {
    let mut streams = Vec::new();
    for _ in 0..many.count {
        match TcpStream::connect(&many.address) {
            Ok(stream) => streams.push(stream),
            Err(error) => return format!("{} connections, then: {error}", streams.len()),
        }
    }
    format!("{} connections", streams.len())
}

/// Opens connections one after the other, and closes each.
#[tool]
fn come_and_go(many: Many) -> Result<String> {
    for _ in 0..many.count {
        TcpStream::connect(&many.address)?;
    }
    Ok("done".to_owned())
}

/// Sends without end to a host that may not read.
#[tool]
fn flood(place: Place) -> Result<String> {
    let mut stream = TcpStream::connect((place.host.as_str(), place.port))?;
    let piece = vec![b'x'; 64 << 10];
    loop {
        stream.write_all(&piece)?;
    }
}

/// Waits for connections of others, and for datagrams.
#[tool]
fn listen() -> String {
    let tcp = TcpListener::bind("127.0.0.1:0")
        .map_or_else(|error| error.to_string(), |_| "listening".to_owned());
    let any = TcpListener::bind("0.0.0.0:0")
        .map_or_else(|error| error.to_string(), |_| "listening".to_owned());
    let udp = UdpSocket::bind("127.0.0.1:0")
        .map_or_else(|error| error.to_string(), |_| "bound".to_owned());
    format!("{tcp}; {any}; {udp}")
}

/// Returns random numbers, and the times that clocks show before and after it waits.
#[tool]
fn look(asked: Label) -> String {
    let mut random = [0; 16];
    let random = getrandom::fill(&mut random)
        .map_or_else(|error| error.to_string(), |()| format!("{random:?}"));
    let hash = RandomState::new().hash_one("a");
    let (began, date) = (
        Instant::now(),
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default(),
    );
    std::thread::sleep(Duration::from_millis(20));
    let waited = began.elapsed();
    let enough = waited >= Duration::from_millis(20);
    let (date, waited, trace) = (
        date.as_secs(),
        waited.as_nanos(),
        std::env::var("TRACEPARENT").ok(),
    );
    // The label comes last: tests compare what stands before it.
    format!(
        "{random} {hash} {date} {waited} {enough} {trace:?} {}",
        asked.label
    )
}

/// Looks at the clock until half a second has passed.
#[tool]
fn spin() -> String {
    let began = Instant::now();
    let mut looks = 0_u32;
    while began.elapsed() < Duration::from_millis(500) {
        looks += 1;
    }
    looks.to_string()
}

export!(
    talk,
    try_to_connect,
    resolve,
    resolve_and_connect,
    hoard,
    come_and_go,
    flood,
    listen,
    look,
    spin
);
