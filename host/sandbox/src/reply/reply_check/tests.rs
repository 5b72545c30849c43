//! Tests of `reply_check`.

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
fn an_interrupted_reply_is_neither_cleaned_nor_returned() {
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
            "The plugin gave no reason."
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
            structured: Some(r#"{"12345678901": ["12345678901", 12345678901, 1234567890]}"#.into()),
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
fn items_are_at_or_below_the_requested_uri() {
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
fn an_empty_reply_means_that_the_resource_does_not_exist() {
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
    let output = Err(CallError::limit(Limit::Output(limits.output)));
    let items = Err(CallError::limit(Limit::OutputItems(2)));
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
    let long = "x".repeat(MAX_COMPLETION_VALUE_BYTES + 1);
    let longest = "x".repeat(MAX_COMPLETION_VALUE_BYTES);
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
