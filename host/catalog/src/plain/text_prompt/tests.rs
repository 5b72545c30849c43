//! Tests of `text_prompt`.

use super::*;

const REVIEW: &str = "---
title: Review
description: Reviews code.
arguments:
  - name: code
    required: true
  - name: language
---

Review this {{language}} code: {{ code }}
";

#[test]
fn a_value_removes_nothing_of_the_text_after_it() {
    let text = "---\narguments:\n  - name: a\n---\nStart {{a}} IMPORTANT {{a}}. End";
    for sequence in [
        "x\u{1b}]0;",
        "x\u{1b}[",
        "x\u{1b}[3",
        "x\u{9b}",
        "x\u{202e}",
        "x\u{1b}",
    ] {
        assert_eq!(
            filled(text, &[("a", sequence)]),
            "Start x IMPORTANT x. End",
            "{sequence:?}"
        );
    }
}

fn filled(text: &str, arguments: &[(&str, &str)]) -> String {
    let (prompt, _) = TextPrompt::parse("a", text).unwrap();
    let arguments = arguments
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    let output = prompt.render(&arguments, ByteSize::kib(1)).unwrap();
    let [
        PromptMessage {
            role: "user",
            content:
                ContentBlock {
                    body: ContentBody::Text(text),
                    ..
                },
        },
    ] = &*output.messages
    else {
        panic!("{output:?}")
    };
    text.clone()
}

#[test]
fn values_go_where_their_names_are() {
    assert_eq!(
        filled(REVIEW, &[("code", "x = 1"), ("language", "Python")]),
        "Review this Python code: x = 1"
    );
    assert_eq!(
        filled(REVIEW, &[("code", "{{language}}")]),
        "Review this  code: {{language}}",
        "filled once"
    );
    assert_eq!(filled("Hello {{name}}", &[]), "Hello {{name}}");
    let (prompt, remarks) = TextPrompt::parse("review", REVIEW).unwrap();
    assert_eq!(
        (prompt.entry.prompt.title.as_deref(), remarks.len()),
        (Some("Review"), 0)
    );
    assert_eq!(prompt.entry.prompt.arguments.len(), 2);
}

#[test]
fn braces_that_are_not_arguments_stay() {
    let text = |body: &str| format!("---\narguments: [{{name: a}}]\n---\n{body}");
    for (body, expected) in [
        ("{{{a}}}", "{1}"),
        ("{{{{a}}}}", "{{1}}"),
        ("{a} {{ }} {{}} {{a b}} {{", "{a} {{ }} {{}} {{a b}} {{"),
        ("{{a", "{{a"),
        ("{{a}} {{a}}", "1 1"),
        ("{{\na\n}}", "{{\na\n}}"),
    ] {
        assert_eq!(filled(&text(body), &[("a", "1")]), expected, "{body}");
    }
    let (_, remarks) = TextPrompt::parse("a", &text("{{a}} {{b}} {{c}} {{a b}}")).unwrap();
    assert_eq!(
        remarks,
        ["{{b}}, {{c}} in its text is not one of its arguments, and stays as it is"]
    );
    let (_, remarks) = TextPrompt::parse("a", &text("{{b}}")).unwrap();
    assert_eq!(
        remarks[1..],
        ["its text has no place for the argument a; write {{NAME}} where it goes"]
    );
}

/// Splits a text like the function under test, but searches for the end of each pair of braces
/// again.
fn slowly(text: &str) -> Vec<PromptSegment> {
    let mut pieces = Vec::new();
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("{{") {
        plain.push_str(before);
        let named = after
            .split_once("}}")
            .map(|(name, after)| (name.trim_matches(NAME_WHITESPACE), after));
        if let Some((name, after)) = named.filter(|(name, _)| *name == "a") {
            if !plain.is_empty() {
                pieces.push(PromptSegment::Text(std::mem::take(&mut plain).into()));
            }
            pieces.push(PromptSegment::Value(name.into()));
            rest = after;
        } else {
            plain.push('{');
            rest = &rest[before.len() + 1..];
        }
    }
    plain.push_str(rest);
    if !plain.is_empty() {
        pieces.push(PromptSegment::Text(plain.into()));
    }
    pieces
}

proptest::proptest! {
    #[test]
    fn one_pass_finds_the_same_placeholders(text in "(\\{|\\}|\\{\\{|\\}\\}|a| |\\{\\{ ?a ?\\}\\}|b|\n){0,24}") {
        proptest::prop_assert_eq!(split_placeholders(&text, |name| name == "a").0, slowly(&text));
    }
}

#[test]
fn a_text_of_braces_is_read_once() {
    // These would take minutes if the end of each pair of braces were searched for, or the
    // white space before it trimmed, again.
    let most = 256 << 10;
    for (text, number) in [
        ("{".repeat(most), 1),
        ("{{a".repeat(most / 3), 1),
        // The last pair of braces is closed.
        (
            format!("{}{}}}}}", "{{a".repeat(most / 6), " ".repeat(most / 2)),
            2,
        ),
        ("{{ ".repeat(most / 3), 1),
    ] {
        let (pieces, unknown) = split_placeholders(&text, |_| true);
        assert_eq!((pieces.len(), unknown.len()), (number, 0));
    }
}

#[test]
fn control_sequences_are_removed() {
    let text = "---\ntitle: \"\\e[31mA\"\narguments: [{name: a}]\n---\n\u{1b}[31m{{a}}";
    assert_eq!(filled(text, &[("a", "\u{1b}[0mb")]), "b");
    assert_eq!(
        TextPrompt::parse("a", text)
            .unwrap()
            .0
            .entry
            .prompt
            .title
            .as_deref(),
        Some("A")
    );
}

#[test]
fn a_value_in_many_places_does_not_grow_beyond_the_limit() {
    let text = format!(
        "---\narguments: [{{name: a}}]\n---\n{}",
        "{{a}}".repeat(10_000)
    );
    let (prompt, _) = TextPrompt::parse("a", &text).unwrap();
    let arguments = [("a".to_owned(), "x".repeat(1_000_000))].into();
    let why = prompt.render(&arguments, ByteSize::mib(1)).unwrap_err();
    assert_eq!(
        why,
        CallError::Limit {
            limit: Limit::Output(ByteSize::mib(1)),
            tool: None
        }
    );
    assert!(
        prompt
            .render(
                &[("a".to_owned(), "x".to_owned())].into(),
                ByteSize::b(10_000)
            )
            .is_ok()
    );
    assert!(
        prompt
            .render(
                &[("a".to_owned(), "x".to_owned())].into(),
                ByteSize::b(9_999)
            )
            .is_err()
    );
}

#[test]
fn mistakes_say_what_is_wrong() {
    let texts = [
        "",
        "---\ntitle: A\n---\n \n",
        "---\ntitle: [\n---\na",
        "---\narguments: [{name: a b}]\n---\na",
    ];
    let said: Vec<String> = texts
        .iter()
        .map(|text| TextPrompt::parse("a", text).unwrap_err())
        .collect();
    insta::assert_snapshot!(said.join("\n"), @r#"
         it has no text after the front matter
         it has no text after the front matter
        2: a text was expected here
         prompt "a": the name of an argument must have 1 to 128 characters of A-Z a-z 0-9 _ - ., not "a b"
        "#);
    assert!(
        TextPrompt::parse("a b", "text")
            .unwrap_err()
            .contains("a name must have 1 to 128 characters")
    );
}
