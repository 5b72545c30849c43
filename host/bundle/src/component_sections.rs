//! Metadata in the custom sections of a component or core module.
//!
//! Most of it is in the sections that the component tools define (`version`, `authors`, `licenses`,
//! …), so that `wasm-tools metadata show` and registries show it too. The section
//! [`MANIFEST_SECTION`] has the rest.

use std::ops::Range;

use toml::Table;
use wasmparser::BinaryReader;

use crate::plugin_manifest::PluginManifest;

/// The section with what has no standard section: the icon and the proposed grant, in TOML.
const MANIFEST_SECTION: &str = "toolbay:manifest";

/// Keys of the standard sections, and the names of the sections.
const STANDARD_SECTIONS: [(&str, &str); 7] = [
    ("version", "version"),
    ("summary", "description"),
    ("authors", "authors"),
    ("license", "licenses"),
    ("homepage", "homepage"),
    ("source", "source"),
    ("revision", "revision"),
];

/// Length of the magic number and the version.
const HEADER_BYTES: usize = 8;

/// The id of a custom section, in components and in core modules.
const CUSTOM_SECTION_ID: u8 = 0;

/// Maximum size of a section that is read, in bytes.
const MAX_SECTION_BYTES: usize = 64 << 10;

/// Returns the metadata of a component or core module, with remarks about sections that cannot be
/// read. Sections of modules and components inside it do not count. If a section occurs twice, the
/// last one counts.
pub fn read_manifest(wasm: &[u8]) -> (PluginManifest, Vec<String>) {
    let mut remarks = Vec::new();
    let mut manifest = PluginManifest::default();
    for section in custom_sections(wasm) {
        let data = wasm.get(section.data.clone()).unwrap_or_default();
        if section.name == MANIFEST_SECTION {
            match parse_section(data) {
                Ok(rest) => {
                    manifest.icon = rest.icon;
                    manifest.proposed_grant = rest.proposed_grant;
                }
                Err(why) => {
                    (manifest.icon, manifest.proposed_grant) = (None, None);
                    remarks.push(format!("its section {MANIFEST_SECTION} is ignored: {why}"));
                }
            }
            continue;
        }
        let standard = STANDARD_SECTIONS
            .iter()
            .find(|(_, name)| *name == section.name);
        let Some((key, name)) = standard else {
            continue;
        };
        match str::from_utf8(data) {
            Ok(text) if data.len() <= MAX_SECTION_BYTES => manifest.set_text(key, text),
            _ => remarks.push(format!(
                "its section {name} is ignored: it is not UTF-8, or larger than {MAX_SECTION_BYTES} bytes"
            )),
        }
    }
    (manifest, remarks)
}

/// Returns `wasm` with the metadata in its custom sections. Sections of keys that are not set stay,
/// so that those of other tools are kept; the section of the proposed grant is always replaced.
/// Writing the same metadata again returns the same bytes.
///
/// # Errors
///
/// `wasm` is not a component or core module, or the proposed grant is too large.
pub fn write_manifest(wasm: &[u8], manifest: &PluginManifest) -> Result<Vec<u8>, String> {
    if !wasm.starts_with(b"\0asm") || wasm.len() < HEADER_BYTES {
        return Err("it is not a WebAssembly file".to_owned());
    }
    let mut new_sections: Vec<(&str, String)> = STANDARD_SECTIONS
        .into_iter()
        .filter_map(|(key, name)| {
            let (_, text) = manifest.texts().find(|(known, _)| *known == key)?;
            Some((name, text.to_owned()))
        })
        .collect();
    let rest = PluginManifest {
        icon: manifest.icon.clone(),
        proposed_grant: manifest.proposed_grant.clone(),
        ..PluginManifest::default()
    };
    if !rest.is_empty() {
        let text = rest.to_table().to_string();
        if text.len() > MAX_SECTION_BYTES {
            return Err(format!(
                "the proposed grant is larger than {MAX_SECTION_BYTES} bytes"
            ));
        }
        new_sections.push((MANIFEST_SECTION, text));
    }
    let is_replaced = |name: &str| {
        name == MANIFEST_SECTION || new_sections.iter().any(|(replaced, _)| *replaced == name)
    };
    let mut output = Vec::with_capacity(wasm.len() + 1024);
    let mut copied = 0;
    for section in custom_sections(wasm) {
        if is_replaced(&section.name) {
            output.extend_from_slice(wasm.get(copied..section.all.start).unwrap_or_default());
            copied = section.all.end;
        }
    }
    output.extend_from_slice(wasm.get(copied..).unwrap_or_default());
    for (name, text) in new_sections {
        append_section(&mut output, name, &text);
    }
    Ok(output)
}

/// A custom section of the outermost component or module.
struct CustomSection {
    name: String,
    /// The whole section, with its id and size.
    all: Range<usize>,
    /// Its content, without the name.
    data: Range<usize>,
}

/// Returns the custom sections of the outermost component or module, up to the first section that
/// is malformed.
fn custom_sections(wasm: &[u8]) -> Vec<CustomSection> {
    let mut sections = Vec::new();
    let mut position = HEADER_BYTES;
    while let Some((section, end)) = read_section(wasm, position) {
        sections.extend(section);
        position = end;
    }
    sections
}

/// Reads the section at `start`. Returns it if it is a custom section, and the end of the section.
fn read_section(wasm: &[u8], start: usize) -> Option<(Option<CustomSection>, usize)> {
    let mut reader = BinaryReader::new(wasm.get(start..)?, 0);
    let id = reader.read_u8().ok()?;
    let size = usize::try_from(reader.read_var_u32().ok()?).ok()?;
    let content = start + reader.current_position();
    let end = content.checked_add(size)?;
    let mut reader = BinaryReader::new(wasm.get(content..end)?, 0);
    if id != CUSTOM_SECTION_ID {
        return Some((None, end));
    }
    let section = reader.read_string().ok().map(|name| CustomSection {
        name: name.to_owned(),
        all: start..end,
        data: content + reader.current_position()..end,
    });
    Some((section, end))
}

fn parse_section(data: &[u8]) -> Result<PluginManifest, String> {
    if data.len() > MAX_SECTION_BYTES {
        return Err(format!("it is larger than {MAX_SECTION_BYTES} bytes"));
    }
    let text = str::from_utf8(data).map_err(|_| "it is not UTF-8".to_owned())?;
    let table: Table = toml::from_str(text).map_err(|_| "it is not TOML".to_owned())?;
    let known = |key: &String| matches!(key.as_str(), "icon" | "proposed_grant");
    if !table.keys().all(known) {
        return Err("it has keys that this version does not know".to_owned());
    }
    PluginManifest::from_table(table)
}

fn append_section(output: &mut Vec<u8>, name: &str, text: &str) {
    let mut content = Vec::new();
    append_length(&mut content, name.len());
    content.extend_from_slice(name.as_bytes());
    content.extend_from_slice(text.as_bytes());
    output.push(CUSTOM_SECTION_ID);
    append_length(output, content.len());
    output.extend_from_slice(&content);
}

/// Appends an unsigned LEB128 number.
fn append_length(output: &mut Vec<u8>, mut length: usize) {
    loop {
        let low = u8::try_from(length & 0x7f).unwrap_or_default();
        length >>= 7;
        if length == 0 {
            output.push(low);
            return;
        }
        output.push(low | 0x80);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proposed_grant::ProposedGrant;

    const COMPONENT: &[u8] = b"\0asm\x0d\0\x01\0";

    fn with_section(name: &str, text: &str) -> Vec<u8> {
        let mut wasm = COMPONENT.to_vec();
        append_section(&mut wasm, name, text);
        wasm
    }

    fn manifest() -> PluginManifest {
        let proposal = "permissions.tcp = [\"a.example:1\"]\nreasons.tcp = \"x\"";
        PluginManifest {
            version: Some("1.0.0".to_owned()),
            summary: Some("Forecasts".repeat(50)),
            authors: Some("Ada".to_owned()),
            license: Some("MIT".to_owned()),
            icon: Some("https://example.com/a.png".to_owned()),
            proposed_grant: Some(
                ProposedGrant::from_table(toml::from_str(proposal).unwrap()).unwrap(),
            ),
            ..PluginManifest::default()
        }
    }

    #[test]
    fn what_is_written_is_read_again() {
        let written = write_manifest(COMPONENT, &manifest()).unwrap();
        assert_eq!(read_manifest(&written), (manifest(), Vec::new()));
        assert_eq!(
            write_manifest(&written, &manifest()).unwrap(),
            written,
            "again"
        );
        let sections = custom_sections(&written);
        let names: Vec<&str> = sections.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(
            names,
            [
                "version",
                "description",
                "authors",
                "licenses",
                MANIFEST_SECTION
            ]
        );
    }

    #[test]
    fn sections_of_other_tools_stay_and_a_proposal_is_replaced() {
        let mut wasm = with_section("revision", "abc123");
        append_section(&mut wasm, "producers", "\0");
        append_section(&mut wasm, MANIFEST_SECTION, "icon = \"https://a.example\"");
        append_section(&mut wasm, "version", "0.1.0");
        let written = write_manifest(&wasm, &PluginManifest::default()).unwrap();
        let read = read_manifest(&written).0;
        assert_eq!(
            (read.icon, read.revision.as_deref(), read.version.as_deref()),
            (None, Some("abc123"), Some("0.1.0"))
        );
        let written = write_manifest(&wasm, &manifest()).unwrap();
        assert_eq!(
            read_manifest(&written).0,
            PluginManifest {
                revision: Some("abc123".to_owned()),
                ..manifest()
            }
        );
    }

    #[test]
    fn sections_of_strangers_are_bounded() {
        let large = "#".repeat(MAX_SECTION_BYTES + 1);
        let deep = format!("a = {}", "[".repeat(50_000));
        for text in [
            &large,
            &deep,
            "a",
            "a = 1",
            "icon = 1",
            "proposed_grant = 1",
        ] {
            let (manifest, remarks) = read_manifest(&with_section(MANIFEST_SECTION, text));
            assert!(manifest.is_empty() && remarks.len() == 1, "{remarks:?}");
        }
        let (manifest, remarks) = read_manifest(&with_section("authors", &large));
        assert!(manifest.is_empty() && remarks.len() == 1, "{remarks:?}");
        // Truncated and malformed files.
        let written = write_manifest(COMPONENT, &self::manifest()).unwrap();
        for end in 0..written.len() {
            read_manifest(&written[..end]);
        }
        assert!(write_manifest(b"\0as", &self::manifest()).is_err());
        read_manifest(
            &[
                b"\0asm\x0d\0\x01\0\0\xff\xff\xff\xff\x0f".as_slice(),
                &[0; 9],
            ]
            .concat(),
        );
    }
}
