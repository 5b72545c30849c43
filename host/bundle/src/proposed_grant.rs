//! The permissions that an author proposes for a plugin.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use toml::{Table, Value};
use toolbay_model::text::{clean, clean_line};

/// Tables of a grant that an author can propose. The others are decisions of the operator.
const PROPOSABLE_TABLES: [&str; 4] = ["permissions", "secrets", "config", "limits"];

/// The table of reasons, by permission.
const REASONS_TABLE: &str = "reasons";

/// Keys of a secret that an author can propose. The source of the value is the operator's.
const PROPOSABLE_SECRET_KEYS: [&str; 4] = ["header", "query", "format", "origins"];

/// Maximum length of a reason, in bytes.
const MAX_REASON_BYTES: usize = 500;

/// The first lines of the grant that a person can copy.
const GRANT_ADVICE: &str = "\
# Proposed by the plugin. Remove what you do not want to allow.
";

/// The lines above a secret, which has no source yet.
const SECRET_ADVICE: &str = "\
# To let requests carry it, remove the # from these lines, and replace VARIABLE with the name of the environment
# variable that has the value, or use another source.
";

/// The grant that an author proposes: the keys of a grant file, and a reason for each permission.
///
/// It is a proposal. No code turns it into permissions: only a file that a person wrote, or
/// confirmed on a terminal, is a grant.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProposedGrant {
    /// `permissions`, `secrets`, `config` and `limits` of a grant file.
    tables: Table,
    /// Reasons, by the key under `permissions`, or `secrets.NAME`.
    reasons: BTreeMap<String, String>,
}

impl ProposedGrant {
    /// Reads the table `proposed_grant`.
    ///
    /// The values are not checked: the caller parses [`ProposedGrant::checkable_text`] as a grant.
    ///
    /// # Errors
    ///
    /// Returns the key and the mistake, on one line.
    pub fn from_table(mut table: Table) -> Result<Self, String> {
        let reasons = match table.remove(REASONS_TABLE) {
            None => BTreeMap::new(),
            Some(Value::Table(reasons)) => read_reasons(reasons)?,
            Some(_) => return Err(format!("{REASONS_TABLE}: expected a table")),
        };
        for (key, value) in &table {
            if !PROPOSABLE_TABLES.contains(&key.as_str()) {
                return Err(format!(
                    "{}: only {} can be proposed; the rest of a grant is the operator's decision",
                    clean_line(key, 100),
                    PROPOSABLE_TABLES.join(", ")
                ));
            }
            if !value.is_table() {
                return Err(format!("{key}: expected a table"));
            }
        }
        let proposal = Self {
            tables: table,
            reasons,
        };
        proposal.check_secrets()?;
        proposal.check_mounts()?;
        proposal.check_reasons()?;
        // The text that a person reads must be the text that is written.
        let text = proposal.to_toml();
        if clean(&text) != text {
            return Err("it contains control characters or invisible characters".to_owned());
        }
        Ok(proposal)
    }

    /// Returns the table `proposed_grant`.
    pub fn to_table(&self) -> Table {
        let mut table = self.tables.clone();
        if !self.reasons.is_empty() {
            let reasons = self
                .reasons
                .iter()
                .map(|(key, reason)| (key.clone(), Value::String(reason.clone())));
            table.insert(REASONS_TABLE.to_owned(), Value::Table(reasons.collect()));
        }
        table
    }

    /// Returns whether nothing is proposed.
    pub fn is_empty(&self) -> bool {
        self.tables
            .values()
            .all(|value| value.as_table().is_none_or(Table::is_empty))
    }

    /// Returns the names of the proposed secrets.
    pub fn secret_names(&self) -> impl Iterator<Item = &str> {
        self.table("secrets").map(|(name, _)| name.as_str())
    }

    /// Returns the text of a grant file for a person to review: each permission below its reason.
    /// Secrets are comments, because the place of their values is unknown.
    pub fn to_toml(&self) -> String {
        let mut text = GRANT_ADVICE.to_owned();
        self.write_entries(&mut text, "permissions");
        self.write_entries(&mut text, "limits");
        self.write_entries(&mut text, "config");
        for (name, secret) in self.table("secrets") {
            text.push('\n');
            self.write_reason(&mut text, &format!("secrets.{name}"));
            text.push_str(SECRET_ADVICE);
            let _ = writeln!(text, "# [secrets.{}]", toml_key(name));
            text.push_str("# environment = \"VARIABLE\"\n");
            for (key, value) in secret.as_table().into_iter().flatten() {
                // A long text can have several lines.
                for line in format!("{} = {value}", toml_key(key)).lines() {
                    let _ = writeln!(text, "# {line}");
                }
            }
        }
        text
    }

    /// Returns the text of a grant with all proposed values, to check them with the parser of
    /// grants. Its secrets have a source that does not exist. It must not be used as a grant.
    pub fn checkable_text(&self) -> String {
        let mut tables = self.tables.clone();
        if let Some(Value::Table(secrets)) = tables.get_mut("secrets") {
            for (_, secret) in secrets.iter_mut() {
                if let Value::Table(secret) = secret {
                    secret.insert("environment".to_owned(), Value::from("VARIABLE"));
                }
            }
        }
        let mut text = String::new();
        for (key, value) in tables {
            let _ = writeln!(text, "{key} = {value}");
        }
        text
    }

    fn table(&self, name: &str) -> impl Iterator<Item = (&String, &Value)> {
        self.tables
            .get(name)
            .and_then(Value::as_table)
            .into_iter()
            .flatten()
    }

    fn write_entries(&self, text: &mut String, table: &str) {
        let mut entries = self.table(table).peekable();
        if entries.peek().is_some() {
            let _ = writeln!(text, "\n[{table}]");
        }
        for (key, value) in entries {
            if table == "permissions" {
                self.write_reason(text, key);
            }
            let _ = writeln!(text, "{} = {value}", toml_key(key));
        }
    }

    fn write_reason(&self, text: &mut String, key: &str) {
        if let Some(reason) = self.reasons.get(key) {
            let _ = writeln!(text, "# {}", clean_line(reason, MAX_REASON_BYTES));
        }
    }

    /// Checks that secrets are proposed by name, without values and without sources.
    fn check_secrets(&self) -> Result<(), String> {
        for (name, secret) in self.table("secrets") {
            let place = format!("secrets.{}", clean_line(name, 100));
            let Value::Table(secret) = secret else {
                return Err(format!("{place}: expected a table"));
            };
            let other = secret
                .keys()
                .find(|key| !PROPOSABLE_SECRET_KEYS.contains(&key.as_str()));
            if let Some(key) = other {
                return Err(format!(
                    "{place}.{}: a proposal names a secret, and never its value or its source; only {} can be proposed",
                    clean_line(key, 100),
                    PROPOSABLE_SECRET_KEYS.join(", ")
                ));
            }
        }
        Ok(())
    }

    /// Checks that mounts propose only folders relative to the plugin folder, and no `unsafe`.
    fn check_mounts(&self) -> Result<(), String> {
        let mounts = self
            .table("permissions")
            .find(|(key, _)| *key == "mounts")
            .and_then(|(_, mounts)| mounts.as_array());
        for (index, mount) in mounts.into_iter().flatten().enumerate() {
            let place = format!("permissions.mounts[{index}]");
            if mount.get("unsafe").is_some() {
                return Err(format!(
                    "{place}.unsafe: only the operator can decide this; remove it"
                ));
            }
            let host = mount.get("host").and_then(Value::as_str);
            let is_inside = |host: &str| {
                std::path::Path::new(host)
                    .components()
                    .all(|part| matches!(part, std::path::Component::Normal(_)))
                    && !host.is_empty()
                    && !host.starts_with('.')
            };
            if !host.is_some_and(is_inside) {
                return Err(format!(
                    "{place}.host: expected a folder in the plugin folder, such as \"data\"; the operator can choose another one"
                ));
            }
        }
        Ok(())
    }

    /// Checks that each permission and each secret has a reason, and that each reason has one.
    fn check_reasons(&self) -> Result<(), String> {
        let permissions = self.table("permissions").map(|(key, _)| key.clone());
        let secrets = self.secret_names().map(|name| format!("secrets.{name}"));
        let keys: Vec<String> = permissions.chain(secrets).collect();
        if let Some(key) = keys.iter().find(|key| !self.reasons.contains_key(*key)) {
            let key = clean_line(key, 100);
            return Err(format!(
                "{key} has no reason; add it to [proposed_grant.{REASONS_TABLE}], as in {} = \"Gets the forecast of a place\"",
                toml_key(&key)
            ));
        }
        match self.reasons.keys().find(|key| !keys.contains(key)) {
            Some(key) => Err(format!(
                "{REASONS_TABLE}.{}: nothing of this name is proposed",
                clean_line(key, 100)
            )),
            None => Ok(()),
        }
    }
}

fn read_reasons(table: Table) -> Result<BTreeMap<String, String>, String> {
    let mut reasons = BTreeMap::new();
    for (key, value) in table {
        let place = format!("{REASONS_TABLE}.{}", clean_line(&key, 100));
        let Value::String(reason) = value else {
            return Err(format!("{place}: expected a text"));
        };
        if reason.trim().is_empty() || reason.len() > MAX_REASON_BYTES {
            return Err(format!(
                "{place}: expected 1 to {MAX_REASON_BYTES} bytes of text"
            ));
        }
        reasons.insert(key, reason);
    }
    Ok(reasons)
}

/// Returns a key as it is written in TOML: quoted unless it is a bare key.
fn toml_key(key: &str) -> String {
    let is_bare = !key.is_empty()
        && key
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-');
    if is_bare {
        return key.to_owned();
    }
    let mut quoted = String::from('"');
    for c in key.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => {
                let _ = write!(quoted, "\\u{:04x}", u32::from(c));
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<ProposedGrant, String> {
        ProposedGrant::from_table(toml::from_str(text).unwrap())
    }

    #[test]
    fn a_proposal_is_shown_as_a_grant_with_reasons() {
        let text = r#"
            limits = { timeout = "20s" }
            [permissions]
            http = ["https://api.example.com"]
            mounts = [{ access = "read", guest = "/data", host = "data" }]
            [secrets."api key"]
            header = "Authorization"
            [reasons]
            http = "Gets the forecast\nof a place"
            mounts = "Reads names of places"
            "secrets.api key" = "The account at api.example.com"
        "#;
        let proposal = parse(text).unwrap();
        let shown = proposal.to_toml();
        assert_eq!(
            shown,
            "# Proposed by the plugin. Remove what you do not want to allow.\n\n\
             [permissions]\n\
             # Gets the forecast\\nof a place\n\
             http = [\"https://api.example.com\"]\n\
             # Reads names of places\n\
             mounts = [{ access = \"read\", guest = \"/data\", host = \"data\" }]\n\n\
             [limits]\ntimeout = \"20s\"\n\n\
             # The account at api.example.com\n\
             # To let requests carry it, remove the # from these lines, and replace VARIABLE with the name of the environment\n\
             # variable that has the value, or use another source.\n\
             # [secrets.\"api key\"]\n\
             # environment = \"VARIABLE\"\n\
             # header = \"Authorization\"\n"
        );
        let copied: Table = toml::from_str(&shown).unwrap();
        assert!(!copied.contains_key("secrets"), "secrets stay comments");
        assert_eq!(ProposedGrant::from_table(proposal.to_table()), Ok(proposal));
    }

    #[test]
    fn what_an_author_cannot_propose_is_refused() {
        let cases = [
            ("require_approval = \"never\"", "require_approval: only"),
            ("prefix = \"a\"", "prefix: only"),
            ("component = \"00\"", "component: only"),
            ("tools = {}", "tools: only"),
            ("permissions = 1", "permissions: expected a table"),
            (
                "permissions.http = [\"https://a.example\"]",
                "http has no reason",
            ),
            ("reasons.http = \"x\"", "reasons.http: nothing of this name"),
            ("reasons = 1", "reasons: expected a table"),
            ("reasons.http = 1", "reasons.http: expected a text"),
            ("reasons.http = \" \"", "reasons.http: expected 1 to"),
            ("secrets.a = \"hunter2\"", "secrets.a: expected a table"),
            (
                "secrets.a = { environment = \"HOME\" }",
                "secrets.a.environment: a proposal names",
            ),
            (
                "secrets.a = { command = [\"sh\"] }",
                "secrets.a.command: a proposal names",
            ),
            (
                "secrets.a = { file = \"/etc/shadow\" }",
                "secrets.a.file: a proposal names",
            ),
            (
                "permissions.mounts = [{ host = \"/etc\", guest = \"/e\", access = \"read\" }]",
                "permissions.mounts[0].host: expected",
            ),
            (
                "permissions.mounts = [{ host = \"a/../..\", guest = \"/e\", access = \"read\" }]",
                "permissions.mounts[0].host: expected",
            ),
            (
                "permissions.mounts = [{ host = \".\", guest = \"/e\", access = \"read\" }]",
                "permissions.mounts[0].host: expected",
            ),
            (
                "permissions.mounts = [{ guest = \"/e\", access = \"read\" }]",
                "permissions.mounts[0].host: expected",
            ),
            (
                "permissions.mounts = [{ host = \"a\", unsafe = true }]",
                "permissions.mounts[0].unsafe: only the operator",
            ),
            (
                "permissions.tcp = [\"a\\u202eb:1\"]\nreasons.tcp = \"x\"",
                "it contains control characters",
            ),
            ("config.\"a\\u200b\" = 1", "it contains control characters"),
        ];
        for (text, expected) in cases {
            let why = parse(text).unwrap_err();
            assert!(why.starts_with(expected), "{text}: {why}");
        }
    }

    #[test]
    fn a_reason_cannot_become_a_line_of_the_grant() {
        let text = "permissions.tcp = [\"a:1\"]\n[reasons]\ntcp = \"x\\u2028http = 1\\r\\nstate = {}\\u0007\"";
        let shown = parse(text).unwrap().to_toml();
        let copied: Table = toml::from_str(&shown).unwrap();
        let permissions = copied["permissions"].as_table().unwrap();
        assert_eq!(permissions.keys().collect::<Vec<_>>(), ["tcp"]);
    }

    #[test]
    fn a_name_of_a_secret_cannot_become_a_line_of_the_grant() {
        let text = "[secrets.\"a\\n[permissions]\\nhttp = 1\\n\"]\n[reasons]\n\"secrets.a\\n[permissions]\\nhttp = 1\\n\" = \"x\"";
        let shown = parse(text).unwrap().to_toml();
        assert_eq!(toml::from_str::<Table>(&shown).unwrap(), Table::new());
    }
}
