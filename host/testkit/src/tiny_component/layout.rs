//! Lays out the content of a component's memory according to the canonical ABI.

use std::fmt::Write as _;

use super::tool::TinyTool;

/// Address of the data. Address zero stays unused.
const DATA_BASE_ADDRESS: usize = 1024;

/// Returns the text of a memory that contains `data`, and of an allocator that never frees.
pub(super) fn memory_text(data: &[u8]) -> String {
    let mut literal = String::new();
    for byte in data {
        if byte.is_ascii_alphanumeric() {
            literal.push(char::from(*byte));
        } else {
            let _ = write!(literal, "\\{byte:02x}");
        }
    }
    let end = DATA_BASE_ADDRESS + data.len();
    let pages = end / 65536 + 1;
    format!(
        r#"(memory (export "memory") {pages})
    (data (i32.const {DATA_BASE_ADDRESS}) "{literal}")
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

/// The content of the memory, starting at [`DATA_BASE_ADDRESS`].
#[derive(Default)]
pub(super) struct MemoryLayout {
    pub(super) bytes: Vec<u8>,
}

impl MemoryLayout {
    /// Adds bytes at an address that is aligned for every type. Returns the address.
    pub(super) fn write_bytes(&mut self, bytes: &[u8]) -> usize {
        self.bytes.resize(self.bytes.len().next_multiple_of(8), 0);
        let at = DATA_BASE_ADDRESS + self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        at
    }

    /// Encodes a `encode_string`.
    fn encode_string(&mut self, text: &str) -> Vec<u8> {
        encode_words(&[self.write_bytes(text.as_bytes()), text.len()])
    }

    /// Encodes an `option<string>`.
    fn encode_optional_string(&mut self, text: Option<&str>) -> Vec<u8> {
        match text {
            Some(text) => [encode_words(&[1]), self.encode_string(text)].concat(),
            None => encode_words(&[0, 0, 0]),
        }
    }

    /// Encodes a `tool-definition`: 84 bytes.
    pub(super) fn encode_tool(&mut self, tool: &TinyTool) -> Vec<u8> {
        let icons = match &tool.icon {
            Some(src) => {
                let icon = [self.encode_string(src), encode_words(&[0, 0, 0, 0, 0, 0])].concat();
                encode_words(&[self.write_bytes(&icon), 1])
            }
            None => encode_words(&[0, 0]),
        };
        let annotations = match tool.read_only {
            // `some`, with `read-only` and three absent members.
            Some(yes) => [1, 1, u8::from(yes), 0, 0, 0, 0, 0, 0, 0, 0, 0],
            None => [0; 12],
        };
        [
            self.encode_string(&tool.name),
            self.encode_optional_string(tool.title.as_deref()),
            self.encode_optional_string(tool.description.as_deref()),
            self.encode_string(&tool.input),
            self.encode_optional_string(tool.output.as_deref()),
            annotations.to_vec(),
            icons,
            self.encode_optional_string(tool.meta.as_deref()),
        ]
        .concat()
    }

    /// Adds a list. Returns the address of the pair of the list's address and length.
    pub(super) fn write_list<T>(
        &mut self,
        items: &[T],
        mut item: impl FnMut(&mut Self, &T) -> Vec<u8>,
    ) -> usize {
        let entries: Vec<u8> = items.iter().flat_map(|entry| item(self, entry)).collect();
        let list = encode_words(&[self.write_bytes(&entries), items.len()]);
        self.write_bytes(&list)
    }

    /// Encodes a `prompt-definition` of contract 0.2.0 without arguments: 60 bytes.
    pub(super) fn encode_prompt(&mut self, name: &str, description: &str) -> Vec<u8> {
        let texts = [
            self.encode_string(name),
            self.encode_optional_string(None),
            self.encode_optional_string(Some(description)),
        ]
        .concat();
        pad_record(texts, 60)
    }

    /// Encodes a `resource-definition` of contract 0.2.0 that has only a URI and a name: 128 bytes.
    pub(super) fn encode_resource(&mut self, uri: &str, name: &str) -> Vec<u8> {
        pad_record(
            [self.encode_string(uri), self.encode_string(name)].concat(),
            128,
        )
    }

    /// Encodes a `resource-template` of contract 0.2.0 that has only a URI template and a name: 104
    /// bytes.
    pub(super) fn encode_template(&mut self, uri: &str, name: &str) -> Vec<u8> {
        pad_record(
            [self.encode_string(uri), self.encode_string(name)].concat(),
            104,
        )
    }

    /// Encodes a `result<output, failure>` with one text block.
    pub(super) fn encode_output(&mut self, answer: &str, structured: Option<&str>) -> Vec<u8> {
        // `kind` 0 is text; every other member of the 128 bytes is absent.
        let mut content = [
            encode_words(&[0]),
            self.encode_optional_string(Some(answer)),
        ]
        .concat();
        content.resize(128, 0);
        let content = self.write_bytes(&content);
        [
            encode_words(&[0, content, 1]),
            self.encode_optional_string(structured),
            self.encode_optional_string(None),
        ]
        .concat()
    }
}

/// Pads a record with zeros to `size` bytes, so that the other members are absent or empty.
fn pad_record(mut record: Vec<u8>, size: usize) -> Vec<u8> {
    record.resize(size, 0);
    record
}

/// Encodes 32-bit words.
pub(super) fn encode_words(values: &[usize]) -> Vec<u8> {
    let word = |value: &usize| u32::try_from(*value).unwrap_or(u32::MAX).to_le_bytes();
    values.iter().flat_map(word).collect()
}
