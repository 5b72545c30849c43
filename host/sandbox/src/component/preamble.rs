//! Check of the header and sections of a WebAssembly file. It only distinguishes an incomplete file
//! from one that is not a component.

use crate::component::prepare_error::PrepareError;

/// Version of the binary format of core modules.
const MODULE_VERSION: u16 = 1;

/// Version of the binary format of components.
const COMPONENT_VERSION: u16 = 13;

/// Checks that a file is complete and is WebAssembly, without compiling it.
pub(crate) fn check_preamble(bytes: &[u8]) -> Result<(), PrepareError> {
    const MAGIC: &[u8] = b"\0asm";
    if !bytes.starts_with(MAGIC) {
        return Err(if bytes.is_empty() {
            PrepareError::Empty
        } else if MAGIC.starts_with(bytes) {
            PrepareError::Incomplete
        } else if let Some(kind) = recognize_other_kind(bytes) {
            PrepareError::OtherFile(kind)
        } else {
            let start: String = bytes
                .iter()
                .take(8)
                .map(|b| b.escape_ascii().to_string())
                .collect();
            PrepareError::NotWasm(format!("\"{start}\""))
        });
    }
    if let Some(&[version_low, version_high, layer_low, layer_high]) = bytes.get(4..8) {
        let version = u16::from_le_bytes([version_low, version_high]);
        let layer = u16::from_le_bytes([layer_low, layer_high]);
        if !matches!(
            (version, layer),
            (MODULE_VERSION, 0) | (COMPONENT_VERSION, 1)
        ) {
            return Err(PrepareError::Invalid(unknown_version_message(
                version, layer,
            )));
        }
    }
    match bytes.get(4..8) {
        // Core modules (layer 0) and components (layer 1) consist of sections in the same format.
        Some(_) if sections_are_complete(bytes.get(8..).unwrap_or_default()) => Ok(()),
        _ => Err(PrepareError::Incomplete),
    }
}

/// Returns the kind of a file that users put here by mistake, with advice.
fn recognize_other_kind(bytes: &[u8]) -> Option<&'static str> {
    const KINDS: [(&[u8], &str); 6] = [
        (
            b"version https://git-lfs.",
            "a Git LFS pointer, which stands for the file in a repository; run `git lfs pull` there, and copy the file \
             again",
        ),
        (
            b"(module",
            "the text form of WebAssembly (WAT); convert it with `wasm-tools parse`",
        ),
        (
            b"(component",
            "the text form of WebAssembly (WAT); convert it with `wasm-tools parse`",
        ),
        (
            b"<!DOCTYPE",
            "a web page, perhaps of a failed download; download the file again",
        ),
        (b"PK\x03\x04", "a ZIP archive; unpack it"),
        (b"\x1f\x8b", "compressed with gzip; unpack it"),
    ];
    let start = bytes.trim_ascii_start();
    KINDS
        .into_iter()
        .find(|(prefix, _)| start.starts_with(prefix))
        .map(|(_, kind)| kind)
}

/// Returns the message for a file in an unknown version of the binary format.
fn unknown_version_message(version: u16, layer: u16) -> String {
    match layer {
        0 => format!(
            "a core module in version {version} of the binary format, which is unknown; build it with a toolchain that \
             writes version {MODULE_VERSION}"
        ),
        1 => format!(
            "a component in version {version} of the binary format; build it with a toolchain that writes version \
             {COMPONENT_VERSION}"
        ),
        _ => format!(
            "neither a core module nor a component, but WebAssembly of an unknown kind (layer {layer})"
        ),
    }
}

/// Returns whether every section is complete: an id, a LEB128 length, and that many bytes.
fn sections_are_complete(mut rest: &[u8]) -> bool {
    while let Some((_id, tail)) = rest.split_first() {
        let mut length: u64 = 0;
        let mut shift = 0;
        let mut after = tail;
        loop {
            let Some((byte, tail)) = after.split_first() else {
                return false;
            };
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
        let Some(next) = usize::try_from(length)
            .ok()
            .and_then(|length| after.get(length..))
        else {
            return false;
        };
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
        assert_eq!(refused(b"").to_string(), "the file is empty");
        assert_eq!(refused(b"\0as"), PrepareError::Incomplete);
        assert_eq!(refused(b"\0asm\x0d\0"), PrepareError::Incomplete);
        assert_eq!(
            refused(b"hello, world").to_string(),
            "not a WebAssembly file: it starts with \"hello, w\", not with \"\\0asm\""
        );
    }

    #[test]
    fn files_of_other_kinds_are_named() {
        let pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 7\n";
        for (file, expected) in [
            (
                &pointer[..],
                "a Git LFS pointer, which stands for the file in a repository; run `git lfs pull`",
            ),
            (b"\n (module)", "the text form of WebAssembly"),
            (b"(component)", "the text form of WebAssembly"),
            (b"<!DOCTYPE html><html>", "a web page"),
            (b"PK\x03\x04..", "a ZIP archive"),
            (b"\x1f\x8b\x08", "compressed with gzip"),
        ] {
            let why = refused(file).to_string();
            assert!(
                why.starts_with(&format!("not a WebAssembly file, but {expected}")),
                "{why}"
            );
        }
    }

    #[test]
    fn unknown_versions_are_named() {
        for (file, expected) in [
            (
                b"\0asm\x02\0\0\0",
                "a core module in version 2 of the binary format",
            ),
            (
                b"\0asm\x0c\0\x01\0",
                "a component in version 12 of the binary format",
            ),
            (
                b"\0asm\x01\0\x02\0",
                "WebAssembly of an unknown kind (layer 2)",
            ),
        ] {
            let why = refused(file).to_string();
            assert!(why.contains(expected), "{why}");
        }
        assert!(check_preamble(b"\0asm\x01\0\0\0").is_ok());
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
            assert_eq!(
                check_preamble(&file[..cut]).is_ok(),
                boundaries.contains(&cut),
                "cut at {cut}"
            );
        }
    }
}
