//! Validation of guest replies and their conversion to the host's types. Rejects replies that
//! violate the contract or a limit.

use std::sync::Arc;

use bytesize::ByteSize;
use toolbay_model::{
    CallError, CallReply, CompletionResult, EmbeddedResource, Interrupt, JsonSize, Limit, Limits,
    PromptMessage, PromptOutput, ResourceContent, ResourceItem, ToolOutput,
};
use toolbay_secrets::SecretFilter;

use crate::reply::cleaner::{TextCleaner, quote};
use crate::reply::content::convert_block;
use crate::reply::guest_reply::{
    ArgumentSuggestions, FilledPrompt, GuestFailure, GuestReply, ReadResource, ResourceReplyItem,
    ResultPart, ToolResult,
};
use crate::reply::result_parts::{self, PartsError};
use crate::reply::syntax::{is_mime_type, is_uri};

/// Maximum length of a completion value, in bytes. A longer value is omitted, because a truncated
/// one would be a different value.
const MAX_COMPLETION_VALUE_BYTES: usize = 1 << 10;

/// A guest's reply, or the failure that it reported. It is neither checked nor cleaned.
#[derive(Debug)]
pub struct UncheckedReply {
    pub(crate) returned: Result<GuestReply, GuestFailure>,
    /// The secrets of the call.
    pub(crate) secrets: Arc<SecretFilter>,
}

impl UncheckedReply {
    /// Returns the number of bytes to check.
    pub fn size(&self) -> usize {
        match &self.returned {
            Ok(returned) => returned.size(),
            Err(
                GuestFailure::InvalidArguments(text)
                | GuestFailure::Failed(text)
                | GuestFailure::Malformed(text),
            ) => text.len(),
        }
    }

    /// Checks the reply against its bounds and the contract, and strips control characters and
    /// secrets from all text. Returns `None` if the guest reported that there is no resource with
    /// this URI.
    ///
    /// If `kept` is larger than [`Limits::output`], it is the size limit for the result of a tool:
    /// the client then receives a part of it.
    ///
    /// Takes about 10 ms per megabyte. The bounds limit the size.
    ///
    /// # Errors
    ///
    /// Returns the failure that the guest reported, the violated bound or rule, or
    /// [`Limit::Deadline`] if `interrupt` was due first.
    pub fn check(
        self,
        limits: &Limits,
        kept: Option<ByteSize>,
        interrupt: &Interrupt,
    ) -> Result<Option<CallReply>, CallError> {
        let Self { returned, secrets } = self;
        match returned {
            Ok(returned) => check(returned, limits, kept, &secrets, interrupt),
            Err(GuestFailure::InvalidArguments(text)) => Err(CallError::InvalidArguments(
                failure_message(text, limits, &secrets),
            )),
            Err(GuestFailure::Failed(text)) => {
                Err(CallError::Failed(failure_message(text, limits, &secrets)))
            }
            Err(GuestFailure::Malformed(why)) => Err(CallError::InvalidOutput(failure_message(
                why, limits, &secrets,
            ))),
        }
    }
}

/// Checks a reply against its bounds and the contract.
fn check(
    returned: GuestReply,
    limits: &Limits,
    kept: Option<ByteSize>,
    secrets: &SecretFilter,
    interrupt: &Interrupt,
) -> Result<Option<CallReply>, CallError> {
    let mut cleaner = TextCleaner::new(secrets).with_interrupt(interrupt);
    let checked = match returned {
        // Excess values are truncated, not rejected.
        GuestReply::Completion(suggestions) => Ok(Some(CallReply::Completion(completions(
            suggestions,
            &mut cleaner,
        )))),
        returned => {
            check_bounds(&returned, limits, kept)?;
            clean_reply(returned, &mut cleaner, |parts| {
                assemble_result(parts, limits, kept, interrupt)
            })
        }
    };
    // Discard the reply in any case: parts of it were not cleaned.
    if cleaner.is_interrupted() {
        Err(CallError::limit(Limit::Deadline(limits.timeout)))
    } else {
        checked
    }
}

/// Checks the number of items and the size of a reply.
///
/// # Errors
///
/// Returns the exceeded limit.
fn check_bounds(
    returned: &GuestReply,
    limits: &Limits,
    kept: Option<ByteSize>,
) -> Result<(), CallError> {
    if returned.item_count() > limits.output_items {
        return Err(CallError::limit(Limit::OutputItems(limits.output_items)));
    }
    let is_tool = matches!(returned, GuestReply::Tool(_) | GuestReply::Parts(_));
    check_size(
        returned.size(),
        returned.json_texts(),
        limits,
        kept.filter(|_| is_tool),
    )
}

/// Like [`check_bounds`], for `size` bytes, with the JSON texts in `json_texts`.
fn check_size<'a>(
    size: usize,
    json: impl Iterator<Item = &'a String>,
    limits: &Limits,
    kept: Option<ByteSize>,
) -> Result<(), CallError> {
    let (most, limit) = max_size(limits, kept);
    if size as u64 > most.as_u64() {
        return Err(CallError::limit(limit));
    }
    // The guest's memory is already free, so the parsed values may take its place.
    if json.map(|text| JsonSize::measure(text).memory).sum::<u64>() > limits.memory.as_u64() {
        return Err(CallError::limit(Limit::Parsed(limits.memory)));
    }
    Ok(())
}

/// Returns the maximum size of a reply, and the limit that a larger one exceeds.
fn max_size(limits: &Limits, kept: Option<ByteSize>) -> (ByteSize, Limit) {
    match kept.filter(|kept| *kept > limits.output) {
        Some(kept) => (kept, Limit::ResultSize(kept)),
        None => (limits.output, Limit::Output(limits.output)),
    }
}

/// Assembles a result from its parts, and checks its size again: CBOR becomes longer as JSON.
fn assemble_result(
    parts: Vec<ResultPart>,
    limits: &Limits,
    kept: Option<ByteSize>,
    interrupt: &Interrupt,
) -> Result<ToolResult, CallError> {
    let (most, limit) = max_size(limits, kept);
    let result = result_parts::combine(
        parts,
        usize::try_from(most.as_u64()).unwrap_or(usize::MAX),
        interrupt,
    );
    let result = result.map_err(|unfit| match unfit {
        PartsError::Malformed(why) => CallError::InvalidOutput(why),
        PartsError::Large => CallError::limit(limit),
        PartsError::Interrupted => CallError::limit(Limit::Deadline(limits.timeout)),
    })?;
    check_size(result.size(), result.structured.iter(), limits, kept)?;
    Ok(result)
}

/// Cleans a reply and converts it.
///
/// # Errors
///
/// Returns the violated rule of the contract, or the error of `assemble_result`.
fn clean_reply(
    returned: GuestReply,
    cleaner: &mut TextCleaner<'_>,
    whole: impl FnOnce(Vec<ResultPart>) -> Result<ToolResult, CallError>,
) -> Result<Option<CallReply>, CallError> {
    let reply = match returned {
        GuestReply::Tool(result) => output(result, cleaner).map(CallReply::Tool),
        GuestReply::Parts(parts) => output(whole(parts)?, cleaner).map(CallReply::Tool),
        GuestReply::Prompt(prompt) => prompt_output(prompt, cleaner).map(CallReply::Prompt),
        GuestReply::Resource(read) if read.items.is_empty() => return Ok(None),
        GuestReply::Resource(read) => resource_items(read, cleaner).map(CallReply::Resource),
        GuestReply::Completion(suggestions) => {
            Ok(CallReply::Completion(completions(suggestions, cleaner)))
        }
        // Questions were checked and cleaned when the guest asked them.
        GuestReply::Questions(interview) => Ok(CallReply::Questions(interview)),
    };
    reply.map(Some).map_err(CallError::InvalidOutput)
}

fn output(result: ToolResult, cleaner: &mut TextCleaner<'_>) -> Result<ToolOutput, String> {
    let block = |(index, block)| {
        convert_block(block, cleaner).map_err(|what| format!("content[{index}] {what}"))
    };
    let content = result
        .content
        .into_iter()
        .enumerate()
        .map(block)
        .collect::<Result<_, _>>()?;
    let structured = result
        .structured
        .map(|text| cleaner.clean_json("structured", &text))
        .transpose()?;
    Ok(ToolOutput {
        content,
        structured,
        meta: cleaner.clean_meta("meta", result.meta.as_ref())?,
    })
}

fn prompt_output(
    prompt: FilledPrompt,
    cleaner: &mut TextCleaner<'_>,
) -> Result<PromptOutput, String> {
    let description = prompt.description.map(|text| cleaner.clean_text(text));
    let message = |(index, (role, block))| match convert_block(block, cleaner) {
        Ok(content) => Ok(PromptMessage { role, content }),
        Err(what) => Err(format!("messages[{index}] {what}")),
    };
    let messages = prompt
        .messages
        .into_iter()
        .enumerate()
        .map(message)
        .collect::<Result<_, _>>()?;
    Ok(PromptOutput {
        description,
        messages,
        meta: cleaner.clean_meta("meta", prompt.meta.as_ref())?,
    })
}

fn resource_items(
    read: ReadResource,
    cleaner: &mut TextCleaner<'_>,
) -> Result<Vec<ResourceItem>, String> {
    let ReadResource { uri, items } = read;
    let item = |(index, item): (usize, ResourceReplyItem)| {
        let meta = cleaner.clean_meta(&format!("contents[{index}].meta"), item.meta.as_ref())?;
        let resource =
            resource(&uri, item, cleaner).map_err(|what| format!("contents[{index}] {what}"))?;
        Ok(ResourceItem { resource, meta })
    };
    items.into_iter().enumerate().map(item).collect()
}

/// Converts an item of the resource `read`, without its `_meta`.
fn resource(
    read: &str,
    item: ResourceReplyItem,
    cleaner: &mut TextCleaner<'_>,
) -> Result<EmbeddedResource, String> {
    // Compare before cleaning, because stripping characters could change the URI.
    let is_below = is_at_or_below(&item.uri, read);
    let uri = cleaner.clean_text(item.uri);
    if !is_uri(&uri) {
        return Err(format!(
            "has an invalid URI (no scheme, or a space in it): {}",
            quote(&uri)
        ));
    }
    if !is_below {
        return Err(format!(
            "has the URI {}, which is neither the one that was read nor one below it",
            quote(&uri)
        ));
    }
    let mime_type = item.mime_type.map(|text| cleaner.clean_text(text));
    if let Some(mime_type) = mime_type.as_deref().filter(|text| !is_mime_type(text)) {
        return Err(format!("has an invalid MIME type: {}", quote(mime_type)));
    }
    let content = match (item.text, item.data) {
        (Some(text), None) => ResourceContent::Text(cleaner.clean_text(text)),
        (None, Some(data)) => ResourceContent::Blob(cleaner.check_data(data)?),
        (None, None) => return Err("has neither `text` nor `data`".into()),
        (Some(_), Some(_)) => return Err("has both `text` and `data`".into()),
    };
    Ok(EmbeddedResource {
        uri,
        mime_type,
        content,
    })
}

/// Returns whether a plugin that reads `read` may return an item with this URI: the same URI, or
/// one that extends it by another component.
fn is_at_or_below(uri: &str, read: &str) -> bool {
    let is_end = |rest: &str| {
        rest.is_empty() || read.ends_with(['/', ':']) || rest.starts_with(['/', '?', '#'])
    };
    uri.strip_prefix(read).is_some_and(is_end)
}

fn completions(
    suggestions: ArgumentSuggestions,
    cleaner: &mut TextCleaner<'_>,
) -> CompletionResult {
    let ArgumentSuggestions {
        values: mut all,
        total,
        has_more,
    } = suggestions;
    let listed = all.len();
    all.truncate(CompletionResult::MAX_VALUES);
    let is_short = |value: &String| value.len() <= MAX_COMPLETION_VALUE_BYTES;
    // Filter twice, because a secret can be shorter than its replacement.
    let clean = all
        .into_iter()
        .filter(is_short)
        .map(|value| cleaner.clean_text(value))
        .filter(is_short);
    let values: Vec<String> = clean.collect();
    let shown = values.len();
    let total = total.filter(|total| *total as usize >= listed);
    let has_more = has_more || shown < listed || total.is_some_and(|total| total as usize > shown);
    CompletionResult {
        values,
        total,
        has_more,
    }
}

/// Cleans the message of a failure, and truncates it to the maximum size of a result.
fn failure_message(text: String, limits: &Limits, secrets: &SecretFilter) -> String {
    let mut text = TextCleaner::new(secrets).clean_text(text);
    if text.trim().is_empty() {
        return "The plugin did not say why.".to_owned();
    }
    let most = usize::try_from(limits.output.as_u64()).unwrap_or(usize::MAX);
    text.truncate(text.floor_char_boundary(most));
    text
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use toolbay_model::ContentBody;

    use super::*;
    use crate::reply::block::{BlockKind, RawBlock};

    /// Checks a tool result without a deadline.
    fn check(
        result: ToolResult,
        limits: &Limits,
        secrets: &SecretFilter,
    ) -> Result<ToolOutput, CallError> {
        match super::check(
            GuestReply::Tool(result),
            limits,
            None,
            secrets,
            &Interrupt::default(),
        )? {
            Some(CallReply::Tool(output)) => Ok(output),
            other => panic!("{other:?}"),
        }
    }

    /// Checks any reply with the default limits and a secret.
    fn checked(returned: GuestReply) -> Result<Option<CallReply>, CallError> {
        let secrets = SecretFilter::new([(
            "token",
            &toolbay_secrets::SecretValue::parse(b"12345678901").unwrap(),
        )])
        .unwrap();
        super::check(
            returned,
            &Limits::DEFAULT,
            None,
            &secrets,
            &Interrupt::default(),
        )
    }

    fn invalid(returned: GuestReply) -> String {
        match checked(returned) {
            Err(CallError::InvalidOutput(what)) => what,
            other => panic!("{other:?}"),
        }
    }

    fn read(items: Vec<ResourceReplyItem>) -> GuestReply {
        GuestReply::Resource(ReadResource {
            uri: "notes://a".into(),
            items,
        })
    }

    fn item(text: &str) -> ResourceReplyItem {
        ResourceReplyItem {
            uri: "notes://a".into(),
            text: Some(text.into()),
            ..ResourceReplyItem::default()
        }
    }

    fn block(kind: BlockKind) -> RawBlock {
        RawBlock {
            kind: kind.name().into(),
            ..RawBlock::default()
        }
    }

    fn text(text: &str) -> RawBlock {
        RawBlock {
            text: Some(text.into()),
            ..block(BlockKind::Text)
        }
    }

    fn output(content: Vec<RawBlock>) -> ToolResult {
        ToolResult {
            content,
            structured: None,
            meta: None,
        }
    }

    fn refused(block: RawBlock) -> String {
        match check(
            output(vec![text("fine"), block]),
            &Limits::DEFAULT,
            SecretFilter::empty(),
        ) {
            Err(CallError::InvalidOutput(what)) => what,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn blocks_with_wrong_members_are_refused() {
        use BlockKind::{EmbeddedResource, Image, ResourceLink, Text};
        assert_eq!(refused(block(Text)), "content[1] is text without `text`");
        assert_eq!(
            refused(RawBlock {
                data: Some(vec![1]),
                ..text("a")
            }),
            "content[1] is text, which cannot have `data`"
        );
        assert_eq!(
            refused(RawBlock {
                data: Some(vec![1]),
                ..block(Image)
            }),
            "content[1] is an image without `mime-type`"
        );
        assert_eq!(
            refused(RawBlock {
                uri: Some("a:b".into()),
                ..block(ResourceLink)
            }),
            "content[1] is a resource link without `name`"
        );
        assert_eq!(
            refused(RawBlock {
                uri: Some("a:b".into()),
                ..block(EmbeddedResource)
            }),
            "content[1] is a resource without `text` or `data`"
        );
        assert_eq!(
            refused(RawBlock {
                priority: Some(f64::NAN),
                ..text("a")
            }),
            "content[1] has the priority NaN, which is not between 0.0 and 1.0"
        );
    }

    #[test]
    fn mime_types_uris_and_dates_must_be_valid() {
        use BlockKind::{Audio, Image, ResourceLink};
        let media = |kind, mime: &str| RawBlock {
            data: Some(vec![1]),
            mime_type: Some(mime.into()),
            ..block(kind)
        };
        let link = |uri: &str| RawBlock {
            uri: Some(uri.into()),
            name: Some("n".into()),
            ..block(ResourceLink)
        };
        assert!(
            check(
                output(vec![
                    media(Image, "image/svg+xml"),
                    link("https://a.example/b")
                ]),
                &Limits::DEFAULT,
                SecretFilter::empty()
            )
            .is_ok()
        );
        assert_eq!(
            refused(media(Audio, "image/png")),
            "content[1] is audio, but its MIME type is \"image/png\", not audio/…"
        );
        assert!(refused(media(Image, "image/png\r\nx: y")).contains("MIME type"));
        assert!(refused(link("no scheme")).contains("has an invalid URI"));
        let kind = RawBlock {
            kind: "\u{1b}[2Jvideo".repeat(1000),
            ..RawBlock::default()
        };
        let said = refused(kind);
        assert!(
            said.starts_with("content[1] is of the kind \"videovideo") && said.len() < 400,
            "{said}"
        );
        assert!(refused(link("javascript:a b")).contains("has an invalid URI"));
    }

    #[test]
    fn what_is_interrupted_is_neither_cleaned_nor_shown() {
        let returned = || ToolResult {
            structured: Some(r#"["\u001b[31m"]"#.into()),
            ..output(vec![text("\u{1b}[31m")])
        };
        let due = Interrupt::default();
        due.raise();
        let stopped = super::check(
            GuestReply::Tool(returned()),
            &Limits::DEFAULT,
            None,
            SecretFilter::empty(),
            &due,
        );
        assert_eq!(
            stopped,
            Err(CallError::limit(Limit::Deadline(Limits::DEFAULT.timeout)))
        );
        assert!(check(returned(), &Limits::DEFAULT, SecretFilter::empty()).is_ok());
    }

    #[test]
    fn json_of_more_values_than_the_memory_of_the_call_holds_is_not_parsed() {
        // The text is invalid at its end, which the check must not reach.
        let lists = |n: usize| format!("[{}!", "[],".repeat(n));
        let limits = Limits {
            output: ByteSize::mib(16),
            ..Limits::DEFAULT
        };
        let structured = |text| ToolResult {
            structured: Some(text),
            ..ToolResult::default()
        };
        let meta = |text| ToolResult {
            meta: Some(text),
            ..ToolResult::default()
        };
        let both = |text: String| ToolResult {
            meta: Some(text.clone()),
            ..structured(text)
        };
        let too_much = Err(CallError::limit(Limit::Parsed(limits.memory)));
        for returned in [
            structured(lists(5_000_000)),
            meta(lists(5_000_000)),
            both(lists(700_000)),
        ] {
            assert_eq!(check(returned, &limits, SecretFilter::empty()), too_much);
        }
        let parsed = check(structured(lists(700_000)), &limits, SecretFilter::empty());
        assert!(
            matches!(parsed, Err(CallError::InvalidOutput(_))),
            "{parsed:?}"
        );
    }

    #[test]
    fn a_result_of_a_tool_can_be_larger_than_its_client_gets() {
        let limits = Limits {
            output: ByteSize::kib(1),
            ..Limits::DEFAULT
        };
        let of = |returned, kept| {
            super::check(
                returned,
                &limits,
                Some(kept),
                SecretFilter::empty(),
                &Interrupt::default(),
            )
        };
        let tool = |bytes| GuestReply::Tool(output(vec![text(&"x".repeat(bytes))]));
        assert!(of(tool(4 << 10), ByteSize::kib(8)).is_ok());
        let too_large = of(tool(9 << 10), ByteSize::kib(8)).unwrap_err();
        assert_eq!(
            too_large,
            CallError::limit(Limit::ResultSize(ByteSize::kib(8)))
        );
        let kept_less = of(tool(2 << 10), ByteSize::b(100)).unwrap_err();
        assert_eq!(kept_less, CallError::limit(Limit::Output(limits.output)));
        let resource = of(read(vec![item(&"x".repeat(4 << 10))]), ByteSize::kib(8)).unwrap_err();
        assert_eq!(resource, CallError::limit(Limit::Output(limits.output)));
    }

    #[test]
    fn text_is_cleaned() {
        let shown = check(
            output(vec![text("\u{1b}[31mred\u{202e}")]),
            &Limits::DEFAULT,
            SecretFilter::empty(),
        )
        .unwrap();
        assert_eq!(shown.content[0].body, ContentBody::Text("red".into()));
        assert_eq!(
            failure_message(
                "\u{1b}[2Jno".into(),
                &Limits::DEFAULT,
                SecretFilter::empty()
            ),
            "no"
        );
        for empty in ["", " \n", "\u{1b}[2J"] {
            assert_eq!(
                failure_message(empty.into(), &Limits::DEFAULT, SecretFilter::empty()),
                "The plugin did not say why."
            );
        }
    }

    #[test]
    fn every_string_in_structured_content_is_cleaned_and_the_json_stays_valid() {
        let json = r#"{"a\u001b[2J":["\u001b[31mred\u001b[0m",{"k":"safe\u202eexe","n":1.5,"t":true}],"x":null}"#;
        let structured = ToolResult {
            structured: Some(json.into()),
            meta: Some(json.into()),
            ..output(vec![])
        };
        let shown = check(structured, &Limits::DEFAULT, SecretFilter::empty()).unwrap();
        let expected = json!({"a": ["red", {"k": "safeexe", "n": 1.5, "t": true}], "x": null});
        assert_eq!(shown.structured.as_ref(), Some(&expected));
        assert_eq!(Value::Object(shown.meta), expected);
    }

    #[test]
    fn structured_content_and_meta_must_be_json() {
        let broken = ToolResult {
            structured: Some("{".into()),
            ..output(vec![])
        };
        assert!(
            matches!(check(broken, &Limits::DEFAULT, SecretFilter::empty()), Err(CallError::InvalidOutput(what))
            if what.starts_with("structured is not valid JSON: "))
        );
        let list = ToolResult {
            meta: Some("[]".into()),
            ..output(vec![])
        };
        assert_eq!(
            check(list, &Limits::DEFAULT, SecretFilter::empty()),
            Err(CallError::InvalidOutput("meta is not a JSON object".into()))
        );
    }

    #[test]
    fn large_results_and_many_blocks_reach_limits() {
        let limits = Limits {
            output: ByteSize::b(4),
            output_items: 2,
            ..Limits::DEFAULT
        };
        assert!(
            check(
                output(vec![text("ab"), text("cd")]),
                &limits,
                SecretFilter::empty()
            )
            .is_ok()
        );
        assert_eq!(
            check(output(vec![text("abcde")]), &limits, SecretFilter::empty()),
            Err(CallError::limit(Limit::Output(ByteSize::b(4))))
        );
        assert_eq!(
            check(
                output(vec![text(""), text(""), text("")]),
                &limits,
                SecretFilter::empty()
            ),
            Err(CallError::limit(Limit::OutputItems(2)))
        );
    }

    #[test]
    fn secrets_are_redacted_in_every_member() {
        let secrets = SecretFilter::new([(
            "token",
            &toolbay_secrets::SecretValue::parse(b"12345678901").unwrap(),
        )])
        .unwrap();
        let shown = check(
            ToolResult {
                content: vec![
                    text("it is 12345\u{202e}678901"),
                    RawBlock {
                        uri: Some("https://a.example/12345678901".into()),
                        name: Some("12345678901".into()),
                        title: Some("12345678901".into()),
                        description: Some("12345678901".into()),
                        ..block(BlockKind::ResourceLink)
                    },
                ],
                structured: Some(
                    r#"{"12345678901": ["12345678901", 12345678901, 1234567890]}"#.into(),
                ),
                meta: Some(r#"{"a": "12345678901"}"#.into()),
            },
            &Limits::DEFAULT,
            &secrets,
        );
        let shown = format!("{:?}", shown.unwrap());
        assert!(!shown.contains("12345678901"), "{shown}");
        assert_eq!(shown.matches("[secret:token]").count(), 9, "{shown}");
        assert_eq!(
            failure_message("no 12345678901".into(), &Limits::DEFAULT, &secrets),
            "no [secret:token]"
        );
        let data = RawBlock {
            data: Some(b"PNG 12345678901".to_vec()),
            mime_type: Some("image/png".into()),
            ..block(BlockKind::Image)
        };
        let refused = check(output(vec![data]), &Limits::DEFAULT, &secrets);
        assert_eq!(
            refused,
            Err(CallError::InvalidOutput(
                "content[0] contains a secret in `data`".into()
            ))
        );
    }

    #[test]
    fn a_prompt_is_cleaned_and_its_messages_are_blocks() {
        let prompt = FilledPrompt {
            description: Some("\u{1b}[2Jwith 12345678901".into()),
            messages: vec![
                ("user", text("12345\u{202e}678901")),
                ("assistant", text("fine")),
            ],
            meta: Some(r#"{"a":"12345678901"}"#.into()),
        };
        let Ok(Some(CallReply::Prompt(shown))) = checked(GuestReply::Prompt(prompt)) else {
            panic!()
        };
        assert_eq!(shown.description.as_deref(), Some("with [secret:token]"));
        let said = shown
            .messages
            .into_iter()
            .map(|message| (message.role, message.content.body));
        let texts = ["[secret:token]", "fine"].map(|text| ContentBody::Text(text.into()));
        assert_eq!(
            said.collect::<Vec<_>>(),
            ["user", "assistant"]
                .into_iter()
                .zip(texts)
                .collect::<Vec<_>>()
        );
        assert_eq!(Value::Object(shown.meta), json!({"a": "[secret:token]"}));
        let broken = |messages, meta: Option<&str>| {
            invalid(GuestReply::Prompt(FilledPrompt {
                messages,
                meta: meta.map(str::to_owned),
                description: None,
            }))
        };
        assert_eq!(
            broken(
                vec![("user", text("a")), ("user", block(BlockKind::Image))],
                None
            ),
            "messages[1] is an image without `data`"
        );
        assert_eq!(broken(vec![], Some("[]")), "meta is not a JSON object");
    }

    #[test]
    fn an_item_of_a_resource_has_text_or_data_and_no_secret() {
        let whole = ResourceReplyItem {
            mime_type: Some("text/plain".into()),
            meta: Some(r#"{"a":"\u001b[2J12345678901"}"#.into()),
            ..item("\u{1b}[31m12345678901")
        };
        let Ok(Some(CallReply::Resource(shown))) = checked(read(vec![whole])) else {
            panic!()
        };
        let [shown] = shown.as_slice() else {
            panic!("{shown:?}")
        };
        assert_eq!(
            shown.resource.content,
            ResourceContent::Text("[secret:token]".into())
        );
        assert_eq!(shown.resource.mime_type.as_deref(), Some("text/plain"));
        assert_eq!(shown.meta["a"], "[secret:token]");
        let wrong = [
            (
                ResourceReplyItem {
                    data: Some(vec![]),
                    ..item("")
                },
                "has both `text` and `data`",
            ),
            (
                ResourceReplyItem {
                    text: None,
                    ..item("")
                },
                "has neither `text` nor `data`",
            ),
            (
                ResourceReplyItem {
                    text: None,
                    data: Some(b"12345678901".to_vec()),
                    ..item("")
                },
                "contains a secret in `data`",
            ),
            (
                ResourceReplyItem {
                    mime_type: Some("text".into()),
                    ..item("")
                },
                "has an invalid MIME type: \"text\"",
            ),
            (
                ResourceReplyItem {
                    uri: "a".into(),
                    ..item("")
                },
                "has an invalid URI (no scheme, or a space in it): \"a\"",
            ),
        ];
        for (wrong, why) in wrong {
            assert_eq!(
                invalid(read(vec![item("fine"), wrong])),
                format!("contents[1] {why}")
            );
        }
        let meta = ResourceReplyItem {
            meta: Some("1".into()),
            ..item("")
        };
        assert_eq!(
            invalid(read(vec![item(""), meta])),
            "contents[1].meta is not a JSON object"
        );
    }

    #[test]
    fn what_is_read_is_where_it_was_asked_for() {
        for (uri, below, beside) in [
            (
                "notes://a",
                ["notes://a", "notes://a/b", "notes://a?b", "notes://a#b"],
                ["notes://b", "notes://ab", "note"],
            ),
            (
                "notes://a/",
                ["notes://a/", "notes://a/b", "notes://a//", "notes://a/?c"],
                ["notes://a", "", "notes://"],
            ),
            (
                "urn:",
                ["urn:", "urn:a", "urn:/", "urn:a:b"],
                ["urn", "urm:a", "a"],
            ),
        ] {
            assert!(below.iter().all(|item| is_at_or_below(item, uri)), "{uri}");
            assert!(
                !beside.iter().any(|item| is_at_or_below(item, uri)),
                "{uri}"
            );
        }
        // Invisible characters must not disguise the URI of another resource.
        let hidden = ResourceReplyItem {
            uri: "notes://\u{202e}a".into(),
            ..item("")
        };
        assert_eq!(
            invalid(read(vec![hidden])),
            "contents[0] has the URI \"notes://a\", which is neither the one that was read nor one below it"
        );
    }

    #[test]
    fn an_empty_read_says_that_there_is_no_such_resource() {
        assert_eq!(checked(read(vec![])), Ok(None));
    }

    #[test]
    fn bounds_hold_for_every_answer() {
        let limits = Limits {
            output: ByteSize::b(30),
            output_items: 2,
            ..Limits::DEFAULT
        };
        let check = |returned| {
            super::check(
                returned,
                &limits,
                None,
                SecretFilter::empty(),
                &Interrupt::default(),
            )
        };
        let prompt = |messages, description: &str| {
            GuestReply::Prompt(FilledPrompt {
                messages,
                description: Some(description.into()),
                meta: None,
            })
        };
        let message = || ("user", text("0123456789"));
        let (output, items) = (
            Err(CallError::limit(Limit::Output(limits.output))),
            Err(CallError::limit(Limit::OutputItems(2))),
        );
        assert!(check(prompt(vec![message(), message()], "0123456789")).is_ok());
        assert_eq!(
            check(prompt(vec![message(), message()], "0123456789a")),
            output
        );
        assert_eq!(
            check(prompt(
                vec![("user", text("")), ("user", text("")), ("user", text(""))],
                ""
            )),
            items
        );
        // Nine bytes are those of the URI.
        assert!(check(read(vec![item("0123456789abcdef01234")])).is_ok());
        assert_eq!(check(read(vec![item("0123456789abcdef012345")])), output);
        assert_eq!(
            check(read(vec![ResourceReplyItem {
                text: None,
                data: Some(vec![0; 22]),
                ..item("")
            }])),
            output
        );
        assert_eq!(check(read(vec![item(""), item(""), item("")])), items);
        let limits = Limits {
            output: ByteSize::mib(16),
            ..Limits::DEFAULT
        };
        let meta = || ResourceReplyItem {
            meta: Some(format!("[{}!", "[],".repeat(700_000))),
            ..item("")
        };
        let parsed = super::check(
            read(vec![meta(), meta()]),
            &limits,
            None,
            SecretFilter::empty(),
            &Interrupt::default(),
        );
        assert_eq!(parsed, Err(CallError::limit(Limit::Parsed(limits.memory))));
    }

    #[test]
    fn completions_are_the_first_hundred_that_are_short_and_clean() {
        let complete = |values: &[&str], total, has_more| {
            let values = values.iter().map(|value| (*value).to_owned()).collect();
            match checked(GuestReply::Completion(ArgumentSuggestions {
                values,
                total,
                has_more,
            })) {
                Ok(Some(CallReply::Completion(completions))) => completions,
                other => panic!("{other:?}"),
            }
        };
        let shown = complete(&["a\u{1b}[2J", "12345678901"], None, false);
        assert_eq!(
            shown,
            CompletionResult {
                values: vec!["a".into(), "[secret:token]".into()],
                total: None,
                has_more: false
            }
        );
        let all = vec!["a"; 101];
        let shown = complete(&all, None, false);
        assert_eq!(
            (shown.values.len(), shown.total, shown.has_more),
            (100, None, true)
        );
        assert!(!complete(&all[1..], Some(100), false).has_more);
        assert!(complete(&all[1..], Some(101), false).has_more);
        assert_eq!(
            complete(&all[1..], Some(99), true).total,
            None,
            "there cannot be fewer than there are"
        );
        let (long, longest) = (
            "x".repeat(MAX_COMPLETION_VALUE_BYTES + 1),
            "x".repeat(MAX_COMPLETION_VALUE_BYTES),
        );
        let shown = complete(&[&long, &longest, "b"], None, false);
        assert_eq!(
            (shown.values, shown.has_more),
            (vec![longest, "b".to_owned()], true)
        );
        let redacted = format!("{}12345678901", "x".repeat(MAX_COMPLETION_VALUE_BYTES - 11));
        assert!(
            complete(&[&redacted], None, false).values.is_empty(),
            "it is longer without the secret"
        );
    }
}
