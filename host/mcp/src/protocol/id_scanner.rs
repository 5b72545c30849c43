//! Finds the id of a message that cannot be parsed, so that its error reaches the request that
//! waits for it.

use crate::protocol::request_id::{MAX_ID_BYTES, RequestId};

/// Maximum nesting of a message that is scanned. No message that nests more deeply is valid.
const MAX_LEVELS: usize = 1 << 10;

/// Maximum length of a retained token, in bytes: one more than that of an id, so that a truncated
/// token is still too long to be an id.
const MAX_TOKEN_BYTES: usize = MAX_ID_BYTES + 1;

/// A scan for the member `id` of a message, in one pass over its parts. It stores neither the
/// message nor anything else that grows with it.
///
/// Up to the id, the scan checks the order of the JSON tokens, so that an `id` in a string or in a
/// nested object is not mistaken for that of the message. It does not check the tokens: numbers
/// such as `NaN` or `01`, and anything in strings, are accepted. It ends at the first token in a
/// wrong place, because what follows could be part of a text whose end is not known.
#[derive(Debug, Default)]
pub(crate) struct IdScanner {
    state: ScanState,
    /// The objects and lists around the current token.
    containers: Vec<Container>,
    /// If set, the next byte of the current string is escaped.
    follows_backslash: bool,
    /// If set, the current member of the message is its id.
    is_in_id: bool,
    /// If set, the current token is retained.
    retains_token: bool,
    token: Vec<u8>,
    /// The first member `id`, if its value is a valid id.
    first_id: Option<RequestId>,
    /// Number of members `id`.
    id_count: usize,
}

/// The token that is expected or being read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ScanState {
    /// The start of the message.
    #[default]
    Message,
    /// The name of a member.
    Name,
    /// The colon after a name.
    Colon,
    /// A value.
    Value,
    /// The rest of a string that is a name.
    NameText,
    /// The rest of a string that is a value.
    Text,
    /// The rest of a number or word.
    Word,
    /// A comma or the end of the object or list.
    Comma,
    /// No token: the scan has ended.
    End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Container {
    Object,
    List,
}

impl IdScanner {
    /// Scans the next part of the message.
    pub(crate) fn scan(&mut self, mut part: &[u8]) {
        while let Some((byte, rest)) = part.split_first() {
            part = match self.state {
                ScanState::End => return,
                ScanState::NameText | ScanState::Text => self.scan_text(part),
                _ => {
                    self.scan_byte(*byte);
                    rest
                }
            };
        }
    }

    /// Returns whether the value of [`first_id`](Self::first_id) is final.
    pub(crate) fn is_decided(&self) -> bool {
        self.id_count > 0 || self.state == ScanState::End
    }

    /// Returns the first member `id`, if it was found and is valid.
    pub(crate) fn first_id(self) -> Option<RequestId> {
        self.first_id
    }

    /// Returns the only member `id`, if it was found and is valid.
    pub(crate) fn only_id(self) -> Option<RequestId> {
        self.first_id.filter(|_| self.id_count == 1)
    }

    fn scan_byte(&mut self, byte: u8) {
        if self.state == ScanState::Word {
            if !is_delimiter(byte) {
                return self.retain(&[byte]);
            }
            self.end_value();
        }
        if byte.is_ascii_whitespace() {
            return;
        }
        let container = self.containers.last().copied();
        match (self.state, byte) {
            // A byte order mark may come before the message.
            (ScanState::Message, 0xef | 0xbb | 0xbf) => {}
            (ScanState::Message | ScanState::Value, b'{') => {
                self.open(Container::Object, ScanState::Name);
            }
            (ScanState::Value, b'[') => self.open(Container::List, ScanState::Value),
            (ScanState::Name, b'"') => self.begin(ScanState::NameText, byte),
            (ScanState::Value, b'"') => self.begin(ScanState::Text, byte),
            (ScanState::Colon, b':') => self.state = ScanState::Value,
            (ScanState::Comma, b',') => {
                let is_object = container == Some(Container::Object);
                self.state = if is_object {
                    ScanState::Name
                } else {
                    ScanState::Value
                };
            }
            (ScanState::Name | ScanState::Comma, b'}') if container == Some(Container::Object) => {
                self.close();
            }
            (ScanState::Value | ScanState::Comma, b']') if container == Some(Container::List) => {
                self.close();
            }
            (ScanState::Value, byte) if !is_delimiter(byte) => self.begin(ScanState::Word, byte),
            _ => self.state = ScanState::End,
        }
    }

    /// Scans the rest of a string, and returns what follows it.
    fn scan_text<'p>(&mut self, part: &'p [u8]) -> &'p [u8] {
        let is_escaped = std::mem::take(&mut self.follows_backslash);
        let end = if is_escaped {
            Some(0)
        } else {
            memchr::memchr2(b'"', b'\\', part)
        };
        let length = end.map_or(part.len(), |end| end + 1);
        let (text, rest) = part.split_at_checked(length).unwrap_or((part, &[]));
        self.retain(text);
        match text.last() {
            _ if is_escaped || end.is_none() => {}
            Some(b'\\') => self.follows_backslash = true,
            _ => self.end_text(),
        }
        rest
    }

    fn open(&mut self, container: Container, next: ScanState) {
        self.token.clear();
        if self.containers.len() < MAX_LEVELS {
            self.containers.push(container);
            self.state = next;
        } else {
            self.state = ScanState::End;
        }
    }

    fn close(&mut self) {
        self.containers.pop();
        if self.containers.is_empty() {
            self.state = ScanState::End;
        } else {
            self.token.clear();
            self.end_value();
        }
    }

    /// Begins a string or a word.
    fn begin(&mut self, state: ScanState, byte: u8) {
        self.state = state;
        // Only a token of the message itself, and not of a value within it, can be the id.
        self.retains_token =
            self.containers.len() == 1 && (state == ScanState::NameText || self.is_in_id);
        self.token.clear();
        self.retain(&[byte]);
    }

    fn retain(&mut self, bytes: &[u8]) {
        if self.retains_token {
            let remaining = MAX_TOKEN_BYTES.saturating_sub(self.token.len());
            self.token
                .extend_from_slice(bytes.get(..remaining).unwrap_or(bytes));
        }
    }

    fn end_text(&mut self) {
        if self.state == ScanState::Text {
            return self.end_value();
        }
        self.state = ScanState::Colon;
        if self.containers.len() == 1 {
            // A name can be written with escapes.
            let is_escaped_id =
                || serde_json::from_slice::<String>(&self.token).is_ok_and(|name| name == "id");
            self.is_in_id =
                self.token == br#""id""# || (self.token.contains(&b'\\') && is_escaped_id());
        }
    }

    fn end_value(&mut self) {
        self.state = ScanState::Comma;
        if self.containers.len() == 1 && self.is_in_id {
            if self.id_count == 0 {
                self.first_id = std::str::from_utf8(&self.token)
                    .ok()
                    .and_then(RequestId::parse);
            }
            self.id_count += 1;
        }
    }
}

/// Returns whether a number or word ends before this byte.
fn is_delimiter(byte: u8) -> bool {
    byte.is_ascii_whitespace() || matches!(byte, b',' | b':' | b'[' | b']' | b'{' | b'}' | b'"')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the only and the first id of a message that arrives in pieces of `step` bytes.
    fn ids(message: &[u8], step: usize) -> [Option<String>; 2] {
        let scan = || {
            let mut scanner = IdScanner::default();
            message.chunks(step).for_each(|piece| scanner.scan(piece));
            scanner
        };
        [scan().only_id(), scan().first_id()].map(|id| id.map(|id| id.to_string()))
    }

    fn id(message: &[u8]) -> Option<String> {
        let [only, _] = ids(message, 1);
        for step in [2, 3, 7, 1_000_000] {
            assert_eq!(
                ids(message, step)[0],
                only,
                "{}",
                String::from_utf8_lossy(message)
            );
        }
        only
    }

    #[test]
    fn the_id_is_found_in_almost_valid_json() {
        for message in [
            r#"{"jsonrpc":"2.0","id":7,"method":"a","params":{"a":NaN,"b":[-Infinity,01,None]}}"#,
            r#"{"method":"a","params":{"id":1,"a":NaN,"x":["id",{"id":2}]},"jsonrpc":"2.0","id":7}"#,
            r#"{"params":{"a":"\",\"id\":1,\\"},"id":7}"#,
            r#"{"params":"\ud800 \x","id":7}"#,
            "{\"params\":\"\t\u{0}\n\",\"id\": 7\r\n}",
            r#"{"id":7,"method":"a","params":{"a":"cut off"#,
            r#"{"id":7,"#,
            r#"{"id":7,}"#,
            r#"{"\u0069d":7}{"id":8}"#,
            "\u{feff} {\"id\" : 7 , \"x\" y",
            r#"{"id":7,"params":{]},"id":8}"#,
            r#"{"a":{},"b":[],"c":[[]],"id":7}"#,
        ] {
            assert_eq!(id(message.as_bytes()).as_deref(), Some("7"), "{message}");
        }
        assert_eq!(
            id(b"{\"params\":\"\xff\",\"id\":\"\\u00e4\"}").as_deref(),
            Some("ä")
        );
        assert_eq!(id(br#"{"id":1e2,"params":NaN}"#).as_deref(), Some("1e2"));
    }

    #[test]
    fn no_other_member_is_mistaken_for_the_id() {
        for message in [
            "",
            "id",
            "[{\"id\":7}",
            r#""id":7}"#,
            // A number may continue after the end of the text.
            r#"{"id":7"#,
            r#"{"id":"7"#,
            r#"{"id":07,"x":NaN}"#,
            r#"{"id":NaN}"#,
            r#"{"id":null,"x":NaN}"#,
            r#"{"id":{"id":7}}"#,
            r#"{"id":[7],"x":NaN}"#,
            r#"{"id":7,"id":8,"x":NaN}"#,
            r#"{"params":{"id":7}"#,
            r#"{"params":["id",7],"x":{"id":8}}"#,
            r#"{"params":"\",\"id\":7"}"#,
            // What follows a mistake in the order of tokens could be part of a text.
            r#"{"text":"he said "a", "id":7}"#,
            r#"{"text":["a"},"id":7}"#,
            r#"{"text" "a","id":7}"#,
            r#"{"text":"a" "id":7}"#,
        ] {
            assert_eq!(id(message.as_bytes()), None, "{message}");
        }
        assert_eq!(ids(br#"{"id":7,"id":8}"#, 100)[1].as_deref(), Some("7"));
    }

    #[test]
    fn a_scan_uses_bounded_memory() {
        let mut scanner = IdScanner::default();
        scanner.scan(br#"{"params":{"a":"#);
        scanner.scan(&vec![b'['; 1 << 20]);
        assert!(scanner.is_decided() && scanner.containers.len() <= MAX_LEVELS);
        for start in [r#"{""#, r#"{"id":""#, r#"{"id":1"#, r#"{"x":""#] {
            let mut scanner = IdScanner::default();
            scanner.scan(start.as_bytes());
            scanner.scan(&vec![b'1'; 1 << 20]);
            assert!(scanner.token.capacity() <= 4 * MAX_TOKEN_BYTES, "{start}");
            scanner.scan(br#"","x":0"#);
            assert_eq!(scanner.first_id(), None, "{start}");
        }
    }
}
