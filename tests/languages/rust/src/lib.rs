//! What every language's acceptance plugin offers.

use serde::{Deserialize, Serialize};
use toolbay_plugin::http::Request;
use toolbay_plugin::keyvalue;
use toolbay_plugin::prelude::*;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Text {
    /// Text to answer.
    text: String,
}

/// Answers the text unchanged.
#[tool(read_only)]
fn rust_echo(args: Text) -> String {
    args.text
}

/// Fails by a panic that nobody catches.
#[tool]
fn rust_boom() {
    panic!("kaboom: {}", 6 * 7);
}

/// Says that its arguments make no sense.
#[tool]
fn rust_refuse() -> Result<()> {
    invalid!("not today");
}

/// Answers a picture and a text.
#[tool(read_only)]
fn rust_image() -> (Image, &'static str) {
    (Image::png(*b"\x89PNG\r\n\x1a\n"), "a picture")
}

#[derive(Serialize, JsonSchema)]
struct Report {
    /// `config.units`.
    units: Option<String>,
    /// Whether nobody waits any more.
    cancelled: bool,
}

/// Logs, reports progress, reads the configuration and asks whether it is cancelled.
#[tool(read_only)]
fn rust_report(ctx: &Context) -> Json<Report> {
    info!("working");
    ctx.progress(1.0, 2.0);
    ctx.progress(2.0, 2.0);
    Json(Report {
        units: ctx.config("units"),
        cancelled: ctx.cancelled(),
    })
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Asked {
    url: String,
    method: Option<String>,
    body: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct Answered {
    status: u16,
    header: String,
    text: String,
}

/// Sends an HTTP request.
#[tool]
fn rust_send(args: Asked) -> Result<Json<Answered>> {
    let request =
        Request::new(args.method.as_deref().unwrap_or("GET"), &args.url).header("x-own", "value");
    let response = match args.body {
        Some(body) => request.send_bytes(body.as_bytes()),
        None => request.send(),
    }?;
    let header = response.header("x-got").unwrap_or_default().to_owned();
    Ok(Json(Answered {
        status: response.status(),
        header,
        text: response.text()?,
    }))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Kept {
    key: String,
    value: String,
}

#[derive(Serialize, JsonSchema)]
struct State {
    before: String,
    count: u64,
    keys: Vec<String>,
}

/// Keeps a value, and returns what was there before.
#[tool]
fn rust_keep(args: Kept) -> Result<Json<State>> {
    let bucket = keyvalue::open("default")?;
    let before = bucket.get_text(&args.key)?.unwrap_or_default();
    bucket.set(&args.key, args.value)?;
    bucket.set("gone", "")?;
    bucket.delete("gone")?;
    ensure!(!bucket.exists("gone")?, "a deleted key is there");
    let count = bucket.increment("count", 2)?;
    let mut keys = bucket.keys()?;
    keys.sort();
    Ok(Json(State {
        before,
        count,
        keys,
    }))
}

#[derive(Deserialize, JsonSchema)]
struct Name {
    name: String,
}

/// Asks for a name, if the client has forms.
#[tool]
fn rust_ask(ctx: &Context) -> Result<String> {
    Ok(
        match ctx.ask("name", Form::<Name>::new("Which name?").optional()) {
            Ok(Elicited::Accepted(Name { name })) => format!("Hello, {name}."),
            Ok(Elicited::Declined) => "declined".to_owned(),
            Ok(Elicited::Cancelled) => "cancelled".to_owned(),
            Err(AskError::Unsupported(_)) => "nobody to ask".to_owned(),
            Err(error) => return Err(error.into()),
        },
    )
}

/// Says that a resource has changed.
#[tool]
fn rust_touch(ctx: &Context) -> &'static str {
    ctx.resource_updated("rust://about");
    "touched"
}

/// Greets somebody.
#[prompt]
fn rust_greeting(name: String, style: Option<String>) -> String {
    match style {
        Some(style) => format!("Greet {name} in a {style} style."),
        None => format!("Greet {name}."),
    }
}

#[completion(rust_greeting, style)]
fn styles(typed: &str) -> Completions {
    Completions::beginning_with(typed, ["formal", "friendly", "funny"])
}

/// What this plugin is.
#[resource("rust://about", mime_type = "text/plain")]
fn about() -> &'static str {
    "A plugin in rust."
}

/// A note.
#[resource("rust://notes/{id}", name = "note", mime_type = "text/plain")]
fn note(id: String) -> Option<String> {
    (id != "none").then(|| format!("Note {id}."))
}

export!(
    rust_echo,
    rust_boom,
    rust_refuse,
    rust_image,
    rust_report,
    rust_send,
    rust_keep,
    rust_ask,
    rust_touch,
    rust_greeting,
    styles,
    about,
    note,
);
