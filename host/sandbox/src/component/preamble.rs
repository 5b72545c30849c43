//! Check of the header and sections of a WebAssembly file. It only distinguishes an incomplete file
//! from one that is not a component.

use crate::component::prepare_error::PrepareError;

/// Checks that a file is complete and is WebAssembly, without compiling it.
pub(crate) fn check_preamble(bytes: &[u8]) -> Result<(), PrepareError> {
    const MAGIC: &[u8] = b"\0asm";
    if !bytes.starts_with(MAGIC) {
        return Err(if MAGIC.starts_with(bytes) {
            PrepareError::Incomplete
        } else {
            let start: String = bytes.iter().take(8).map(|b| b.escape_ascii().to_string()).collect();
            PrepareError::NotWasm(format!("\"{start}\""))
        });
    }
    match bytes.get(4..8) {
        // A core module has version 1 and layer 0. A component has version 13 and layer 1. Both
        // consist of sections in the same format.
        Some(_) if sections_are_complete(bytes.get(8..).unwrap_or_default()) => Ok(()),
        _ => Err(PrepareError::Incomplete),
    }
}

/// Returns whether every section is complete: an id, a LEB128 length, and as many bytes.
fn sections_are_complete(mut rest: &[u8]) -> bool {
    while let Some((_id, tail)) = rest.split_first() {
        let mut length: u64 = 0;
        let mut shift = 0;
        let mut after = tail;
        loop {
            let Some((byte, tail)) = after.split_first() else { return false };
            length |= u64::from(byte & 0x7f) << shift;
            after = tail;
            shift += 7;
            if byte & 0x80 == 0 {
                break;
            }
            if shift > 28 {
                // The length is longer than a 32-bit LEB128 can be. The validator reports it.
                return true;
            }
        }
        let Some(next) = usize::try_from(length).ok().and_then(|length| after.get(length..)) else { return false };
        rest = next;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(bytes: &[u8]) -> PrepareError {
        check_preamble(bytes).unwrap_err()
    }

    #[test]
    fn files_that_are_not_components_are_described() {
        assert_eq!(refused(b""), PrepareError::Incomplete);
        assert_eq!(refused(b"\0as"), PrepareError::Incomplete);
        assert_eq!(refused(b"\0asm\x0d\0"), PrepareError::Incomplete);
        assert_eq!(
            refused(b"hello, world").to_string(),
            "not a WebAssembly file: it starts with \"hello, w\", not with \"\\0asm\""
        );
    }

    #[test]
    fn every_cut_inside_a_section_is_incomplete() {
        // Two custom sections, one with a two-byte length.
        let mut file = b"\0asm\x0d\0\x01\0".to_vec();
        file.extend([0, 3, 1, b'a', b'b']);
        file.extend([0, 0x85, 0x01, 1, b'c']);
        file.extend(std::iter::repeat_n(0, 0x85 - 2));
        assert!(check_preamble(&file).is_ok());
        let boundaries = [8, 13, file.len()];
        for cut in 8..file.len() {
            assert_eq!(check_preamble(&file[..cut]).is_ok(), boundaries.contains(&cut), "cut at {cut}");
        }
    }
}
