//! What the console is told of a call, however it ends.

use std::sync::Arc;
use std::time::{Instant, SystemTime};

use toolbay_audit::ArgumentsRecord;
use toolbay_console::{CallNote, Excerpt, Watch};
use toolbay_model::text::shown;
use toolbay_model::{Answer, Body, CallError, Content, ErrorKind, Failure, Output, Rejection, Reply, Usage};

use crate::outcome::Outcome;

/// Longest name that is taken along, in bytes: clients make them up.
const NAME: usize = 256;

/// Longest reason, and longest value that is written, in bytes.
const TEXT: usize = 4 << 10;

/// What the console is told of a call. Dropped before the call has ended, it says that the call was cancelled.
#[derive(Debug)]
pub(crate) struct Noticed {
    watch: Arc<Watch>,
    began: Instant,
    caller: String,
    tool: String,
    plugin: Option<String>,
    arguments: Option<Excerpt>,
    /// Whether arguments and results are told as well.
    contents: bool,
    ended: bool,
}

impl Noticed {
    /// Begins with a call of `tool`. Its `contents` are told or not.
    pub(crate) fn begin(watch: &Arc<Watch>, caller: &str, tool: &str, contents: bool) -> Self {
        let short = |name: &str| name.get(..name.floor_char_boundary(NAME)).unwrap_or_default().to_owned();
        Self {
            watch: Arc::clone(watch),
            began: Instant::now(),
            caller: short(caller),
            tool: short(tool),
            plugin: None,
            arguments: None,
            contents,
            ended: false,
        }
    }

    /// Whether arguments and results are told.
    pub(crate) fn keeps_contents(&self) -> bool {
        self.contents
    }

    /// Says which plugin answers.
    pub(crate) fn found(&mut self, plugin: &str) {
        self.plugin = Some(plugin.to_owned());
    }

    /// Says what the arguments are.
    pub(crate) fn arguments(&mut self, arguments: &ArgumentsRecord) {
        if let Some(text) = arguments.text.as_ref().filter(|_| self.contents) {
            let excerpt = Excerpt::of(text);
            self.arguments = Some(Excerpt { cut: excerpt.cut || arguments.cut, ..excerpt });
        }
    }

    /// Ends with this answer.
    pub(crate) fn end(&mut self, answer: &Answer) {
        let result = match &answer.result {
            Ok(reply) if self.contents => Some(excerpt(reply)),
            _ => None,
        };
        let why = answer.result.as_ref().err().map(|failure| self.why(failure));
        self.tell(Outcome::of(answer).as_str(), why, answer.usage, result);
    }

    /// Ends because it had no place.
    pub(crate) fn reject(mut self, rejection: Rejection) {
        let why = rejection.reason.to_string();
        self.tell(rejection.reason.kind().as_str(), Some(why), None, None);
    }

    fn tell(&mut self, outcome: &'static str, why: Option<String>, usage: Option<Usage>, result: Option<Excerpt>) {
        self.ended = true;
        self.watch.call(CallNote {
            at: SystemTime::now(),
            caller: std::mem::take(&mut self.caller),
            plugin: self.plugin.take(),
            tool: std::mem::take(&mut self.tool),
            outcome,
            why,
            took: self.began.elapsed(),
            usage,
            arguments: self.arguments.take(),
            result,
        });
    }

    /// Why it failed, as the log says it. Values of arguments are told only with the other contents.
    fn why(&self, failure: &Failure) -> String {
        match failure {
            Failure::Unknown(kind, _) => format!("There is no such {kind}, or the caller has no right to it."),
            Failure::MissingCapabilities(missing) => {
                let names: Vec<&str> = missing.keys().map(String::as_str).collect();
                format!("The client lacks capabilities: {}.", names.join(", "))
            }
            Failure::InvalidArguments { violations, .. } if self.contents => {
                let said: Vec<String> = violations.iter().map(ToString::to_string).collect();
                shown(said.join("; "), TEXT)
            }
            Failure::InvalidArguments { violations, .. } => {
                format!("The arguments do not match the input schema in {} places.", violations.len())
            }
            Failure::Outdated => "The plugin or its grant changed while the call waited for an answer.".to_owned(),
            Failure::Unapproved(unapproved) => unapproved.to_string(),
            Failure::Rejected(rejection) => rejection.reason.to_string(),
            Failure::Oversized(_) => "The result is larger than its client gets.".to_owned(),
            Failure::Call(CallError::Denied { words, denied }) => shown(format_args!("{words} {denied}"), TEXT),
            Failure::Call(error) => shown(error, TEXT),
        }
    }
}

impl Drop for Noticed {
    fn drop(&mut self) {
        if !self.ended {
            let kind = if std::thread::panicking() { ErrorKind::Internal } else { ErrorKind::Cancelled };
            self.tell(kind.as_str(), None, None, None);
        }
    }
}

/// The beginning of a reply.
fn excerpt(reply: &Reply) -> Excerpt {
    match reply {
        Reply::Tool(Output { content, structured, .. }) => {
            let mut text = String::new();
            for block in content {
                if text.len() > TEXT {
                    break;
                }
                text.push_str(&self::block(block));
                text.push('\n');
            }
            if let Some(structured) = structured.as_ref().filter(|_| text.is_empty()) {
                text = shown(structured, 2 * TEXT);
            }
            Excerpt::of(text.trim_end())
        }
        Reply::Questions(_) => Excerpt::of("a question to the caller"),
        Reply::Prompt(_) => Excerpt::of("a prompt"),
        Reply::Resource(items) => Excerpt::of(&format!("{} contents", items.len())),
        Reply::Completion(_) => Excerpt::of("a completion"),
    }
}

fn block(block: &Content) -> String {
    match &block.body {
        // A character more than is kept, so that it is seen to be cut.
        Body::Text(text) => text.get(..text.floor_char_boundary(TEXT + 4)).unwrap_or_default().to_owned(),
        Body::Image(media) | Body::Audio(media) => format!("[{}, {} bytes]", media.mime_type, media.data.len()),
        Body::ResourceLink(link) => format!("[{}]", link.uri),
        Body::Resource(resource) => format!("[{}]", resource.uri),
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use toolbay_model::{Media, Violation};

    use super::*;

    fn content(body: Body) -> Content {
        Content { body, audience: Vec::new(), priority: None, last_modified: None }
    }

    #[test]
    fn a_result_is_cut_and_has_no_bytes_of_media() {
        let media = Media { data: Bytes::from_static(b"abc"), mime_type: "image/png".to_owned() };
        let output = Output {
            content: vec![content(Body::Text("one".into())), content(Body::Image(media))],
            ..Output::default()
        };
        assert_eq!(excerpt(&Reply::Tool(output)), Excerpt { text: "one\n[image/png, 3 bytes]".to_owned(), cut: false });
        let long = Output { content: vec![content(Body::Text("é".repeat(1 << 20)))], ..Output::default() };
        let cut = excerpt(&Reply::Tool(long));
        assert!(cut.cut && cut.text.len() <= TEXT);
        let structured = Output { structured: Some(serde_json::json!({"a": [1, 2]})), ..Output::default() };
        assert_eq!(excerpt(&Reply::Tool(structured)).text, "{\"a\":[1,2]}");
    }

    #[test]
    fn values_of_arguments_are_no_reason_unless_contents_are_kept() {
        let violation = || Violation { pointer: "/a".into(), message: "\"hunter2\" is not a number".into() };
        let failure = Failure::InvalidArguments { violations: vec![violation()], example: None };
        for contents in [false, true] {
            let watch = Arc::<Watch>::default();
            let mut noticed = Noticed::begin(&watch, "stdio", "t", contents);
            assert_eq!(noticed.why(&failure).contains("hunter2"), contents);
            noticed.arguments(&ArgumentsRecord { text: Some("{}".into()), ..ArgumentsRecord::default() });
            assert_eq!(noticed.arguments.is_some(), contents);
        }
    }
}
