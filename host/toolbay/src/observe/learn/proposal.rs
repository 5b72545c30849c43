//! Text of a proposed grant: the current grant plus the denied permissions.

use toml_edit::{DocumentMut, Item, Table, Value};
use toolbay_model::text::clean_line;
use toolbay_policy::Permissions;

/// Maximum number of lines for a plugin. A guest can cause an unlimited number of different
/// denials.
const MAX_LINES: usize = 64;

/// Maximum size of a line, in bytes.
const MAX_LINE_BYTES: usize = 1_000;

/// Maximum size of a proposal, in bytes. It must be small enough to be read as a grant.
const MAX_PROPOSAL_BYTES: usize = 512 << 10;

/// Permissions that only the operator decides, and that no denial names.
const OPERATOR_ONLY: [&str; 3] = ["environment", "mounts", "deterministic"];

/// The permission that is a table of lists: the origins that views may access.
const UI_PERMISSION: &str = "ui";

/// Header of a proposal.
const HEADER_LINES: [&str; 2] = [
    "# Proposed by `toolbay serve --learn`: this grant, and the permissions that the plugin was denied. They are not allowed yet.",
    "# Remove what the plugin should not have, and rename this file to ",
];

/// The permissions that a plugin was denied, as unique lines of TOML for `[permissions]`, in order
/// of arrival.
#[derive(Clone, Debug, Default)]
pub(super) struct PermissionLines {
    lines: Vec<String>,
    /// True if further lines were dropped.
    is_truncated: bool,
}

impl PermissionLines {
    /// Adds the new lines of a remedy. Returns whether there were any.
    pub(super) fn add(&mut self, remedy: &str) -> bool {
        let mut is_new = false;
        for text in remedy.lines() {
            let text = clean_line(text, MAX_LINE_BYTES);
            if self.lines.contains(&text) || self.is_truncated {
                continue;
            }
            is_new = true;
            if self.lines.len() < MAX_LINES {
                self.lines.push(text);
            } else {
                self.is_truncated = true;
            }
        }
        is_new
    }
}

/// Returns the grant `name` with the permissions of `lines` that it lacks. `None` if it lacks
/// nothing. Its comments and formatting are preserved.
///
/// # Errors
///
/// Nothing can be added to the grant. The message is the reason.
pub(super) fn render_proposal(
    name: &str,
    current: &str,
    lines: &PermissionLines,
) -> Result<Option<String>, String> {
    let mut grant: DocumentMut = current.parse().map_err(|error: toml_edit::TomlError| {
        format!("{name} is not valid TOML: {}", error.message())
    })?;
    let mut hints = Vec::new();
    let mut is_new = false;
    for text in &lines.lines {
        match parse_permission(text) {
            Some((key, value)) => {
                is_new |= merge_permission(&mut grant, &key, value)
                    .map_err(|why| format!("{name}: {why}"))?;
            }
            None => hints.push(text),
        }
    }
    if !is_new && hints.is_empty() {
        return Ok(None);
    }
    let [first, second] = HEADER_LINES;
    // The grant may be an earlier proposal.
    let is_own = |text: &&str| !text.starts_with(first) && !text.starts_with(second);
    let rest = grant.to_string();
    let rest: Vec<&str> = rest.lines().filter(is_own).collect();
    let mut out = format!("{first}\n{second}{}.\n", clean_line(name, MAX_LINE_BYTES));
    for hint in hints {
        out.extend(["# Under [permissions], complete and add: ", hint, "\n"]);
    }
    if lines.is_truncated {
        out.push_str("# The plugin was denied more than is listed here.\n");
    }
    out.push('\n');
    out.push_str(rest.join("\n").trim_start_matches('\n'));
    if !out.ends_with('\n') {
        out.push('\n');
    }
    if out.len() > MAX_PROPOSAL_BYTES {
        return Err(format!("{name} is too large to add to"));
    }
    Ok(Some(out))
}

/// Parses the only permission of a line. `None` if the line is invalid, or contains a permission
/// that no denial names.
fn parse_permission(text: &str) -> Option<(String, Value)> {
    toml_edit::de::from_str::<Permissions>(text).ok()?;
    let table = text.parse::<DocumentMut>().ok()?.into_table();
    let mut entries = table.into_iter();
    let (key, item) = entries
        .next()
        .filter(|(key, _)| !OPERATOR_ONLY.contains(&key.as_str()))?;
    if entries.next().is_some() {
        return None;
    }
    Some((key, item.into_value().ok()?))
}

/// Adds a permission, or the entries of its list that are missing. Returns whether anything was
/// missing.
fn merge_permission(
    grant: &mut DocumentMut,
    key: &str,
    value: Value,
) -> Result<bool, &'static str> {
    let permissions = grant
        .entry("permissions")
        .or_insert_with(|| Item::Table(Table::new()));
    // With only `[[permissions.mounts]]`, the table has no header.
    if let Some(table) = permissions.as_table_mut() {
        table.set_implicit(false);
    }
    let permissions = permissions
        .as_table_like_mut()
        .ok_or("permissions is not a table")?;
    let Some(existing) = permissions.get_mut(key) else {
        permissions.insert(key, Item::Value(without_decor(value)));
        return Ok(true);
    };
    if let (UI_PERMISSION, Value::InlineTable(wanted)) = (key, &value) {
        let existing = existing
            .as_table_like_mut()
            .ok_or("permissions.ui is not a table")?;
        let mut is_new = false;
        for (key, value) in wanted {
            if let Some(existing) = existing.get_mut(key) {
                is_new |= extend_list(existing, value.clone())?;
            } else {
                existing.insert(key, Item::Value(without_decor(value.clone())));
                is_new = true;
            }
        }
        return Ok(is_new);
    }
    extend_list(existing, value)
}

/// Adds the missing entries of a list. Returns whether any were missing.
fn extend_list(existing: &mut Item, value: Value) -> Result<bool, &'static str> {
    let Value::Array(wanted) = value else {
        return Ok(false);
    };
    let existing = existing
        .as_array_mut()
        .ok_or("a permission that should be a list is not a list")?;
    let mut is_new = false;
    for entry in wanted {
        let is_known = existing.iter().any(|known| is_same_value(known, &entry));
        if !is_known {
            existing.push(without_decor(entry));
            is_new = true;
        }
    }
    Ok(is_new)
}

/// Returns whether two values are equal, regardless of formatting.
fn is_same_value(one: &Value, other: &Value) -> bool {
    let meant = |value: &Value| {
        toml::from_str::<toml::Table>(&format!("value = {}", without_decor(value.clone()))).ok()
    };
    meant(one).is_some_and(|one| meant(other).is_some_and(|other| one == other))
}

/// Returns the value without the surrounding spaces and comments.
fn without_decor(mut value: Value) -> Value {
    value.decor_mut().clear();
    value
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use toolbay_catalog::Grant;

    use super::*;

    #[test]
    fn what_views_are_denied_is_added_to_their_table() {
        let denied = lines(&[
            "ui.connect = [\"https://a.example\"]",
            "ui.frames = [\"https://b.example\"]",
        ]);
        for grant in [
            "",
            "[permissions.ui]\nconnect = [\"https://c.example\"]\n",
            "[permissions]\nui.connect = [\"https://c.example\"]\n",
            "[permissions]\nui = { connect = [\"https://c.example\"] }\n",
        ] {
            let text = render_proposal("a.toml", grant, &denied).unwrap().unwrap();
            let parsed = Grant::parse("a.toml", &text, Path::new("/plugins"))
                .unwrap()
                .permissions
                .ui;
            assert_eq!(
                (parsed.connect.len(), parsed.frames.len()),
                (if grant.is_empty() { 1 } else { 2 }, 1),
                "{text}"
            );
            assert_eq!(
                render_proposal("a.toml", &text, &denied).unwrap(),
                None,
                "{text}"
            );
        }
    }

    fn lines(remedies: &[&str]) -> PermissionLines {
        let mut lines = PermissionLines::default();
        for remedy in remedies {
            lines.add(remedy);
        }
        lines
    }

    /// Returns the proposal, which is a valid grant.
    fn proposed(current: &str, remedies: &[&str]) -> String {
        let text = render_proposal("weather.toml", current, &lines(remedies))
            .unwrap()
            .unwrap();
        Grant::parse("weather.toml", &text, Path::new("/")).unwrap();
        text
    }

    #[test]
    fn a_plugin_without_a_grant_gets_a_minimal_one() {
        let remedies = [
            "http = [\"https://a.example.com\"]",
            "http = [{ origin = \"https://b.example.com\", methods = [\"POST\"] }]\nprivate_networks = [\"10.0.0.7\"]",
            "http = [\"https://a.example.com\"]",
            "tcp = [\"db.example.com:PORT\"]",
        ];
        insta::assert_snapshot!(proposed("", &remedies), @r#"
        # Proposed by `toolbay serve --learn`: this grant, and the permissions that the plugin was denied. They are not allowed yet.
        # Remove what the plugin should not have, and rename this file to weather.toml.
        # Under [permissions], complete and add: tcp = ["db.example.com:PORT"]

        [permissions]
        http = ["https://a.example.com", { origin = "https://b.example.com", methods = ["POST"] }]
        private_networks = ["10.0.0.7"]
        "#);
    }

    #[test]
    fn what_the_operator_wrote_stays_in_any_form() {
        let remedy = ["http = [\"https://b.example.com\"]"];
        for current in [
            "prefix = \"a\" # mine\n[permissions]\nhttp = [\n  \"https://a.example.com\", # the first\n]\n[limits]\nfuel = 9\n",
            "permissions = { environment = [\"LANG\"] } # mine\n",
            "permissions.environment = [\"LANG\"] # mine\n",
            "# mine\n[[permissions.mounts]]\nhost = \"data\"\nguest = \"/data\"\naccess = \"read\"\n",
            "# mine\n[limits]\nfuel = 9\n",
        ] {
            let text = proposed(current, &remedy);
            assert!(text.contains("# mine"), "{text}");
            let before = current;
            let after = text.as_str();
            let [before, after] =
                [before, after].map(|text| Grant::parse("w.toml", text, Path::new("/")).unwrap());
            assert_eq!(
                after.permissions.http.len(),
                before.permissions.http.len() + 1,
                "{text}"
            );
            assert_eq!((after.prefix, after.limits), (before.prefix, before.limits));
            assert_eq!(
                after.permissions.environment,
                before.permissions.environment
            );
            assert_eq!(
                after.permissions.mounts.len(),
                before.permissions.mounts.len()
            );
            // After the proposal becomes the grant, nothing is added, and the header is not
            // repeated.
            assert_eq!(
                render_proposal("weather.toml", &text, &lines(&remedy)).unwrap(),
                None
            );
            let again = proposed(&text, &["http = [\"https://c.example.com\"]"]);
            assert_eq!(again.matches("Proposed by").count(), 1, "{again}");
        }
    }

    #[test]
    fn a_line_forges_nothing() {
        for forged in [
            "http = [\"https://a.example.com\"]\u{2028}[limits]",
            "environment = [\"SECRET\"]",
            "deterministic = true",
            "mounts = [{ host = \"/\", guest = \"/\", access = \"read-write\", unsafe = true }]",
            "http = []\nenvironment = [\"SECRET\"]",
            "http = [\"https://a.example.com\"]; [permissions.mounts]",
            "[[mounts]]\rhost = \"/\"",
            "prefix = \"evil\"",
            "\u{1b}[2J http",
            "tcp = [\"a.example.com:80\", 7]",
        ] {
            let Some(text) = render_proposal("weather.toml", "", &lines(&[forged])).unwrap() else {
                continue;
            };
            let grant = Grant::parse("weather.toml", &text, Path::new("/")).unwrap();
            let permissions = Permissions {
                http: grant.permissions.http.clone(),
                ..Permissions::default()
            };
            assert_eq!(
                grant,
                Grant {
                    permissions,
                    digest: grant.digest,
                    text: grant.text.clone(),
                    ..Grant::default()
                },
                "{text}"
            );
            assert!(grant.permissions.http.is_empty(), "{text}");
            assert!(
                !text.contains('\u{1b}')
                    && text
                        .lines()
                        .all(|line| line.starts_with('#') || !line.contains("evil"))
            );
        }
    }

    #[test]
    fn a_guest_that_asks_for_ever_new_things_fills_no_memory() {
        let mut lines = PermissionLines::default();
        let added = (0..10_000)
            .filter(|n| lines.add(&format!("http = [\"https://h{n}.example.com\"]")))
            .count();
        assert_eq!((added, lines.lines.len()), (MAX_LINES + 1, MAX_LINES));
        let text = render_proposal("weather.toml", "", &lines)
            .unwrap()
            .unwrap();
        assert!(
            text.contains("# The plugin was denied more than is listed here.\n"),
            "{text}"
        );
        assert!(!lines.add(&"x".repeat(1 << 20)));
    }
}
