//! URI templates (RFC 6570, level 1, and `{+name}`) and how URIs match them.
//!
//! A URI matches if it can be split into the texts of the template and non-empty values of its
//! variables. All possible splits are followed at once, from left to right, so that the time grows
//! with the length of the URI and not with the number of splits.

use std::collections::HashSet;

use toolbay_model::text::format_thousands;
use toolbay_model::uri::check_authority;

use crate::resource_uri::match_budget::{MatchBudget, MatchBudgetExhausted};
use crate::resource_uri::uri::{
    MatchedUri, UriCharacter, check_characters, has_parent_segment, scheme,
};

/// Maximum length of a template, in bytes.
const MAX_TEMPLATE_BYTES: usize = 1 << 10;

/// Maximum number of variables of a template. Each takes one pass over a URI.
const MAX_VARIABLES: usize = 16;

/// Maximum length of a variable name, in bytes.
const MAX_VARIABLE_NAME_BYTES: usize = 64;

/// A URI template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UriTemplate {
    /// The text before the first variable.
    prefix: Box<str>,
    /// The variables, each with the text that follows it.
    parts: Box<[UriTemplatePart]>,
}

/// A variable and the text that follows it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct UriTemplatePart {
    name: Box<str>,
    /// True if its value can contain any character.
    is_reserved: bool,
    text: TextSearch,
}

/// A text to search for (Knuth-Morris-Pratt).
#[derive(Clone, Debug, PartialEq, Eq)]
struct TextSearch {
    text: Box<[u8]>,
    /// The failure function: for each prefix of the text, the length of its longest proper suffix
    /// that is also a prefix.
    failure_table: Box<[usize]>,
}

impl UriTemplate {
    /// Parses a template.
    ///
    /// # Errors
    ///
    /// Returns a description of the problem: the end of a sentence that begins with the template.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.len() > MAX_TEMPLATE_BYTES {
            let [length, most] =
                [text.len(), MAX_TEMPLATE_BYTES].map(|n| format_thousands(n as u64));
            return Err(format!(
                "has {length} bytes, but at most {most} are allowed"
            ));
        }
        let (prefix, mut rest) = text.split_once('{').unwrap_or((text, ""));
        if rest.is_empty() && !text.contains('{') {
            return Err("has no variable, such as {id}; list it as a resource".into());
        }
        scheme(prefix)?;
        // An authority that a variable may continue cannot be checked.
        if prefix
            .split_once("://")
            .is_some_and(|(_, rest)| rest.contains(['/', '?', '#']))
        {
            check_authority(prefix)?;
        }
        let mut parts = Vec::new();
        loop {
            let Some((expression, after)) = rest.split_once('}') else {
                return Err("has a \"{\" without a \"}\" after it".into());
            };
            let (following_text, next) = after
                .split_once('{')
                .map_or((after, None), |(between, next)| (between, Some(next)));
            if following_text.is_empty() && next.is_some() {
                return Err(format!(
                    "has nothing between {{{expression}}} and the next variable"
                ));
            }
            parts.push(UriTemplatePart::new(expression, following_text)?);
            match next {
                Some(next) => rest = next,
                None => break,
            }
        }
        if parts.len() > MAX_VARIABLES {
            return Err(format!(
                "has {} variables, but at most {MAX_VARIABLES} are allowed",
                parts.len()
            ));
        }
        for text in [prefix]
            .into_iter()
            .chain(parts.iter().map(|part| part.text.as_str()))
        {
            check_characters(text)?;
        }
        // If the texts already contain the segment, no URI could match.
        if has_parent_segment(text) {
            return Err("contains the segment \"..\"".into());
        }
        let mut names = HashSet::new();
        if let Some(duplicate) = parts.iter().find(|part| !names.insert(&part.name)) {
            return Err(format!("has the variable {:?} twice", duplicate.name));
        }
        Ok(Self {
            prefix: prefix.into(),
            parts: parts.into(),
        })
    }

    /// Returns the names of the variables, from left to right.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().map(|part| &*part.name)
    }

    /// Returns whether `uri` matches the template. A URI that is too long does not match. Neither
    /// does one with a segment `..`, in the URI as a whole or in the value of a variable, which a
    /// plugin may use as a path.
    pub fn matches(&self, uri: &str) -> bool {
        MatchedUri::parse(uri).is_some_and(|uri| {
            self.matches_with_budget(&uri, &mut MatchBudget::new(usize::MAX)) == Ok(true)
        })
    }

    /// Returns the text with which every matching URI begins.
    pub(crate) fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Like [`Self::matches`], but within a budget. Each pass over the URI costs as many steps as
    /// there are characters left.
    ///
    /// # Errors
    ///
    /// Returns an error if the budget is exhausted.
    pub(crate) fn matches_with_budget(
        &self,
        uri: &MatchedUri<'_>,
        budget: &mut MatchBudget,
    ) -> Result<bool, MatchBudgetExhausted> {
        let Some(rest) = uri.text.strip_prefix(&*self.prefix) else {
            return Ok(false);
        };
        let rest = rest.as_bytes();
        let characters = uri.characters_from(self.prefix.len());
        let end = self.parts.last().map_or(&[][..], |part| &part.text.text);
        // Values are not empty.
        let min_length: usize = self.parts.iter().map(|part| part.text.text.len() + 1).sum();
        if rest.len() < min_length || !rest.ends_with(end) {
            return Ok(false);
        }
        // The byte positions at which the part matched so far can end.
        let mut ends = vec![false; rest.len() + 1];
        if let Some(first) = ends.first_mut() {
            *first = true;
        }
        for part in &self.parts {
            budget.spend(2 * ends.len())?;
            ends = part
                .text
                .match_ends(rest, &part.value_ends(characters, &ends));
            if !ends.contains(&true) {
                return Ok(false);
            }
        }
        Ok(ends.last() == Some(&true))
    }
}

impl UriTemplatePart {
    fn new(expression: &str, text: &str) -> Result<Self, String> {
        let (name, is_reserved) = match expression.strip_prefix('+') {
            Some(name) => (name, true),
            None => (expression, false),
        };
        if expression.starts_with(|operator: char| "#./;?&=,!@|".contains(operator))
            || name.ends_with(['*', ','])
        {
            return Err(unsupported_expression(expression));
        }
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_.".contains(&byte);
        if name.is_empty() || name.len() > MAX_VARIABLE_NAME_BYTES || !name.bytes().all(is_allowed)
        {
            if name.contains([',', ':', '*']) {
                return Err(unsupported_expression(expression));
            }
            return Err(format!(
                "has the variable {{{expression}}}, whose name must have 1 to {MAX_VARIABLE_NAME_BYTES} characters of A-Z a-z 0-9 _ ."
            ));
        }
        if text.contains('}') {
            return Err("has a \"}\" without a \"{\" before it".into());
        }
        Ok(Self {
            name: name.into(),
            is_reserved,
            text: TextSearch::new(text),
        })
    }

    /// Returns the positions at which a value can end that begins at one of `starts`. A value has
    /// at least one character.
    fn value_ends(&self, characters: &[(usize, UriCharacter)], starts: &[bool]) -> Vec<bool> {
        let mut ends = vec![false; starts.len()];
        let mut segments = SegmentStates::default();
        let mut position = 0;
        for (length, character) in characters {
            segments.fresh |= starts.get(position) == Some(&true);
            segments = match character {
                UriCharacter::Delimiter if !self.is_reserved => SegmentStates::default(),
                character => segments.advance(*character),
            };
            position += length;
            if let Some(end) = ends.get_mut(position) {
                *end = segments.can_end();
            }
        }
        ends
    }
}

/// The possible states of the last segment of a value, over all splits that are followed.
#[derive(Clone, Copy, Debug, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a state that can be combined with the others"
)]
struct SegmentStates {
    /// Empty.
    fresh: bool,
    /// `.`.
    dot: bool,
    /// `..`.
    dots: bool,
    /// Anything else.
    other: bool,
}

impl SegmentStates {
    fn advance(self, character: UriCharacter) -> Self {
        let Self {
            fresh,
            dot,
            dots,
            other,
        } = self;
        match character {
            UriCharacter::Dot => Self {
                fresh: false,
                dot: fresh,
                dots: dot,
                other: dots || other,
            },
            // A value that contains the segment `..` is invalid.
            UriCharacter::Delimiter | UriCharacter::Separator => Self {
                fresh: fresh || dot || other,
                ..Self::default()
            },
            UriCharacter::Other => Self {
                other: fresh || dot || dots || other,
                ..Self::default()
            },
        }
    }

    fn can_end(self) -> bool {
        self.fresh || self.dot || self.other
    }
}

fn unsupported_expression(expression: &str) -> String {
    format!(
        "has the expression {{{expression}}}; write {{name}}, or {{+name}} for a value that can contain \"/\""
    )
}

impl TextSearch {
    fn new(text: &str) -> Self {
        let text: Box<[u8]> = text.as_bytes().into();
        let mut table = vec![0; text.len()];
        let mut matched = 0;
        for (index, byte) in text.iter().enumerate().skip(1) {
            matched = advance_match(&text, &table, matched, *byte);
            if let Some(entry) = table.get_mut(index) {
                *entry = matched;
            }
        }
        Self {
            text,
            failure_table: table.into(),
        }
    }

    fn as_str(&self) -> &str {
        // It was created from a `str`.
        std::str::from_utf8(&self.text).unwrap_or_default()
    }

    /// Returns the positions at which the text can end if it begins at one of `starts`.
    fn match_ends(&self, uri: &[u8], starts: &[bool]) -> Vec<bool> {
        if self.text.is_empty() {
            return starts.to_vec();
        }
        let mut ends = vec![false; uri.len() + 1];
        let mut matched = 0;
        for (index, (byte, end)) in uri.iter().zip(ends.iter_mut().skip(1)).enumerate() {
            matched = advance_match(&self.text, &self.failure_table, matched, *byte);
            if matched == self.text.len() {
                *end = starts.get(index + 1 - matched) == Some(&true);
            }
        }
        ends
    }
}

/// Returns the length of the prefix of `text` that matches after `byte`, if `matched` bytes matched
/// before it.
fn advance_match(text: &[u8], failure_table: &[usize], mut matched: usize, byte: u8) -> usize {
    loop {
        if text.get(matched) == Some(&byte) {
            return matched + 1;
        }
        match matched
            .checked_sub(1)
            .and_then(|last| failure_table.get(last))
        {
            Some(shorter) => matched = *shorter,
            None => return 0,
        }
    }
}

#[cfg(test)]
mod tests;
