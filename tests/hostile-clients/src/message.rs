//! Valid and invalid client messages of every method and revision.

use fastrand::Rng;
use serde_json::{Value, json};

use crate::json::{broken, long, object, odd, weighted};
use crate::text::Text;

/// The revisions with sessions, and two unsupported ones.
const SESSIONS: [&str; 6] = [
    "2024-11-05",
    "2025-03-26",
    "2025-06-18",
    "2025-11-25",
    "2027-01-01",
    "latest",
];

/// The revision that each request states itself.
pub(crate) const STATELESS: &str = "2026-07-28";

/// The methods, with their weights.
const METHODS: [(&str, u32); 24] = [
    ("tools/call", 14),
    ("tools/list", 6),
    ("initialize", 5),
    ("ping", 3),
    ("notifications/cancelled", 4),
    ("notifications/initialized", 2),
    ("subscriptions/listen", 3),
    ("server/discover", 2),
    ("logging/setLevel", 2),
    ("notifications/progress", 1),
    ("resources/list", 1),
    ("prompts/list", 1),
    ("resources/templates/list", 1),
    ("prompts/get", 2),
    ("resources/read", 2),
    ("resources/directory/read", 2),
    ("skills/list", 1),
    ("skills/get", 2),
    ("resources/subscribe", 3),
    ("resources/unsubscribe", 2),
    ("completion/complete", 2),
    ("tools/", 1),
    ("", 1),
    ("rpc.discover", 1),
];

/// The tools in the folder, and one that does not exist.
pub(crate) const TOOLS: [&str; 7] = [
    "echo",
    "bystander",
    "spin",
    "crash",
    "strict",
    "header",
    "nobody",
];

/// Probability that a part of a message is malformed, in percent.
const ODD: u32 = 9;

/// A message.
#[derive(Clone, Debug, Default)]
pub(crate) struct Message {
    pub(crate) text: Text,
    pub(crate) method: String,
    /// The tool that it calls.
    pub(crate) tool: Option<String>,
    /// The arguments of a call that are repeated in headers.
    pub(crate) region: Option<String>,
    /// True if it states its own revision.
    pub(crate) is_stateless: bool,
    /// The ID, if the message is a request that must get a response, provided that it is valid
    /// JSON.
    pub(crate) id: Option<Value>,
}

/// Generates the messages of one client.
#[derive(Debug)]
pub(crate) struct Writer {
    pub(crate) random: Rng,
    /// A word that occurs in the texts and IDs of this client only.
    mark: String,
    /// The IDs used so far.
    ids: Vec<Value>,
    /// The IDs that were used exactly once and not cancelled.
    single: Vec<Value>,
}

impl Writer {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            random: Rng::with_seed(seed),
            mark: mark(seed),
            ids: Vec::new(),
            single: Vec::new(),
        }
    }

    /// Returns a random element.
    pub(crate) fn one_of<T: Copy + Default>(&mut self, from: &[T]) -> T {
        self.random.choice(from).copied().unwrap_or_default()
    }

    /// Returns true with this probability, in percent.
    pub(crate) fn chance(&mut self, percent: u32) -> bool {
        self.random.u32(..100) < percent
    }

    /// Returns whether exactly one message uses this ID.
    pub(crate) fn is_single(&self, id: &Value) -> bool {
        self.single.contains(id)
    }

    /// Returns a valid handshake.
    pub(crate) fn initialize(&mut self) -> Message {
        let revision = self.one_of(SESSIONS.get(..4).unwrap_or_default());
        let params = json!({"protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": self.mark, "version": "1"}});
        let (id, text) = self.fresh();
        let text =
            format!(r#"{{"jsonrpc":"2.0","id":{text},"method":"initialize","params":{params}}}"#);
        let method = "initialize".to_owned();
        Message {
            text: Text::new(text),
            method,
            id: Some(id),
            ..Message::default()
        }
    }

    /// Returns a random message.
    pub(crate) fn message(&mut self, may_be_stateless: bool) -> Message {
        if self.chance(5) {
            let text = broken(&mut self.random);
            return Message {
                text,
                ..Message::default()
            };
        }
        if self.chance(3) {
            return self.response();
        }
        let method = weighted(&mut self.random, &METHODS);
        let is_stateless = may_be_stateless && self.chance(50);
        let mut message = Message {
            method: method.to_owned(),
            is_stateless,
            ..Message::default()
        };
        let params = self.params(&mut message);
        let is_note = if self.chance(4) {
            self.random.bool()
        } else {
            method.starts_with("notifications/")
        };
        let (id, id_text) = if is_note {
            (None, Text::default())
        } else {
            self.id()
        };
        let mut members = vec![
            ("jsonrpc", Text::new("\"2.0\"")),
            ("method", Text::new(format!("\"{method}\""))),
        ];
        if !is_note {
            members.insert(1, ("id", id_text));
        }
        if self.chance(90) {
            members.push(("params", params));
        }
        let (text, as_given) = object(&mut self.random, members, ODD);
        message.text = text;
        // A subscription gets its response only when it ends.
        message.id = id.filter(|_| as_given && method != "subscriptions/listen");
        message
    }

    /// Returns a batch of messages.
    pub(crate) fn batch(&mut self) -> Message {
        let count = self.one_of(&[1, 2, 5, 30, 99, 100, 101]);
        let mut text = Text::new("[");
        for n in 0..count {
            // Long messages are not batched.
            let message = if self.chance(20) {
                self.message(false).text
            } else {
                Text::new(r#"{"jsonrpc":"2.0","id":7e20,"method":"ping"}"#)
            };
            text = text.and(if n > 0 { "," } else { "" }).then(message);
        }
        // The messages of the batch may get one response together, or none.
        self.single.clear();
        Message {
            text: text.and("]"),
            ..Message::default()
        }
    }

    /// Returns a response to a request that the server never sent.
    fn response(&mut self) -> Message {
        let (_, id) = self.id();
        let members = vec![
            ("jsonrpc", Text::new("\"2.0\"")),
            ("id", id),
            ("result", Text::new("{}")),
        ];
        Message {
            text: object(&mut self.random, members, 30).0,
            ..Message::default()
        }
    }

    /// Returns an unused ID and its text.
    fn fresh(&mut self) -> (Value, String) {
        let n = self.ids.len();
        // The honest client over standard input and output uses small numbers.
        let id = if self.random.bool() {
            json!(4_000_000_000_000_u64 + n as u64)
        } else {
            json!(format!("{}{n}", self.mark))
        };
        self.ids.push(id.clone());
        self.single.push(id.clone());
        (id.clone(), id.to_string())
    }

    fn id(&mut self) -> (Option<Value>, Text) {
        if self.chance(12)
            && let Some(used) = self.known()
        {
            return (None, Text::new(used.to_string()));
        }
        if self.chance(4) {
            return (None, odd(&mut self.random));
        }
        let (id, text) = self.fresh();
        (Some(id), Text::new(text))
    }

    /// Returns a used ID. The requests with this ID can no longer be distinguished.
    fn known(&mut self) -> Option<Value> {
        let id = self.random.choice(&self.ids).cloned()?;
        self.single.retain(|single| *single != id);
        Some(id)
    }

    /// Returns the parameters of a method.
    fn params(&mut self, message: &mut Message) -> Text {
        let quoted = |text: &str| Text::new(json!(text).to_string());
        let mut members = match message.method.as_str() {
            "initialize" => {
                let revision = self.one_of(&SESSIONS);
                let (info, _) = object(
                    &mut self.random,
                    vec![("name", quoted(&self.mark)), ("version", quoted("1"))],
                    20,
                );
                let capabilities = if self.chance(15) {
                    odd(&mut self.random)
                } else {
                    Text::new("{}")
                };
                vec![
                    ("protocolVersion", quoted(revision)),
                    ("capabilities", capabilities),
                    ("clientInfo", info),
                ]
            }
            "tools/list"
            | "prompts/list"
            | "resources/list"
            | "resources/templates/list"
            | "skills/list" => match self.random.u8(..6) {
                0 | 1 => Vec::new(),
                2 => {
                    vec![(
                        "cursor",
                        quoted(self.one_of(&[
                            "",
                            "dGVjaG8",
                            "dGVjaG8=",
                            "dG5vYm9keQ",
                            "////",
                            "w6k",
                        ])),
                    )]
                }
                3 => vec![(
                    "cursor",
                    Text::new("\"").then(long(&mut self.random)).and("\""),
                )],
                4 => vec![("cursor", odd(&mut self.random))],
                _ => vec![("cursor", Text::new("null"))],
            },
            "tools/call" => {
                let tool = self.one_of(&TOOLS);
                message.tool = Some(tool.to_owned());
                vec![
                    ("name", quoted(tool)),
                    ("arguments", self.arguments(tool, message)),
                ]
            }
            "prompts/get" => {
                vec![
                    ("name", quoted(self.one_of(&["echo", "nobody", ""]))),
                    ("arguments", odd(&mut self.random)),
                ]
            }
            "resources/read" | "resources/subscribe" | "resources/unsubscribe" => {
                match self.random.u8(..4) {
                    0 => vec![(
                        "uri",
                        Text::new("\"mem:").then(long(&mut self.random)).and("\""),
                    )],
                    1 => vec![("uri", odd(&mut self.random))],
                    _ => vec![(
                        "uri",
                        quoted(self.one_of(&["test://a", "toolbay://notes/../a", "", "://"])),
                    )],
                }
            }
            "skills/get" | "resources/directory/read" => match self.random.u8(..4) {
                0 => vec![(
                    "uri",
                    Text::new("\"skill://")
                        .then(long(&mut self.random))
                        .and("\""),
                )],
                1 => vec![
                    ("uri", odd(&mut self.random)),
                    ("cursor", odd(&mut self.random)),
                ],
                _ => {
                    vec![(
                        "uri",
                        quoted(self.one_of(&[
                            "skill://a/SKILL.md",
                            "skill://a/../b",
                            "skill:/",
                            "skill://",
                        ])),
                    )]
                }
            },
            "completion/complete" => vec![
                (
                    "ref",
                    Text::new(self.one_of(&[
                        "{\"type\":\"ref/prompt\",\"name\":\"a\"}",
                        "{\"type\":7}",
                        "[]",
                    ])),
                ),
                (
                    "argument",
                    Text::new(self.one_of(&["{\"name\":\"a\",\"value\":\"b\"}", "{}", "null"])),
                ),
                ("context", odd(&mut self.random)),
            ],
            "notifications/cancelled" | "notifications/progress" => {
                let id = self
                    .known()
                    .filter(|_| self.random.u8(..10) < 7)
                    .unwrap_or_else(|| json!("unknown"));
                vec![
                    ("requestId", Text::new(id.to_string())),
                    ("progressToken", Text::new("1")),
                    ("reason", quoted("so")),
                ]
            }
            "subscriptions/listen" => {
                vec![(
                    "notifications",
                    Text::new(self.one_of(&[
                        "{\"toolsListChanged\":true}",
                        "{\"promptsListChanged\":true,\"resourceSubscriptions\":[\"test://a\",\"\"]}",
                        "{}",
                        "{\"a\":[1]}",
                    ])),
                )]
            }
            "logging/setLevel" => vec![(
                "level",
                quoted(self.one_of(&["debug", "error", "loud", ""])),
            )],
            _ => vec![("x", odd(&mut self.random))],
        };
        if message.is_stateless || self.chance(25) {
            members.push(("_meta", self.meta(message.is_stateless)));
        }
        object(&mut self.random, members, ODD).0
    }

    fn meta(&mut self, is_stateless: bool) -> Text {
        let mut members = Vec::new();
        if is_stateless {
            let revision = if self.chance(5) {
                self.one_of(&SESSIONS)
            } else {
                STATELESS
            };
            members.push((
                "io.modelcontextprotocol/protocolVersion",
                Text::new(format!("\"{revision}\"")),
            ));
            members.push((
                "io.modelcontextprotocol/clientCapabilities",
                Text::new("{}"),
            ));
        }
        if self.chance(30) {
            let level = self.one_of(&["debug", "info", "emergency", "loud"]);
            members.push((
                "io.modelcontextprotocol/logLevel",
                Text::new(format!("\"{level}\"")),
            ));
        }
        if self.chance(40) {
            let token = if self.chance(20) {
                odd(&mut self.random)
            } else {
                Text::new(format!("\"{}t\"", self.mark))
            };
            members.push(("progressToken", token));
        }
        if self.chance(10) {
            let trace = self.one_of(&[
                "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
                "00-zz",
                "",
            ]);
            members.push(("traceparent", Text::new(format!("\"{trace}\""))));
        }
        object(&mut self.random, members, ODD).0
    }

    fn arguments(&mut self, tool: &str, message: &mut Message) -> Text {
        let marked = Text::new(format!("\"{}\"", self.mark));
        let members = match tool {
            "strict" => {
                let texts = [
                    Text::repeated("a", 30).and("b"),
                    Text::repeated("a", 200_000),
                    Text::repeated("ab", 500_000).and("!"),
                    long(&mut self.random),
                ];
                let text = self.random.choice(texts).unwrap_or_default();
                let lists = [
                    Text::new("[]"),
                    Text::new("[")
                        .then(Text::repeated("[[]],", 30_000))
                        .and("[]]"),
                    Text::new("[")
                        .then(Text::numbered("", ",", 30_000))
                        .and("0]"),
                    odd(&mut self.random),
                ];
                let list = self.random.choice(lists).unwrap_or_default();
                vec![
                    ("text", Text::new("\"").then(text).and("\"")),
                    ("list", list),
                ]
            }
            "header" => {
                let region = format!("{}r", self.mark);
                message.region = Some(region.clone());
                vec![("region", Text::new(format!("\"{region}\"")))]
            }
            _ => {
                let mut members = vec![("said", marked)];
                if self.chance(30) {
                    members.push(("x", odd(&mut self.random)));
                }
                members
            }
        };
        object(&mut self.random, members, ODD).0
    }
}

/// Returns a word that occurs only in the messages of the client with this seed.
pub(crate) fn mark(seed: u64) -> String {
    format!("{MARK}{seed}.")
}

/// The prefix of every mark.
pub(crate) const MARK: &str = "hostile-";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_makes_the_same_messages_and_all_methods() {
        let all = |seed| {
            let mut writer = Writer::new(seed);
            (0..500).map(|_| writer.message(true)).collect::<Vec<_>>()
        };
        let one = all(7);
        let two = all(7);
        assert!(
            one.iter()
                .zip(&two)
                .all(|(one, two)| one.text.to_string() == two.text.to_string())
        );
        for (method, _) in METHODS {
            assert!(
                one.iter().any(|message| message.method == method),
                "{method}"
            );
        }
        for tool in TOOLS {
            assert!(
                one.iter()
                    .any(|message| message.tool.as_deref() == Some(tool)),
                "{tool}"
            );
        }
    }

    #[test]
    fn what_must_be_answered_is_a_request_with_that_id() {
        let mut writer = Writer::new(3);
        let mut found = 0;
        for _ in 0..500 {
            let message = writer.message(true);
            let Some(id) = message.id else { continue };
            let value: Value =
                serde_json::from_slice(&message.text.bytes("")).unwrap_or(Value::Null);
            // Arguments may be malformed on purpose.
            if !value.is_null() {
                assert_eq!(value["id"], id, "{}", message.text);
                found += 1;
            }
        }
        assert!(found > 100, "{found}");
    }
}
