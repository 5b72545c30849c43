//! Members that the definitions of tools, prompts and resources have in common: `_meta` and icons.

use serde_json::{Map, Value};
use toolbay_model::text::format_thousands;
use toolbay_model::{Icon, JsonSize, JsonText, is_reserved_meta};

/// Key in a definition's `_meta` that lists the client capabilities that a call requires, in MCP's
/// form.
const CLIENT_CAPABILITIES_KEY: &str = "dev.toolbay/client-capabilities";

/// Maximum number of JSON values in a definition's `_meta`, as in a schema.
const MAX_META_VALUES: u64 = 10_000;

/// Maximum number of icons of a definition, and of sizes of an icon.
const MAX_ICONS: usize = 64;

/// Members of a JSON object.
type JsonMembers = Map<String, Value>;

/// Parses the `_meta` of a definition. Returns it as text, which is many times smaller than JSON
/// values, and the client capabilities that it requires.
///
/// # Errors
///
/// Returns the mistake, as a sentence about the definition.
pub(crate) fn parse_meta(text: &str) -> Result<(Option<JsonText>, Map<String, Value>), String> {
    let (meta, capabilities) = parse_meta_members(text)?;
    Ok((encode_meta(meta), capabilities))
}

/// Like [`parse_meta`], but returns the `_meta` as values.
///
/// # Errors
///
/// As [`parse_meta`].
pub(crate) fn parse_meta_members(text: &str) -> Result<(JsonMembers, JsonMembers), String> {
    let values = JsonSize::measure(text).values;
    if values > MAX_META_VALUES {
        let [values, maximum] = [values, MAX_META_VALUES].map(format_thousands);
        return Err(format!(
            "its _meta has {values} values, but at most {maximum} are allowed"
        ));
    }
    let Ok(Value::Object(meta)) = serde_json::from_str(text) else {
        return Err("its _meta must be a JSON object".into());
    };
    let capabilities = match meta.get(CLIENT_CAPABILITIES_KEY) {
        None => Map::new(),
        Some(Value::Object(needs)) => needs.clone(),
        Some(_) => {
            return Err(format!(
                "{CLIENT_CAPABILITIES_KEY:?} in its _meta must be a JSON object"
            ));
        }
    };
    Ok((meta, capabilities))
}

/// Converts a `_meta` to its stored form: text, without members that are reserved or were for the
/// server. Returns `None` if no members are left.
pub(crate) fn encode_meta(mut meta: Map<String, Value>) -> Option<JsonText> {
    meta.retain(|key, _| !is_reserved_meta(key));
    (!meta.is_empty()).then(|| JsonText::new(&Value::Object(meta)))
}

/// Checks the number of icons of a definition.
///
/// # Errors
///
/// There are too many icons, or an icon has too many sizes.
pub(crate) fn check_icons(icons: &[Icon]) -> Result<(), String> {
    let too_many = |subject: &str, n: usize| {
        Err(format!(
            "{subject} {}, but at most {MAX_ICONS} are allowed",
            format_thousands(n as u64)
        ))
    };
    if icons.len() > MAX_ICONS {
        return too_many("the number of its icons is", icons.len());
    }
    match icons.iter().find(|icon| icon.sizes.len() > MAX_ICONS) {
        Some(icon) => too_many(
            "the number of sizes of one of its icons is",
            icon.sizes.len(),
        ),
        None => Ok(()),
    }
}
