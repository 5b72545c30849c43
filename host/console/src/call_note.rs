//! Finished calls, as the console stores them.

use std::time::{Duration, SystemTime};

use toolbay_model::CallUsage;
use toolbay_model::text::clean_line;

use crate::call_trail::CallTrail;

/// Maximum length of the name of a tool, plugin or caller, in bytes. Clients can send any tool
/// name.
const MAX_NAME_BYTES: usize = 200;

/// Maximum length of a failure reason, in bytes. Plugins supply parts of it.
const MAX_REASON_BYTES: usize = 400;

/// Maximum length of the text of arguments or of a result, in bytes.
const MAX_EXCERPT_BYTES: usize = 4 << 10;

/// A finished call.
#[derive(Clone, Debug)]
pub struct CallNote {
    /// Number of the call in this console.
    pub id: u64,
    /// Time at which the call ended.
    pub at: SystemTime,
    /// The caller's name.
    pub caller: String,
    /// The plugin; `None` if the tool is unknown or the call was rejected before its plugin was
    /// determined.
    pub plugin: Option<String>,
    /// The tool, or the other requested item.
    pub tool: String,
    /// The outcome: `ok`, `input-required`, or the identifier of an error kind.
    pub outcome: &'static str,
    /// The failure reason, in a sentence; `None` if the call did not fail.
    pub failure_reason: Option<String>,
    /// Time from the arrival of the request to the response.
    pub duration: Duration,
    /// The resources that the call used; `None` if no guest ran.
    pub usage: Option<CallUsage>,
    /// The arguments without secrets, if contents are recorded.
    pub arguments: Option<TextExcerpt>,
    /// The result, if contents are recorded.
    pub result: Option<TextExcerpt>,
    /// Identifier of the trace that the call belongs to, in hexadecimal, if it has one.
    pub trace_id: Option<String>,
    /// The decision about its approval, in words; `None` if it needed none.
    pub approval: Option<String>,
    /// Log messages and denials of the guest.
    pub trail: CallTrail,
}

/// The start of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextExcerpt {
    /// At most 4 KiB of the text.
    pub text: String,
    /// True if the text is truncated.
    pub is_truncated: bool,
}

impl CallNote {
    /// Truncates the names and the failure reason to their maximum lengths.
    pub(crate) fn truncate_texts(self) -> Self {
        Self {
            caller: truncate_name(self.caller),
            plugin: self.plugin.map(truncate_name),
            tool: truncate_name(self.tool),
            failure_reason: self
                .failure_reason
                .map(|why| clean_line(&why, MAX_REASON_BYTES)),
            approval: self
                .approval
                .map(|words| clean_line(&words, MAX_NAME_BYTES)),
            trace_id: self.trace_id.map(truncate_name),
            ..self
        }
    }

    /// Returns whether the call failed. A cancelled call did not.
    pub(crate) fn is_failure(&self) -> bool {
        !matches!(self.outcome, "ok" | "input-required") && !self.is_cancelled()
    }

    /// Returns whether the call was cancelled, or stopped by an operator.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.outcome == "cancelled"
    }

    /// Returns the texts that a search compares.
    pub(crate) fn search_texts(&self) -> impl Iterator<Item = &str> {
        let names = [Some(&self.tool), Some(&self.caller), self.plugin.as_ref()];
        names
            .into_iter()
            .flatten()
            .map(String::as_str)
            .chain([self.outcome])
    }
}

impl TextExcerpt {
    /// Returns the start of `text`.
    pub fn new(text: &str) -> Self {
        let is_truncated = text.len() > MAX_EXCERPT_BYTES;
        Self {
            text: text
                .get(..text.floor_char_boundary(MAX_EXCERPT_BYTES))
                .unwrap_or_default()
                .to_owned(),
            is_truncated,
        }
    }
}

/// Truncates and cleans a name. Returns short names without control characters unchanged.
pub(crate) fn truncate_name(name: String) -> String {
    let is_plain = |byte: u8| byte.is_ascii_graphic() || byte == b' ';
    if name.len() <= MAX_NAME_BYTES && name.bytes().all(is_plain) {
        name
    } else {
        clean_line(&name, MAX_NAME_BYTES)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Creates a tool call with this outcome.
    pub(crate) fn note(tool: &str, outcome: &'static str) -> CallNote {
        CallNote {
            id: 1,
            at: SystemTime::UNIX_EPOCH + Duration::from_hours(500_000),
            caller: "token:ada".to_owned(),
            plugin: Some("p".to_owned()),
            tool: tool.to_owned(),
            outcome,
            failure_reason: (outcome != "ok").then(|| "It did not work.".to_owned()),
            duration: Duration::from_millis(12),
            usage: Some(CallUsage {
                fuel: 1_000,
                wall: Duration::from_millis(10),
                memory: 1 << 20,
                ..CallUsage::default()
            }),
            arguments: None,
            result: None,
            trace_id: None,
            approval: None,
            trail: CallTrail::default(),
        }
    }

    #[test]
    fn stored_texts_are_bounded_and_on_one_line() {
        let long = "é\u{202e}\n".repeat(10_000);
        let call = CallNote {
            caller: long.clone(),
            plugin: Some(long.clone()),
            failure_reason: Some(long.clone()),
            ..note(&long, "fuel")
        };
        let call = call.truncate_texts();
        for (text, most) in [
            (&call.tool, MAX_NAME_BYTES),
            (&call.caller, MAX_NAME_BYTES),
            (call.plugin.as_ref().unwrap(), MAX_NAME_BYTES),
        ] {
            assert!(
                text.len() <= most && !text.contains(['\n', '\u{202e}']),
                "{text}"
            );
        }
        assert!(call.failure_reason.unwrap().len() <= MAX_REASON_BYTES);
        let excerpt = TextExcerpt::new(&long);
        assert!(excerpt.text.len() <= MAX_EXCERPT_BYTES && excerpt.is_truncated);
        assert_eq!(
            TextExcerpt::new("short"),
            TextExcerpt {
                text: "short".to_owned(),
                is_truncated: false
            }
        );
    }
}
