//! The format of a log line, and the hash chain that links each line to the line before it.
//!
//! A line is a JSON object that ends with `"prev"`, the hash of the previous line, and `"hash"`,
//! the hash of the line itself: SHA-256 of all its bytes before `,"hash"`. The end of a line has
//! only one valid form, so any change to a line invalidates its hash.

use std::time::SystemTime;

use aws_lc_rs::digest::{self, SHA256};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use toolbay_model::Digest;

use crate::anchor::CrossAnchor;
use crate::event::AuditEvent;
use crate::recovery::TornBytes;

/// `prev` of the first line of a log.
pub(crate) const NO_PREVIOUS_HASH: Digest = Digest::new([0; 32]);

/// Maximum size of a line, in bytes. All recorded lines are far shorter.
pub(crate) const MAX_LINE_BYTES: usize = 128 << 10;

/// The form of a time. Each `#` stands for a digit.
const TIME_FORM: &str = "####-##-##T##:##:##.######Z";

/// The bytes before the hash of the previous line. They cannot occur within a string.
const PREV_PREFIX: &[u8] = br#","prev":""#;

/// The bytes before a line's own hash.
const HASH_PREFIX: &[u8] = br#","hash":""#;

/// The bytes after a line's own hash.
const LINE_SUFFIX: &[u8] = br#""}"#;

/// Length of a hash in hexadecimal digits.
const HASH_DIGITS: usize = 64;

/// Returns the SHA-256 digest of `bytes`.
pub fn hash(bytes: &[u8]) -> Digest {
    to_digest(&digest::digest(&SHA256, bytes))
}

/// Converts a finished SHA-256 computation to a [`Digest`].
pub(crate) fn to_digest(digest: &digest::Digest) -> Digest {
    Digest::new(digest.as_ref().try_into().unwrap_or([0; 32]))
}

/// Parses a digest of 64 lower-case hexadecimal digits.
pub(crate) fn parse_hash(text: &[u8]) -> Option<Digest> {
    let is_lower_hex = text.len() == HASH_DIGITS
        && text
            .iter()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let bytes = is_lower_hex.then(|| hex::decode(text).ok())??;
    Some(Digest::new(bytes.try_into().ok()?))
}

/// Serializes the line number `seq`. Returns the line, with its line end, and its hash.
pub(crate) fn serialize_line(
    seq: u64,
    time: SystemTime,
    event: &AuditEvent,
    prev: Digest,
) -> (Vec<u8>, Digest) {
    #[derive(Serialize)]
    struct ChainedLine<'a> {
        seq: u64,
        time: String,
        #[serde(flatten)]
        event: &'a AuditEvent,
        prev: String,
    }
    let time = humantime::format_rfc3339_micros(time).to_string();
    // Serialization cannot fail: the line consists of strings and numbers.
    let mut line = serde_json::to_vec(&ChainedLine {
        seq,
        time,
        event,
        prev: prev.to_string(),
    })
    .unwrap_or_default();
    line.pop();
    let hash = hash(&line);
    line.extend_from_slice(HASH_PREFIX);
    line.extend_from_slice(hash.to_string().as_bytes());
    line.extend_from_slice(LINE_SUFFIX);
    line.push(b'\n');
    (line, hash)
}

/// The fields of a line that form the chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ChainLink {
    /// Number of the line, starting at 1.
    pub seq: u64,
    /// Hash of the previous line.
    pub prev: Digest,
    /// Hash of this line, which was checked.
    pub hash: Digest,
    /// Contents of the line, if they affect the chain.
    pub event: ChainEvent,
    /// The newest line of the other part when this line was written, if the line contains it.
    pub rejected_anchor: Option<CrossAnchor>,
}

/// Parses an anchor of the form `number:hash`.
pub(crate) fn parse_anchor(text: &str) -> Option<CrossAnchor> {
    let (seq, hash) = text.split_once(':')?;
    Some((seq.parse().ok()?, parse_hash(hash.as_bytes())?))
}

/// The kinds of lines that affect the chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ChainEvent {
    /// A server started.
    Start {
        /// Torn bytes that the server found at the end of the log.
        torn: Option<TornBytes>,
        /// Number of signed lines that were missing.
        missing: u64,
        /// Number of lines that were not signed.
        unsigned: u64,
        /// Another defect of the log, if the server found one.
        defect: Option<String>,
        /// The public key, in hexadecimal.
        key: String,
    },
    /// A server stopped.
    Stop,
    /// A signature, in hexadecimal.
    Checkpoint(String),
    /// The start of a file, with the number of the first line that is retained.
    FileStart(u64),
    /// Number of lines that were lost.
    Lost(u64),
    /// Any other line.
    Other,
}

/// Parses a line, without its line end.
///
/// # Errors
///
/// Returns a short clause that describes the defect of the line.
pub(crate) fn parse_line(line: &[u8]) -> Result<ChainLink, &'static str> {
    #[derive(Deserialize)]
    struct ChainFields {
        seq: u64,
        prev: String,
        event: String,
        signature: Option<String>,
        oldest: Option<u64>,
        lines: Option<u64>,
        key: Option<String>,
        torn: Option<TornBytes>,
        missing: Option<u64>,
        unsigned: Option<u64>,
        wrong: Option<String>,
        rejected: Option<String>,
    }
    const INVALID_LINE: &str = "is not a line of an audit log";
    let (content, recorded_hash) = split_line(line).ok_or(INVALID_LINE)?;
    let hash = hash(content);
    if hash != recorded_hash {
        return Err("was changed: its contents do not match its recorded hash");
    }
    let fields: ChainFields =
        serde_json::from_slice(&[content, b"}"].concat()).map_err(|_| INVALID_LINE)?;
    let prev = parse_hash(fields.prev.as_bytes()).ok_or(INVALID_LINE)?;
    let event = match fields.event.as_str() {
        "start" => ChainEvent::Start {
            torn: fields.torn,
            missing: fields.missing.unwrap_or_default(),
            unsigned: fields.unsigned.unwrap_or_default(),
            defect: fields.wrong,
            key: fields.key.unwrap_or_default(),
        },
        "stop" => ChainEvent::Stop,
        "checkpoint" => ChainEvent::Checkpoint(fields.signature.unwrap_or_default()),
        "rotate" => ChainEvent::FileStart(fields.oldest.ok_or(INVALID_LINE)?),
        "lost" => ChainEvent::Lost(fields.lines.unwrap_or_default()),
        _ => ChainEvent::Other,
    };
    let rejected = match fields.rejected {
        Some(text) => Some(parse_anchor(&text).ok_or(INVALID_LINE)?),
        None => None,
    };
    Ok(ChainLink {
        seq: fields.seq,
        prev,
        hash,
        event,
        rejected_anchor: rejected,
    })
}

/// The state of the chain that determines the next line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NextLine {
    /// Number of the line.
    pub seq: u64,
    /// Hash of the previous line.
    pub prev: Digest,
    /// True if the server stopped, so that the line can only be the start of another server.
    pub is_start: bool,
}

impl NextLine {
    /// Returns whether `bytes` can be a beginning of the line, as a server leaves it that is killed
    /// during a write. A complete line without its line end is not a beginning.
    pub(crate) fn can_begin_with(self, bytes: &[u8]) -> bool {
        let Self {
            seq,
            prev,
            is_start,
        } = self;
        let event = if is_start { "start\"" } else { "" };
        let start = format!("{{\"seq\":{seq},\"time\":\"{TIME_FORM}\",\"event\":\"{event}");
        let fits =
            |(byte, form): (&u8, u8)| *byte == form || (form == b'#' && byte.is_ascii_digit());
        bytes.len() < MAX_LINE_BYTES
            && bytes.iter().zip(start.bytes()).all(fits)
            && is_incomplete_json(bytes)
            && can_end_with(bytes, prev)
    }
}

/// Returns whether the bytes are JSON that continues.
fn is_incomplete_json(bytes: &[u8]) -> bool {
    let is_incomplete =
        |text: &[u8]| serde_json::from_slice::<IgnoredAny>(text).is_err_and(|error| error.is_eof());
    // A number may be cut off after its decimal point.
    is_incomplete(bytes) || is_incomplete(&[bytes, b"0"].concat())
}

/// Returns whether the hashes at the end of a partial line are correct, as far as they exist.
fn can_end_with(bytes: &[u8], prev: Digest) -> bool {
    let found = bytes
        .windows(PREV_PREFIX.len())
        .position(|window| window == PREV_PREFIX);
    let Some(end) = found.and_then(|at| bytes.get(at + PREV_PREFIX.len()..)) else {
        return true;
    };
    let mut expected = format!("{prev}\"").into_bytes();
    let content = bytes.len() - end.len() + expected.len();
    if let Some(content) = bytes.get(..content) {
        expected.extend_from_slice(HASH_PREFIX);
        expected.extend_from_slice(hash(content).to_string().as_bytes());
        expected.extend_from_slice(LINE_SUFFIX);
    }
    expected.starts_with(end)
}

/// Splits a line into the bytes that its hash covers and the hash that it contains.
fn split_line(line: &[u8]) -> Option<(&[u8], Digest)> {
    let line = line.strip_suffix(LINE_SUFFIX)?;
    let (rest, content_hash) = line.split_at_checked(line.len().checked_sub(HASH_DIGITS)?)?;
    Some((rest.strip_suffix(HASH_PREFIX)?, parse_hash(content_hash)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(message: &str) -> (Vec<u8>, Digest) {
        let subject = crate::event::CallSubject::default();
        let event = AuditEvent::Denied {
            subject,
            message: message.to_owned(),
            remedy: None,
        };
        let (mut line, own) = serialize_line(7, SystemTime::UNIX_EPOCH, &event, hash(b"before"));
        assert_eq!(line.pop(), Some(b'\n'));
        (line, own)
    }

    #[test]
    fn line_contains_its_number_and_both_hashes() {
        let (line, own) = line("x");
        let expected = ChainLink {
            seq: 7,
            prev: hash(b"before"),
            hash: own,
            event: ChainEvent::Other,
            rejected_anchor: None,
        };
        assert_eq!(parse_line(&line), Ok(expected));
        let value: serde_json::Value = serde_json::from_slice(&line).unwrap();
        assert_eq!(value["time"], "1970-01-01T00:00:00.000000Z");
        assert_eq!(
            (&value["event"], &value["message"]),
            (&"denied".into(), &"x".into())
        );
        assert_eq!(value["hash"], own.to_string());
    }

    #[test]
    fn guest_text_stays_within_its_line() {
        let forged = "\"}\n{\"seq\":8,\"event\":\"stop\",\"hash\":\"\u{2028}\r";
        let (line, _) = line(forged);
        assert!(!line.contains(&b'\n') && !line.contains(&b'\r'));
        let value: serde_json::Value = serde_json::from_slice(&line).unwrap();
        assert_eq!(value["message"], forged);
        assert_eq!(parse_line(&line).unwrap().seq, 7);
    }

    #[test]
    fn every_changed_byte_is_noticed() {
        let (line, _) = line("text");
        for at in 0..line.len() {
            for change in [b'0', b'"', b' ', b'\\', 0xff] {
                let mut changed = line.clone();
                changed[at] = change;
                assert!(
                    changed == line || parse_line(&changed).is_err(),
                    "{at} {change}"
                );
            }
            assert!(parse_line(&line[..at]).is_err() && parse_line(&line[at + 1..]).is_err());
        }
    }

    /// Returns the state of the chain before the line that `line` returns.
    fn next() -> NextLine {
        NextLine {
            seq: 7,
            prev: hash(b"before"),
            is_start: false,
        }
    }

    #[test]
    fn every_beginning_of_a_line_can_be_the_remains_of_a_write() {
        let event = AuditEvent::Call(Box::new(crate::event::CallRecord {
            subject: crate::event::CallSubject {
                caller: "\u{e9}\"\\,\"prev\":\"\u{1}".to_owned(),
                ..Default::default()
            },
            converted: [("number", 1)].into(),
            usage: Some(toolbay_model::CallUsage {
                wall: std::time::Duration::from_micros(1_234_567),
                ..Default::default()
            }),
            ..Default::default()
        }));
        let time = SystemTime::now();
        let (call, _) = serialize_line(7, time, &event, hash(b"before"));
        let text = String::from_utf8(call.clone()).unwrap();
        assert!(text.contains("\"wall_ms\":1234.6,"), "{text}");
        let (stop, _) = serialize_line(7, time, &AuditEvent::Stop {}, hash(b"before"));
        let prev = next().prev.to_string();
        let own_start = u8::from_str_radix(&prev[..2], 16).unwrap();
        for line in [call, stop] {
            let whole = String::from_utf8(line.clone()).unwrap();
            let prev_at = whole.find(&prev).unwrap();
            for end in 0..line.len() - 1 {
                let begin = &line[..end];
                let text = String::from_utf8_lossy(begin);
                assert!(next().can_begin_with(begin), "{text}");
                let other = NextLine {
                    prev: Digest::new([!own_start; 32]),
                    ..next()
                };
                assert_eq!(other.can_begin_with(begin), end <= prev_at, "{text}");
                let seq = NextLine { seq: 17, ..next() };
                assert!(end < 8 || !seq.can_begin_with(begin), "{text}");
                let start = NextLine {
                    is_start: true,
                    ..next()
                };
                assert!(end < 60 || !start.can_begin_with(begin), "{text}");
            }
        }
    }

    #[test]
    fn other_bytes_are_not_the_remains_of_a_write() {
        let (line, _) = line("text");
        let text = String::from_utf8(line).unwrap();
        let hash_at = text.find(",\"hash\"").unwrap();
        let prev_at = text.find(",\"prev\"").unwrap();
        let whole = format!("{}}}", &text[..hash_at]);
        let unsigned = format!("{}}}", &text[..prev_at]);
        let wrong = format!("{},\"hash\":\"0", &text[..hash_at - 1]);
        let long = format!("{}{}", &text[..prev_at - 1], "x".repeat(MAX_LINE_BYTES));
        for bytes in [
            whole.as_str(),
            &unsigned,
            &wrong,
            &long,
            &text,
            &text[1..40],
            "x",
            "\0",
            "{\"seq\":7,\"event\":\"",
            "{\"seq\":7,\"time\":\"yesterday",
            "{\"seq\": 7",
            "[",
        ] {
            assert!(!next().can_begin_with(bytes.as_bytes()), "{bytes}");
        }
    }

    #[test]
    fn line_with_a_duplicate_field_is_rejected() {
        let (line, _) = line("text");
        let mut content = split_line(&line).unwrap().0.to_vec();
        content.extend_from_slice(br#","seq":8"#);
        let own = hash(&content);
        let line = [
            &content,
            HASH_PREFIX,
            own.to_string().as_bytes(),
            LINE_SUFFIX,
        ]
        .concat();
        assert!(parse_line(&line).is_err());
    }
}
