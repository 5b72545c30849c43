//! The paths that an archive can contain. Everything that is not listed here is refused.

use toolbay_model::text::{clean, clean_line};

/// Maximum length of a plugin's id in an archive, in bytes.
const MAX_ID_BYTES: usize = 64;

/// Maximum length of a part of a path, in bytes.
const MAX_PART_BYTES: usize = 128;

/// Maximum number of parts of a path.
const MAX_PARTS: usize = 8;

/// Extensions of a plugin's files. `toml` is not one of them: that is the grant.
const FILE_EXTENSIONS: [&str; 2] = ["wasm", "wit"];

/// Extensions of a plugin's folders.
const FOLDER_EXTENSIONS: [&str; 3] = ["prompts", "resources", "skill"];

/// Beginnings of the names of documents, in upper case.
const DOCUMENT_STEMS: [&str; 6] = [
    "README",
    "LICENSE",
    "LICENCE",
    "COPYING",
    "NOTICE",
    "CHANGELOG",
];

/// Ids that a plugin cannot have: the grant of such a plugin would be a configuration file.
const RESERVED_IDS: [&str; 2] = ["toolbay", "plugin"];

/// Names of devices on other systems, in upper case.
const DEVICE_NAMES: [&str; 6] = ["CON", "PRN", "AUX", "NUL", "COM", "LPT"];

/// Checks that `id` can be the name of a plugin's files: letters, digits, `_` and `-`.
///
/// # Errors
///
/// Returns the mistake, with the id.
pub fn check_plugin_id(id: &str) -> Result<(), String> {
    let is_valid = id.len() <= MAX_ID_BYTES
        && id.starts_with(|c: char| c.is_ascii_alphanumeric())
        && id
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-');
    if !is_valid || is_device_name(id) {
        return Err(format!(
            "{:?} is not the name of a plugin: 1 to {MAX_ID_BYTES} of A-Z a-z 0-9 _ -, such as my-weather",
            clean_line(id, 100)
        ));
    }
    if RESERVED_IDS
        .iter()
        .any(|reserved| id.eq_ignore_ascii_case(reserved))
    {
        return Err(format!(
            "a plugin cannot be named {id:?}: {id}.toml is another file"
        ));
    }
    Ok(())
}

/// Returns whether a file of this name, next to a plugin, is for people: a `README.md` or a
/// license.
pub fn is_document(name: &str) -> bool {
    let (stem, extension) = name.split_once('.').unwrap_or((name, "md"));
    let upper = stem.to_ascii_uppercase();
    let has_stem = |known: &str| {
        upper
            .strip_prefix(known)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    };
    matches!(extension, "md" | "txt") && DOCUMENT_STEMS.iter().any(|known| has_stem(known))
}

/// Checks the path of a file in the archive of the plugin `id`.
///
/// # Errors
///
/// Returns the reason why the path is refused, without the path.
pub(crate) fn check_entry_path(id: &str, path: &str) -> Result<(), String> {
    let parts: Vec<&str> = path.split('/').collect();
    if parts.len() > MAX_PARTS {
        return Err(format!("it is more than {MAX_PARTS} levels deep"));
    }
    for part in &parts {
        check_part(part)?;
    }
    let (Some(first), rest) = (parts.first(), parts.get(1..).unwrap_or_default()) else {
        return Err("it is empty".to_owned());
    };
    if rest.is_empty() && is_document(first) {
        return Ok(());
    }
    let extension = first
        .strip_prefix(id)
        .and_then(|rest| rest.strip_prefix('.'))
        .unwrap_or_default();
    match extension {
        file if FILE_EXTENSIONS.contains(&file) && rest.is_empty() => Ok(()),
        folder if FOLDER_EXTENSIONS.contains(&folder) && !rest.is_empty() => Ok(()),
        "toml" => Err("it would be a grant, which only the operator writes".to_owned()),
        _ => Err(format!(
            "an archive of {id} can contain only {id}.wasm, {id}.wit, files in {id}.prompts, {id}.resources and {id}.skill, \
             and documents such as README.md and LICENSE"
        )),
    }
}

fn check_part(part: &str) -> Result<(), String> {
    if part.is_empty() {
        return Err("it is absolute, a folder, or has an empty part".to_owned());
    }
    if part.starts_with('.') {
        return Err("a part of it begins with a dot".to_owned());
    }
    if part.len() > MAX_PART_BYTES {
        return Err(format!(
            "a part of it is longer than {MAX_PART_BYTES} bytes"
        ));
    }
    if part.contains(['\\', ':', '\t', '\n']) || clean(part) != part {
        return Err(
            "it contains a backslash, a colon, a control character or an invisible character"
                .to_owned(),
        );
    }
    if part.ends_with(['.', ' ']) || part.starts_with(' ') || is_device_name(part) {
        return Err(
            "a part of it begins or ends with a space or a dot, or is the name of a device"
                .to_owned(),
        );
    }
    Ok(())
}

/// Returns whether a name is that of a device on Windows, with or without an extension.
fn is_device_name(name: &str) -> bool {
    let stem = name
        .split('.')
        .next()
        .unwrap_or_default()
        .to_ascii_uppercase();
    let base = stem.trim_end_matches(|c: char| c.is_ascii_digit());
    DEVICE_NAMES.contains(&base) && stem.len() <= base.len() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_the_plugin_and_documents_are_accepted() {
        for path in [
            "a.wasm",
            "a.wit",
            "a.prompts/review.md",
            "a.resources/deep/er/häuser.json",
            "a.resources/view.html",
            "a.skill/SKILL.md",
            "README.md",
            "LICENSE",
            "LICENSE-MIT",
            "license.txt",
            "NOTICE",
        ] {
            assert_eq!(check_entry_path("a", path), Ok(()), "{path}");
        }
    }

    #[test]
    fn every_other_path_is_refused() {
        for path in [
            "",
            "/",
            "/etc/passwd",
            "a.toml",
            "A.toml",
            "b.toml",
            "toolbay.toml",
            "a.toml.proposed",
            "b.wasm",
            "a.wasm/x",
            "a.wasm/",
            "a.prompts",
            "a.prompts/",
            "a.prompts//x",
            "a.prompts/../../x",
            "a.prompts/..",
            "a.prompts/./x",
            "../a.wasm",
            "./a.wasm",
            ".hidden",
            "a.resources/.env",
            "a.resources/x\\..\\..\\y",
            "C:\\a.wasm",
            "a.resources/c:x",
            "a.resources/x\u{202e}y",
            "a.resources/x\ny",
            "a.resources/con",
            "a.resources/NUL.txt",
            "a.resources/com1",
            "a.resources/x.",
            "a.resources/x ",
            "a.resources/1/2/3/4/5/6/7/8",
            "README",
            "README.exe",
            "README.md/x",
            "LICENSED.md",
            "inner.bay",
            "a.docs/x",
        ] {
            let is_text = path == "README";
            assert_eq!(check_entry_path("a", path).is_err(), !is_text, "{path:?}");
        }
        let long = format!("a.resources/{}", "x".repeat(MAX_PART_BYTES + 1));
        assert!(check_entry_path("a", &long).is_err());
    }

    #[test]
    fn ids_are_plain_and_not_reserved() {
        for id in ["a", "my-weather", "A_1", "0", "command", "com10"] {
            assert_eq!(check_plugin_id(id), Ok(()), "{id}");
        }
        let long = "a".repeat(MAX_ID_BYTES + 1);
        for id in [
            "", "-a", "_a", ".a", "a.b", "a/b", "a b", "ä", "..", "toolbay", "Toolbay", "plugin",
            "nul", "com1", &long,
        ] {
            assert!(check_plugin_id(id).is_err(), "{id:?}");
        }
    }
}
