//! The cursor of a list. It contains the last name or URI of a page, so that a reload between two
//! pages skips no item.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;

use crate::lists::list_kind::ListKind;
use crate::protocol::jsonrpc::{Error, INVALID_PARAMS};

/// First character of the cursors of a folder.
const FOLDER_PREFIX: char = 'd';

/// Returns the cursor of the page of `list` that follows the item with this name or URI.
pub(crate) fn encode(list: ListKind, name: &str) -> String {
    BASE64.encode(format!("{}{name}", list_prefix(list)))
}

/// Returns the cursor of the page of a folder that follows the file or folder with this URI.
pub(crate) fn encode_in_folder(uri: &str) -> String {
    BASE64.encode(format!("{FOLDER_PREFIX}{uri}"))
}

/// Returns the URI in a cursor of the folder `folder`. The empty cursor belongs to the first page.
///
/// # Errors
///
/// [`INVALID_PARAMS`] if the server did not issue the cursor for this folder.
pub(crate) fn decode_in_folder(folder: &str, cursor: &str) -> Result<String, Error> {
    let uri = decode_prefixed(FOLDER_PREFIX, cursor)?;
    let is_within = uri
        .strip_prefix(folder)
        .is_some_and(|path| path.starts_with('/'));
    if uri.is_empty() || is_within {
        Ok(uri)
    } else {
        Err(invalid_cursor())
    }
}

/// Returns the name or URI in a cursor of `list`. The empty cursor belongs to the first page and
/// contains an empty name.
///
/// # Errors
///
/// [`INVALID_PARAMS`] if the server did not issue the cursor for this list.
pub(crate) fn decode(list: ListKind, cursor: &str) -> Result<String, Error> {
    decode_prefixed(list_prefix(list), cursor)
}

fn decode_prefixed(prefix: char, cursor: &str) -> Result<String, Error> {
    if cursor.is_empty() {
        return Ok(String::new());
    }
    let text = BASE64
        .decode(cursor)
        .ok()
        .and_then(|bytes| String::from_utf8(bytes).ok());
    let name = text.as_deref().and_then(|text| text.strip_prefix(prefix));
    name.map(str::to_owned).ok_or_else(invalid_cursor)
}

fn invalid_cursor() -> Error {
    Error::new(INVALID_PARAMS, "Invalid cursor")
}

/// Returns the first character of the cursors of a list.
const fn list_prefix(list: ListKind) -> char {
    match list {
        ListKind::Tools => 't',
        ListKind::Prompts => 'p',
        ListKind::Resources => 'r',
        ListKind::Templates => 'u',
        ListKind::Skills => 's',
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_valid_only_for_its_list() {
        for list in ListKind::ALL {
            for name in ["", "a", "acme.weather-today_2", "toolbay://notes/{name}"] {
                assert_eq!(decode(list, &encode(list, name)).unwrap(), name);
                for other in ListKind::ALL.into_iter().filter(|other| *other != list) {
                    assert_eq!(
                        decode(other, &encode(list, name)).unwrap_err().code,
                        INVALID_PARAMS,
                        "{other:?}"
                    );
                }
            }
            assert_eq!(decode(list, "").unwrap(), "");
            for wrong in ["not a cursor!", "dA=", "//"] {
                assert!(decode(list, wrong).is_err(), "{wrong}");
            }
        }
    }

    #[test]
    fn a_cursor_of_a_folder_is_valid_only_for_that_folder() {
        let cursor = encode_in_folder("skill://pdf/a/b.md");
        assert_eq!(
            decode_in_folder("skill://pdf/a", &cursor).unwrap(),
            "skill://pdf/a/b.md"
        );
        assert_eq!(decode_in_folder("skill://pdf/a", "").unwrap(), "");
        for other in [
            "skill://pdf/b",
            "skill://pd",
            "skill://pdf/a/b.md",
            "toolbay://pdf/a",
        ] {
            assert!(decode_in_folder(other, &cursor).is_err(), "{other}");
        }
        for list in ListKind::ALL {
            assert!(
                decode(list, &cursor).is_err()
                    && decode_in_folder("a", &encode(list, "a/b")).is_err()
            );
        }
    }
}
