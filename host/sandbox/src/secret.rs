//! Secrets: finds the operator's secret values in everything that a plugin says, and redacts them.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use aho_corasick::{AhoCorasick, MatchKind};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// Shortest secret, in bytes. A shorter one would also be found in unrelated text.
const SHORTEST: usize = 8;

/// Shortest line of a multi-line secret that is redacted on its own, in bytes.
const SHORTEST_LINE: usize = 16;

/// The characters that percent-encoding leaves unchanged (RFC 3986, section 2.3).
const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// The same for JavaScript's `encodeURIComponent`.
const COMPONENT: &AsciiSet = &UNRESERVED.remove(b'!').remove(b'*').remove(b'\'').remove(b'(').remove(b')');

/// No secrets.
static NONE: Secrets = Secrets { values: BTreeMap::new(), finder: None };

/// Named secrets, and a search for all of them at once.
///
/// It finds each value in plain text, in base64 at any offset, in hexadecimal, percent-encoded, and escaped as in JSON.
/// A plugin that can read a secret can encode it in other ways: redaction prevents accidents, not attacks.
#[derive(Default)]
pub struct Secrets {
    values: BTreeMap<String, String>,
    /// `None` if there are no secrets.
    finder: Option<Finder>,
}

struct Finder {
    search: AhoCorasick,
    /// The replacement for each pattern.
    marks: Vec<String>,
}

impl Secrets {
    /// No secrets.
    pub fn none() -> &'static Self {
        &NONE
    }

    /// Their names.
    pub fn names(&self) -> impl Iterator<Item = &String> {
        self.values.keys()
    }

    /// The secrets with these names and values.
    ///
    /// # Errors
    ///
    /// The name of a secret that is too short to redact, or that the secrets are too many.
    pub fn new(values: BTreeMap<String, String>) -> Result<Self, String> {
        let (mut patterns, mut marks) = (Vec::new(), Vec::new());
        for (name, value) in &values {
            if value.trim().len() < SHORTEST {
                return Err(format!("secrets.{name} has fewer than {SHORTEST} bytes, too few to redact reliably"));
            }
            for pattern in forms(value.trim()) {
                patterns.push(pattern);
                marks.push(format!("[secret:{name}]"));
            }
        }
        if patterns.is_empty() {
            return Ok(Self::default());
        }
        let search = AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(&patterns);
        let search = search.map_err(|_| "the secrets are too long to redact".to_owned())?;
        Ok(Self { values, finder: Some(Finder { search, marks }) })
    }

    /// `text` with each secret replaced by `[secret:NAME]`.
    pub fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let Some(finder) = &self.finder else { return Cow::Borrowed(text) };
        let (mut out, mut end) = (String::new(), 0);
        for found in finder.search.find_iter(text) {
            out.push_str(text.get(end..found.start()).unwrap_or_default());
            out.push_str(finder.marks.get(found.pattern().as_usize()).map_or("[secret]", String::as_str));
            end = found.end();
        }
        if end == 0 {
            return Cow::Borrowed(text);
        }
        out.push_str(text.get(end..).unwrap_or_default());
        Cow::Owned(out)
    }

    /// Whether `bytes` contains any of the secrets.
    pub fn are_in(&self, bytes: &[u8]) -> bool {
        self.finder.as_ref().is_some_and(|finder| finder.search.is_match(bytes))
    }
}

/// Shows only the names.
impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.values.keys()).finish()
    }
}

impl PartialEq for Secrets {
    fn eq(&self, other: &Self) -> bool {
        self.values == other.values
    }
}

/// The forms in which a value is searched for.
fn forms(value: &str) -> BTreeSet<Vec<u8>> {
    let lines = value.lines().map(str::trim).filter(|line| line.len() >= SHORTEST_LINE);
    let mut forms = BTreeSet::new();
    for text in lines.chain([value]) {
        let bytes = text.as_bytes();
        let percent = [UNRESERVED, COMPONENT].map(|kept| utf8_percent_encode(text, kept).to_string());
        let json = serde_json::to_string(text).unwrap_or_default();
        let json = json.strip_prefix('"').and_then(|json| json.strip_suffix('"')).unwrap_or(text).to_owned();
        forms.extend(
            [text.to_owned(), json, hex::encode(bytes), hex::encode(bytes).to_uppercase()].map(String::into_bytes),
        );
        forms.extend(percent.map(String::into_bytes));
        for before in 0..3 {
            let padded = [vec![0; before], bytes.to_vec()].concat();
            forms.extend(
                [STANDARD_NO_PAD, URL_SAFE_NO_PAD].map(|base64| inner(&base64.encode(&padded), before, &padded)),
            );
        }
    }
    forms
}

/// The base64 digits of `padded` that depend neither on its first `before` bytes nor on what could follow it.
fn inner(base64: &str, before: usize, padded: &[u8]) -> Vec<u8> {
    let (start, end) = ((before * 8).div_ceil(6), padded.len() * 8 / 6);
    base64.get(start..end).unwrap_or(base64).as_bytes().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALUE: &str = "s3cr\"t/value+ü~x!";

    fn secrets(values: &[(&str, &str)]) -> Result<Secrets, String> {
        Secrets::new(values.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
    }

    #[test]
    fn without_secrets_text_is_unchanged() {
        assert!(matches!(Secrets::none().redact("any text"), Cow::Borrowed("any text")));
        assert!(!Secrets::none().are_in(b"any text"));
    }

    #[test]
    fn a_secret_is_found_in_every_encoding() {
        let secrets = secrets(&[("token", VALUE)]).unwrap();
        let bytes = VALUE.as_bytes();
        let forms = [
            VALUE.to_owned(),
            serde_json::json!({"a": VALUE}).to_string(),
            hex::encode(bytes),
            hex::encode(bytes).to_uppercase(),
            utf8_percent_encode(VALUE, UNRESERVED).to_string(),
            utf8_percent_encode(VALUE, COMPONENT).to_string(),
        ];
        for form in forms {
            assert!(secrets.redact(&format!("a {form} b")).contains("[secret:token]"), "{form}");
        }
        for before in ["", "a", "ab", "abc", "Bearer "] {
            let text = format!("{before}{VALUE}, and so on");
            for base64 in [STANDARD_NO_PAD.encode(&text), URL_SAFE_NO_PAD.encode(&text)] {
                assert!(secrets.redact(&base64).contains("[secret:token]"), "{base64}");
                assert!(secrets.are_in(base64.as_bytes()));
            }
        }
    }

    #[test]
    fn the_text_around_a_secret_is_unchanged() {
        let secrets = secrets(&[("a", "12345678"), ("b", "abcdefgh\n")]).unwrap();
        assert_eq!(secrets.redact("ü12345678-abcdefgh12345678ü"), "ü[secret:a]-[secret:b][secret:a]ü");
        assert_eq!(secrets.redact("1234567 8"), "1234567 8");
    }

    #[test]
    fn each_long_line_of_a_multi_line_secret_is_redacted() {
        let secrets = secrets(&[("key", "-----BEGIN-----\nMIIEvQIBADANBgkqhkiG\n-----END-----\n")]).unwrap();
        assert_eq!(secrets.redact("see MIIEvQIBADANBgkqhkiG and -----END-----"), "see [secret:key] and -----END-----");
    }

    #[test]
    fn secrets_that_are_too_short_or_too_many_are_refused() {
        let said = secrets(&[("pin", "1234 ")]).unwrap_err();
        assert_eq!(said, "secrets.pin has fewer than 8 bytes, too few to redact reliably");
    }

    #[test]
    fn debug_output_does_not_show_values() {
        assert_eq!(format!("{:?}", secrets(&[("token", VALUE)]).unwrap()), r#"{"token"}"#);
    }
}
