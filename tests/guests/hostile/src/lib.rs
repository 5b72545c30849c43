//! A plugin that misbehaves in every way that a test asks for.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::panic,
    clippy::disallowed_methods,
    clippy::exit,
    clippy::needless_pass_by_value,
    reason = "misbehaving is what it is for"
)]

mod files;
mod output;

use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::sleep;
use std::time::Duration;

use serde::Deserialize;
use toolbay_plugin::prelude::*;

#[derive(Deserialize, JsonSchema)]
struct Text {
    text: String,
}

#[derive(Deserialize, JsonSchema)]
struct Number {
    n: u64,
}

/// Returns its text.
#[tool(read_only)]
fn echo(args: Text) -> String {
    args.text
}

/// Says which build this is. Tests change the number in the file.
#[tool]
fn version() -> &'static str {
    "build-marker-0001"
}

/// Counts its calls: always 1, because each runs in a new instance.
#[tool]
fn count() -> String {
    static CALLS: AtomicU32 = AtomicU32::new(0);
    (CALLS.fetch_add(1, Ordering::SeqCst) + 1).to_string()
}

/// Never ends, and computes all the while.
#[tool]
fn loop_forever(ctx: &Context) {
    ctx.progress(1.0, None);
    let mut n = 1_u64;
    loop {
        n = std::hint::black_box(n.wrapping_mul(3));
    }
}

/// Computes for `n` rounds.
#[tool]
fn burn(args: Number) -> String {
    let mut n = 1_u64;
    for round in 0..args.n {
        n = std::hint::black_box(n.wrapping_mul(3) ^ round);
    }
    n.to_string()
}

/// Waits for an hour in one host call.
#[tool]
fn sleep_hour(ctx: &Context) {
    ctx.progress(1.0, None);
    sleep(Duration::from_hours(1));
}

/// Reports progress, waits until there is a file `/gate/open`, and returns the build and
/// `config.version`.
#[tool]
fn wait_for_gate(ctx: &Context) -> String {
    ctx.progress(1.0, None);
    while !std::path::Path::new("/gate/open").exists() {
        sleep(Duration::from_millis(5));
    }
    format!(
        "{} {}",
        version(),
        ctx.config("version").unwrap_or_default()
    )
}

/// Allocates until it may not.
#[tool]
fn hoard() {
    let mut hoard = Vec::new();
    loop {
        hoard.push(std::hint::black_box(vec![1_u8; 1 << 20]));
    }
}

/// Allocates `n` MiB.
#[tool]
fn allocate(args: Number) -> String {
    let bytes = usize::try_from(args.n)
        .unwrap_or(usize::MAX)
        .saturating_mul(1 << 20);
    std::hint::black_box(vec![1_u8; bytes]).len().to_string()
}

/// Calls itself for ever.
#[tool]
fn recurse() -> String {
    deeper(u64::MAX).to_string()
}

/// Calls itself `n` times.
#[tool]
fn recurse_to(args: Number) -> String {
    deeper(args.n).to_string()
}

/// Its frames are on the native stack: whatever is in linear memory would run out of that first.
fn deeper(left: u64) -> u64 {
    let next = std::hint::black_box(deeper as fn(u64) -> u64);
    if left == 0 {
        0
    } else {
        next(left - 1).wrapping_mul(3) ^ left
    }
}

/// Panics.
#[tool]
fn panic() {
    panic!("as asked");
}

/// Exits.
#[tool]
fn exit() {
    std::process::exit(3);
}

/// Says why, and exits.
#[tool]
fn exit_with_words() {
    eprintln!("no such city");
    std::process::exit(3);
}

/// Fails in an orderly way.
#[tool]
fn fail() -> Result<()> {
    bail!("the work could not be done");
}

/// Says that the arguments make no sense.
#[tool]
fn refuse() -> Result<()> {
    invalid!("that makes no sense");
}

/// Shows its environment variables and its arguments.
#[tool]
fn environment() -> String {
    let variables: Vec<String> = std::env::vars()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    format!("{variables:?} {:?}", std::env::args().collect::<Vec<_>>())
}

/// Tells the variable `SECRET`, in the way that it is asked for.
#[tool]
fn tell(args: Text, ctx: &Context) -> Result<Content> {
    let secret = std::env::var("SECRET").unwrap_or_default();
    match args.text.as_str() {
        "content" => return Ok(Content::text(format!("it is {secret}"))),
        "link" => {
            return Ok(Content::resource_link(
                format!("https://a.example/{secret}"),
                &secret,
            ));
        }
        "image" => return Ok(Content::image(secret, "image/png")),
        "failure" => bail!("it is {secret}"),
        "refusal" => invalid!("it is {secret}"),
        "panic" => panic!("it is {secret}"),
        "output" => println!("it is {secret}"),
        "error" => eprintln!("it is {secret}"),
        "hidden" => {
            let hidden: String = secret.chars().flat_map(|c| [c, '\0', '\u{202e}']).collect();
            eprint!("it is {hidden}");
            std::process::abort();
        }
        "log" => info!("it is {secret}"),
        _ => ctx.progress_message(1.0, None, format!("it is {secret}")),
    }
    Ok(Content::text("told"))
}

/// Shows `[config]`.
#[tool]
fn config(args: Text, ctx: &Context) -> String {
    ctx.config(&args.text)
        .unwrap_or_else(|| "nothing".to_owned())
}

/// Reports progress in `n` steps.
#[tool]
fn progress(args: Number, ctx: &Context) -> String {
    let steps = u32::try_from(args.n).unwrap_or(u32::MAX);
    for step in 1..=steps {
        ctx.progress_message(f64::from(step), f64::from(steps), format!("step {step}"));
    }
    format!("{steps} steps")
}

/// Reports progress that goes back and forth.
#[tool]
fn progress_zigzag(ctx: &Context) {
    for value in [1.0, 1.0, 0.5, 3.0, f64::NAN, f64::INFINITY, 2.0, 4.0] {
        ctx.progress(value, None);
    }
}

/// Writes `n` lines to the log.
#[tool]
fn log_flood(args: Number) {
    for line in 0..args.n {
        info!("line {line} {}", "x".repeat(1000));
    }
}

/// Sends a request into the network.
#[tool]
fn connect() -> String {
    match std::net::TcpStream::connect("127.0.0.1:9") {
        Ok(_) => "connected".to_owned(),
        Err(error) => error.to_string(),
    }
}

export!(
    echo,
    version,
    count,
    loop_forever,
    burn,
    sleep_hour,
    wait_for_gate,
    hoard,
    allocate,
    recurse,
    recurse_to,
    panic,
    exit,
    exit_with_words,
    fail,
    refuse,
    environment,
    tell,
    config,
    progress,
    progress_zigzag,
    log_flood,
    connect,
    files::read_file,
    files::write_file,
    files::list_folder,
    files::hold_open,
    files::read_open,
    files::list_open,
    files::file_steps,
    output::big_output,
    output::fail_at_length,
    output::illustrated,
    output::lines,
    output::rows,
    output::many_items,
    output::flood_stdout,
    output::flood_stderr,
    output::forge_stdout,
    output::mismatch,
);
