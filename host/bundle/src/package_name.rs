//! Names of packages, as other tools for components use them.

use std::fmt;
use std::str::FromStr;

use semver::Version;
use toolbay_model::text::clean_line;

/// Maximum length of a name, in bytes.
const MAX_NAME_BYTES: usize = 200;

/// The name of a package with its version, such as `acme:weather@1.2.0`. Which registry has it
/// depends on the configuration of the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackageName {
    namespace: String,
    name: String,
    version: Version,
}

impl PackageName {
    /// Returns whether a text is meant to be the name of a package: two words with a colon between
    /// them, and perhaps a version. A file of that name needs a path, such as `./acme:weather`.
    pub fn looks_like(text: &str) -> bool {
        let (name, _) = text.split_once('@').unwrap_or((text, ""));
        name.split_once(':')
            .is_some_and(|(namespace, name)| is_label(namespace) && is_label(name))
    }

    /// Returns the part before the colon.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Returns the part after the colon.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the version.
    pub fn version(&self) -> &Version {
        &self.version
    }
}

impl FromStr for PackageName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = |why: &str| {
            format!(
                "{:?} is not the name of a package such as acme:weather@1.2.0: {why}",
                clean_line(text, MAX_NAME_BYTES)
            )
        };
        if text.len() > MAX_NAME_BYTES {
            return Err(wrong("it is too long"));
        }
        let (name, version) = text
            .split_once('@')
            .ok_or_else(|| wrong("it has no version"))?;
        let version = Version::parse(version).map_err(|why| wrong(&why.to_string()))?;
        if !version.build.is_empty() {
            return Err(wrong("a tag cannot contain the part after the +"));
        }
        match name.split_once(':') {
            Some((namespace, name)) if is_label(namespace) && is_label(name) => Ok(Self {
                namespace: namespace.to_owned(),
                name: name.to_owned(),
                version,
            }),
            _ => Err(wrong("a name has a-z 0-9 - and one colon")),
        }
    }
}

impl fmt::Display for PackageName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}@{}", self.namespace, self.name, self.version)
    }
}

/// Returns whether a text is one part of a name: words of lower-case letters and digits, with
/// hyphens between them.
fn is_label(text: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    text.starts_with(|first: char| first.is_ascii_lowercase())
        && text
            .split('-')
            .all(|word| !word.is_empty() && word.bytes().all(is_letter))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_from_files() {
        for text in ["acme:weather@1.2.0", "a-b:c-1@0.1.0-rc.1"] {
            let name: PackageName = text.parse().unwrap();
            assert_eq!(name.to_string(), text);
            assert!(PackageName::looks_like(text));
        }
        for file in [
            "weather.wasm",
            "./acme:weather",
            "C:weather",
            "acme:weather.wasm",
            "a:b:c",
            ":b",
            "a:",
        ] {
            assert!(!PackageName::looks_like(file), "{file}");
            assert!(file.parse::<PackageName>().is_err(), "{file}");
        }
        for wrong in [
            "acme:weather",
            "acme:weather@1",
            "acme:weather@latest",
            "acme:weather@1.0.0+a",
        ] {
            assert!(PackageName::looks_like(wrong), "{wrong}");
            assert!(wrong.parse::<PackageName>().is_err(), "{wrong}");
        }
    }
}
