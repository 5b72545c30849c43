//! Equivalent spellings of URIs: finds the spelling under which a resource is offered.

use std::borrow::Cow;
use std::collections::BTreeMap;

use toolbay_model::uri::normalize;

/// An index of the offered URIs that are not in normal form. Nearly always empty.
#[derive(Debug, Default)]
pub struct UriSpellings {
    /// The URIs of resources, by their normal form.
    uris: BTreeMap<String, String>,
    /// The roots (scheme and host) of templates whose roots are not in normal form, in ascending
    /// order.
    template_roots: Vec<String>,
}

impl UriSpellings {
    /// Collects the spellings from the URIs of resources and the texts of templates.
    pub(crate) fn new<'a>(
        uris: impl Iterator<Item = &'a str>,
        templates: impl Iterator<Item = &'a str>,
    ) -> Self {
        let is_not_normal = |uri: &&str| matches!(normalize(uri), Cow::Owned(_));
        let mut roots: Vec<String> = templates
            .map(template_root)
            .filter(is_not_normal)
            .map(str::to_owned)
            .collect();
        roots.sort();
        // Only the shortest roots are needed: a URI that begins with a root also begins with each
        // prefix of that root.
        roots.dedup_by(|root, shorter| root.starts_with(shorter.as_str()));
        let uris = uris
            .filter(is_not_normal)
            .map(|uri| (normalize(uri).into_owned(), uri.to_owned()))
            .collect();
        Self {
            uris,
            template_roots: roots,
        }
    }

    /// Returns whether a URI begins with a root. No root begins with another one, so only the last
    /// root that does not sort after the URI can match.
    fn begins_with_root(&self, uri: &str) -> bool {
        let end = self
            .template_roots
            .partition_point(|root| root.as_str() <= uri);
        let root = end
            .checked_sub(1)
            .and_then(|at| self.template_roots.get(at));
        root.is_some_and(|root| uri.starts_with(root.as_str()))
    }

    /// Returns the spelling under which `uri` may be offered, if it differs from `uri`. `is_listed`
    /// returns whether a resource with the given URI is listed.
    pub(crate) fn find(&self, uri: &str, is_listed: impl Fn(&str) -> bool) -> Option<String> {
        if is_listed(uri) {
            return None;
        }
        let normalized = normalize(uri);
        if let Some(listed) = self.uris.get(&*normalized) {
            return Some(listed.clone());
        }
        // A template that is not in normal form matches only URIs that are spelled like it.
        match normalized {
            Cow::Borrowed(_) => None,
            Cow::Owned(other) if is_listed(&other) => Some(other),
            Cow::Owned(other) => (!self.begins_with_root(uri)).then_some(other),
        }
    }
}

/// Returns the scheme and host of a template, as far as they precede its first variable.
fn template_root(template: &str) -> &str {
    let literal = template.split('{').next().unwrap_or_default();
    let start = literal
        .find("://")
        .map_or_else(|| literal.find(':').map_or(0, |at| at + 1), |at| at + 3);
    let end = literal
        .get(start..)
        .and_then(|rest| rest.find('/'))
        .map_or(literal.len(), |at| start + at);
    // Without a host, normalization affects only the scheme.
    let end = if literal.contains("://") { end } else { start };
    literal.get(..end).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_root_that_begins_with_another_one_hides_neither() {
        let templates = ["T://X{id}", "T://XA/{id}", "T://Y/{id}"];
        let spellings = UriSpellings::new(std::iter::empty(), templates.into_iter());
        for uri in ["T://XB", "T://XA/1", "T://X", "T://Xz", "T://Y/1"] {
            assert_eq!(spellings.find(uri, |_| false), None, "{uri}");
        }
        assert_eq!(
            spellings.find("T://W/1", |_| false).as_deref(),
            Some("t://w/1")
        );
    }

    #[test]
    fn a_uri_is_found_under_its_own_spelling_and_then_under_others() {
        let listed = [
            "notes://host/a~b",
            "Odd://HOST/x",
            "both://h/a",
            "BOTH://h/a",
        ];
        let spellings = UriSpellings::new(
            listed.iter().copied(),
            ["T://X/{id}", "fine://x/{id}"].into_iter(),
        );
        let find = |uri: &str| {
            spellings
                .find(uri, |uri| listed.contains(&uri))
                .unwrap_or_else(|| uri.to_owned())
        };
        for (uri, expected) in [
            ("NOTES://Host/a%7eb", "notes://host/a~b"),
            ("notes://host/a~b", "notes://host/a~b"),
            ("odd://host/x", "Odd://HOST/x"),
            ("oDD://host/%78", "Odd://HOST/x"),
            ("both://h/a", "both://h/a"),
            ("BOTH://h/a", "BOTH://h/a"),
            ("FINE://X/1", "fine://x/1"),
            ("T://X/1", "T://X/1"),
            ("notes://host/A~b", "notes://host/A~b"),
            ("Notes://host/%2e%2e/b", "notes://host/../b"),
        ] {
            assert_eq!(find(uri), expected, "{uri}");
        }
    }
}
