//! Reads a pattern from its beginning to its end: groups, references and repetitions.

use std::collections::BTreeMap;

use super::character_class::parse_class;
use super::character_escape::parse_character_escape;
use super::pattern_cursor::{PatternCursor, PatternError, is_group_name, pattern_error};
use super::suggestions::suggest_group;

/// Maximum nesting of groups. The engines also have such a limit.
const MAX_GROUP_DEPTH: usize = 250;

/// The preceding element of the pattern, as the target of a quantifier.
#[derive(Clone, Copy, Default, PartialEq)]
enum QuantifierTarget {
    /// An element that cannot be repeated, or none.
    #[default]
    Nothing,
    /// A quantifier.
    Quantifier,
    /// An element that can be repeated.
    Atom,
}

/// The state of the check of a pattern.
#[derive(Default)]
pub(super) struct PatternParser {
    cursor: PatternCursor,
    /// For each open group, whether it is a look-around.
    open_groups: Vec<bool>,
    group_count: usize,
    /// The numbers of the groups with names.
    group_names: BTreeMap<String, usize>,
    /// The beginnings of the groups with names: the position and the length.
    named_groups: Vec<(usize, usize)>,
    /// The largest count of repetitions, its position and its length.
    pub(super) largest_count: Option<(u64, usize, usize)>,
    /// The references to groups: the number or name, the position, and the length.
    numbered_references: Vec<(usize, usize, usize)>,
    named_references: Vec<(String, usize, usize)>,
    preceding: QuantifierTarget,
}

impl PatternParser {
    pub(super) fn new(source: &str) -> Self {
        Self {
            cursor: PatternCursor::new(source),
            ..Self::default()
        }
    }

    /// Returns the characters of the pattern.
    pub(super) fn chars(&self) -> &[char] {
        self.cursor.chars()
    }

    /// Checks the whole pattern.
    pub(super) fn parse(&mut self) -> Result<(), PatternError> {
        while let Some(c) = self.cursor.peek(0) {
            let start = self.cursor.position;
            match c {
                '^' | '$' | '|' => self.advance(1, QuantifierTarget::Nothing),
                '(' => self.parse_group()?,
                ')' => match self.open_groups.pop() {
                    Some(is_lookaround) => {
                        self.advance(
                            1,
                            if is_lookaround {
                                QuantifierTarget::Nothing
                            } else {
                                QuantifierTarget::Atom
                            },
                        );
                    }
                    None => {
                        return Err(pattern_error(
                            start,
                            1,
                            "it closes no group; write \"\\\\)\" for the character",
                        ));
                    }
                },
                '*' | '+' | '?' => {
                    self.cursor.position += 1;
                    self.parse_quantifier(start)?;
                }
                '{' => {
                    self.parse_count()?;
                    self.parse_quantifier(start)?;
                }
                '}' | ']' => {
                    return Err(pattern_error(
                        start,
                        1,
                        &format!("write \"\\\\{c}\" for the character"),
                    ));
                }
                '[' => {
                    parse_class(&mut self.cursor)?;
                    self.preceding = QuantifierTarget::Atom;
                }
                '\\' => self.parse_escape()?,
                _ => self.advance(1, QuantifierTarget::Atom),
            }
        }
        if !self.open_groups.is_empty() {
            return Err(pattern_error(
                self.cursor.position,
                1,
                "a group is not closed; add \")\", or write \"\\\\(\" for the character",
            ));
        }
        self.check_references()
    }

    /// Checks that each reference has its group.
    fn check_references(&self) -> Result<(), PatternError> {
        if let Some((_, at, length)) = self
            .numbered_references
            .iter()
            .find(|(number, ..)| *number > self.group_count)
        {
            return Err(pattern_error(
                *at,
                *length,
                "there is no such group; write \"\\\\x01\" for a character by its code",
            ));
        }
        let is_unknown = |name: &String| !self.group_names.contains_key(name);
        if let Some((_, at, length)) = self
            .named_references
            .iter()
            .find(|(name, ..)| is_unknown(name))
        {
            return Err(pattern_error(
                *at,
                *length,
                "there is no group with this name",
            ));
        }
        Ok(())
    }

    /// Returns the pattern in the syntax of Rust engines; `None` if it is the same.
    pub(super) fn engine_source(&self) -> Option<String> {
        let mut rewrites = self.cursor.rewrites.clone();
        // The engines do not support references by number to groups with names, so a pattern with
        // references has no names.
        if !self.named_references.is_empty() || !self.numbered_references.is_empty() {
            rewrites.extend(
                self.named_groups
                    .iter()
                    .map(|(at, length)| (*at, *length, "(".to_owned())),
            );
            rewrites.extend(self.named_references.iter().map(|(name, at, length)| {
                let number = self.group_names.get(name).copied().unwrap_or_default();
                // A digit can follow the reference.
                (*at, *length, format!("(?:\\{number})"))
            }));
        }
        if rewrites.is_empty() {
            return None;
        }
        rewrites.sort_unstable();
        let mut rewritten = String::new();
        let mut end = 0;
        for (at, length, text) in rewrites {
            rewritten.extend(self.cursor.chars().get(end..at).unwrap_or_default());
            rewritten.push_str(&text);
            end = at + length;
        }
        rewritten.extend(self.cursor.chars().get(end..).unwrap_or_default());
        Some(rewritten)
    }

    fn advance(&mut self, length: usize, preceding: QuantifierTarget) {
        self.cursor.position += length;
        self.preceding = preceding;
    }

    fn parse_group(&mut self) -> Result<(), PatternError> {
        let start = self.cursor.position;
        if self.open_groups.len() >= MAX_GROUP_DEPTH {
            return Err(pattern_error(
                start,
                1,
                &format!("groups can be nested {MAX_GROUP_DEPTH} levels deep"),
            ));
        }
        let prefixes = [
            ("(?:", false),
            ("(?=", true),
            ("(?!", true),
            ("(?<=", true),
            ("(?<!", true),
        ];
        if let Some((prefix, is_lookaround)) = prefixes
            .into_iter()
            .find(|(head, _)| self.cursor.rest_starts_with(head))
        {
            self.open_groups.push(is_lookaround);
            self.advance(prefix.len(), QuantifierTarget::Nothing);
            return Ok(());
        }
        if self.cursor.rest_starts_with("(?<") {
            let name = self.cursor.text_until(3, '>').unwrap_or_default();
            let length = 4 + name.chars().count();
            if !is_group_name(&name) {
                return Err(pattern_error(
                    start,
                    length,
                    "a group's name has letters, digits and \"_\"",
                ));
            }
            self.group_count += 1;
            if self.group_names.insert(name, self.group_count).is_some() {
                return Err(pattern_error(
                    start,
                    length,
                    "two groups have this name; give each its own",
                ));
            }
            self.named_groups.push((start, length));
            self.open_groups.push(false);
            self.advance(length, QuantifierTarget::Nothing);
            return Ok(());
        }
        if self.cursor.peek(1) != Some('?') {
            self.group_count += 1;
            self.open_groups.push(false);
            self.advance(1, QuantifierTarget::Nothing);
            return Ok(());
        }
        let (length, replacement) = suggest_group(&self.cursor);
        Err(pattern_error(start, length, &replacement))
    }

    /// Parses the rest of a quantifier that begins at `start`.
    fn parse_quantifier(&mut self, start: usize) -> Result<(), PatternError> {
        match self.preceding {
            QuantifierTarget::Atom => {}
            QuantifierTarget::Quantifier if self.cursor.chars().get(start) == Some(&'+') => {
                return Err(pattern_error(
                    start,
                    1,
                    "there are no possessive quantifiers; leave this \"+\" out",
                ));
            }
            QuantifierTarget::Quantifier | QuantifierTarget::Nothing => {
                let length = self.cursor.position - start;
                return Err(pattern_error(
                    start,
                    length,
                    "there is nothing to repeat; write \"\\\\\" before the character",
                ));
            }
        }
        if self.cursor.peek(0) == Some('?') {
            self.cursor.position += 1;
        }
        self.preceding = QuantifierTarget::Quantifier;
        Ok(())
    }

    /// Parses `{2}`, `{2,}` or `{2,3}`.
    fn parse_count(&mut self) -> Result<(), PatternError> {
        let start = self.cursor.position;
        let inner = self.cursor.text_until(1, '}').unwrap_or_default();
        let (min, max) = inner.split_once(',').unwrap_or((&inner, &inner));
        let is_number =
            |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let length = 2 + inner.chars().count();
        if min.is_empty() && is_number(max) {
            return Err(pattern_error(
                start,
                length,
                &format!("write \"{{0,{max}}}\""),
            ));
        }
        if !is_number(min) || !(max.is_empty() || is_number(max)) {
            return Err(pattern_error(start, 1, "write \"\\\\{\" for the character"));
        }
        let number = |text: &str| text.parse::<u64>().unwrap_or(u64::MAX);
        if is_number(max) && number(max) < number(min) {
            return Err(pattern_error(
                start,
                length,
                &format!("write \"{{{max},{min}}}\""),
            ));
        }
        let count = number(if is_number(max) { max } else { min });
        if self
            .largest_count
            .is_none_or(|(largest, ..)| largest < count)
        {
            self.largest_count = Some((count, start, length));
        }
        self.cursor.position += length;
        Ok(())
    }

    fn parse_escape(&mut self) -> Result<(), PatternError> {
        let start = self.cursor.position;
        match self.cursor.peek(1) {
            Some('b' | 'B') => self.advance(2, QuantifierTarget::Nothing),
            Some('d' | 'D' | 's' | 'S' | 'w' | 'W') => self.advance(2, QuantifierTarget::Atom),
            Some('k') => {
                let name = if self.cursor.peek(2) == Some('<') {
                    self.cursor.text_until(3, '>')
                } else {
                    None
                };
                let Some(name) = name.filter(|name| is_group_name(name)) else {
                    return Err(pattern_error(
                        start,
                        2,
                        "write \"\\\\k<name>\" for what a group has matched",
                    ));
                };
                let length = 4 + name.chars().count();
                self.named_references.push((name, start, length));
                self.advance(length, QuantifierTarget::Atom);
            }
            Some('1'..='9') => {
                let digits = self.cursor.text_while(1, |c| c.is_ascii_digit());
                let length = 1 + digits.len();
                self.numbered_references.push((
                    digits.parse().unwrap_or(usize::MAX),
                    start,
                    length,
                ));
                self.advance(length, QuantifierTarget::Atom);
            }
            _ => {
                parse_character_escape(&mut self.cursor)?;
                self.preceding = QuantifierTarget::Atom;
            }
        }
        Ok(())
    }
}
