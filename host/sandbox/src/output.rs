//! Checks what a guest returned and converts it to the host's types. Rejects what violates the contract or a limit.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use bytesize::ByteSize;
use serde_json::{Map, Value};
use toolbay_model::text::{clean, line};
use toolbay_model::{
    Body, CallError, Content, Interrupt, JsonSize, Limit, Limits, Media, Output, Resource, ResourceContent,
    ResourceLink,
};
use toolbay_secrets::Secrets;

use crate::block::{Block, Kind, Refusal, Returned};

/// What a tool returned, or why it failed in its own words: neither checked nor cleaned.
#[derive(Debug)]
pub struct Unchecked {
    pub(crate) returned: Result<Returned, Refusal>,
    /// The secrets of the call.
    pub(crate) secrets: Arc<Secrets>,
}

impl Unchecked {
    /// How many bytes there are to check.
    pub fn size(&self) -> usize {
        match &self.returned {
            Ok(returned) => size(returned),
            Err(Refusal::InvalidArguments(text) | Refusal::Failed(text)) => text.len(),
        }
    }

    /// Checks the bounds of the result and the contract, and takes what only acts and what is secret out of all text.
    ///
    /// Takes about 10 ms for each megabyte, of which there are as many as [`Limits::output`] allows.
    ///
    /// # Errors
    ///
    /// What the tool said of its failure, the bound or the rule that its result breaks, or [`Limit::Deadline`] if
    /// `interrupt` was due first.
    pub fn check(self, limits: &Limits, interrupt: &Interrupt) -> Result<Output, CallError> {
        let Self { returned, secrets } = self;
        match returned {
            Ok(returned) => check(returned, limits, &secrets, interrupt),
            Err(Refusal::InvalidArguments(text)) => Err(CallError::InvalidArguments(message(text, limits, &secrets))),
            Err(Refusal::Failed(text)) => Err(CallError::Failed(message(text, limits, &secrets))),
        }
    }
}

/// The bytes of a result.
fn size(output: &Returned) -> usize {
    output.content.iter().map(Block::size).sum::<usize>()
        + output.structured.as_ref().map_or(0, String::len)
        + output.meta.as_ref().map_or(0, String::len)
}

/// Longest text of a guest that a message about it quotes, in bytes.
const QUOTED: usize = 200;

/// Checks a result against its bounds and the contract.
fn check(output: Returned, limits: &Limits, secrets: &Secrets, interrupt: &Interrupt) -> Result<Output, CallError> {
    if output.content.len() > limits.output_items {
        return Err(CallError::limit(Limit::OutputItems(limits.output_items)));
    }
    if size(&output) as u64 > limits.output.as_u64() {
        return Err(CallError::limit(Limit::Output(ByteSize::b(limits.output.as_u64()))));
    }
    // The guest's own memory is free by now: the values in its result may take its place.
    let parsed = [&output.structured, &output.meta].into_iter().flatten().map(|text| JsonSize::of(text).memory);
    if parsed.sum::<u64>() > limits.memory.as_u64() {
        return Err(CallError::limit(Limit::Parsed(limits.memory)));
    }
    let mut cleaner = Cleaner::new(secrets);
    cleaner.interrupt = Some(interrupt);
    let checked = cleaned(output, &mut cleaner);
    // Whatever came of it: what was not cleaned goes nowhere.
    if cleaner.interrupted { Err(CallError::limit(Limit::Deadline(limits.timeout))) } else { checked }
}

fn cleaned(output: Returned, cleaner: &mut Cleaner<'_>) -> Result<Output, CallError> {
    let content = output
        .content
        .into_iter()
        .enumerate()
        .map(|(index, block)| {
            content(block, cleaner).map_err(|what| CallError::InvalidOutput(format!("content[{index}] {what}")))
        })
        .collect::<Result<_, _>>()?;
    let structured = output.structured.map(|text| json("structured", &text, cleaner)).transpose()?;
    let meta = match output.meta.map(|text| json("meta", &text, cleaner)).transpose()? {
        None => Map::new(),
        Some(Value::Object(members)) => members,
        Some(_) => return Err(CallError::InvalidOutput("meta is not a JSON object".into())),
    };
    Ok(Output { content, structured, meta })
}

/// A failure's message, at most as long as a result may be.
fn message(text: String, limits: &Limits, secrets: &Secrets) -> String {
    let mut text = Cleaner::new(secrets).text(text);
    let most = usize::try_from(limits.output.as_u64()).unwrap_or(usize::MAX);
    text.truncate(text.floor_char_boundary(most));
    text
}

/// Removes control characters and secrets from a guest's text, and logs how much was removed.
struct Cleaner<'a> {
    secrets: &'a Secrets,
    /// Removed control characters, in bytes.
    removed: usize,
    /// Texts that contained secrets.
    redacted: usize,
    interrupt: Option<&'a Interrupt>,
    /// Whether it stopped before the end.
    interrupted: bool,
}

impl<'a> Cleaner<'a> {
    fn new(secrets: &'a Secrets) -> Self {
        Self { secrets, removed: 0, redacted: 0, interrupt: None, interrupted: false }
    }

    fn text(&mut self, text: String) -> String {
        self.interrupted |= self.interrupt.is_some_and(Interrupt::is_due);
        if self.interrupted {
            return text;
        }
        let text = match clean(&text) {
            Cow::Borrowed(_) => text,
            Cow::Owned(cleaned) => {
                self.removed += text.len() - cleaned.len();
                cleaned
            }
        };
        // After that, because removing characters can join the parts of a secret.
        match self.secrets.scrub(&text) {
            Cow::Borrowed(_) => text,
            Cow::Owned(redacted) => {
                self.redacted += 1;
                redacted
            }
        }
    }

    fn data(&self, data: Vec<u8>) -> Result<Bytes, String> {
        if self.secrets.are_in(&data) { Err("contains a secret in `data`".into()) } else { Ok(data.into()) }
    }

    /// Cleans every string in a JSON value, including the names of members. The value stays valid JSON.
    fn value(&mut self, value: Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.text(text)),
            // Digits can be a secret, too.
            Value::Number(number) if self.secrets.are_in(number.to_string().as_bytes()) => {
                Value::String(self.text(number.to_string()))
            }
            Value::Array(items) => items.into_iter().map(|item| self.value(item)).collect(),
            Value::Object(members) => {
                // If two names become equal, the last member counts, as with duplicate names.
                members.into_iter().map(|(name, member)| (self.text(name), self.value(member))).collect()
            }
            value => value,
        }
    }
}

impl Drop for Cleaner<'_> {
    fn drop(&mut self) {
        if self.removed > 0 {
            tracing::debug!(bytes = self.removed, "removed control characters from the plugin's output");
        }
        if self.redacted > 0 {
            tracing::warn!(strings = self.redacted, "redacted secrets in the plugin's output");
        }
    }
}

fn json(member: &str, text: &str, cleaner: &mut Cleaner<'_>) -> Result<Value, CallError> {
    let value = serde_json::from_str(text);
    let value = value.map_err(|error| CallError::InvalidOutput(format!("{member} is not valid JSON: {error}")))?;
    Ok(cleaner.value(value))
}

/// Converts a block according to its kind. A missing or superfluous member is a mistake of the author.
fn content(block: Block, cleaner: &mut Cleaner<'_>) -> Result<Content, String> {
    let Some(kind) = Kind::parse(&block.kind) else { return unknown(block, cleaner) };
    let mut members = Members { kind, block };
    let body = match kind {
        Kind::Text => Body::Text(cleaner.text(members.need("text", |b| &mut b.text)?)),
        Kind::Image => Body::Image(members.media("image", cleaner)?),
        Kind::Audio => Body::Audio(members.media("audio", cleaner)?),
        Kind::ResourceLink => Body::ResourceLink(ResourceLink {
            uri: members.uri(cleaner)?,
            name: cleaner.text(members.need("name", |b| &mut b.name)?),
            title: members.block.title.take().map(|text| cleaner.text(text)),
            description: members.block.description.take().map(|text| cleaner.text(text)),
            mime_type: members.mime_type(cleaner)?,
            size: members.block.size.take(),
        }),
        Kind::EmbeddedResource => Body::Resource(Resource {
            uri: members.uri(cleaner)?,
            mime_type: members.mime_type(cleaner)?,
            content: match (members.block.text.take(), members.block.data.take()) {
                (Some(text), None) => ResourceContent::Text(cleaner.text(text)),
                (None, Some(data)) => ResourceContent::Blob(cleaner.data(data)?),
                (None, None) => return Err("is a resource without `text` or `data`".into()),
                (Some(_), Some(_)) => return Err("is a resource with both `text` and `data`".into()),
            },
        }),
    };
    members.nothing_left()?;
    let block = members.block;
    annotated(body, block, cleaner)
}

/// A block of an unknown kind: its text, which is meant for hosts that do not know the kind.
fn unknown(block: Block, cleaner: &mut Cleaner<'_>) -> Result<Content, String> {
    if let Some(text) = &block.text {
        return annotated(Body::Text(cleaner.text(text.clone())), block, cleaner);
    }
    let kind = quoted(&cleaner.text(block.kind));
    Err(format!("is of the kind {kind}, which this host does not know, and has no `text` instead"))
}

/// A text of the guest's, which is clean, as a message shows it.
fn quoted(text: &str) -> String {
    format!("{:?}", line(text, QUOTED))
}

/// The block with the members that all kinds can have.
fn annotated(body: Body, block: Block, cleaner: &mut Cleaner<'_>) -> Result<Content, String> {
    if let Some(priority) = block.priority
        && !(0.0..=1.0).contains(&priority)
    {
        return Err(format!("has the priority {priority}, which is not between 0.0 and 1.0"));
    }
    let last_modified = block.last_modified.map(|text| cleaner.text(text));
    if let Some(when) = last_modified.as_deref().filter(|when| !is_time(when)) {
        let when = quoted(when);
        return Err(format!("was last modified at {when}, which is not a time such as \"2026-01-12T15:00:58Z\""));
    }
    Ok(Content { body, audience: block.audience, priority: block.priority, last_modified })
}

/// The members of a block that have not been used yet.
struct Members {
    kind: Kind,
    block: Block,
}

impl Members {
    fn need<T>(&mut self, name: &str, member: impl FnOnce(&mut Block) -> &mut Option<T>) -> Result<T, String> {
        let kind = self.kind.article();
        member(&mut self.block).take().ok_or_else(|| format!("is {kind} without `{name}`"))
    }

    fn media(&mut self, family: &str, cleaner: &mut Cleaner<'_>) -> Result<Media, String> {
        let data = cleaner.data(self.need("data", |b| &mut b.data)?)?;
        let mime_type = cleaner.text(self.need("mime-type", |b| &mut b.mime_type)?);
        if mime_type.split('/').next() != Some(family) || !is_mime_type(&mime_type) {
            return Err(format!(
                "is {}, but its MIME type is {}, not {family}/…",
                self.kind.article(),
                quoted(&mime_type)
            ));
        }
        Ok(Media { data, mime_type })
    }

    fn mime_type(&mut self, cleaner: &mut Cleaner<'_>) -> Result<Option<String>, String> {
        match self.block.mime_type.take().map(|text| cleaner.text(text)) {
            Some(mime_type) if !is_mime_type(&mime_type) => {
                Err(format!("has an invalid MIME type: {}", quoted(&mime_type)))
            }
            mime_type => Ok(mime_type),
        }
    }

    fn uri(&mut self, cleaner: &mut Cleaner<'_>) -> Result<String, String> {
        let uri = cleaner.text(self.need("uri", |b| &mut b.uri)?);
        if is_uri(&uri) {
            Ok(uri)
        } else {
            Err(format!("has an invalid URI (no scheme, or a space in it): {}", quoted(&uri)))
        }
    }

    fn nothing_left(&self) -> Result<(), String> {
        let block = &self.block;
        let left = [
            ("text", block.text.is_some()),
            ("data", block.data.is_some()),
            ("mime-type", block.mime_type.is_some()),
            ("uri", block.uri.is_some()),
            ("name", block.name.is_some()),
            ("title", block.title.is_some()),
            ("description", block.description.is_some()),
            ("size", block.size.is_some()),
            ("members", block.members.is_some()),
        ];
        match left.into_iter().find(|(_, present)| *present) {
            Some((name, _)) => Err(format!("is {}, which cannot have `{name}`", self.kind.article())),
            None => Ok(()),
        }
    }
}

/// Type and subtype of RFC 6838, with or without parameters, in visible ASCII.
pub(crate) fn is_mime_type(text: &str) -> bool {
    let essence = text.split(';').next().unwrap_or_default();
    let token = |part: &str| {
        (1..=127).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&b))
    };
    essence.trim_end().split_once('/').is_some_and(|(kind, subtype)| token(kind) && token(subtype))
        && text.bytes().all(|b| b == b' ' || b.is_ascii_graphic())
}

/// A date, or a date and time, in the part of ISO 8601 that MCP uses: digits and their separators.
fn is_time(text: &str) -> bool {
    let bytes = text.as_bytes();
    let date = bytes.get(..10).is_some_and(|date| {
        date.iter()
            .enumerate()
            .all(|(at, byte)| if matches!(at, 4 | 7) { *byte == b'-' } else { byte.is_ascii_digit() })
    });
    let time = bytes.get(10..).unwrap_or_default();
    let plain = |byte: &u8| byte.is_ascii_digit() || b":.+-Z".contains(byte);
    date && (time.is_empty()
        || (time.first() == Some(&b'T') && (2..=30).contains(&time.len()) && time.iter().skip(1).all(plain)))
}

/// A scheme (RFC 3986), a colon, and nothing that could not stand in a URI.
pub(crate) fn is_uri(text: &str) -> bool {
    let Some((scheme, _)) = text.split_once(':') else { return false };
    scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b))
        && !text.chars().any(|c| c.is_whitespace() || c.is_control())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As it is checked where nothing is in a hurry.
    fn check(output: Returned, limits: &Limits, secrets: &Secrets) -> Result<Output, CallError> {
        super::check(output, limits, secrets, &Interrupt::default())
    }

    fn block(kind: Kind) -> Block {
        Block { kind: kind.name().into(), ..Block::default() }
    }

    fn text(text: &str) -> Block {
        Block { text: Some(text.into()), ..block(Kind::Text) }
    }

    fn output(content: Vec<Block>) -> Returned {
        Returned { content, structured: None, meta: None }
    }

    fn refused(block: Block) -> String {
        match check(output(vec![text("fine"), block]), &Limits::DEFAULT, Secrets::none()) {
            Err(CallError::InvalidOutput(what)) => what,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn blocks_with_wrong_members_are_refused() {
        use Kind::{EmbeddedResource, Image, ResourceLink, Text};
        assert_eq!(refused(block(Text)), "content[1] is text without `text`");
        assert_eq!(refused(Block { data: Some(vec![1]), ..text("a") }), "content[1] is text, which cannot have `data`");
        assert_eq!(
            refused(Block { data: Some(vec![1]), ..block(Image) }),
            "content[1] is an image without `mime-type`"
        );
        assert_eq!(
            refused(Block { uri: Some("a:b".into()), ..block(ResourceLink) }),
            "content[1] is a resource link without `name`"
        );
        assert_eq!(
            refused(Block { uri: Some("a:b".into()), ..block(EmbeddedResource) }),
            "content[1] is a resource without `text` or `data`"
        );
        assert_eq!(
            refused(Block { priority: Some(f64::NAN), ..text("a") }),
            "content[1] has the priority NaN, which is not between 0.0 and 1.0"
        );
    }

    #[test]
    fn mime_types_uris_and_dates_must_be_valid() {
        use Kind::{Audio, Image, ResourceLink};
        let media = |kind, mime: &str| Block { data: Some(vec![1]), mime_type: Some(mime.into()), ..block(kind) };
        let link = |uri: &str| Block { uri: Some(uri.into()), name: Some("n".into()), ..block(ResourceLink) };
        assert!(
            check(
                output(vec![media(Image, "image/svg+xml"), link("https://a.example/b")]),
                &Limits::DEFAULT,
                Secrets::none()
            )
            .is_ok()
        );
        assert_eq!(
            refused(media(Audio, "image/png")),
            "content[1] is audio, but its MIME type is \"image/png\", not audio/…"
        );
        assert!(refused(media(Image, "image/png\r\nx: y")).contains("MIME type"));
        assert!(refused(link("no scheme")).contains("has an invalid URI"));
        let kind = Block { kind: "\u{1b}[2Jvideo".repeat(1000), ..Block::default() };
        let said = refused(kind);
        assert!(said.starts_with("content[1] is of the kind \"videovideo") && said.len() < 400, "{said}");
        assert!(refused(link("javascript:a b")).contains("has an invalid URI"));
    }

    #[test]
    fn what_is_interrupted_is_neither_cleaned_nor_shown() {
        let returned = || Returned { structured: Some(r#"["\u001b[31m"]"#.into()), ..output(vec![text("\u{1b}[31m")]) };
        let due = Interrupt::default();
        due.raise();
        let stopped = super::check(returned(), &Limits::DEFAULT, Secrets::none(), &due);
        assert_eq!(stopped, Err(CallError::limit(Limit::Deadline(Limits::DEFAULT.timeout))));
        assert!(check(returned(), &Limits::DEFAULT, Secrets::none()).is_ok());
    }

    #[test]
    fn json_of_more_values_than_the_memory_of_the_call_holds_is_not_parsed() {
        // Not valid at its end, which nothing may read.
        let lists = |n: usize| format!("[{}!", "[],".repeat(n));
        let limits = Limits { output: ByteSize::mib(16), ..Limits::DEFAULT };
        let structured = |text| Returned { structured: Some(text), ..Returned::default() };
        let meta = |text| Returned { meta: Some(text), ..Returned::default() };
        let both = |text: String| Returned { meta: Some(text.clone()), ..structured(text) };
        let too_much = Err(CallError::limit(Limit::Parsed(limits.memory)));
        for returned in [structured(lists(5_000_000)), meta(lists(5_000_000)), both(lists(700_000))] {
            assert_eq!(check(returned, &limits, Secrets::none()), too_much);
        }
        let parsed = check(structured(lists(700_000)), &limits, Secrets::none());
        assert!(matches!(parsed, Err(CallError::InvalidOutput(_))), "{parsed:?}");
    }

    #[test]
    fn text_is_cleaned() {
        let shown = check(output(vec![text("\u{1b}[31mred\u{202e}")]), &Limits::DEFAULT, Secrets::none()).unwrap();
        assert_eq!(shown.content[0].body, Body::Text("red".into()));
        assert_eq!(message("\u{1b}[2Jno".into(), &Limits::DEFAULT, Secrets::none()), "no");
    }

    #[test]
    fn every_string_in_structured_content_is_cleaned_and_the_json_stays_valid() {
        let json = r#"{"a\u001b[2J":["\u001b[31mred\u001b[0m",{"k":"safe\u202eexe","n":1.5,"t":true}],"x":null}"#;
        let structured = Returned { structured: Some(json.into()), meta: Some(json.into()), ..output(vec![]) };
        let shown = check(structured, &Limits::DEFAULT, Secrets::none()).unwrap();
        let expected = serde_json::json!({"a": ["red", {"k": "safeexe", "n": 1.5, "t": true}], "x": null});
        assert_eq!(shown.structured.as_ref(), Some(&expected));
        assert_eq!(Value::Object(shown.meta), expected);
        let mut cleaner = Cleaner::new(Secrets::none());
        cleaner.value(serde_json::json!({"\u{1b}[2J": "\u{202e}"}));
        assert_eq!(cleaner.removed, 4 + 3);
    }

    #[test]
    fn structured_content_and_meta_must_be_json() {
        let broken = Returned { structured: Some("{".into()), ..output(vec![]) };
        assert!(matches!(check(broken, &Limits::DEFAULT, Secrets::none()), Err(CallError::InvalidOutput(what))
            if what.starts_with("structured is not valid JSON: ")));
        let list = Returned { meta: Some("[]".into()), ..output(vec![]) };
        assert_eq!(
            check(list, &Limits::DEFAULT, Secrets::none()),
            Err(CallError::InvalidOutput("meta is not a JSON object".into()))
        );
    }

    #[test]
    fn large_results_and_many_blocks_reach_limits() {
        let limits = Limits { output: ByteSize::b(4), output_items: 2, ..Limits::DEFAULT };
        assert!(check(output(vec![text("ab"), text("cd")]), &limits, Secrets::none()).is_ok());
        assert_eq!(
            check(output(vec![text("abcde")]), &limits, Secrets::none()),
            Err(CallError::limit(Limit::Output(ByteSize::b(4))))
        );
        assert_eq!(
            check(output(vec![text(""), text(""), text("")]), &limits, Secrets::none()),
            Err(CallError::limit(Limit::OutputItems(2)))
        );
    }

    #[test]
    fn secrets_are_redacted_in_every_member() {
        let secrets = Secrets::new([("token", &toolbay_secrets::Value::parse(b"12345678901").unwrap())]).unwrap();
        let shown = check(
            Returned {
                content: vec![
                    text("it is 12345\u{202e}678901"),
                    Block {
                        uri: Some("https://a.example/12345678901".into()),
                        name: Some("12345678901".into()),
                        title: Some("12345678901".into()),
                        description: Some("12345678901".into()),
                        ..block(Kind::ResourceLink)
                    },
                ],
                structured: Some(r#"{"12345678901": ["12345678901", 12345678901, 1234567890]}"#.into()),
                meta: Some(r#"{"a": "12345678901"}"#.into()),
            },
            &Limits::DEFAULT,
            &secrets,
        );
        let shown = format!("{:?}", shown.unwrap());
        assert!(!shown.contains("12345678901"), "{shown}");
        assert_eq!(shown.matches("[secret:token]").count(), 9, "{shown}");
        assert_eq!(message("no 12345678901".into(), &Limits::DEFAULT, &secrets), "no [secret:token]");
        let data = Block {
            data: Some(b"PNG 12345678901".to_vec()),
            mime_type: Some("image/png".into()),
            ..block(Kind::Image)
        };
        let refused = check(output(vec![data]), &Limits::DEFAULT, &secrets);
        assert_eq!(refused, Err(CallError::InvalidOutput("content[0] contains a secret in `data`".into())));
    }
}
