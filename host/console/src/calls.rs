//! A call that ended, as it is kept for the console.

use std::time::{Duration, SystemTime};

use toolbay_model::CallUsage;
use toolbay_model::text::line;

/// Longest name of a tool, plugin or caller, in bytes: clients make up names of tools.
const NAME: usize = 200;

/// Longest reason of a failure, in bytes: parts of it come from plugins.
const WHY: usize = 400;

/// Longest text of arguments or of a result, in bytes.
const TEXT: usize = 4 << 10;

/// A call that ended.
#[derive(Clone, Debug)]
pub struct CallNote {
    /// When it ended.
    pub at: SystemTime,
    /// The caller's name.
    pub caller: String,
    /// The plugin; `None` if the tool is unknown or the call was rejected before that mattered.
    pub plugin: Option<String>,
    /// The tool, or what else was asked for.
    pub tool: String,
    /// How it ended: `ok`, `asked`, or the word of an error kind.
    pub outcome: &'static str,
    /// Why it failed, in a sentence; `None` if it did not.
    pub why: Option<String>,
    /// From its arrival to its answer.
    pub took: Duration,
    /// What it used; `None` if no guest was entered.
    pub usage: Option<CallUsage>,
    /// The arguments without secrets, if contents are kept.
    pub arguments: Option<TextExcerpt>,
    /// The result, if contents are kept.
    pub result: Option<TextExcerpt>,
}

/// The beginning of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextExcerpt {
    /// At most 4 KiB of it.
    pub text: String,
    /// Whether that is not all.
    pub cut: bool,
}

impl CallNote {
    /// The same with bounded names.
    pub(crate) fn bounded(self) -> Self {
        Self {
            caller: short(self.caller),
            plugin: self.plugin.map(short),
            tool: short(self.tool),
            why: self.why.map(|why| line(&why, WHY)),
            ..self
        }
    }

    /// Whether it is no success.
    pub(crate) fn failed(&self) -> bool {
        !matches!(self.outcome, "ok" | "asked")
    }

    /// Whether one of its names contains `search`, which is in lower case.
    pub(crate) fn mentions(&self, search: &str) -> bool {
        let names = [Some(&self.tool), Some(&self.caller), self.plugin.as_ref()];
        names.into_iter().flatten().any(|name| name.to_lowercase().contains(search)) || self.outcome.contains(search)
    }
}

impl TextExcerpt {
    /// The beginning of this text.
    pub fn of(text: &str) -> Self {
        let cut = text.len() > TEXT;
        Self { text: text.get(..text.floor_char_boundary(TEXT)).unwrap_or_default().to_owned(), cut }
    }
}

/// A name as it is kept. Most are short and plain, and stay what they are.
fn short(name: String) -> String {
    let plain = |byte: u8| byte.is_ascii_graphic() || byte == b' ';
    if name.len() <= NAME && name.bytes().all(plain) { name } else { line(&name, NAME) }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A call of a tool that ended like this.
    pub(crate) fn note(tool: &str, outcome: &'static str) -> CallNote {
        CallNote {
            at: SystemTime::UNIX_EPOCH + Duration::from_hours(500_000),
            caller: "token:ada".to_owned(),
            plugin: Some("p".to_owned()),
            tool: tool.to_owned(),
            outcome,
            why: (outcome != "ok").then(|| "It did not work.".to_owned()),
            took: Duration::from_millis(12),
            usage: Some(CallUsage {
                fuel: 1_000,
                wall: Duration::from_millis(10),
                memory: 1 << 20,
                ..CallUsage::default()
            }),
            arguments: None,
            result: None,
        }
    }

    #[test]
    fn what_is_kept_of_a_call_is_bounded_and_on_one_line() {
        let long = "é\u{202e}\n".repeat(10_000);
        let call = CallNote {
            caller: long.clone(),
            plugin: Some(long.clone()),
            why: Some(long.clone()),
            ..note(&long, "fuel")
        };
        let call = call.bounded();
        for (text, most) in [(&call.tool, NAME), (&call.caller, NAME), (call.plugin.as_ref().unwrap(), NAME)] {
            assert!(text.len() <= most && !text.contains(['\n', '\u{202e}']), "{text}");
        }
        assert!(call.why.unwrap().len() <= WHY);
        let excerpt = TextExcerpt::of(&long);
        assert!(excerpt.text.len() <= TEXT && excerpt.cut);
        assert_eq!(TextExcerpt::of("short"), TextExcerpt { text: "short".to_owned(), cut: false });
    }

    #[test]
    fn a_call_is_found_by_its_names() {
        let call = note("Convert_Time", "deadline");
        for search in ["convert", "ada", "p", "deadline"] {
            assert!(call.mentions(search), "{search}");
        }
        assert!(!call.mentions("bob"));
    }
}
