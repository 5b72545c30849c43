//! The cursor of `tools/list`: "after this name", so that a reload between two pages neither fails nor skips.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;

use crate::jsonrpc::{Error, INVALID_PARAMS};

/// The cursor of the page after the tool `name`.
pub(crate) fn encode(name: &str) -> String {
    BASE64.encode(name)
}

/// The name that a cursor stands for.
///
/// # Errors
///
/// It is none of ours: [`INVALID_PARAMS`].
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
