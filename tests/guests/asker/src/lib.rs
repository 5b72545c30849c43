//! A plugin that asks what a test wants it to ask, and does what a test wants it to do before that.

#![allow(
    clippy::disallowed_methods,
    reason = "it waits until a test has done its part"
)]

use std::fs;
use std::net::TcpStream;
use std::thread::sleep;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use toolbay_plugin::http::Request;
use toolbay_plugin::keyvalue;
use toolbay_plugin::prelude::*;
use toolbay_plugin::serde_json::{Map, Value, json};

use self::bindings::toolbay::plugin::host;
use self::bindings::toolbay::plugin::types::{AskError, Question as Wanted, QuestionKind};

#[allow(
    unsafe_code,
    missing_docs,
    unreachable_pub,
    clippy::all,
    clippy::pedantic,
    reason = "generated code"
)]
#[allow(
    clippy::unwrap_used,
    clippy::allow_attributes_without_reason,
    reason = "generated code"
)]
mod bindings {
    wit_bindgen::generate!({
        path: "../../../wit/0.2.0",
        inline: "
            package test:asker;
            world asker { import toolbay:plugin/host@0.2.0; }
        ",
        world: "test:asker/asker",
        generate_all,
    });
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Asked {
    /// What to do, one after the other.
    steps: Vec<Step>,
}

/// One thing to do. Each says something.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Step {
    /// Asks questions together, and says the answers.
    Ask(Vec<Question>),
    /// Asks for a name so many times, one form after the other.
    Rounds(u32),
    /// Sends a request with a method to a URL, and says the status and the text.
    Send(String, String),
    /// The same, to a URL that ends in a random number.
    SendAnywhere(String, String),
    /// Sends a request, and does not read the response.
    SendUnread(String, String),
    /// Adds 1 to a number that is kept, and says it.
    Count(String),
    /// Keeps a value of so many bytes.
    Fill(String, usize),
    /// Says a value that is kept.
    Keep(String),
    /// Writes a file.
    Write(String),
    /// Says whether a file exists.
    Exists(String),
    /// Connects to an address.
    Connect(String),
    /// Says that a resource has changed.
    Update(String),
    /// Says a random number.
    Random,
    /// Waits until a file exists.
    Wait(String),
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Question {
    key: String,
    kind: Kind,
    /// The parameters, as in MCP.
    #[serde(default)]
    params: Map<String, Value>,
    #[serde(default)]
    optional: bool,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Kind {
    Form,
    Url,
    Sampling,
    Roots,
}

#[derive(Serialize, JsonSchema)]
struct Done {
    /// What each step said.
    said: Vec<String>,
}

/// Asks, and does other things.
#[tool]
fn ask(asked: Asked) -> Result<Json<Done>> {
    Ok(Json(Done {
        said: asked
            .steps
            .into_iter()
            .map(Step::run)
            .collect::<Result<_>>()?,
    }))
}

/// A prompt about a topic that the user is asked for.
#[prompt]
fn about() -> Result<String> {
    Ok(format!("Write about {}.", questions(&[name("topic")])?))
}

/// As many names as the URI says, each asked for in another round.
#[resource("asker://names/{rounds}", mime_type = "text/plain")]
fn names(rounds: u32) -> Result<String> {
    Step::Rounds(rounds).run()
}

/// Asks, which no completion can.
#[completion(names, rounds)]
fn rounds(_typed: &str) -> Result<Completions> {
    Ok(Completions::new([questions(&[name("rounds")])?]))
}

impl Step {
    fn run(self) -> Result<String> {
        Ok(match self {
            Self::Ask(all) => {
                let all: Vec<Wanted> = all.into_iter().map(Question::wanted).collect();
                questions(&all)?
            }
            Self::Rounds(rounds) => {
                let answers: Result<Vec<String>> = (0..rounds)
                    .map(|n| questions(&[name(&format!("round-{n}"))]))
                    .collect();
                answers?.join(" ")
            }
            Self::Send(method, url) => send(&method, &url)?,
            Self::SendAnywhere(method, url) => send(&method, &format!("{url}{}", random()))?,
            Self::SendUnread(method, url) => {
                Request::new(&method, &url).send()?.status().to_string()
            }
            Self::Count(key) => bucket()?.increment(&key, 1)?.to_string(),
            Self::Fill(key, bytes) => {
                bucket()?.set(&key, vec![b'x'; bytes])?;
                "kept".to_owned()
            }
            Self::Keep(key) => format!("{:?}", bucket()?.get(&key)?.map(|value| value.len())),
            Self::Write(path) => {
                fs::write(path, "written")?;
                "written".to_owned()
            }
            Self::Exists(path) => fs::exists(path)?.to_string(),
            Self::Connect(address) => {
                TcpStream::connect(address)?;
                "connected".to_owned()
            }
            Self::Update(uri) => {
                host::resource_updated(&uri);
                "told".to_owned()
            }
            Self::Random => random().to_string(),
            Self::Wait(path) => {
                while !fs::exists(&path)? {
                    sleep(Duration::from_millis(5));
                }
                "waited".to_owned()
            }
        })
    }
}

impl Question {
    fn wanted(self) -> Wanted {
        let Self {
            key,
            kind,
            params,
            optional,
        } = self;
        let kind = match kind {
            Kind::Form => QuestionKind::Form,
            Kind::Url => QuestionKind::Url,
            Kind::Sampling => QuestionKind::Sampling,
            Kind::Roots => QuestionKind::Roots,
        };
        Wanted {
            key,
            kind,
            params: Value::Object(params).to_string(),
            required: !optional,
        }
    }
}

/// A form for a name.
fn name(key: &str) -> Wanted {
    let schema =
        json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]});
    let params =
        json!({"message": format!("What is the {key}?"), "requestedSchema": schema}).to_string();
    Wanted {
        key: key.to_owned(),
        kind: QuestionKind::Form,
        params,
        required: true,
    }
}

/// The answers, as the host gives them.
fn questions(all: &[Wanted]) -> Result<String> {
    match host::ask(all) {
        Ok(answers) => Ok(answers.join(" ")),
        Err(AskError::Unsupported(why)) => Ok(format!("unsupported: {why}")),
        Err(AskError::Invalid(why)) => Err(Error::msg(format!("invalid: {why}"))),
    }
}

fn send(method: &str, url: &str) -> Result<String> {
    let response = Request::new(method, url).send()?;
    let status = response.status();
    Ok(format!("{status} {}", response.text()?))
}

fn bucket() -> Result<keyvalue::Bucket> {
    Ok(keyvalue::open("")?)
}

/// A number that differs in each sandbox.
fn random() -> u64 {
    use std::hash::{BuildHasher as _, Hasher as _, RandomState};
    RandomState::new().build_hasher().finish()
}

export!(ask, about, names, rounds);
