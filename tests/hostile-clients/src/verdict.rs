//! Checks whether the server's output to a hostile client is allowed.

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use toolbay_testkit::{HttpReply, message};

use crate::message::{MARK, mark};

/// A word that occurs only in the requests of honest clients.
pub(crate) const HUSH: &str = "between-us-";

/// The statuses that the server may return. 303 redirects from the root to the console.
const STATUSES: [u16; 18] = [
    200, 202, 204, 303, 400, 403, 404, 405, 406, 408, 411, 413, 414, 415, 417, 431, 503, 505,
];

/// Output of Rust's `Debug`, panic messages, and source paths. No hostile client sends any of it.
const INTERNAL: [&str; 22] = [
    ".rs:",
    "/src/",
    "src/",
    ".cargo",
    "rustc",
    "panicked",
    "RUST_BACKTRACE",
    "Some(",
    "Ok(",
    "Err(",
    "Error(",
    "Error {",
    "{ kind",
    "unwrap",
    "serde",
    "serde_json::",
    "tokio",
    "hyper",
    "wasmtime",
    "toolbay_",
    "core::",
    "std::",
];

/// The rules for output to one client or to all clients.
#[derive(Debug)]
pub(crate) struct Verdict {
    /// The server's directory, which must not be revealed.
    root: String,
    /// The mark of the client, if clients can be distinguished.
    mark: Option<String>,
}

impl Verdict {
    /// Creates the rules for the client of this seed only.
    pub(crate) fn new(root: &str, seed: u64) -> Self {
        Self {
            root: root.to_owned(),
            mark: Some(mark(seed)),
        }
    }

    /// Creates the rules for clients that share a connection. A response to one of them may arrive
    /// during the next one.
    pub(crate) fn of_all(root: &str) -> Self {
        Self {
            root: root.to_owned(),
            mark: None,
        }
    }

    /// Checks an HTTP reply, which may be truncated. `to_head` is true for a response to `HEAD`,
    /// which has no body.
    ///
    /// # Errors
    ///
    /// The reply violates a rule.
    pub(crate) fn reply(&self, reply: &HttpReply, to_head: bool) -> Result<()> {
        let shown = || {
            let body = reply
                .body
                .get(..reply.body.len().min(2000))
                .unwrap_or_default();
            format!(
                "the reply was {} {:?} {}",
                reply.status,
                reply.headers,
                body.escape_ascii()
            )
        };
        ensure!(
            STATUSES.contains(&reply.status),
            "a status that the server never has; {}",
            shown()
        );
        let messages = if to_head {
            Vec::new()
        } else {
            reply.messages().with_context(shown)?
        };
        for message in messages {
            self.message(&message).with_context(shown)?;
        }
        for (name, value) in &reply.headers {
            self.text(value)
                .with_context(|| format!("the header {name} of a reply"))
                .with_context(shown)?;
        }
        self.text(&String::from_utf8_lossy(&reply.body))
            .with_context(shown)
    }

    /// Checks a line from standard output.
    ///
    /// # Errors
    ///
    /// The line violates a rule.
    pub(crate) fn line(&self, message: &Value) -> Result<()> {
        self.message(message).with_context(|| {
            let text: String = message.to_string().chars().take(2000).collect();
            format!("the server said {text}")
        })
    }

    fn message(&self, message: &Value) -> Result<()> {
        let all = message
            .as_array()
            .map_or(std::slice::from_ref(message), Vec::as_slice);
        for one in all {
            if let Some(error) = one.get("error") {
                let code = error.get("code").and_then(Value::as_i64);
                let text = error.get("message").and_then(Value::as_str);
                ensure!(
                    code.is_some() && text.is_some_and(|text| !text.is_empty()),
                    "an error without code or message"
                );
                ensure!(code != Some(-32603), "an error in the server");
            }
            if let Some(result) = one.get("result") {
                ensure!(
                    message::error_kind(result) != Some("internal"),
                    "an error in the server"
                );
            }
        }
        self.text(&message.to_string())
    }

    /// Checks that a text contains neither internals of the server nor data of other clients.
    fn text(&self, text: &str) -> Result<()> {
        ensure!(
            !text.contains(&self.root),
            "the path of the server's folder is in it"
        );
        if let Some(word) = INTERNAL.iter().find(|word| text.contains(**word)) {
            bail!("{word:?} is in it");
        }
        ensure!(!text.contains(HUSH), "what an honest client said is in it");
        let Some(mark) = &self.mark else {
            return Ok(());
        };
        let mut rest = text;
        while let Some(at) = rest.find(MARK) {
            let marked = rest.get(at..).unwrap_or_default();
            // The mark may be truncated at the end.
            ensure!(
                marked.starts_with(mark) || mark.starts_with(marked),
                "what another client sent is in it"
            );
            rest = marked.get(MARK.len()..).unwrap_or_default();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::message::Writer;
    use crate::session::{Talk, Visit};

    fn verdict() -> Verdict {
        Verdict::new("/somewhere/plugins", 12)
    }

    fn reply(status: u16, body: &str) -> HttpReply {
        let headers = vec![("content-type".to_owned(), "application/json".to_owned())];
        HttpReply {
            status,
            headers,
            body: body.as_bytes().to_vec(),
            is_complete: true,
        }
    }

    #[test]
    fn what_may_be_said_is_told_from_what_may_not() {
        let fine = json!({"jsonrpc": "2.0", "id": mark(12) + "3", "result": {}}).to_string();
        verdict().reply(&reply(200, &fine), false).unwrap();
        verdict().reply(&reply(404, ""), true).unwrap();
        for (status, body) in [
            (500, fine.clone()),
            (200, "{}".to_owned()),
            (200, fine.replace("12.", "13.")),
            (
                200,
                fine.replace("\"result\":{}", "\"result\":\"/somewhere/plugins/a.wasm\""),
            ),
            (
                200,
                fine.replace("\"result\":{}", "\"result\":\"between-us-7\""),
            ),
            (
                200,
                fine.replace(
                    "\"result\":{}",
                    "\"error\":{\"code\":-32603,\"message\":\"no\"}",
                ),
            ),
            (
                200,
                fine.replace("\"result\":{}", "\"error\":{\"code\":-32602}"),
            ),
            (
                200,
                fine.replace(
                    "\"result\":{}",
                    "\"error\":{\"code\":1,\"message\":\"Some(7)\"}",
                ),
            ),
            (
                200,
                fine.replace(
                    "\"result\":{}",
                    "\"result\":{\"_meta\":{\"dev.toolbay/error\":\"internal\"}}",
                ),
            ),
        ] {
            verdict().reply(&reply(status, &body), false).unwrap_err();
        }
    }

    #[test]
    fn no_client_sends_what_the_server_must_not_say() {
        for seed in 0..300 {
            let verdict = Verdict::new("/somewhere/plugins", seed);
            let steps = Visit::new(seed)
                .steps
                .into_iter()
                .flat_map(|step| step.requests)
                .map(|request| request.text);
            for text in steps.chain(Talk::new(seed).lines.into_iter().map(|line| line.text)) {
                verdict.text(&text.to_string()).unwrap();
            }
        }
        let said = Writer::new(1).initialize().text.to_string();
        assert!(
            Verdict::new("/somewhere/plugins", 2).text(&said).is_err(),
            "what another client sent"
        );
        Verdict::of_all("/somewhere/plugins").text(&said).unwrap();
    }
}
