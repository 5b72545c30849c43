//! The file that says where the plugins of a folder come from.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Deserialize;
use toolbay_model::Digest;
use toolbay_settings::toml_file;

use crate::entry_path::check_plugin_id;
use crate::oci_reference::parse_digest;
use crate::plugin_reference::PluginReference;

/// Name of the file in a plugin folder.
pub const PLUGINS_FILE_NAME: &str = "toolbay.plugins.toml";

/// Maximum size of the file, in bytes.
pub const MAX_PLUGINS_FILE_BYTES: u64 = 1 << 20;

/// Version of the format.
const FORMAT_VERSION: u32 = 1;

/// First lines of the file.
const HEADER: &str = "\
# Where the plugins in this folder come from. `toolbay add`, `update` and `remove` write this file,
# and `toolbay sync` gets what it names. To add a plugin by hand, write a table with its reference;
# the next sync pins it. Comments are not kept.
";

/// The plugins of a folder, with the references that they come from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PluginsFile {
    /// The plugins, by ID.
    pub plugins: BTreeMap<String, PluginEntry>,
}

/// Where a plugin comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginEntry {
    /// The reference that a person chose: a URL, or an artifact of a registry. Not a file.
    pub reference: PluginReference,
    /// The version in use; `None` until one was fetched.
    pub pin: Option<ReferencePin>,
}

/// The version of a reference that is in use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReferencePin {
    /// The reference with the digest of what it named.
    pub resolved: PluginReference,
    /// The digest of the plugin's files in the folder.
    pub files: Digest,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileDocument {
    version: u32,
    #[serde(default)]
    plugin: BTreeMap<String, EntryTable>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EntryTable {
    reference: String,
    resolved: Option<String>,
    files: Option<String>,
}

impl PluginsFile {
    /// Parses the text of the file.
    ///
    /// # Errors
    ///
    /// Returns the mistake, with its place.
    pub fn parse(text: &str) -> Result<Self, String> {
        let document: FileDocument =
            toml_file::parse_document(text).map_err(|mistake| mistake.to_string())?;
        if document.version != FORMAT_VERSION {
            return Err(format!(
                "version: its format is {}, and this version of Toolbay reads {FORMAT_VERSION}",
                document.version
            ));
        }
        let entries = document.plugin.into_iter().map(|(id, table)| {
            let in_table = |why: String| format!("plugin.{id}: {why}");
            check_plugin_id(&id).map_err(in_table)?;
            let entry = PluginEntry::from_table(table).map_err(in_table)?;
            Ok((id, entry))
        });
        Ok(Self {
            plugins: entries.collect::<Result<_, String>>()?,
        })
    }

    /// Returns the text of the file. Equal files have equal texts.
    pub fn render(&self) -> String {
        let mut text = format!("{HEADER}version = {FORMAT_VERSION}\n");
        for (id, entry) in &self.plugins {
            let _ = write!(text, "\n[plugin.{id}]\nreference = ");
            push_string(&mut text, &entry.reference.to_pinned_text());
            if let Some(pin) = &entry.pin {
                text.push_str("resolved = ");
                push_string(&mut text, &pin.resolved.to_pinned_text());
                text.push_str("files = ");
                push_string(&mut text, &format!("sha256:{}", pin.files));
            }
        }
        text
    }
}

impl PluginEntry {
    fn from_table(table: EntryTable) -> Result<Self, String> {
        let reference: PluginReference = table
            .reference
            .parse()
            .map_err(|why| format!("reference: {why}"))?;
        if matches!(reference, PluginReference::File(_)) {
            return Err(format!(
                "reference: {:?} is a path, which only one machine has; use the reference of a registry, or a URL",
                table.reference
            ));
        }
        let pin = match (table.resolved, table.files) {
            (None, None) => None,
            (Some(resolved), Some(files)) => {
                let resolved: PluginReference =
                    resolved.parse().map_err(|why| format!("resolved: {why}"))?;
                if resolved.digest().is_none() {
                    return Err("resolved: it has no digest".to_owned());
                }
                let files = parse_digest(&files).map_err(|why| format!("files: {why}"))?;
                Some(ReferencePin { resolved, files })
            }
            _ => {
                return Err(
                    "resolved and files belong together; delete both, and the next sync pins the plugin"
                        .to_owned(),
                );
            }
        };
        Ok(Self { reference, pin })
    }

    /// Returns the pin if it belongs to the reference. A person who changes the reference makes it
    /// void.
    pub fn valid_pin(&self) -> Option<&ReferencePin> {
        self.pin
            .as_ref()
            .filter(|pin| self.reference.is_resolved_by(&pin.resolved))
    }
}

/// Appends a TOML string and a line end. A reference needs few escapes: it has no control characters.
fn push_string(text: &mut String, value: &str) {
    let escaped = value.replace('\\', "\\\\").replace('"', "\\\"");
    let _ = writeln!(text, "\"{escaped}\"");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(byte: u8) -> Digest {
        Digest::new([byte; 32])
    }

    #[test]
    fn a_file_is_written_sorted_and_read_back() {
        let resolved = format!("oci://registry.example.com/b:1@sha256:{}", digest(1));
        let entry = |reference: &str| PluginEntry {
            reference: reference.parse().unwrap(),
            pin: None,
        };
        let mut file = PluginsFile::default();
        file.plugins
            .insert("z".to_owned(), entry("https://example.com/z.bay"));
        file.plugins.insert(
            "b".to_owned(),
            PluginEntry {
                pin: Some(ReferencePin {
                    resolved: resolved.parse().unwrap(),
                    files: digest(2),
                }),
                ..entry("oci://registry.example.com/b:1")
            },
        );
        let text = file.render();
        assert!(text.ends_with(&format!(
            "version = 1\n\n[plugin.b]\nreference = \"oci://registry.example.com/b:1\"\nresolved = \"{resolved}\"\nfiles = \"sha256:{}\"\n\n[plugin.z]\nreference = \"https://example.com/z.bay\"\n",
            digest(2)
        )), "{text}");
        assert_eq!(PluginsFile::parse(&text), Ok(file));
        assert_eq!(
            PluginsFile::parse("version = 1"),
            Ok(PluginsFile::default())
        );
    }

    #[test]
    fn a_pin_is_void_if_the_reference_changes() {
        let with = |reference: &str| {
            let text = format!(
                "version = 1\n[plugin.a]\nreference = \"{reference}\"\nresolved = \"oci://registry.example.com/a:1@sha256:{}\"\nfiles = \"sha256:{}\"",
                digest(1),
                digest(2)
            );
            PluginsFile::parse(&text).unwrap().plugins["a"]
                .valid_pin()
                .is_some()
        };
        assert!(with("oci://registry.example.com/a:1"));
        assert!(!with("acme:a@1.0.0"));
        assert!(with(&format!(
            "oci://registry.example.com/a:1@sha256:{}",
            digest(1)
        )));
        for other in [
            "oci://registry.example.com/a:2",
            "oci://registry.example.com/b:1",
            "oci://other.example.com/a:1",
            "oci://registry.example.com:5000/a:1",
            "https://registry.example.com/a",
            &format!("oci://registry.example.com/a:1@sha256:{}", digest(3)),
        ] {
            assert!(!with(other), "{other}");
        }
    }

    #[test]
    fn a_package_is_pinned_by_an_artifact_of_its_name_and_version() {
        let entry = |repository: &str| {
            let text = format!(
                "version = 1\n[plugin.a]\nreference = \"acme:a@1.0.0\"\nresolved = \"oci://registry.example.com/{repository}@sha256:{}\"\nfiles = \"sha256:{}\"",
                digest(1),
                digest(2)
            );
            let file = PluginsFile::parse(&text).unwrap();
            assert_eq!(PluginsFile::parse(&file.render()), Ok(file.clone()));
            file.plugins["a"].valid_pin().is_some()
        };
        assert!(entry("acme/a:1.0.0") && entry("prefix/acme/a:1.0.0"));
        for other in ["acme/a:1.0.1", "acme/b:1.0.0", "xacme/a:1.0.0", "acme/a"] {
            assert!(!entry(other), "{other}");
        }
    }

    #[test]
    fn mistakes_name_their_place() {
        for (text, expected) in [
            ("", "version"),
            ("version = 2", "its format is 2"),
            ("version = 1\n[plugins.a]", "2:2: unknown key `plugins`"),
            ("version = 1\n[plugin.a]", "plugin.a"),
            (
                "version = 1\n[plugin.a]\nreference = \"oci://x\"",
                "plugin.a: reference: \"oci://x\" is not a reference",
            ),
            (
                "version = 1\n[plugin.a]\nrefrence = \"oci://x/y\"",
                "unknown key `refrence`",
            ),
            (
                "version = 1\n[plugin.a]\nreference = \"a.wasm\"",
                "plugin.a: reference: \"a.wasm\" is a path",
            ),
            (
                "version = 1\n[plugin.\"../a\"]\nreference = \"oci://x/y\"",
                "is not the name of a plugin",
            ),
            (
                "version = 1\n[plugin.toolbay]\nreference = \"oci://x/y\"",
                "cannot be named",
            ),
            (
                "version = 1\n[plugin.a]\nreference = \"oci://x/y\"\nresolved = \"oci://x/y:1\"\nfiles = \"\"",
                "plugin.a: resolved: it has no digest",
            ),
            (
                "version = 1\n[plugin.a]\nreference = \"oci://x/y\"\nfiles = \"\"",
                "plugin.a: resolved and files belong together",
            ),
        ] {
            let why = PluginsFile::parse(text).unwrap_err();
            assert!(why.contains(expected), "{text}: {why}");
        }
    }
}
