//! Properties of any bytes that a client sends.

use std::collections::{BTreeSet, HashMap};
use std::io::Cursor;
use std::sync::Arc;

use bytesize::ByteSize;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::io::{AsyncReadExt as _, duplex};
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;
use toolbay_mcp::jsonrpc::{
    self, Error, INTERNAL_ERROR, INVALID_REQUEST, IncomingContent, Message, PARSE_ERROR, Request,
    RequestId,
};
use toolbay_mcp::{McpServer, stdio};

use crate::peer::Peer;
use crate::stub;

/// Maximum length of a line, in bytes: short, so that some lines are too long.
const LINE: usize = 1024;

/// Size of the buffer for responses, in bytes.
const ANSWERS: usize = 64 << 10;

/// A server with a few tools that respond at once.
pub struct Requests {
    server: Arc<McpServer>,
    runtime: Runtime,
}

/// Number of responses for each request ID, and without one.
type Count = HashMap<Option<String>, usize>;

impl Requests {
    /// Creates the server and a runtime.
    ///
    /// # Errors
    ///
    /// The system does not provide threads or memory.
    pub fn new() -> anyhow::Result<Self> {
        let server = stub::server(["a", "b", "c"].map(str::to_owned), ByteSize::b(LINE as u64));
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        Ok(Self { server, runtime })
    }

    /// Checks each line as a message, and all lines as the input of a session. The names of methods
    /// also serve as names of tools, which a client must be able to list.
    ///
    /// # Panics
    ///
    /// If a property does not hold.
    pub fn check(&self, bytes: &[u8]) {
        let mut expected = Count::new();
        let mut exact = true;
        let mut names = BTreeSet::new();
        for line in bytes
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.trim_ascii().is_empty())
        {
            if line.len() > LINE {
                // The ID is reported wherever it is in the line.
                *expected
                    .entry(jsonrpc::id_of_truncated(line).map(|id| key(&id)))
                    .or_default() += 1;
            } else {
                exact &= expect(line, &mut expected, &mut names);
            }
        }
        let answers = self.converse(bytes);
        for (id, count) in &answers {
            let most = expected.get(id).copied().unwrap_or_default();
            assert!(
                *count <= most,
                "{count} answers to {id:?}, which was asked {most} times"
            );
        }
        assert!(
            !exact || answers == expected,
            "expected {expected:?}, came {answers:?}"
        );
        self.list(&names);
    }

    /// Sends these bytes as a client that then disconnects. Counts the messages from the server,
    /// each of which must be a response or a notification.
    fn converse(&self, bytes: &[u8]) -> Count {
        let reader = Cursor::new(bytes.to_vec());
        let (writer, mut answers) = duplex(ANSWERS);
        let mut written = Vec::new();
        self.runtime.block_on(async {
            let serving = stdio::serve(
                Arc::clone(&self.server),
                Box::pin(reader),
                Box::pin(writer),
                CancellationToken::new(),
            );
            let (served, read) = tokio::join!(serving, answers.read_to_end(&mut written));
            assert!(served.is_ok() && read.is_ok(), "{served:?} {read:?}");
        });
        let mut count = Count::new();
        for line in written
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty())
        {
            let answers = match parse(line) {
                Value::Array(answers) => answers,
                answer => vec![answer],
            };
            for answer in answers.iter().filter(|answer| !is_notification(answer)) {
                *count.entry(answered(answer)).or_default() += 1;
            }
        }
        count
    }

    /// Lists tools with these names, page by page. Each must occur once, even if its name is
    /// unusual in a cursor.
    fn list(&self, names: &BTreeSet<String>) {
        if names.is_empty() {
            return;
        }
        // A cursor is longer than the name that it contains.
        let host = stub::server(names.iter().cloned(), ByteSize::b(4 * LINE as u64));
        let most = names.len();
        let (mut peer, reader, writer) = Peer::connected();
        let listed = self.runtime.block_on(async {
            let serving = stdio::serve(host, reader, writer, CancellationToken::new());
            let listing = async move {
                peer.initialize().await;
                let (mut listed, mut cursor) = peer.list(None).await;
                while let Some(next) = cursor {
                    let (page, following) = peer.list(Some(&next)).await;
                    assert!(!page.is_empty(), "nothing follows {next}");
                    listed.extend(page);
                    assert!(listed.len() <= most, "more than {most} tools: {listed:?}");
                    cursor = following;
                }
                listed
            };
            let (served, listed) = tokio::join!(serving, listing);
            assert!(served.is_ok(), "{served:?}");
            listed
        });
        assert!(listed.iter().eq(names), "of {names:?} came {listed:?}");
    }
}

/// Checks one line. Adds the responses that it must have and the methods that it names. Returns
/// false if there may be fewer responses.
fn expect(line: &[u8], expected: &mut Count, names: &mut BTreeSet<String>) -> bool {
    let (messages, batch) = match jsonrpc::decode(line) {
        Ok(IncomingContent::Single(message)) => (vec![Ok(message)], false),
        // Most revisions reject a batch as a whole.
        Ok(IncomingContent::Batch(messages)) => {
            *expected.entry(None).or_default() += 1;
            (messages, true)
        }
        Err(error) => (vec![Err(error)], false),
    };
    let mut exact = !batch;
    for message in messages {
        let id = match message {
            Ok(Message::Request(request)) => {
                round_trip(&request);
                if !batch {
                    same_id(line, &request.id);
                }
                names.insert(request.method.into_owned());
                Some(request.id)
            }
            Ok(Message::Notification { method, .. }) => {
                exact &= method != "notifications/cancelled";
                continue;
            }
            Ok(Message::Response { .. }) => continue,
            Err(error) => {
                refusal(&error, line.len());
                error.id
            }
        };
        *expected.entry(id.map(|id| key(&id))).or_default() += 1;
    }
    exact
}

/// Checks that a request that is encoded again is the same request.
fn round_trip(request: &Request<'_>) {
    #[derive(Serialize)]
    struct Written<'a> {
        jsonrpc: &'static str,
        id: &'a RequestId,
        method: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        params: Option<&'a RawValue>,
    }
    let written = Written {
        jsonrpc: "2.0",
        id: &request.id,
        method: &request.method,
        params: request.params,
    };
    let written = text(&written);
    let Ok(IncomingContent::Single(Message::Request(again))) = jsonrpc::decode(written.as_bytes())
    else {
        unreachable!("not a request any more: {written}");
    };
    assert_eq!((&again.id, &again.method), (&request.id, &request.method));
    assert_eq!(
        again.params.map(RawValue::get),
        request.params.map(RawValue::get)
    );
}

/// Checks that a client recognizes its ID: a string stays the same string, and a number keeps its
/// notation.
fn same_id(line: &[u8], id: &RequestId) {
    #[derive(Deserialize)]
    struct Sent<'a> {
        #[serde(borrow)]
        id: &'a RawValue,
    }
    let sent: Sent<'_> =
        serde_json::from_slice(line).unwrap_or_else(|error| unreachable!("{error}"));
    let sent = sent.id.get();
    let answered = text(id);
    let same = match id {
        RequestId::Text(id) => serde_json::from_str::<String>(sent).is_ok_and(|sent| sent == *id),
        RequestId::Number(_) | RequestId::Verbatim(_) => sent == answered,
    };
    assert!(same, "the id {sent} is answered as {answered}");
}

/// Checks that an invalid message gets a short error.
fn refusal(error: &Error, length: usize) {
    assert!(
        [PARSE_ERROR, INVALID_REQUEST].contains(&error.code),
        "{error:?}"
    );
    for null_id in [true, false] {
        let answer = jsonrpc::error(error, null_id);
        assert!(
            answer.len() <= 500 + 8 * length,
            "an answer of {} bytes to {length}",
            answer.len()
        );
        assert_eq!(answered(&parse(&answer)), error.id.as_ref().map(key));
    }
}

/// Returns whether this is a notification from a running call or from a subscription.
fn is_notification(message: &Value) -> bool {
    let Some(method) = message.get("method") else {
        return false;
    };
    assert!(
        method
            .as_str()
            .is_some_and(|method| method.starts_with("notifications/")),
        "{message}"
    );
    assert_eq!(message.get("jsonrpc"), Some(&"2.0".into()), "{message}");
    assert!(
        ["id", "result", "error"]
            .iter()
            .all(|member| message.get(member).is_none()),
        "{message}"
    );
    true
}

/// Checks that this is a response, and returns its ID if it has one.
fn answered(answer: &Value) -> Option<String> {
    assert_eq!(answer.get("jsonrpc"), Some(&"2.0".into()), "{answer}");
    match (answer.get("result"), answer.get("error")) {
        (Some(result), None) => assert!(result.is_object(), "{answer}"),
        (None, Some(error)) => {
            let code = error.get("code").and_then(Value::as_i64);
            assert!(
                code.is_some_and(|code| code != i64::from(INTERNAL_ERROR)),
                "{answer}"
            );
            assert!(
                error
                    .get("message")
                    .and_then(Value::as_str)
                    .is_some_and(|text| !text.is_empty()),
                "{answer}"
            );
        }
        _ => unreachable!("neither a result nor an error: {answer}"),
    }
    answer.get("id").filter(|id| !id.is_null()).map(text)
}

fn parse(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes)
        .unwrap_or_else(|error| unreachable!("an answer is not JSON: {error}"))
}

/// Returns the ID as [`answered`] returns it, which does not keep the notation of a number.
fn key(id: &RequestId) -> String {
    text(&parse(text(id).as_bytes()))
}

fn text(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}
