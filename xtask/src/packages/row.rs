//! The rows of the lists in `tests/packages`: packages with one call each.

use serde::Deserialize;
use toolbay_testkit::message;

/// A package registry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum PackageRegistry {
    /// The registry of JavaScript packages.
    #[default]
    Npm,
    /// The registry of Python packages.
    Pypi,
}

/// A package with a call of it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PackageRow {
    /// The registry, which the file of the row determines.
    #[serde(skip)]
    pub(super) registry: PackageRegistry,
    /// A name that is unique among all rows, for a tool and a module.
    #[serde(skip)]
    pub(super) id: String,
    /// The name in the registry.
    pub(super) name: String,
    pub(super) version: String,
    /// The source of the call: a module with `call(base)` for an API client; otherwise, imports and
    /// the body of a function.
    pub(super) code: String,
    /// The names of modules for `[python] include`.
    #[serde(default)]
    pub(super) include: Vec<String>,
    /// A part of the error of a package that does not work.
    pub(super) fails: Option<String>,
    /// A part of the error of a package that cannot be in a plugin: the replacement.
    pub(super) instead: Option<String>,
    /// The library or function with which an API client sends requests.
    pub(super) over: Option<String>,
    /// The responses of the local server to an API client.
    #[serde(default)]
    pub(super) answers: Vec<ApiAnswer>,
    /// The result of an API client, which the reference program must return too.
    pub(super) result: Option<toml::Value>,
}

/// A response of the local server.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ApiAnswer {
    pub(super) method: String,
    /// The path of the request, without the query.
    pub(super) path: String,
    /// Headers in addition to `Content-Type: application/json`, which they can replace.
    #[serde(default)]
    pub(super) headers: toml::Table,
    pub(super) body: String,
}

/// The expected result of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RowClaim<'a> {
    /// The call returns the value of the reference program.
    Works,
    /// It is a known failure, whose error contains this text.
    Fails(&'a str),
    /// The package cannot be in a plugin, and the error contains this replacement.
    Refused(&'a str),
}

impl PackageRegistry {
    /// Returns the name that readers know.
    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Npm => "npm",
            Self::Pypi => "PyPI",
        }
    }

    /// Returns the name of files, folders and markers.
    pub(super) fn key(self) -> &'static str {
        match self {
            Self::Npm => "npm",
            Self::Pypi => "pypi",
        }
    }

    /// Returns the language of the plugins.
    pub(super) fn language(self) -> &'static str {
        match self {
            Self::Npm => "javascript",
            Self::Pypi => "python",
        }
    }
}

impl PackageRow {
    /// Returns whether the package is called with the URL of a local server.
    pub(super) fn is_client(&self) -> bool {
        self.over.is_some()
    }

    pub(super) fn claim(&self) -> RowClaim<'_> {
        match (&self.instead, &self.fails) {
            (Some(instead), _) => RowClaim::Refused(instead),
            (None, Some(fails)) => RowClaim::Fails(fails),
            (None, None) => RowClaim::Works,
        }
    }

    /// Splits the code into the lines of its imports and the rest.
    pub(super) fn split_imports(&self) -> (String, String) {
        let is_import = |line: &&str| {
            line.starts_with("import ") || line.starts_with("from ") || line.is_empty()
        };
        let imports: String = self
            .code
            .split_inclusive('\n')
            .take_while(is_import)
            .collect();
        let rest = self
            .code
            .get(imports.len()..)
            .unwrap_or_default()
            .to_owned();
        (imports, rest)
    }

    /// Returns the call's result in an answer of the server: the value, or the error.
    pub(super) fn parse_result(result: &serde_json::Value) -> Result<serde_json::Value, String> {
        let text = message::result_text(result);
        if message::is_error(result) {
            return Err(text);
        }
        serde_json::from_str(&text).map_err(|error| format!("the tool returned {text:?}: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn imports_are_split_from_the_rest() {
        let row = |code: &str| {
            let text = format!("name = \"a\"\nversion = \"1\"\ncode = {code:?}");
            toml::from_str::<PackageRow>(&text).unwrap().split_imports()
        };
        assert_eq!(
            row("import a\nfrom b import c\nreturn a(c)\nimport late\n"),
            (
                "import a\nfrom b import c\n".to_owned(),
                "return a(c)\nimport late\n".to_owned()
            )
        );
        assert_eq!(row("return 1"), (String::new(), "return 1".to_owned()));
        assert_eq!(
            row("import 'a';"),
            ("import 'a';".to_owned(), String::new())
        );
    }

    #[test]
    fn an_unknown_key_is_refused() {
        let text = "name = \"a\"\nversion = \"1\"\ncode = \"\"\ninsted = \"b\"";
        assert!(toml::from_str::<PackageRow>(text).is_err());
    }
}
