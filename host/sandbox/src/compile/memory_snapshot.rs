//! Snapshots of initialized instances, which are sent to the child that writes them into the
//! component.

use std::collections::BTreeMap;

/// The value of a memory or a global.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SnapshotValue {
    /// All bytes of a linear memory.
    Memory(Vec<u8>),
    /// A global of type `i32`.
    I32(i32),
    /// A global of type `i64`.
    I64(i64),
    /// The bits of a global of type `f32`.
    F32(u32),
    /// The bits of a global of type `f64`.
    F64(u64),
}

/// All memories and globals, by the name of the function that exposes them.
pub(crate) type MemorySnapshot = BTreeMap<String, SnapshotValue>;

/// Encodes a snapshot. Each entry consists of its kind, and the lengths and bytes of its name and
/// value.
pub(crate) fn encode(image: &MemorySnapshot) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (name, value) in image {
        let fixed: [u8; 8];
        let (kind, value): (u8, &[u8]) = match value {
            SnapshotValue::Memory(memory) => (0, memory),
            SnapshotValue::I32(value) => (1, {
                fixed = i64::from(*value).to_le_bytes();
                &fixed
            }),
            SnapshotValue::I64(value) => (2, {
                fixed = value.to_le_bytes();
                &fixed
            }),
            SnapshotValue::F32(bits) => (3, {
                fixed = u64::from(*bits).to_le_bytes();
                &fixed
            }),
            SnapshotValue::F64(bits) => (4, {
                fixed = bits.to_le_bytes();
                &fixed
            }),
        };
        bytes.push(kind);
        for part in [name.as_bytes(), value] {
            bytes.extend((part.len() as u64).to_le_bytes());
            bytes.extend(part);
        }
    }
    bytes
}

/// Decodes a snapshot. Returns `None` if the bytes are malformed.
pub(crate) fn decode(mut bytes: &[u8]) -> Option<MemorySnapshot> {
    let mut image = MemorySnapshot::new();
    while let Some((kind, rest)) = bytes.split_first() {
        let (name, rest) = read_field(rest)?;
        let (value, rest) = read_field(rest)?;
        let number = || value.try_into().ok().map(u64::from_le_bytes);
        let value = match kind {
            0 => SnapshotValue::Memory(value.to_vec()),
            1 => SnapshotValue::I32(i32::try_from(number()?.cast_signed()).ok()?),
            2 => SnapshotValue::I64(number()?.cast_signed()),
            3 => SnapshotValue::F32(u32::try_from(number()?).ok()?),
            4 => SnapshotValue::F64(number()?),
            _ => return None,
        };
        image.insert(std::str::from_utf8(name).ok()?.to_owned(), value);
        bytes = rest;
    }
    Some(image)
}

fn read_field(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk()?;
    rest.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_is_decoded_as_it_was_encoded() {
        let entries = [
            ("memory0", SnapshotValue::Memory(vec![1, 2, 3])),
            ("global1", SnapshotValue::I32(-5)),
            ("global2", SnapshotValue::I64(i64::MIN)),
            ("global3", SnapshotValue::F32(f32::NAN.to_bits())),
            ("global4", SnapshotValue::F64(u64::MAX)),
        ];
        let image: MemorySnapshot = entries
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value))
            .collect();
        let bytes = encode(&image);
        assert_eq!(decode(&bytes).unwrap(), image);
        for cut in [1, 9, bytes.len() - 1] {
            assert_eq!(decode(&bytes[..cut]), None, "cut at {cut}");
        }
        assert_eq!(decode(&[]), Some(MemorySnapshot::new()));
        assert_eq!(decode(&[9; 40]), None);
    }
}
