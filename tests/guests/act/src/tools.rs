//! The tools of both versions.

use std::hint::black_box;

use ciborium::Value;
use serde_json::json;
use wit_bindgen::{StreamWriter, spawn_local};

use crate::types::{
    Act, ContentPart, Error, Guest, ListToolsResponse, LocalizedString, ToolDefinition, ToolEvent,
    ToolResult, wit_stream,
};

/// Tests make other guests of this one by changing these texts in the component.
const SCHEMA: &str = r#"{"type":"object","description":"schema-marker","properties":{"name":{"type":"string"}},"required":["name"]}"#;
const LIST: &str = "list-marker-0001";

const ANY: &str = r#"{"type":"object"}"#;

/// Tools that take anything.
const OTHERS: [&str; 15] = [
    "arguments",
    "structured",
    "json",
    "image",
    "opaque",
    "mixed",
    "stream",
    "fail",
    "malformed",
    "deep",
    "wide",
    "endless",
    "silent",
    "unfinished",
    "trap-late",
];

impl Guest for Act {
    async fn list_tools(metadata: Vec<(String, Vec<u8>)>) -> Result<ListToolsResponse, Error> {
        assert_eq!(metadata, []);
        if black_box(LIST) != "list-marker-0001" {
            return Err(error("acme:offline", "the catalogue cannot be reached"));
        }
        let greet = ToolDefinition {
            name: "greet".to_owned(),
            description: LocalizedString::Localized(vec![
                ("de".to_owned(), "Grüßt jemanden.".to_owned()),
                ("en".to_owned(), "Greets somebody.".to_owned()),
            ]),
            parameters_schema: black_box(SCHEMA).to_owned(),
            metadata: vec![
                ("std:read-only".to_owned(), cbor(&json!(true))),
                ("std:idempotent".to_owned(), cbor(&json!(true))),
                ("std:destructive".to_owned(), vec![0x61]),
                (
                    "std:usage-hints".to_owned(),
                    cbor(&json!({"en": "Use it when somebody comes in."})),
                ),
                ("std:timeout-ms".to_owned(), cbor(&json!(3_600_000))),
                ("acme:unknown".to_owned(), vec![0xff]),
            ],
        };
        let other = |name: &str| ToolDefinition {
            name: name.to_owned(),
            description: LocalizedString::Plain(String::new()),
            parameters_schema: ANY.to_owned(),
            metadata: Vec::new(),
        };
        let tools = std::iter::once(greet)
            .chain(OTHERS.into_iter().map(other))
            .collect();
        Ok(ListToolsResponse { metadata, tools })
    }

    async fn call_tool(
        name: String,
        arguments: Vec<u8>,
        metadata: Vec<(String, Vec<u8>)>,
    ) -> ToolResult {
        assert_eq!(metadata, []);
        let given: Value = ciborium::from_reader(arguments.as_slice()).unwrap();
        let member = |name: &str| {
            let members = given.as_map().unwrap();
            members
                .iter()
                .find(|(key, _)| key.as_text() == Some(name))
                .map(|(_, value)| value.clone())
        };
        match name.as_str() {
            "greet" => one(
                Some("text/plain"),
                format!("Hello, {}!", member("name").unwrap().as_text().unwrap()),
            ),
            "arguments" => one(Some("text/plain; charset=utf-8"), hex::encode(arguments)),
            "structured" => {
                let value = Value::Map(vec![
                    (
                        Value::Text("bytes".to_owned()),
                        Value::Bytes(vec![1, 2, 3, 4]),
                    ),
                    (Value::Text("given".to_owned()), given),
                ]);
                one(Some("application/cbor"), encoded(&value))
            }
            "json" => one(Some("application/json"), r#"{"a": [1, null]}"#),
            "image" => one(Some("image/png"), [0x89, 0x50]),
            "opaque" => one(None, [0xff, 0]),
            "mixed" => ToolResult::Immediate(vec![
                part(Some("application/cbor"), cbor(&json!({"a": 1}))),
                part(Some("text/markdown"), "*b*"),
                part(Some("audio/wav"), [1]),
                part(Some("application/xml"), "<c/>"),
            ]),
            "stream" => stream(|mut writer| async move {
                for n in 1..=3_u32 {
                    let metadata = vec![
                        ("std:progress".to_owned(), cbor(&json!(n))),
                        ("std:progress-total".to_owned(), cbor(&json!(3))),
                    ];
                    let (data, mime_type) = (
                        format!("part {n}").into_bytes(),
                        Some("text/plain".to_owned()),
                    );
                    writer
                        .write_one(ToolEvent::Content(ContentPart {
                            data,
                            mime_type,
                            metadata,
                        }))
                        .await;
                }
            }),
            "fail" => {
                let kind = member("kind").unwrap().as_text().unwrap().to_owned();
                stream(|mut writer| async move {
                    writer.write_one(part(Some("text/plain"), "half")).await;
                    writer
                        .write_one(ToolEvent::Error(error(&kind, "It is not there.")))
                        .await;
                    writer
                        .write_one(part(Some("text/plain"), "after the end"))
                        .await;
                    std::process::abort();
                })
            }
            "malformed" => one(Some("application/cbor"), [0x61]),
            "deep" => one(
                Some("application/cbor"),
                [vec![0x81; 500_000], vec![0x80]].concat(),
            ),
            // Five times as long as JSON.
            "wide" => one(
                Some("application/cbor"),
                [vec![0x9a, 0, 0x06, 0, 0], vec![0xf6; 0x60000]].concat(),
            ),
            "endless" => stream(|mut writer| async move {
                while writer
                    .write_one(part(Some("text/plain"), vec![b'x'; 64 << 10]))
                    .await
                    .is_none()
                {}
            }),
            "silent" => stream(|writer| async move {
                let (unwritten, mut awaited) = wit_stream::new::<ToolEvent>();
                awaited.next().await;
                drop((unwritten, writer));
            }),
            "unfinished" => stream(|mut writer| async move {
                writer.write_one(part(Some("text/plain"), "half")).await;
                std::mem::forget(writer);
            }),
            "trap-late" => stream(|mut writer| async move {
                writer.write_one(part(Some("text/plain"), "half")).await;
                std::process::abort();
            }),
            _ => ToolResult::Immediate(vec![ToolEvent::Error(error(
                "std:not-found",
                "There is no such tool.",
            ))]),
        }
    }
}

/// A result that is written after the function has returned.
fn stream<F: Future<Output = ()> + 'static>(
    write: impl FnOnce(StreamWriter<ToolEvent>) -> F,
) -> ToolResult {
    let (writer, reader) = wit_stream::new();
    spawn_local(write(writer));
    ToolResult::Streaming(reader)
}

fn one(mime_type: Option<&str>, data: impl AsRef<[u8]>) -> ToolResult {
    ToolResult::Immediate(vec![part(mime_type, data)])
}

fn part(mime_type: Option<&str>, data: impl AsRef<[u8]>) -> ToolEvent {
    let (data, mime_type) = (data.as_ref().to_vec(), mime_type.map(str::to_owned));
    ToolEvent::Content(ContentPart {
        data,
        mime_type,
        metadata: Vec::new(),
    })
}

fn error(kind: &str, message: &str) -> Error {
    Error {
        kind: kind.to_owned(),
        message: LocalizedString::Plain(message.to_owned()),
        metadata: Vec::new(),
    }
}

fn cbor(value: &serde_json::Value) -> Vec<u8> {
    let mut bytes = Vec::new();
    ciborium::into_writer(value, &mut bytes).unwrap();
    bytes
}

fn encoded(value: &Value) -> Vec<u8> {
    let mut bytes = Vec::new();
    ciborium::into_writer(value, &mut bytes).unwrap();
    bytes
}
