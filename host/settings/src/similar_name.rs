//! File names that were probably meant to be names of TOML files: `Text.TOML`, `text.toml.txt`,
//! `text (1).toml`.
//!
//! If a file with restrictions is ignored because of its name, the server allows more than the
//! author meant.

/// Extensions that editors and browsers add to the name that the user types.
const ADDED_EXTENSIONS: [&str; 14] = [
    ".txt", ".text", ".md", ".rtf", ".html", ".htm", ".doc", ".docx", ".odt", ".conf", ".cfg",
    ".ini", ".yaml", ".yml",
];

/// Returns the stems that a file was probably meant to have before `.toml`, folded by
/// [`fold_name`]. Empty if the name does not look like the name of a TOML file. Backups such as
/// `x.toml~` and `x.toml.bak` do not.
pub fn similar_toml_stems(name: &str) -> Vec<String> {
    if name.strip_suffix(".wasm").is_some() {
        // Most files of a plugin folder have this extension, and the folder is scanned often.
        return Vec::new();
    }
    let normalized = normalize(name);
    let mut name = normalized.trim().trim_end_matches('.');
    if name.starts_with('.') {
        return Vec::new();
    }
    // `text.toml (1)` and `text.toml - copy`.
    while let Some(shorter) = without_copy_mark(name).filter(|name| name.contains('.')) {
        name = shorter;
    }
    let name = ADDED_EXTENSIONS
        .iter()
        .find_map(|added| name.strip_suffix(added))
        .unwrap_or(name);
    let Some((mut stem, extension)) = name.rsplit_once('.') else {
        return Vec::new();
    };
    let extension = extension.trim();
    let is_word = extension.chars().all(char::is_alphanumeric);
    if !is_word || strsim::osa_distance(extension, "toml") > 1 {
        return Vec::new();
    }
    for suffix in [".wasm", ".toml"] {
        stem = stem.strip_suffix(suffix).unwrap_or(stem);
    }
    let mut stems = vec![without_space(stem)];
    while let Some(shorter) = without_copy_mark(stem) {
        stem = shorter;
        stems.push(without_space(stem));
    }
    stems
}

/// Returns a name without differences that people do not see, or that file systems ignore: case,
/// white space, invisible characters, and different encodings of one character.
pub fn fold_name(name: &str) -> String {
    without_space(&normalize(name))
}

/// Returns the name in Unicode's form NFKC and in lower case, without invisible characters.
fn normalize(name: &str) -> String {
    let visible: String = name.chars().filter(|c| !is_invisible(*c)).collect();
    let composer = icu_normalizer::ComposingNormalizerBorrowed::new_nfkc();
    let lower = composer.normalize(&visible).to_lowercase();
    // Lowercasing can undo the composition.
    composer.normalize(&lower).into_owned()
}

/// Returns whether a character has no glyph and is not white space.
fn is_invisible(c: char) -> bool {
    c.is_control()
        || matches!(
            u32::from(c),
            0xad | 0x34f
                | 0x61c
                | 0x115f..=0x1160
                | 0x17b4..=0x17b5
                | 0x180b..=0x180f
                | 0x200b..=0x200f
                | 0x202a..=0x202e
                | 0x2060..=0x206f
                | 0x3164
                | 0xfe00..=0xfe0f
                | 0xfeff
                | 0xffa0
                | 0xfff0..=0xfffb
                | 0xe0000..=0xe0fff
        )
}

fn without_space(name: &str) -> String {
    name.chars().filter(|c| !c.is_whitespace()).collect()
}

/// Returns a name without the mark that programs add to the name of a copy: `(1)`, `copy`,
/// `- copy`, `copy 2`. `None` if it has no such mark.
fn without_copy_mark(name: &str) -> Option<&str> {
    let name = name.trim_end();
    if let Some((before, number)) = name
        .strip_suffix(')')
        .and_then(|rest| rest.rsplit_once('('))
        && !number.is_empty()
        && number.chars().all(|c| c.is_ascii_digit())
    {
        return Some(before.trim_end()).filter(|before| !before.is_empty());
    }
    let before = name
        .trim_end_matches(|c: char| c.is_ascii_digit())
        .trim_end()
        .strip_suffix("copy")?;
    let stem = before.trim_end_matches(|c: char| c.is_whitespace() || matches!(c, '-' | '_'));
    (!stem.is_empty() && stem.len() < before.len()).then_some(stem)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspelled_toml_names_are_recognized() {
        for name in [
            "text.toml",
            "text.TOML",
            "Text.toml",
            "text.tml",
            "text.ttoml",
            " text .toml",
            "text.toml.txt",
            "text.toml.md",
            "text.toml.yaml",
            "text.toml.",
            "text.toml.toml",
            "text.wasm.toml",
            "\u{feff}text.toml",
            "text\u{200b}.toml",
            "text.toml\u{a0}",
            "ｔｅｘｔ.toml",
            "text (1).toml",
            "text(12).toml",
            "text.toml (1)",
            "text copy.toml",
            "text - Copy.toml",
            "text - Copy (2).toml",
            "text copy 2.toml",
            "text.toml copy",
        ] {
            let stems = similar_toml_stems(name);
            assert!(stems.contains(&"text".to_owned()), "{name:?}: {stems:?}");
        }
        let composed = fold_name("caf\u{e9}");
        assert!(similar_toml_stems("cafe\u{301}.toml").contains(&composed));
        assert_eq!(fold_name("CAFE\u{301}"), composed);
    }

    #[test]
    fn other_names_are_not_recognized() {
        for name in [
            "",
            ".",
            ".toml",
            ".text.toml",
            "text",
            "text.wasm",
            "text.toml~",
            "text.toml.bak",
            "text.toml.proposed",
            "text.html",
            "text.yaml",
            "copy",
            "(1)",
        ] {
            assert_eq!(similar_toml_stems(name), [""; 0], "{name:?}");
        }
        // A name that only ends like that of a copy is also recognized as it is.
        assert_eq!(similar_toml_stems("photocopy.toml"), ["photocopy"]);
        assert_eq!(
            similar_toml_stems("photo-copy.toml"),
            ["photo-copy", "photo"]
        );
    }
}
