//! Lays out the content of a component's memory according to the canonical ABI.

use std::fmt::Write as _;

use super::tool::Tool;

/// Address of the data. Address zero stays unused.
const BASE: usize = 1024;

/// Returns the text of a memory that contains `data`, and of an allocator that never frees.
pub(super) fn memory(data: &[u8]) -> String {
    let mut literal = String::new();
    for byte in data {
        if byte.is_ascii_alphanumeric() {
            literal.push(char::from(*byte));
        } else {
            let _ = write!(literal, "\\{byte:02x}");
        }
    }
    let end = BASE + data.len();
    let pages = end / 65536 + 1;
    format!(
        r#"(memory (export "memory") {pages})
    (data (i32.const {BASE}) "{literal}")
    (global $next (mut i32) (i32.const {end}))
    (func $realloc (export "realloc") (param i32 i32 i32 i32) (result i32) (local $at i32)
      (local.set $at (i32.and (i32.add (global.get $next) (i32.const 15)) (i32.const -16)))
      (global.set $next (i32.add (local.get $at) (local.get 3)))
      (block $fits (loop $more
        (br_if $fits (i32.le_u (global.get $next) (i32.shl (memory.size) (i32.const 16))))
        (if (i32.eq (memory.grow (i32.const 1)) (i32.const -1)) (then unreachable))
        (br $more)))
      (local.get $at))"#
    )
}

/// The content of the memory, starting at [`BASE`].
#[derive(Default)]
pub(super) struct Data {
    pub(super) bytes: Vec<u8>,
}

impl Data {
    /// Adds bytes at an address that is aligned for every type. Returns the address.
    pub(super) fn put(&mut self, bytes: &[u8]) -> usize {
        self.bytes.resize(self.bytes.len().next_multiple_of(8), 0);
        let at = BASE + self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        at
    }

    /// Encodes a `string`.
    fn string(&mut self, text: &str) -> Vec<u8> {
        words(&[self.put(text.as_bytes()), text.len()])
    }

    /// Encodes an `option<string>`.
    fn optional(&mut self, text: Option<&str>) -> Vec<u8> {
        match text {
            Some(text) => [words(&[1]), self.string(text)].concat(),
            None => words(&[0, 0, 0]),
        }
    }

    /// Encodes a `tool-definition`: 84 bytes.
    pub(super) fn definition(&mut self, tool: &Tool) -> Vec<u8> {
        let icons = match &tool.icon {
            Some(src) => {
                let icon = [self.string(src), words(&[0, 0, 0, 0, 0, 0])].concat();
                words(&[self.put(&icon), 1])
            }
            None => words(&[0, 0]),
        };
        let annotations = match tool.read_only {
            // `some`, with `read-only` and three absent members.
            Some(yes) => [1, 1, u8::from(yes), 0, 0, 0, 0, 0, 0, 0, 0, 0],
            None => [0; 12],
        };
        [
            self.string(&tool.name),
            self.optional(tool.title.as_deref()),
            self.optional(tool.description.as_deref()),
            self.string(&tool.input),
            self.optional(tool.output.as_deref()),
            annotations.to_vec(),
            icons,
            self.optional(tool.meta.as_deref()),
        ]
        .concat()
    }

    /// Adds a list. Returns the address of the pair of the list's address and length.
    pub(super) fn list<T>(&mut self, items: &[T], mut item: impl FnMut(&mut Self, &T) -> Vec<u8>) -> usize {
        let entries: Vec<u8> = items.iter().flat_map(|entry| item(self, entry)).collect();
        let list = words(&[self.put(&entries), items.len()]);
        self.put(&list)
    }

    /// Encodes a `prompt-definition` of contract 0.2.0 without arguments: 60 bytes.
    pub(super) fn prompt(&mut self, name: &str, description: &str) -> Vec<u8> {
        let texts = [self.string(name), self.optional(None), self.optional(Some(description))].concat();
        padded(texts, 60)
    }

    /// Encodes a `resource-definition` of contract 0.2.0 that has only a URI and a name: 128 bytes.
    pub(super) fn resource(&mut self, uri: &str, name: &str) -> Vec<u8> {
        padded([self.string(uri), self.string(name)].concat(), 128)
    }

    /// Encodes a `resource-template` of contract 0.2.0 that has only a URI template and a name: 104
    /// bytes.
    pub(super) fn template(&mut self, uri: &str, name: &str) -> Vec<u8> {
        padded([self.string(uri), self.string(name)].concat(), 104)
    }

    /// Encodes a `result<output, failure>` with one text block.
    pub(super) fn output(&mut self, answer: &str, structured: Option<&str>) -> Vec<u8> {
        // `kind` 0 is text; every other member of the 128 bytes is absent.
        let mut content = [words(&[0]), self.optional(Some(answer))].concat();
        content.resize(128, 0);
        let content = self.put(&content);
        [words(&[0, content, 1]), self.optional(structured), self.optional(None)].concat()
    }
}

/// Pads a record with zeros to `size` bytes, so that the other members are absent or empty.
fn padded(mut record: Vec<u8>, size: usize) -> Vec<u8> {
    record.resize(size, 0);
    record
}

/// Encodes 32-bit words.
pub(super) fn words(values: &[usize]) -> Vec<u8> {
    let word = |value: &usize| u32::try_from(*value).unwrap_or(u32::MAX).to_le_bytes();
    values.iter().flat_map(word).collect()
}
