//! The requests of callers and their expected results.

use anyhow::{Result, ensure};
use toolbay_testkit::revision;

/// The text that is repeated until a message is long enough. JSON escapes some of its characters.
const PHRASE: &str = "The quick brown fox says \"ünïcode\" to a lazy dog.\n";

/// The request that a caller repeats.
pub enum Work {
    /// The server echoes a message.
    Echo(Echo),
    /// The server computes and returns the result.
    Burn(Burn),
}

/// A message that is echoed, with the number of the request in it.
pub struct Echo {
    tool: String,
    rest: String,
    /// The message as JSON, without quotation marks.
    escaped: String,
}

/// A number of rounds to compute.
pub struct Burn {
    rounds: u32,
    answer: String,
}

impl Work {
    /// Returns calls of the tool `echo`, with messages of this size in bytes.
    pub fn echo(bytes: usize) -> Self {
        Self::echo_of("echo", bytes)
    }

    /// Like [`Self::echo`], for another tool with the same behaviour.
    pub fn echo_of(tool: &str, bytes: usize) -> Self {
        // The number takes the first bytes.
        let mut rest: String = PHRASE
            .chars()
            .cycle()
            .take(bytes.saturating_sub(NUMBER))
            .collect();
        while rest.len() > bytes.saturating_sub(NUMBER) {
            rest.pop();
        }
        let quoted = serde_json::Value::from(rest.as_str()).to_string();
        let escaped = quoted
            .trim_start_matches('"')
            .strip_suffix('"')
            .unwrap_or_default()
            .to_owned();
        Self::Echo(Echo {
            tool: tool.to_owned(),
            rest,
            escaped,
        })
    }

    /// Returns calls of the tool `burn`, with this number of rounds.
    pub fn burn(rounds: u32) -> Self {
        Self::Burn(Burn {
            rounds,
            answer: burnt(rounds).to_string(),
        })
    }

    /// Returns the name of the tool.
    pub(crate) fn tool(&self) -> &str {
        match self {
            Self::Echo(echo) => &echo.tool,
            Self::Burn(_) => "burn",
        }
    }

    /// Returns the request with this ID as a message.
    pub(crate) fn request(&self, id: u64, stateless: bool) -> Vec<u8> {
        let arguments = match self {
            Self::Echo(echo) => format!("{{\"message\":\"{id:016x}{}\"}}", echo.escaped),
            Self::Burn(burn) => format!("{{\"rounds\":{}}}", burn.rounds),
        };
        let tool = self.tool();
        let meta = if stateless { stated() } else { String::new() };
        let head = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"tools/call\"");
        format!("{head},\"params\":{{\"name\":\"{tool}\",\"arguments\":{arguments}{meta}}}}}")
            .into_bytes()
    }

    /// Checks that this text is the result of the request with this ID.
    pub(crate) fn check(&self, id: u64, text: &str) -> Result<()> {
        let is_right = match self {
            Self::Echo(echo) => text
                .strip_prefix(&format!("{id:016x}"))
                .is_some_and(|rest| rest == echo.rest),
            Self::Burn(burn) => text == burn.answer,
        };
        let shown: String = text.chars().take(200).collect();
        ensure!(
            is_right,
            "request {id} of {} got the wrong text {shown:?}",
            self.tool()
        );
        Ok(())
    }
}

/// Length of the number in a message, in bytes.
const NUMBER: usize = 16;

/// Returns the client metadata in a request of a stateless revision.
fn stated() -> String {
    let key = "io.modelcontextprotocol";
    let revision = revision::FIRST_STATELESS_REVISION;
    format!(
        ",\"_meta\":{{\"{key}/protocolVersion\":\"{revision}\",\"{key}/clientCapabilities\":{{}}}}"
    )
}

/// Returns the expected result of `burn`: this number of steps of the Park-Miller generator.
fn burnt(rounds: u32) -> u64 {
    (0..rounds).fold(1, |number, _| number * 48_271 % 2_147_483_647)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn a_message_has_the_bytes_that_were_asked_for() {
        for bytes in [64, 65, 1024, 1 << 20] {
            let work = Work::echo(bytes);
            let request: Value = serde_json::from_slice(&work.request(77, false)).unwrap();
            let message = request["params"]["arguments"]["message"].as_str().unwrap();
            assert!(
                message.len() <= bytes && message.len() + 2 > bytes,
                "{} of {bytes}",
                message.len()
            );
            work.check(77, message).unwrap();
            assert!(
                work.check(78, message).is_err(),
                "the answer to another request"
            );
        }
    }

    #[test]
    fn requests_without_a_session_state_their_revision() {
        let request: Value = serde_json::from_slice(&Work::burn(3).request(1, true)).unwrap();
        assert_eq!(
            request["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"],
            "2026-07-28"
        );
        assert_eq!(request["params"]["arguments"]["rounds"], 3);
    }

    #[test]
    fn computing_has_one_answer() {
        assert_eq!(burnt(0), 1);
        assert_eq!(burnt(1000), 429_183_498);
        assert!(Work::burn(1000).check(1, "429183498").is_ok());
        assert!(Work::burn(1000).check(1, "429183499").is_err());
    }
}
