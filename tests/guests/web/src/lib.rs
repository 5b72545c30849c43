//! A plugin that sends whatever HTTP request a test asks for.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use toolbay_plugin::http::Request;
use toolbay_plugin::prelude::*;
use wasip2::http::outgoing_handler;
use wasip2::http::types::{ErrorCode, Fields, IncomingBody, OutgoingRequest, Scheme};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Asked {
    method: Option<String>,
    url: String,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    /// The body.
    body: Option<String>,
    /// So many bytes as the body instead.
    bytes: Option<usize>,
    timeout_ms: Option<u64>,
    /// How often it is sent, one after the other; the last response is returned.
    #[serde(default)]
    again: u32,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Search {
    url: String,
    /// A text, its last byte first.
    backwards: String,
}

#[derive(Deserialize, JsonSchema)]
struct Page {
    url: String,
}

#[derive(Serialize, JsonSchema)]
struct Answered {
    status: u16,
    location: Option<String>,
    /// Bytes of the body.
    length: usize,
    /// Its first 64 KiB.
    text: String,
}

/// Sends a request and returns the response.
#[tool]
fn send(asked: Asked) -> Result<Json<Answered>> {
    for _ in 0..asked.again {
        once(&asked)?;
    }
    Ok(Json(once(&asked)?))
}

/// Sends a request, and returns why there is no response as its result.
#[tool]
fn try_to_send(asked: Asked) -> String {
    match once(&asked) {
        Ok(answered) => format!("status {}", answered.status),
        Err(error) => error.message().to_owned(),
    }
}

/// Gets a page as plugins do, and returns its text, or why there is none.
#[tool]
fn get(page: Page) -> String {
    let text = toolbay_plugin::http::get(&page.url)
        .send()
        .and_then(toolbay_plugin::http::Response::text);
    text.unwrap_or_else(|error| error.to_string())
}

/// Gets a page as plugins do, and returns how long that took, in nanoseconds, or why there is none.
#[tool]
fn time(page: Page) -> String {
    let began = Instant::now();
    let text = toolbay_plugin::http::get(&page.url)
        .send()
        .and_then(toolbay_plugin::http::Response::text);
    let took = began.elapsed();
    text.map_or_else(|error| error.to_string(), |_| took.as_nanos().to_string())
}

/// Gets a page with the functions of WASI, and returns the fields that come after its body, or why
/// there are none.
#[tool]
fn trailers(page: Page) -> String {
    trailers_of(&page.url).unwrap_or_else(|why| why)
}

fn trailers_of(url: &str) -> std::result::Result<String, String> {
    let (authority, path) = url
        .trim_start_matches("http://")
        .split_once('/')
        .ok_or("no path")?;
    let request = OutgoingRequest::new(Fields::new());
    let set = request
        .set_scheme(Some(&Scheme::Http))
        .and_then(|()| request.set_authority(Some(authority)))
        .and_then(|()| request.set_path_with_query(Some(&format!("/{path}"))));
    set.map_err(|()| "malformed")?;
    let told = |error: ErrorCode| error.to_string();
    let awaited = outgoing_handler::handle(request, None).map_err(told)?;
    awaited.subscribe().block();
    let response = awaited
        .get()
        .ok_or("not ready")?
        .map_err(|()| "taken")?
        .map_err(told)?;
    let body = response.consume().map_err(|()| "consumed")?;
    let stream = body.stream().map_err(|()| "streamed")?;
    while stream.blocking_read(1 << 16).is_ok() {}
    drop(stream);
    let trailers = IncomingBody::finish(body);
    trailers.subscribe().block();
    let fields = trailers
        .get()
        .ok_or("not ready")?
        .map_err(|()| "taken")?
        .map_err(told)?;
    let entries = fields.map(|fields| fields.entries()).unwrap_or_default();
    let text =
        |(name, value): (String, Vec<u8>)| format!("{name}: {}", String::from_utf8_lossy(&value));
    Ok(entries.into_iter().map(text).collect::<Vec<_>>().join(", "))
}

/// Sends a request, and then looks for a text in the plugin's whole memory and its environment. The
/// text is given backwards, so that the argument itself is not found.
#[tool]
fn send_and_search(search: Search) -> Result<String> {
    let Search { url, backwards } = search;
    let status = Request::new("GET", &url).send()?.status();
    let in_memory = occurrences(backwards.as_bytes());
    let variables = std::env::vars()
        .filter(|(_, value)| value.bytes().rev().eq(backwards.bytes()))
        .count();
    Ok(format!(
        "status {status}, {in_memory} in memory, {variables} in variables"
    ))
}

/// How often the bytes are in linear memory, read from their last to their first.
#[allow(
    unsafe_code,
    reason = "reads all of its own memory, as an attacker would"
)]
fn occurrences(backwards: &[u8]) -> usize {
    let end = core::arch::wasm32::memory_size(0) << 16;
    let byte = |at: usize| {
        // SAFETY: it is below the size of the memory, and wasm reads any initialised or zeroed
        // byte.
        unsafe { core::ptr::with_exposed_provenance::<u8>(at).read_volatile() }
    };
    let last = end.saturating_sub(backwards.len());
    (1..last)
        .filter(|start| {
            backwards
                .iter()
                .rev()
                .enumerate()
                .all(|(index, own)| byte(start + index) == *own)
        })
        .count()
}

fn once(asked: &Asked) -> Result<Answered> {
    let mut request = Request::new(asked.method.as_deref().unwrap_or("GET"), &asked.url);
    for (name, value) in &asked.headers {
        request = request.header(name, value);
    }
    if let Some(timeout) = asked.timeout_ms {
        request = request.timeout(Duration::from_millis(timeout));
    }
    let mut response = match (&asked.body, asked.bytes) {
        (Some(body), _) => request.send_bytes(body.as_bytes()),
        (None, Some(count)) => request.send_bytes(&vec![b'x'; count]),
        (None, None) => request.send(),
    }?;
    let (mut length, mut text, mut piece) = (0, Vec::new(), vec![0; 64 << 10]);
    loop {
        let read = response.read(&mut piece)?;
        if read == 0 {
            break;
        }
        length += read;
        let room = (64 << 10) - text.len();
        text.extend_from_slice(piece.get(..read.min(room)).unwrap_or_default());
    }
    Ok(Answered {
        status: response.status(),
        location: response.header("location").map(ToOwned::to_owned),
        length,
        text: String::from_utf8_lossy(&text).into_owned(),
    })
}

export!(get, send, send_and_search, time, trailers, try_to_send);
