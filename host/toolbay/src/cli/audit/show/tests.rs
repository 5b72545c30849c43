//! Tests of `show`.

use super::*;

fn record(text: &str) -> Map<String, Value> {
    serde_json::from_str(text).unwrap()
}

const CALL: &str = r#"{"seq":3,"time":"2026-05-01T08:00:00.000001Z","event":"call","call":1,"caller":"stdio",
    "tool":"add","plugin":"calc","plugin_sha256":"0123456789abcdef","outcome":"ok",
    "usage":{"wall_ms":1.5,"fuel":7},"prev":"0","hash":"1"}"#;

#[test]
fn a_line_matches_by_its_fields() {
    let call = record(CALL);
    let some = |text: &str| Some(text.to_owned());
    let at = |text: &str| Some(since(text).unwrap());
    for filter in [
        Filter::default(),
        Filter {
            tool: some("add"),
            caller: some("stdio"),
            plugin: some("calc"),
            ..Filter::default()
        },
        Filter {
            outcome: some("ok"),
            since: at("2026-05-01T08:00:00Z"),
            ..Filter::default()
        },
        Filter {
            event: some("call"),
            ..Filter::default()
        },
        Filter {
            since: at("2026-05-01"),
            ..Filter::default()
        },
    ] {
        assert!(filter.matches(&call), "{filter:?}");
    }
    for filter in [
        Filter {
            tool: some("ad"),
            ..Filter::default()
        },
        Filter {
            caller: some("token:ci"),
            ..Filter::default()
        },
        Filter {
            plugin: some("add"),
            ..Filter::default()
        },
        Filter {
            outcome: some("fuel"),
            ..Filter::default()
        },
        Filter {
            event: some("denied"),
            ..Filter::default()
        },
        Filter {
            since: at("2026-05-01T08:00:01Z"),
            ..Filter::default()
        },
    ] {
        assert!(!filter.matches(&call), "{filter:?}");
    }
    assert!(
        !Filter {
            tool: some("add"),
            ..Filter::default()
        }
        .matches(&record(r#"{"event":"stop"}"#))
    );
}

#[test]
fn a_printed_line_has_the_main_fields_and_no_control_characters() {
    let text = render_line(&record(CALL))
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    assert_eq!(
        text,
        "2026-05-01T08:00:00 call ok stdio calc add call 1, plugin 0123456789ab, 1.5 ms"
    );
    let forged = render_line(&record(
        r#"{"event":"denied","message":"a\nb\u001b[2J","tool":"x\ny"}"#,
    ));
    assert_eq!(forged.matches('\n').count(), 1, "{forged}");
    assert!(!forged.contains('\u{1b}'));
}

#[test]
fn columns_are_aligned_for_every_event_and_outcome() {
    let caller_column = |event: &str, outcome: &str| {
        let columns = ["", event, outcome, "CALLER", "", ""].map(str::to_owned);
        render_row(columns, "").find("CALLER")
    };
    let expected = caller_column("", "");
    for event in AuditEvent::NAMES {
        assert_eq!(caller_column(event, ""), expected, "{event}");
    }
    for outcome in OutcomeLabel::all().map(OutcomeLabel::as_str) {
        assert_eq!(caller_column("", outcome), expected, "{outcome}");
    }
}

#[test]
fn invalid_options_are_refused_with_the_valid_ones() {
    let said = [
        since("yesterday").unwrap_err(),
        outcome("feul").unwrap_err(),
        outcome("no such word").unwrap_err(),
    ];
    insta::assert_snapshot!(said.join("\n"), @r#"
    expected a time, such as 2026-05-01T08:00:00Z or 2026-05-01, or a duration, such as 2h
    "feul" is not an outcome; did you mean "fuel"?
    "no such word" is not an outcome; they are ok, input-required, unknown-tool, missing-capability, invalid-arguments, not-approved, outdated, busy, rate-limited, disabled, failed, invalid-output, fuel, deadline, memory, stack, output, limit, denied, trap, cancelled, internal
    "#);
    assert!(since("2h").unwrap() < SystemTime::now());
}
