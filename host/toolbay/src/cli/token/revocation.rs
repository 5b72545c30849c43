//! Removes a token from the configuration file, and leaves the rest of the file as it is.

use std::io::Write as _;
use std::path::Path;

use anyhow::{Context as _, bail};
use tempfile::NamedTempFile;
use toml_edit::{DocumentMut, Item};
use toolbay_model::text::clean_line;
use toolbay_model::{similar_names, suggestion_question};

use crate::config::Config;

/// Maximum length of a printed name, in bytes.
const MAX_NAME_BYTES: usize = 300;

/// Removes the token with this name from the file of the configuration.
///
/// # Errors
///
/// There is no such token in the file, it is the last one, or the file cannot be replaced. The file
/// is then unchanged.
pub(super) fn revoke_token(config: &Config, name: &str) -> anyhow::Result<()> {
    let shown = clean_line(name, MAX_NAME_BYTES);
    let tokens = &config.http.tokens;
    if !tokens.iter().any(|token| token.name == name) {
        let names = tokens.iter().map(|token| token.name.as_str());
        let advice = suggestion_question(&similar_names(name, names))
            .unwrap_or_else(|| "`toolbay token list` shows all tokens".to_owned());
        bail!("unknown token {name:?}; {advice}");
    }
    if tokens.len() == 1 && config.http.oauth.is_none() {
        bail!(
            "{shown} is the only token: without tokens, a server on a local address serves every account of this machine; \
             add another token first, or remove it from {} by hand",
            config.file.display()
        );
    }
    // A link is followed, so that the file is replaced and not the link.
    let file = std::fs::canonicalize(&config.file)
        .with_context(|| format!("cannot find {}", config.file.display()))?;
    let text = std::fs::read_to_string(&file)
        .with_context(|| format!("cannot read {}", file.display()))?;
    let remaining = remove_token(&text, name).with_context(|| {
        format!(
            "{} has no [[http.tokens]] with name = {name:?}",
            file.display()
        )
    })?;
    replace(&file, &text, &remaining)
}

/// Returns the text of a configuration without the token, or `None` if the text does not have it as
/// a table of `[[http.tokens]]` or as an element of an array `tokens`.
fn remove_token(text: &str, name: &str) -> Option<String> {
    let mut document: DocumentMut = text.parse().ok()?;
    let tokens = document.get_mut("http")?.get_mut("tokens")?;
    match tokens {
        Item::ArrayOfTables(tables) => {
            let index = tables
                .iter()
                .position(|table| table.get("name").and_then(Item::as_str) == Some(name))?;
            tables.remove(index);
        }
        Item::Value(toml_edit::Value::Array(array)) => {
            let index = array.iter().position(|value| {
                let table = value.as_inline_table();
                table.and_then(|table| table.get("name")?.as_str()) == Some(name)
            })?;
            array.remove(index);
        }
        _ => return None,
    }
    Some(document.to_string())
}

/// Replaces a file atomically, with the same mode and owner.
fn replace(file: &Path, before: &str, after: &str) -> anyhow::Result<()> {
    use std::os::unix::fs::{MetadataExt as _, fchown};

    let failed = || format!("cannot replace {}", file.display());
    let metadata = std::fs::metadata(file).with_context(failed)?;
    let folder = file.parent().unwrap_or(Path::new("."));
    let mut written = NamedTempFile::new_in(folder).with_context(failed)?;
    written.write_all(after.as_bytes()).with_context(failed)?;
    written
        .as_file()
        .set_permissions(metadata.permissions())
        .with_context(failed)?;
    let own = std::fs::metadata(written.path()).with_context(failed)?;
    if (own.uid(), own.gid()) != (metadata.uid(), metadata.gid()) {
        fchown(
            written.as_file(),
            Some(metadata.uid()),
            Some(metadata.gid()),
        )
        .with_context(failed)?;
    }
    written.as_file().sync_all().with_context(failed)?;
    if std::fs::read_to_string(file).with_context(failed)? != before {
        bail!(
            "{} was changed by another program meanwhile; run the command again",
            file.display()
        );
    }
    written
        .persist(file)
        .map_err(|error| error.error)
        .with_context(failed)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_token_is_removed() {
        let text = "# The server.\nlog = \"info\" # quiet\n\n[[http.tokens]]\nname = \"a\"\nsha256 = \"1\"\n\n\
                    # For ci.\n[[http.tokens]]\nname = \"b\"\nsha256 = \"2\"\n\n[limits]\nfuel = 1\n";
        assert_eq!(
            remove_token(text, "a").unwrap(),
            "# The server.\nlog = \"info\" # quiet\n\n# For ci.\n[[http.tokens]]\nname = \"b\"\nsha256 = \"2\"\n\n\
             [limits]\nfuel = 1\n"
        );
        assert_eq!(remove_token(text, "c"), None);
        let inline = "http = { tokens = [{ name = \"a\" }, { name = \"b\" }] }\n";
        assert_eq!(
            remove_token(inline, "b").unwrap(),
            "http = { tokens = [{ name = \"a\" }] }\n"
        );
        for text in ["", "[http]\n", "[http]\ntokens = 1\n", "["] {
            assert_eq!(remove_token(text, "a"), None, "{text}");
        }
    }
}
