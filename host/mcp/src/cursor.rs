//! The cursor of `tools/list`: it contains the last name of a page, so that a reload between two pages skips no tool.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;

use crate::jsonrpc::{Error, INVALID_PARAMS};

/// The cursor of the page after the tool `name`.
pub(crate) fn encode(name: &str) -> String {
    BASE64.encode(name)
}

/// The name in a cursor.
///
/// # Errors
///
/// [`INVALID_PARAMS`] if the server did not issue the cursor.
pub(crate) fn decode(cursor: &str) -> Result<String, Error> {
    let name = BASE64.decode(cursor).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    name.ok_or_else(|| Error::new(INVALID_PARAMS, "Invalid cursor"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_comes_back_as_its_name() {
        for name in ["", "a", "acme.weather-today_2"] {
            assert_eq!(decode(&encode(name)).unwrap(), name);
        }
        assert_eq!(decode("not a cursor!").unwrap_err().code, INVALID_PARAMS);
    }
}
