//! Tests of `truncation`.

use serde_json::{Value, json};
use toolbay_model::MediaContent;

use super::*;

const MOST: usize = 8 << 10;

fn text(text: &str) -> ContentBlock {
    plain_content(ContentBody::Text(text.to_owned()))
}

fn image(bytes: usize) -> ContentBlock {
    plain_content(ContentBody::Image(MediaContent {
        data: vec![7; bytes].into(),
        mime_type: "image/png".to_owned(),
    }))
}

fn output(content: Vec<ContentBlock>) -> ToolOutput {
    ToolOutput {
        content,
        ..ToolOutput::default()
    }
}

fn lines(bytes: usize) -> String {
    "0123456789 abcdefghijklmnopqrst\n".repeat(bytes / 32)
}

/// Returns the result, which must be too large.
fn truncated(output: ToolOutput, most: usize, promised: bool) -> FittedResult {
    match truncate_output(output, most, promised) {
        FittedOutput::Truncated(fitted) => fitted,
        FittedOutput::Whole(output) => panic!("it fits: {output:?}"),
    }
}

/// Returns the text of each block that a caller receives.
fn shown(output: ToolOutput, promised: bool) -> (Vec<String>, Option<Value>, bool) {
    let fitted = truncated(output, MOST, promised);
    let failed = fitted.is_unstructured;
    let address = ResultAddress::parse("toolbay://results/0123456789abcdef0123456789abcdef")
        .unwrap()
        .0;
    let offered = ResultLink {
        address,
        ttl: Duration::from_mins(10),
    };
    let output = fitted.into_output("dump", |_| Some(offered));
    assert!(output_size(&output) <= MOST, "{}", output_size(&output));
    let words = |content: ContentBlock| match content.body {
        ContentBody::Text(text) if text.len() > 1000 => format!("text of {}", text.len()),
        ContentBody::Text(text) => text,
        body => format!("{} of {}", body.label(), body.byte_len()),
    };
    (
        output.content.into_iter().map(words).collect(),
        output.structured,
        failed,
    )
}

#[test]
fn what_fits_stays_as_it_is() {
    let all = ToolOutput {
        structured: Some(json!({"a": 1})),
        ..output(vec![text("a"), image(MOST - 17)])
    };
    assert_eq!(output_size(&all), MOST);
    let FittedOutput::Whole(whole) = truncate_output(all.clone(), MOST, true) else {
        panic!("it was truncated");
    };
    assert_eq!(whole, all);
    truncated(all, MOST - 1, true);
}

#[test]
fn a_long_text_is_cut_after_a_line() {
    let (blocks, _, failed) = shown(output(vec![text(&lines(1 << 20))]), false);
    insta::assert_debug_snapshot!(blocks);
    assert!(!failed);
    let fitted = truncated(output(vec![text(&lines(1 << 20))]), MOST, false);
    let ContentBody::Text(begin) = &fitted.output.content[0].body else {
        panic!()
    };
    assert!(begin.ends_with("t\n") && begin.len() > MOST - NOTE_BYTES - 64);
    assert_eq!(fitted.whole.content_size(), 1 << 20);
}

#[test]
fn a_text_without_lines_or_words_is_cut_after_a_character() {
    assert_eq!(cut_position(&"€".repeat(100), 100), 99);
    assert_eq!(
        cut_position(&format!("{} {}", "a".repeat(90), "b".repeat(90)), 100),
        91
    );
    assert_eq!(
        cut_position(&format!("a\n{}", "b".repeat(200)), 100),
        100,
        "nearly nothing would be left"
    );
    assert_eq!(cut_position("a\nb", 2), 2);
    assert_eq!(cut_position("", 100), 0);
}

#[test]
fn blocks_that_fit_stay_and_others_are_named() {
    let many = vec![
        text("before"),
        image(20_000),
        text("after"),
        text(&lines(20_000)),
        image(5000),
        text("end"),
    ];
    insta::assert_debug_snapshot!(shown(output(many), false).0);
    let images = (0..1000).map(|_| image(10_000)).collect();
    insta::assert_debug_snapshot!(shown(output(images), false).0);
}

#[test]
fn structured_content_stays_if_it_fits_and_first_if_it_was_promised() {
    let value = json!({"rows": ["x".repeat(MOST / 2)]});
    let all = || ToolOutput {
        structured: Some(value.clone()),
        ..output(vec![text(&lines(MOST))])
    };
    let (blocks, structured, failed) = shown(all(), true);
    assert!(structured.is_some() && !failed);
    assert_eq!(blocks.len(), 3, "{blocks:?}");
    let (blocks, structured, failed) = shown(all(), false);
    assert!(structured.is_none() && failed);
    assert!(
        blocks[1].contains("Missing: the structured content (4.0 KiB), the last "),
        "{blocks:?}"
    );
    let larger = ToolOutput {
        structured: Some(json!("x".repeat(MOST))),
        ..output(vec![])
    };
    let (blocks, structured, failed) = shown(larger, true);
    assert!(structured.is_none() && failed);
    insta::assert_debug_snapshot!(blocks);
}

#[test]
fn large_members_of_meta_are_left_out() {
    let meta = |bytes: usize| json!({"a": "x".repeat(bytes)}).as_object().unwrap().clone();
    let large = ToolOutput {
        meta: meta(MOST),
        ..output(vec![text("a")])
    };
    let fitted = truncated(large, MOST, false);
    assert!(fitted.output.meta.is_empty());
    assert_eq!(fitted.missing, ["the members of _meta"]);
    let small = ToolOutput {
        meta: meta(100),
        ..output(vec![text(&lines(MOST * 2))])
    };
    let fitted = truncated(small, MOST, false);
    assert_eq!(fitted.output.meta.len(), 1);
}

#[test]
fn what_was_not_kept_is_not_offered() {
    let fitted = truncated(output(vec![text(&lines(20_000))]), MOST, false);
    let ToolOutput { content, .. } = fitted.into_output("dump", |_| None);
    let ContentBody::Text(note) = &content[1].body else {
        panic!()
    };
    assert!(
        note.ends_with("The rest was not kept, because it is too large.]"),
        "{note}"
    );
    assert_eq!(content.len(), 2);
}

#[test]
fn a_long_message_of_a_failure_is_cut_with_a_note() {
    let mut message = lines(20_000);
    truncate_message(&mut message, MOST);
    assert!(message.len() <= MOST);
    assert!(
        message.ends_with("\n[Cut: the message has 19.5 KiB, and at most 8.0 KiB are shown.]"),
        "{message}"
    );
    let mut short = "no".to_owned();
    truncate_message(&mut short, MOST);
    assert_eq!(short, "no");
}
