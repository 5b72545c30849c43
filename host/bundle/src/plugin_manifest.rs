//! The metadata of a plugin.

use semver::Version;
use toml::{Table, Value};
use toolbay_model::text::clean_line;
use toolbay_settings::project::ProjectFile;
use url::Url;

use crate::proposed_grant::ProposedGrant;

/// Maximum length of a text of the metadata, in bytes. Longer texts are truncated.
const MAX_TEXT_BYTES: usize = 500;

/// The metadata of a plugin: who made it, and what it proposes to be granted. Everything in it
/// comes from its author. Texts are single lines without control characters.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PluginManifest {
    /// Version, as in Semantic Versioning.
    pub version: Option<String>,
    /// Purpose of the plugin.
    pub summary: Option<String>,
    /// The people or organizations that made it.
    pub authors: Option<String>,
    /// License, as an SPDX expression.
    pub license: Option<String>,
    /// URL of a page about it.
    pub homepage: Option<String>,
    /// URL of its source code.
    pub source: Option<String>,
    /// The revision of the source code, such as a commit.
    pub revision: Option<String>,
    /// URL of an icon.
    pub icon: Option<String>,
    /// The proposed grant. Never applied.
    pub proposed_grant: Option<ProposedGrant>,
}

impl PluginManifest {
    /// Returns the metadata of a project.
    ///
    /// # Errors
    ///
    /// A value is invalid. The message begins with its key. The values of the proposed grant are
    /// not checked; see [`ProposedGrant::from_table`].
    pub fn from_project(project: &ProjectFile) -> Result<Self, String> {
        if let Some(version) = &project.version {
            Version::parse(version).map_err(|why| {
                format!("version: {version:?} is not a version, such as 1.0.0 ({why})")
            })?;
        }
        if let Some(license) = &project.license {
            spdx::Expression::parse(license).map_err(|why| {
                format!("license: {license:?} is not an SPDX expression, such as \"MIT OR Apache-2.0\" ({})", why.reason)
            })?;
        }
        for (key, url) in [
            ("homepage", &project.homepage),
            ("source", &project.source),
            ("icon", &project.icon),
        ] {
            check_url(url.as_deref()).map_err(|why| format!("{key}: {why}"))?;
        }
        let proposed_grant = project
            .proposed_grant
            .clone()
            .map(ProposedGrant::from_table)
            .transpose()
            .map_err(|why| format!("proposed_grant: {why}"))?;
        let manifest = Self {
            version: project.version.clone(),
            summary: project.summary.clone(),
            authors: (!project.authors.is_empty()).then(|| project.authors.join(", ")),
            license: project.license.clone(),
            homepage: project.homepage.clone(),
            source: project.source.clone(),
            revision: None,
            icon: project.icon.clone(),
            proposed_grant,
        };
        for (key, text) in manifest.texts() {
            if text.trim().is_empty() || clean_line(text, MAX_TEXT_BYTES) != text {
                return Err(format!(
                    "{key}: expected one line of at most {MAX_TEXT_BYTES} bytes, without control characters"
                ));
            }
        }
        Ok(manifest)
    }

    /// Returns the texts that are set, with their keys in `plugin.toml`.
    pub fn texts(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let Self {
            version,
            summary,
            authors,
            license,
            homepage,
            source,
            revision,
            icon,
            proposed_grant: _,
        } = self;
        [
            ("version", version),
            ("summary", summary),
            ("authors", authors),
            ("license", license),
            ("homepage", homepage),
            ("source", source),
            ("revision", revision),
            ("icon", icon),
        ]
        .into_iter()
        .filter_map(|(key, text)| Some((key, text.as_deref()?)))
    }

    /// Returns whether nothing is set.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Sets the text of a key to the cleaned and truncated `text`. Ignores other keys and blank
    /// texts.
    pub(crate) fn set_text(&mut self, key: &str, text: &str) {
        let text = clean_line(text.trim(), MAX_TEXT_BYTES);
        let field = match key {
            "version" => &mut self.version,
            "summary" => &mut self.summary,
            "authors" => &mut self.authors,
            "license" => &mut self.license,
            "homepage" => &mut self.homepage,
            "source" => &mut self.source,
            "revision" => &mut self.revision,
            "icon" => &mut self.icon,
            _ => return,
        };
        *field = Some(text).filter(|text| !text.is_empty());
    }

    /// Reads the metadata from a table with only known keys.
    pub(crate) fn from_table(mut table: Table) -> Result<Self, String> {
        let mut manifest = Self::default();
        match table.remove("proposed_grant") {
            None => {}
            Some(Value::Table(proposal)) => {
                let proposal = ProposedGrant::from_table(proposal)
                    .map_err(|why| format!("proposed_grant: {why}"))?;
                manifest.proposed_grant = Some(proposal);
            }
            Some(_) => return Err("proposed_grant: expected a table".to_owned()),
        }
        for (key, value) in table {
            let place = clean_line(&key, 100);
            let Value::String(text) = value else {
                return Err(format!("{place}: expected a text"));
            };
            manifest.set_text(&key, &text);
            if !manifest.texts().any(|(known, _)| known == key) {
                return Err(format!("{place}: unknown key, or no text"));
            }
        }
        Ok(manifest)
    }

    /// Returns the metadata as a table, for [`PluginManifest::from_table`].
    pub(crate) fn to_table(&self) -> Table {
        let texts = self.texts();
        let mut table: Table = texts
            .map(|(key, text)| (key.to_owned(), Value::from(text)))
            .collect();
        if let Some(proposal) = &self.proposed_grant {
            table.insert(
                "proposed_grant".to_owned(),
                Value::Table(proposal.to_table()),
            );
        }
        table
    }
}

/// Checks a URL for people, which a browser or an image loader opens.
fn check_url(text: Option<&str>) -> Result<(), String> {
    let Some(text) = text else { return Ok(()) };
    let is_https = Url::parse(text)
        .is_ok_and(|url| url.scheme() == "https" && url.has_host() && url.username().is_empty());
    if is_https {
        return Ok(());
    }
    Err(format!(
        "{text:?} is not a URL such as https://example.com/weather"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const REQUIRED: &str =
        "name = \"a\"\nlanguage = \"rust\"\nbuild = []\noutput = \"a.wasm\"\nwatch = []\n";

    fn manifest(text: &str) -> Result<PluginManifest, String> {
        PluginManifest::from_project(&ProjectFile::parse(&format!("{REQUIRED}{text}")).unwrap())
    }

    #[test]
    fn metadata_of_a_project_survives_a_table() {
        let text = r#"
            version = "1.2.0-beta.1"
            summary = "Forecasts"
            authors = ["Ada <ada@example.com>", "Grace"]
            license = "MIT OR Apache-2.0"
            homepage = "https://example.com/weather"
            source = "https://example.com/weather.git"
            icon = "https://example.com/icon.png"
            [proposed_grant.permissions]
            environment = ["LANG"]
            [proposed_grant.reasons]
            environment = "Answers in the language of the server"
        "#;
        let manifest = manifest(text).unwrap();
        assert_eq!(
            manifest.authors.as_deref(),
            Some("Ada <ada@example.com>, Grace")
        );
        assert_eq!(
            PluginManifest::from_table(manifest.to_table()),
            Ok(manifest)
        );
    }

    #[test]
    fn an_invalid_value_names_its_key() {
        let cases = [
            ("version = \"1\"", "version: \"1\" is not a version"),
            ("license = \"mine\"", "license: \"mine\" is not an SPDX"),
            (
                "homepage = \"javascript:alert(1)\"",
                "homepage: \"javascript:alert(1)\" is not a URL",
            ),
            ("source = \"http://example.com\"", "source: "),
            ("icon = \"https://user@example.com/a\"", "icon: "),
            ("summary = \"a\\nb\"", "summary: expected one line"),
            ("summary = \" \"", "summary: expected one line"),
            ("authors = [\"\\u202e\"]", "authors: expected one line"),
            (
                "proposed_grant.prefix = \"a\"",
                "proposed_grant: prefix: only",
            ),
        ];
        for (text, expected) in cases {
            let why = manifest(text).unwrap_err();
            assert!(why.starts_with(expected), "{text}: {why}");
        }
    }

    #[test]
    fn text_of_strangers_is_cleaned_and_truncated() {
        let mut manifest = PluginManifest::default();
        manifest.set_text("summary", "\u{1b}[31ma\u{202e}b\nc");
        assert_eq!(manifest.summary.as_deref(), Some("ab\\nc"));
        manifest.set_text("summary", &"x".repeat(100_000));
        assert!(manifest.summary.as_ref().unwrap().len() <= MAX_TEXT_BYTES);
        manifest.set_text("summary", "\u{200b}\n");
        assert_eq!(manifest.summary, None);
    }
}
