//! Tests of `jsonrpc`.

use super::*;
use crate::protocol::request_id::MAX_ID_BYTES;

fn refusal(text: &str) -> String {
    match decode(text.as_bytes()) {
        Err(refused) => String::from_utf8(error(&refused, true)).unwrap(),
        Ok(incoming) => panic!("{text} was read as {incoming:?}"),
    }
}

#[test]
fn the_kinds_of_messages_are_distinguished() {
    let single = |text: &'static str| match decode(text.as_bytes()).unwrap() {
        IncomingContent::Single(message) => message,
        IncomingContent::Batch(_) => panic!("{text}"),
    };
    assert!(
        matches!(single(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#), Message::Request(r)
            if r.method == "ping" && r.id == RequestId::Number(1.into()) && r.params.is_none())
    );
    assert!(
        matches!(single(r#" {"jsonrpc":"2.0","method":"pi\u006eg","params":{}} "#),
            Message::Notification { method, params: Some(_) } if method == "ping")
    );
    assert!(
        matches!(single(r#"{"jsonrpc":"2.0","id":"a","result":{"b":1}}"#),
            Message::Response { id: Some(RequestId::Text(id)), outcome: Ok(result) } if id == "a" && result.get() == r#"{"b":1}"#)
    );
    assert!(matches!(
        single(r#"{"jsonrpc":"2.0","id":1,"result":null}"#),
        Message::Response { outcome: Ok(_), .. }
    ));
    let batch = decode(br#"[{"jsonrpc":"2.0","method":"a"},1]"#).unwrap();
    assert!(
        matches!(batch, IncomingContent::Batch(items) if items.len() == 2 && items[1].is_err())
    );
}

#[test]
fn the_error_of_a_client_is_truncated() {
    let read = |text: &str| match decode(text.as_bytes()) {
        Ok(IncomingContent::Single(Message::Response {
            id,
            outcome: Err(error),
        })) => (id, error.code, error.message),
        other => panic!("{text}: {other:?}"),
    };
    let error = read(
        r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":-1,"message":"no","data":[]}}"#,
    );
    assert_eq!(error, (Some(RequestId::Number(1.into())), -1, "no".into()));
    let long = format!(
        r#"{{"jsonrpc":"2.0","id":null,"error":{{"code":-1,"message":"{}"}}}}"#,
        "é".repeat(1 << 20)
    );
    let (id, _, message) = read(&long);
    assert!(id.is_none() && message.len() <= 500);
    for odd in [
        "null",
        "7",
        "{}",
        r#"{"code":"x"}"#,
        r#"{"code":1e99,"message":""}"#,
    ] {
        let (_, code, message) = read(&format!(r#"{{"jsonrpc":"2.0","id":1,"error":{odd}}}"#));
        assert_eq!(
            (code, message.as_str()),
            (INTERNAL_ERROR, "an error that is not a JSON-RPC error"),
            "{odd}"
        );
    }
}

#[test]
fn invalid_messages_get_an_error() {
    let cases = [
        "{",
        "\"text\"",
        "[]",
        r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":[1],"method":"ping"}"#,
        r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":1}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":7}"#,
        r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#,
    ];
    insta::assert_snapshot!(
        cases
            .map(|case| format!("{case}\n  {}", refusal(case)))
            .join("\n")
    );
    assert!(decode(b"\xff").is_err());
}

#[test]
fn null_and_empty_list_parameters_count_as_absent() {
    for params in ["null", "[]", "[ ]"] {
        let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"a","params":{params}}}"#);
        assert!(
            matches!(decode(text.as_bytes()), Ok(IncomingContent::Single(Message::Request(r))) if r.params.is_none()),
            "{params}"
        );
    }
    let list = br#"{"jsonrpc":"2.0","id":1,"method":"a","params":[1]}"#;
    assert!(
        matches!(decode(list), Ok(IncomingContent::Single(Message::Request(r))) if r.params.is_some())
    );
}

#[test]
fn a_byte_order_mark_before_a_message_is_skipped() {
    let text = "\u{feff}{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}";
    assert!(matches!(
        decode(text.as_bytes()),
        Ok(IncomingContent::Single(Message::Request(_)))
    ));
    assert!(decode("\u{feff}\u{feff}{}".as_bytes()).is_err());
}

#[test]
fn an_error_has_the_id_wherever_it_can_be_found() {
    for (text, id) in [
        (r#"{"jsonrpc":"2.0","id":7,"method":7}"#, Some("7")),
        (r#"{"jsonrpc":2,"id":"a","method":"ping"}"#, Some("a")),
        (r#"{"method":["ping"],"jsonrpc":"2.0","id":"a"}"#, Some("a")),
        (r#"{"jsonrpc":"2.0","id":7,"id":8,"method":7}"#, None),
        (r#"{"jsonrpc":"2.0","id":{},"method":7}"#, None),
    ] {
        let error = decode(text.as_bytes()).unwrap_err();
        assert_eq!(error.id.map(|id| id.to_string()).as_deref(), id, "{text}");
    }
    for (beginning, id) in [
        (
            r#"{"jsonrpc":"2.0","id":7,"method":"a","params":{"x":"xxx"#,
            Some("7"),
        ),
        (
            r#"{"jsonrpc":"2.0","params":{"id":1,"y":[2]},"id":"b","x":"y"#,
            Some("b"),
        ),
        (r#"{"jsonrpc":"2.0","params":{"id":1"#, None),
        (r#"{"id":7"#, None),
        (r#"{"id":7,"#, Some("7")),
        (
            r#"{"method":"a","params":{"id":1,"x":"xxx"},"jsonrpc":"2.0","id":7}"#,
            Some("7"),
        ),
        (r#"[{"id":7}"#, None),
        ("", None),
    ] {
        let found = id_of_truncated(beginning.as_bytes());
        assert_eq!(found.map(|id| id.to_string()).as_deref(), id, "{beginning}");
    }
}

#[test]
fn an_error_has_the_id_of_a_message_that_is_not_json() {
    let cases: [(&[u8], &str); 8] = [
        (
            br#"{"jsonrpc":"2.0","id":7,"method":"a","params":{"a":NaN}}"#,
            "expected value at line 1 column 52: JSON has no number NaN; send null, or leave the value out",
        ),
        (
            br#"{"method":"a","params":[-Infinity],"jsonrpc":"2.0","id":7}"#,
            ": JSON has no number Infinity;",
        ),
        (
            br#"{"jsonrpc":"2.0","id":7,"method":"a","params":{"a":True}}"#,
            ": JSON has the words true and false",
        ),
        (
            br#"{"jsonrpc":"2.0","id":7,"method":"a","params":{"a":None}}"#,
            ": JSON has the word null",
        ),
        (
            br#"{"jsonrpc":"2.0","id":7,"method":"a","params":{"a":01}}"#,
            "invalid number at line 1 column ",
        ),
        (
            br#"{"jsonrpc":"2.0","id":7,"method":"a","params":{"a":"cut"#,
            "EOF while parsing",
        ),
        (
            b"{\"id\":7,\"x\":\"\xff\"}",
            "the message is not valid UTF-8: mistake after 13 bytes",
        ),
        (
            br#"{"\ud800":1,"jsonrpc":"2.0","id":7,"method":"a"}"#,
            "not a JSON-RPC message: ",
        ),
    ];
    for (text, said) in cases {
        let shown = String::from_utf8_lossy(text);
        let error = decode(text).unwrap_err();
        assert_eq!(error.id, Some(RequestId::Number(7.into())), "{shown}");
        assert!(error.message.contains(said), "{shown}: {}", error.message);
    }
    for text in [
        r#"[{"jsonrpc":"2.0","id":7,"x":NaN}]"#,
        r#"{"id":7,"id":8,"x":NaN}"#,
    ] {
        assert_eq!(decode(text.as_bytes()).unwrap_err().id, None, "{text}");
    }
}

#[test]
fn an_id_is_returned_as_it_was_written() {
    for id in ["1e2", "-0", "100.0", "18446744073709551615", r#""\u00e4""#] {
        let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
        let Ok(IncomingContent::Single(Message::Request(read))) = decode(text.as_bytes()) else {
            panic!("{text}")
        };
        let id = id.replace("\\u00e4", "ä");
        let answer = String::from_utf8(result(&read.id, &Value::Null)).unwrap();
        assert_eq!(
            answer,
            format!(r#"{{"jsonrpc":"2.0","id":{id},"result":null}}"#)
        );
        let answer = String::from_utf8(error(
            &Error::new(INTERNAL_ERROR, "no").with_id(&read.id),
            true,
        ))
        .unwrap();
        assert!(answer.contains(&format!(r#""id":{id},"#)), "{answer}");
    }
}

#[test]
fn a_message_is_one_line_for_every_reader() {
    let text = "a\u{2028}\u{2029}b\u{85}\u{2028}ü\u{2027}";
    let message = result(
        &RequestId::Number(1.into()),
        &serde_json::json!({ text: text }),
    );
    let message = String::from_utf8(message).unwrap();
    assert!(
        !message.contains(['\u{2028}', '\u{2029}', '\u{85}']),
        "{message}"
    );
    assert!(
        message.contains("\\u2028\\u2029b\\u0085\\u2028ü\u{2027}"),
        "{message}"
    );
    let read: Value = serde_json::from_str(&message).unwrap();
    assert_eq!(read["result"][text], text);
}

#[test]
fn a_batch_is_parsed_up_to_its_limit() {
    let batch = |messages: usize| {
        format!(
            " [{}]",
            vec![r#"{"jsonrpc":"2.0","method":"a"}"#; messages].join(",")
        )
    };
    let read = |text: &str| match decode(text.as_bytes()) {
        Ok(IncomingContent::Batch(messages)) => messages.len(),
        other => panic!("{other:?}"),
    };
    assert_eq!(read(&batch(MAX_BATCH_MESSAGES)), MAX_BATCH_MESSAGES);
    for count in [MAX_BATCH_MESSAGES + 1, 100_000] {
        let error = decode(batch(count).as_bytes()).unwrap_err();
        assert_eq!(
            (error.code, error.message.as_str()),
            (INVALID_REQUEST, "a batch can have at most 100 messages")
        );
    }
    // The rest after the limit is not read.
    assert_eq!(
        decode(format!("{}no JSON", batch(MAX_BATCH_MESSAGES + 1)).as_bytes())
            .unwrap_err()
            .code,
        INVALID_REQUEST
    );
    assert_eq!(
        decode(format!("{}no JSON", batch(MAX_BATCH_MESSAGES)).as_bytes())
            .unwrap_err()
            .code,
        PARSE_ERROR
    );
}

#[test]
fn the_length_of_an_id_is_limited() {
    let request = |id: &str| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
    let text = |length: usize| format!("\"{}\"", "x".repeat(length));
    decode(request(&text(MAX_ID_BYTES - 2)).as_bytes()).unwrap();
    for id in [
        text(MAX_ID_BYTES - 1),
        text(1 << 20),
        format!("1.{}", "0".repeat(MAX_ID_BYTES)),
    ] {
        let error = decode(request(&id).as_bytes()).unwrap_err();
        assert_eq!((error.code, error.id), (INVALID_REQUEST, None));
        assert!(error.message.len() < 200, "{}", error.message);
    }
}

#[test]
fn an_error_without_a_request_has_a_null_id_or_no_id() {
    let problem = Error::new(PARSE_ERROR, "no");
    let text = |null| String::from_utf8(error(&problem, null)).unwrap();
    assert_eq!(
        text(true),
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no"}}"#
    );
    assert_eq!(
        text(false),
        r#"{"jsonrpc":"2.0","error":{"code":-32700,"message":"no"}}"#
    );
}
