//! `cargo xtask bench parts`: the cost of the parts of a call, of a list and of a reload, each
//! measured in this process.

#![allow(
    clippy::expect_used,
    missing_docs,
    reason = "what cannot be measured ends the measurement"
)]

use std::fs;
use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use serde_json::{Map, Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines, duplex};
use tokio_util::sync::CancellationToken;
use toolbay_inside::Inside;
use toolbay_mcp::jsonrpc::{self, RequestId};
use toolbay_mcp::{Revision, result_json, tool_json};
use toolbay_model::TargetKind;
use toolbay_schema::{CheckBudget, JsonSchema};
use toolbay_testkit::{TinyComponent, TinyTool, guests};

/// Sizes of messages, in bytes.
const SIZES: [usize; 2] = [64, 1 << 20];

/// Lengths of lists.
const LENGTHS: [usize; 3] = [1, 100, 10_000];

/// Number of tools of one plugin.
const EACH: usize = 100;

fn messages(criterion: &mut Criterion) {
    let inside = Inside::new().expect("a server");
    let plugin = guests::guest("echo").expect("the plugin");
    let snapshot = inside.offer(&[("echo", &plugin)]).expect("a plugin");
    let mut group = criterion.benchmark_group("message");
    for size in SIZES {
        let arguments = arguments(size);
        let params = json!({"name": "echo", "arguments": arguments});
        let line = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
            .to_string();
        group.throughput(Throughput::Bytes(size as u64));
        group.bench_function(BenchmarkId::new("decode", size), |bencher| {
            bencher.iter(|| drop(black_box(jsonrpc::decode(black_box(line.as_bytes())))));
        });
        let schema = snapshot
            .tools
            .get("echo")
            .expect("the tool")
            .tool
            .input_schema
            .get()
            .to_owned();
        let schema = JsonSchema::compile(&schema).expect("a schema");
        let value = Value::from(arguments.clone());
        assert_eq!(
            schema
                .matches_within(&value, CheckBudget::CHECK)
                .map(|(fits, _)| fits),
            Some(true)
        );
        group.bench_function(BenchmarkId::new("validate", size), |bencher| {
            bencher
                .iter(|| black_box(schema.matches_within(black_box(&value), CheckBudget::CHECK)));
        });
        group.bench_function(BenchmarkId::new("encode", size), |bencher| {
            bencher.iter_batched(
                || inside.call("echo", &arguments),
                |answer| {
                    let result = result_json(answer, TargetKind::Tool, Revision::NEWEST);
                    black_box(jsonrpc::result(
                        &RequestId::Number(1.into()),
                        &result.expect("a result"),
                    ))
                },
                BatchSize::SmallInput,
            );
        });
    }
    group.finish();
}

fn calls(criterion: &mut Criterion) {
    let inside = Inside::new().expect("a server");
    let empty = Map::new();
    let numbers = [("a".to_owned(), json!(1)), ("b".to_owned(), json!(2))]
        .into_iter()
        .collect();
    let tiny = TinyComponent::new(&["echo"]).build();
    let read = |id| guests::guest(id).expect("the plugin");
    let sample = guests::sample("calculator").expect("the plugin");
    let plugins = [
        ("a few hundred bytes", tiny, "echo", empty),
        ("plain function", read("echo"), "echo", arguments(64)),
        ("Rust SDK", read("echo-sdk"), "echo", arguments(64)),
        ("Rust SDK, large", sample, "calculate_sum", numbers),
    ];
    let mut group = criterion.benchmark_group("call");
    for (name, plugin, tool, arguments) in plugins {
        inside.offer(&[("plugin", &plugin)]).expect("a plugin");
        assert!(inside.call(tool, &arguments).result.is_ok(), "{name}");
        group.bench_function(
            format!("{name}, {} KiB", plugin.len().div_ceil(1024)),
            |bencher| {
                bencher.iter(|| black_box(inside.call(tool, &arguments)));
            },
        );
    }
    group.finish();
}

fn lists(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("list");
    group.sample_size(20);
    for length in LENGTHS {
        let inside = Inside::new().expect("a server");
        let plugins = many(length);
        let plugins: Vec<(&str, &[u8])> = plugins
            .iter()
            .map(|(id, bytes)| (id.as_str(), bytes.as_slice()))
            .collect();
        let snapshot = inside.offer(&plugins).expect("plugins");
        assert_eq!(snapshot.tools.len(), length);
        group.throughput(Throughput::Elements(length as u64));
        group.bench_function(BenchmarkId::new("written anew", length), |bencher| {
            bencher.iter(|| {
                snapshot
                    .tools
                    .values()
                    .map(|offer| tool_json(&offer.tool).to_string().len())
                    .sum::<usize>()
            });
        });
        let mut client = Client::of(&inside);
        group.bench_function(
            BenchmarkId::new("all pages, for a client", length),
            |bencher| {
                bencher.iter(|| assert_eq!(inside.runtime.block_on(client.list()), length));
            },
        );
    }
    group.finish();
}

fn reloads(criterion: &mut Criterion) {
    let mut inside = Inside::new().expect("a server");
    inside.watch().expect("a watcher");
    let mut version = 0_u64;
    let mut change = |files: usize| {
        version += 1;
        // Two versions alternate, so that both are compiled after the first two changes.
        let about = format!("Version {}.", version % 2);
        let plugin = |number: usize| {
            let tool = TinyTool {
                description: Some(about.clone()),
                ..TinyTool::new(&format!("tool_{number}"))
            };
            TinyComponent::with_tools(vec![tool]).build()
        };
        for number in 0..files {
            fs::write(inside.beside(&format!("staged-{number}")), plugin(number)).expect("a file");
        }
        let began = Instant::now();
        for number in 0..files {
            let to = inside.path(&format!("plugin-{number}.wasm"));
            fs::rename(inside.beside(&format!("staged-{number}")), to).expect("a file");
        }
        inside.wait_for(|snapshot| {
            (0..files).all(|number| {
                let offer = snapshot.tools.get(&format!("tool_{number}"));
                offer.is_some_and(|offer| offer.tool.description.as_deref() == Some(&about))
            })
        });
        began.elapsed()
    };
    let mut group = criterion.benchmark_group("reload");
    group
        .sample_size(10)
        .measurement_time(Duration::from_secs(3));
    for files in [1, 10, 100] {
        change(files);
        change(files);
        group.bench_function(BenchmarkId::new("known files", files), |bencher| {
            bencher.iter_custom(|times| (0..times).map(|_| change(files)).sum());
        });
    }
    group.finish();
}

/// Returns the arguments of `echo`.
fn arguments(size: usize) -> Map<String, Value> {
    [("message".to_owned(), Value::from("a\"b ".repeat(size / 4)))]
        .into_iter()
        .collect()
}

/// Returns plugins with this total number of tools.
fn many(tools: usize) -> Vec<(String, Vec<u8>)> {
    let names: Vec<String> = (0..tools).map(|number| format!("tool_{number}")).collect();
    let plugin = |(number, names): (usize, &[String])| {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        (
            format!("plugin-{number}"),
            TinyComponent::new(&names).build(),
        )
    };
    names.chunks(EACH).enumerate().map(plugin).collect()
}

/// A client in this process.
struct Client {
    answers: Lines<BufReader<DuplexStream>>,
    writer: DuplexStream,
}

impl Client {
    fn of(inside: &Inside) -> Self {
        let (writer, reader) = duplex(64 << 10);
        let (server, answers) = duplex(64 << 10);
        let serving = std::sync::Arc::clone(&inside.server);
        inside.runtime.spawn(async move {
            serving
                .serve_stdio(Box::pin(reader), Box::pin(server), CancellationToken::new())
                .await
        });
        let mut client = Self {
            answers: BufReader::new(answers).lines(),
            writer,
        };
        let who = json!({"name": "parts", "version": "1"});
        let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": who});
        inside.runtime.block_on(client.ask("initialize", &hello));
        client
    }

    async fn ask(&mut self, method: &str, params: &Value) -> Map<String, Value> {
        let request = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        self.writer
            .write_all(format!("{request}\n").as_bytes())
            .await
            .expect("the server reads");
        loop {
            let line = self
                .answers
                .next_line()
                .await
                .expect("an answer")
                .expect("an answer");
            let mut message: Map<String, Value> = serde_json::from_str(&line).expect("JSON");
            if let Some(Value::Object(result)) = message.remove("result") {
                return result;
            }
        }
    }

    /// Returns the number of tools on all pages.
    async fn list(&mut self) -> usize {
        let mut tools = 0;
        let mut params = json!({});
        loop {
            let page = self.ask("tools/list", &params).await;
            tools += page
                .get("tools")
                .and_then(Value::as_array)
                .map_or(0, Vec::len);
            match page.get("nextCursor") {
                Some(cursor) => params = json!({"cursor": cursor}),
                None => return tools,
            }
        }
    }
}

criterion_group!(parts, messages, calls, lists, reloads);
criterion_main!(parts);
