//! Incremental parser of server-sent events.

/// Splits a stream of events into the data of each event (WHATWG HTML, "Server-sent events").
/// Buffers the event that is incomplete.
#[derive(Debug, Default)]
pub(crate) struct EventSplitter {
    /// The incomplete line.
    line: Vec<u8>,
    /// Data of the incomplete event.
    data: Option<String>,
    /// True if the event's type is one that carries no message.
    is_ignored: bool,
    /// True if the last byte was a carriage return: a line feed that follows it does not end
    /// another line.
    after_carriage_return: bool,
}

impl EventSplitter {
    /// Adds bytes. Returns the data of the events that they complete.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Vec<String> {
        let mut completed = Vec::new();
        for &byte in bytes {
            let follows_carriage_return =
                std::mem::replace(&mut self.after_carriage_return, byte == b'\r');
            match byte {
                b'\n' if follows_carriage_return => {}
                b'\n' | b'\r' => completed.extend(self.end_line()),
                byte => self.line.push(byte),
            }
        }
        completed
    }

    /// Ends the current line. Returns the data of the event that it completes, if any.
    fn end_line(&mut self) -> Option<String> {
        let line = String::from_utf8_lossy(&std::mem::take(&mut self.line)).into_owned();
        let line = line.strip_prefix('\u{feff}').unwrap_or(&line);
        if line.is_empty() {
            let is_ignored = std::mem::take(&mut self.is_ignored);
            return self.data.take().filter(|_| !is_ignored);
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => match &mut self.data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(value);
                }
                None => self.data = Some(value.to_owned()),
            },
            "event" => self.is_ignored = !matches!(value, "" | "message"),
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str, piece: usize) -> Vec<String> {
        let mut events = EventSplitter::default();
        text.as_bytes()
            .chunks(piece)
            .flat_map(|bytes| events.push(bytes))
            .collect()
    }

    #[test]
    fn events_are_split_regardless_of_chunk_boundaries() {
        let text = "\u{feff}id: 1\ndata:\n\n: comment\r\ndata: {\"a\":\r\ndata: \"ü\"}\r\n\r\nevent: message\rdata: b\r\rdata: lost";
        for piece in 1..text.len() {
            assert_eq!(all(text, piece), ["", "{\"a\":\n\"ü\"}", "b"], "{piece}");
        }
    }

    #[test]
    fn events_of_other_types_or_without_data_are_ignored() {
        assert_eq!(
            all("event: endpoint\ndata: /x\n\nevent: ping\n\ndata: a\n\n", 7),
            ["a"]
        );
        assert_eq!(all("retry: 1\n\n\n\n", 3), Vec::<String>::new());
    }
}
