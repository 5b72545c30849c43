//! Tests of `stdio`.

use super::*;

/// Returns the lines that result when the text arrives in pieces of `step` bytes.
fn lines(text: &str, limit: usize, step: usize) -> Vec<String> {
    let mut decoder = LineSplitter::new(limit);
    let mut buffer = BytesMut::new();
    let mut out = Vec::new();
    let show = |line| match line {
        LineContent::Message(line) => String::from_utf8(line.to_vec()).unwrap(),
        LineContent::TooLong(None) => "TOO LONG".to_owned(),
        LineContent::TooLong(Some(id)) => format!("TOO LONG {id}"),
    };
    for piece in text.as_bytes().chunks(step) {
        buffer.extend_from_slice(piece);
        while let Some(line) = decoder.decode(&mut buffer).unwrap() {
            out.push(show(line));
        }
    }
    while let Some(line) = decoder.decode_eof(&mut buffer).unwrap() {
        out.push(show(line));
    }
    out
}

#[test]
fn lines_are_the_same_however_they_arrive() {
    for step in 1..20 {
        assert_eq!(
            lines("{1}\r\n\n  \n{2}\n{3}", 10, step),
            ["{1}", "{2}", "{3}"],
            "step {step}"
        );
    }
}

#[test]
fn a_long_line_is_reported_once_and_the_next_line_is_read() {
    for step in 1..30 {
        assert_eq!(
            lines("{1}\n01234567890123456789\n{2}\n", 5, step),
            ["{1}", "TOO LONG", "{2}"],
            "step {step}"
        );
    }
}

#[test]
fn the_id_of_a_long_line_is_found_at_its_start_and_at_its_end() {
    for (line, report) in [
        (r#"{"id":7,"params":{"a":"xxxxxxxxxxxx"}}"#, "TOO LONG 7"),
        (
            r#"{"params":{"id":1,"a":"\",\"id\":2"},"id":7}"#,
            "TOO LONG 7",
        ),
        (r#"{"params":{"id":1,"a":"\",\"id\":2"}}"#, "TOO LONG"),
        (r#"{"params":{"a":"xxxxxxxxxxxxxx"},"id":"b"#, "TOO LONG"),
    ] {
        for step in 1..50 {
            let text = format!("{line}\n{{2}}\n{line}");
            assert_eq!(
                lines(&text, 5, step),
                [report, "{2}", report],
                "step {step}"
            );
        }
    }
}

#[test]
fn a_long_line_uses_no_memory() {
    let mut decoder = LineSplitter::new(10);
    let mut buffer = BytesMut::new();
    for _ in 0..100 {
        buffer.extend_from_slice(&[b'x'; 100]);
        decoder.decode(&mut buffer).unwrap();
        assert!(buffer.is_empty());
    }
}
