//! The text of a grant for the console, without values that can be secret.

use toml::{Table, Value};
use toolbay_catalog::{Grant, ReplacedGrant, VersionHistory};
use toolbay_console::{GrantText, PreviousGrant};
use toolbay_model::text::clean;

/// Maximum size of a displayed grant, in bytes.
const MAX_GRANT_BYTES: usize = 128 << 10;

/// Text in place of a value.
const HIDDEN_VALUE: &str = "(not shown)";

/// Keys of a secret that name the place of its value, or its use.
const SHOWN_SECRET_KEYS: [&str; 7] = [
    "environment",
    "file",
    "keyring",
    "caller_folder",
    "origins",
    "header",
    "query",
];

/// Returns the text of a plugin's grant and of the previous one. Returns `None` if there is neither.
pub(super) fn grant_text(grant: &Grant, history: &VersionHistory) -> Option<GrantText> {
    let previous = history.replaced_grant.as_ref();
    if grant.text.is_none() && previous.is_none() {
        return None;
    }
    Some(GrantText {
        text: display_text(grant.text.as_deref().unwrap_or_default()),
        previous: previous.map(|ReplacedGrant { text, replaced_at }| PreviousGrant {
            text: display_text(text.as_deref().unwrap_or_default()),
            replaced_at: *replaced_at,
        }),
    })
}

/// Returns a grant without comments and without values that can be secret.
fn display_text(text: &str) -> String {
    // It was a grant, so it can be parsed.
    let mut table: Table = toml::from_str(text).unwrap_or_default();
    if let Some(Value::Table(config)) = table.get_mut("config") {
        for (_, value) in config.iter_mut() {
            *value = Value::from(HIDDEN_VALUE);
        }
    }
    if let Some(Value::Table(secrets)) = table.get_mut("secrets") {
        for (_, secret) in secrets.iter_mut() {
            hide_values(secret);
        }
    }
    let shown = toml::to_string_pretty(&table).unwrap_or_default();
    let shown = clean(&shown);
    let end = shown.floor_char_boundary(MAX_GRANT_BYTES);
    shown.get(..end).unwrap_or_default().to_owned()
}

fn hide_values(secret: &mut Value) {
    let Value::Table(keys) = secret else {
        *secret = Value::from(HIDDEN_VALUE);
        return;
    };
    for (key, value) in keys.iter_mut() {
        if !SHOWN_SECRET_KEYS.contains(&key.as_str()) {
            *value = Value::from(HIDDEN_VALUE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_can_be_secret_are_not_shown() {
        let shown = display_text(
            r#"
            # hunter1
            [permissions]
            http = ["https://a.example"] # hunter2
            [config]
            key = "hunter3"
            deep = { a = ["hunter4"] }
            [secrets.token]
            command = ["print-secret", "hunter5"]
            format = "hunter6 {}"
            header = "authorization"
            origins = ["https://a.example"]
            [secrets.other]
            environment = "OTHER_TOKEN"
            "#,
        );
        assert!(!shown.contains("hunter"), "{shown}");
        for expected in ["https://a.example", "OTHER_TOKEN", "deep", "authorization"] {
            assert!(shown.contains(expected), "{expected}: {shown}");
        }
    }

    #[test]
    fn text_is_bounded_and_has_no_invisible_characters() {
        let shown = display_text(&format!("prefix = \"a\u{202e}\"\n{}", "".repeat(2)));
        assert!(!shown.contains('\u{202e}'), "{shown}");
        let long = format!("enabled_tools = [\"{}\"]", "é".repeat(MAX_GRANT_BYTES));
        assert!(display_text(&long).len() <= MAX_GRANT_BYTES);
        assert_eq!(display_text("not a [grant"), "");
    }
}
