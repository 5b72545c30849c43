//! Checks that a pattern conforms to ECMA-262, as JSON Schema requires: with the flag `u`, and
//! without features that only the newest editions have.
//!
//! The engine that matches patterns supports more syntax, and so do the engines in plugins'
//! languages. A client whose validator does not support it would lose the whole list of tools.

use std::collections::BTreeMap;

/// Maximum length of the quoted part of a pattern, in characters.
const MAX_QUOTED_CHARS: usize = 24;

/// Maximum nesting of groups. The engines also have such a limit.
const MAX_GROUP_DEPTH: usize = 250;

/// The general categories and binary properties of Unicode that can occur without a value in
/// `\p{…}`. Other names, such as `Script`, need a value.
const UNICODE_PROPERTIES: &str = " Any ASCII ASCII_Hex_Digit AHex Alphabetic Alpha Assigned Bidi_Control Bidi_C Bidi_Mirrored Bidi_M \
    Case_Ignorable CI Cased Changes_When_Casefolded CWCF Changes_When_Casemapped CWCM Changes_When_Lowercased CWL \
    Changes_When_NFKC_Casefolded CWKCF Changes_When_Titlecased CWT Changes_When_Uppercased CWU Dash \
    Default_Ignorable_Code_Point DI Deprecated Dep Diacritic Dia Emoji Emoji_Component EComp Emoji_Modifier EMod \
    Emoji_Modifier_Base EBase Emoji_Presentation EPres Extended_Pictographic ExtPict Extender Ext Grapheme_Base Gr_Base \
    Grapheme_Extend Gr_Ext Hex_Digit Hex IDS_Binary_Operator IDSB IDS_Trinary_Operator IDST ID_Continue IDC ID_Start IDS \
    Ideographic Ideo Join_Control Join_C Logical_Order_Exception LOE Lowercase Lower Math Noncharacter_Code_Point NChar \
    Pattern_Syntax Pat_Syn Pattern_White_Space Pat_WS Quotation_Mark QMark Radical Regional_Indicator RI \
    Sentence_Terminal STerm Soft_Dotted SD Terminal_Punctuation Term Unified_Ideograph UIdeo Uppercase Upper \
    Variation_Selector VS White_Space space XID_Continue XIDC XID_Start XIDS \
    C Other Cc Control cntrl Cf Format Cn Unassigned Co Private_Use Cs Surrogate L Letter LC Cased_Letter \
    Ll Lowercase_Letter Lm Modifier_Letter Lo Other_Letter Lt Titlecase_Letter Lu Uppercase_Letter M Mark Combining_Mark \
    Mc Spacing_Mark Me Enclosing_Mark Mn Nonspacing_Mark N Number Nd Decimal_Number digit Nl Letter_Number No Other_Number \
    P Punctuation punct Pc Connector_Punctuation Pd Dash_Punctuation Pe Close_Punctuation Pf Final_Punctuation \
    Pi Initial_Punctuation Po Other_Punctuation Ps Open_Punctuation S Symbol Sc Currency_Symbol Sk Modifier_Symbol \
    Sm Math_Symbol So Other_Symbol Z Separator Zl Line_Separator Zp Paragraph_Separator Zs Space_Separator ";

/// Checks a pattern, and returns what an engine needs to know of it.
///
/// # Errors
///
/// Returns the position of the mistake, and the text to write instead.
pub(super) fn check_pattern(source: &str) -> Result<EcmaPattern, String> {
    let mut reader = PatternParser {
        chars: source.chars().collect(),
        ..PatternParser::default()
    };
    reader.parse().map_err(|fault| {
        let place = quote_place(&reader.chars, fault.at, fault.length);
        let pattern = quote_pattern(source);
        format!(
            "the pattern {pattern} is not a \"regex\" of ECMA-262: {place}: {}",
            fault.replacement
        )
    })?;
    let largest_count = reader
        .largest_count
        .map(|(_, at, length)| quote_place(&reader.chars, at, length));
    Ok(EcmaPattern {
        engine_source: reader.engine_source(),
        largest_count,
    })
}

/// A pattern that conforms to ECMA-262.
#[derive(Debug)]
pub(super) struct EcmaPattern {
    /// The pattern with what engines for Rust write in another way; `None` if there is no such
    /// part.
    pub(super) engine_source: Option<String>,
    /// The place of the largest count of repetitions, such as `at character 2, "{1,1000}"`.
    pub(super) largest_count: Option<String>,
}

/// Quotes the beginning of a pattern.
pub(super) fn quote_pattern(source: &str) -> String {
    let pattern: String = source.chars().take(2 * MAX_QUOTED_CHARS).collect();
    let cut = if pattern.len() < source.len() {
        "…"
    } else {
        ""
    };
    format!("{pattern:?}{cut}")
}

fn quote_place(chars: &[char], at: usize, length: usize) -> String {
    let found: String = chars
        .iter()
        .skip(at)
        .take(length.min(MAX_QUOTED_CHARS))
        .collect();
    if found.is_empty() {
        "at its end".to_owned()
    } else {
        format!("at character {}, {found:?}", at + 1)
    }
}

/// An error in a pattern.
struct PatternError {
    at: usize,
    length: usize,
    replacement: String,
}

fn pattern_error(at: usize, length: usize, instead: &str) -> PatternError {
    PatternError {
        at,
        length,
        replacement: instead.to_owned(),
    }
}

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

#[derive(Default)]
struct PatternParser {
    chars: Vec<char>,
    at: usize,
    /// For each open group, whether it is a look-around.
    open_groups: Vec<bool>,
    group_count: usize,
    /// The numbers of the groups with names.
    group_names: BTreeMap<String, usize>,
    /// The parts that engines for Rust write in another way: the position, the length, and what to
    /// write.
    rewrites: Vec<(usize, usize, String)>,
    /// The beginnings of the groups with names: the position and the length.
    named_groups: Vec<(usize, usize)>,
    /// The largest count of repetitions, its position and its length.
    largest_count: Option<(u64, usize, usize)>,
    /// The references to groups: the number or name, the position, and the length.
    numbered_references: Vec<(usize, usize, usize)>,
    named_references: Vec<(String, usize, usize)>,
    preceding: QuantifierTarget,
}

impl PatternParser {
    fn parse(&mut self) -> Result<(), PatternError> {
        while let Some(c) = self.peek(0) {
            let start = self.at;
            match c {
                '^' | '$' | '|' => self.advance(1, QuantifierTarget::Nothing),
                '(' => self.parse_group()?,
                ')' => match self.open_groups.pop() {
                    Some(looks) => {
                        self.advance(
                            1,
                            if looks {
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
                    self.at += 1;
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
                '[' => self.parse_class()?,
                '\\' => self.parse_escape()?,
                _ => self.advance(1, QuantifierTarget::Atom),
            }
        }
        if !self.open_groups.is_empty() {
            return Err(pattern_error(
                self.at,
                1,
                "a group is not closed; add \")\", or write \"\\\\(\" for the character",
            ));
        }
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

    /// Returns the pattern as engines for Rust write it; `None` if they write it in the same way.
    fn engine_source(&self) -> Option<String> {
        let mut rewrites = self.rewrites.clone();
        // The engines know names only for groups to which nothing refers by number.
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
        let (mut written, mut end) = (String::new(), 0);
        for (at, length, text) in rewrites {
            written.extend(self.chars.get(end..at).unwrap_or_default());
            written.push_str(&text);
            end = at + length;
        }
        written.extend(self.chars.get(end..).unwrap_or_default());
        Some(written)
    }

    fn peek(&self, ahead: usize) -> Option<char> {
        self.chars.get(self.at + ahead).copied()
    }

    fn advance(&mut self, length: usize, before: QuantifierTarget) {
        self.at += length;
        self.preceding = before;
    }

    fn rest_starts_with(&self, with: &str) -> bool {
        with.chars()
            .enumerate()
            .all(|(n, c)| self.peek(n) == Some(c))
    }

    /// Returns the characters before `end`, starting `ahead` characters after the current position;
    /// `None` if `end` is not found.
    fn text_until(&self, ahead: usize, end: char) -> Option<String> {
        let rest = self.chars.get(self.at + ahead..)?;
        let length = rest.iter().position(|c| *c == end)?;
        rest.get(..length).map(|found| found.iter().collect())
    }

    fn parse_group(&mut self) -> Result<(), PatternError> {
        let start = self.at;
        if self.open_groups.len() >= MAX_GROUP_DEPTH {
            return Err(pattern_error(
                start,
                1,
                &format!("groups can be nested {MAX_GROUP_DEPTH} levels deep"),
            ));
        }
        let heads = [
            ("(?:", false),
            ("(?=", true),
            ("(?!", true),
            ("(?<=", true),
            ("(?<!", true),
        ];
        if let Some((head, looks)) = heads
            .into_iter()
            .find(|(head, _)| self.rest_starts_with(head))
        {
            self.open_groups.push(looks);
            self.advance(head.len(), QuantifierTarget::Nothing);
            return Ok(());
        }
        if self.rest_starts_with("(?<") {
            let name = self.text_until(3, '>').unwrap_or_default();
            let length = 4 + name.chars().count();
            if !is_name(&name) {
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
        if self.peek(1) != Some('?') {
            self.group_count += 1;
            self.open_groups.push(false);
            self.advance(1, QuantifierTarget::Nothing);
            return Ok(());
        }
        let (length, instead) = self.suggest_group();
        Err(pattern_error(start, length, &instead))
    }

    /// Returns the length of a group in the syntax of another language, and the text to write
    /// instead.
    fn suggest_group(&self) -> (usize, String) {
        let name =
            |ahead: usize, end: char| self.text_until(ahead, end).filter(|name| is_name(name));
        let flags: String = self
            .chars
            .iter()
            .skip(self.at + 2)
            .take_while(|c| c.is_ascii_alphabetic() || **c == '-')
            .collect();
        match (self.peek(2), self.peek(3)) {
            (Some('P'), Some('<')) => match name(4, '>') {
                Some(name) => (5 + name.chars().count(), format!("write \"(?<{name}>\"")),
                None => (4, "write \"(?<name>\"".to_owned()),
            },
            (Some('P'), Some('=')) => match name(4, ')') {
                Some(name) => (5 + name.chars().count(), format!("write \"\\\\k<{name}>\"")),
                None => (4, "write \"\\\\k<name>\"".to_owned()),
            },
            (Some('\''), _) => match name(3, '\'') {
                Some(name) => (4 + name.chars().count(), format!("write \"(?<{name}>\"")),
                None => (3, "write \"(?<name>\"".to_owned()),
            },
            (Some('>'), _) => (3, "there are no atomic groups; write \"(?:\"".to_owned()),
            (Some('#'), _) => (3, "there are no comments; leave it out".to_owned()),
            _ if !flags.is_empty() => {
                let length = 3 + flags.chars().count();
                let instead = if flags.contains('i') {
                    "there are no flags within a pattern; leave them out, and write both cases, such as \"[Aa]\""
                } else if flags.contains('s') {
                    "there are no flags within a pattern; leave them out, and write \"[^]\" for any character"
                } else {
                    "there are no flags within a pattern; leave them out"
                };
                (length, instead.to_owned())
            }
            _ => (
                3,
                "there is no such group; write \"(?:\", or \"\\\\(\" for the character".to_owned(),
            ),
        }
    }

    /// Parses the rest of a quantifier that begins at `start`.
    fn parse_quantifier(&mut self, start: usize) -> Result<(), PatternError> {
        match self.preceding {
            QuantifierTarget::Atom => {}
            QuantifierTarget::Quantifier if self.chars.get(start) == Some(&'+') => {
                return Err(pattern_error(
                    start,
                    1,
                    "there are no possessive quantifiers; leave this \"+\" out",
                ));
            }
            QuantifierTarget::Quantifier | QuantifierTarget::Nothing => {
                let length = self.at - start;
                return Err(pattern_error(
                    start,
                    length,
                    "there is nothing to repeat; write \"\\\\\" before the character",
                ));
            }
        }
        if self.peek(0) == Some('?') {
            self.at += 1;
        }
        self.preceding = QuantifierTarget::Quantifier;
        Ok(())
    }

    /// Parses `{2}`, `{2,}` or `{2,3}`.
    fn parse_count(&mut self) -> Result<(), PatternError> {
        let start = self.at;
        let inner = self.text_until(1, '}').unwrap_or_default();
        let (least, most) = inner.split_once(',').unwrap_or((&inner, &inner));
        let is_number =
            |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let length = 2 + inner.chars().count();
        if least.is_empty() && is_number(most) {
            return Err(pattern_error(
                start,
                length,
                &format!("write \"{{0,{most}}}\""),
            ));
        }
        if !is_number(least) || !(most.is_empty() || is_number(most)) {
            return Err(pattern_error(start, 1, "write \"\\\\{\" for the character"));
        }
        let number = |text: &str| text.parse::<u64>().unwrap_or(u64::MAX);
        if is_number(most) && number(most) < number(least) {
            return Err(pattern_error(
                start,
                length,
                &format!("write \"{{{most},{least}}}\""),
            ));
        }
        let count = number(if is_number(most) { most } else { least });
        if self
            .largest_count
            .is_none_or(|(largest, ..)| largest < count)
        {
            self.largest_count = Some((count, start, length));
        }
        self.at += length;
        Ok(())
    }

    fn parse_escape(&mut self) -> Result<(), PatternError> {
        let start = self.at;
        match self.peek(1) {
            Some('b' | 'B') => self.advance(2, QuantifierTarget::Nothing),
            Some('d' | 'D' | 's' | 'S' | 'w' | 'W') => self.advance(2, QuantifierTarget::Atom),
            Some('k') => {
                let name = if self.peek(2) == Some('<') {
                    self.text_until(3, '>')
                } else {
                    None
                };
                let Some(name) = name.filter(|name| is_name(name)) else {
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
                let digits: String = self
                    .chars
                    .iter()
                    .skip(start + 1)
                    .take_while(|c| c.is_ascii_digit())
                    .collect();
                let length = 1 + digits.len();
                self.numbered_references.push((
                    digits.parse().unwrap_or(usize::MAX),
                    start,
                    length,
                ));
                self.advance(length, QuantifierTarget::Atom);
            }
            _ => {
                self.parse_character_escape()?;
                self.preceding = QuantifierTarget::Atom;
            }
        }
        Ok(())
    }

    /// Parses an escape for one character, or for a property. Returns the code of the character;
    /// `None` for a property.
    fn parse_character_escape(&mut self) -> Result<Option<u32>, PatternError> {
        let start = self.at;
        let hex = |from: usize, digits: usize| -> Option<u32> {
            let text: String = self.chars.get(from..from + digits)?.iter().collect();
            let is_hex = text.bytes().all(|byte| byte.is_ascii_hexdigit());
            u32::from_str_radix(&text, 16).ok().filter(|_| is_hex)
        };
        let Some(c) = self.peek(1) else {
            return Err(pattern_error(
                start,
                1,
                "write \"\\\\\\\\\" for the character",
            ));
        };
        let (length, code) = match c {
            'f' => (2, Some(0xc)),
            'n' => (2, Some(0xa)),
            'r' => (2, Some(0xd)),
            't' => (2, Some(0x9)),
            'v' => (2, Some(0xb)),
            'c' if self.peek(2).is_some_and(|c| c.is_ascii_alphabetic()) => {
                (3, self.peek(2).map(|c| u32::from(c) % 32))
            }
            '0' if !self.peek(2).is_some_and(|c| c.is_ascii_digit()) => {
                self.rewrites.push((start, 2, "\\x00".to_owned()));
                (2, Some(0))
            }
            'x' if hex(start + 2, 2).is_some() => (4, hex(start + 2, 2)),
            'u' if self.peek(2) == Some('{') => {
                let inner = self.text_until(3, '}').unwrap_or_default();
                let code = u32::from_str_radix(&inner, 16)
                    .ok()
                    .filter(|code| *code <= 0x10_ffff);
                let Some(code) =
                    code.filter(|_| inner.bytes().all(|byte| byte.is_ascii_hexdigit()))
                else {
                    return Err(pattern_error(
                        start,
                        3,
                        "write the code of a character, such as \"\\\\u{1f600}\"",
                    ));
                };
                (4 + inner.len(), Some(code))
            }
            'u' if hex(start + 2, 4).is_some() => {
                let low = if self.peek(6) == Some('\\') && self.peek(7) == Some('u') {
                    hex(start + 8, 4)
                } else {
                    None
                };
                match (hex(start + 2, 4), low) {
                    (Some(high @ 0xd800..=0xdbff), Some(low @ 0xdc00..=0xdfff)) => {
                        let code = 0x1_0000 + ((high - 0xd800) << 10) + (low - 0xdc00);
                        self.rewrites.push((start, 12, format!("\\u{{{code:x}}}")));
                        (12, Some(code))
                    }
                    (code, _) => (6, code),
                }
            }
            'p' | 'P' if self.peek(2) == Some('{') => {
                let inner = self.text_until(3, '}').unwrap_or_default();
                let length = 4 + inner.chars().count();
                if let Some(instead) = suggest_property(&inner) {
                    return Err(pattern_error(start, length, &instead));
                }
                (length, None)
            }
            '^' | '$' | '\\' | '.' | '*' | '+' | '?' | '(' | ')' | '[' | ']' | '{' | '}' | '|'
            | '/' => (2, Some(u32::from(c))),
            _ => {
                let (length, instead) = self.suggest_escape(c);
                return Err(pattern_error(start, length, &instead));
            }
        };
        self.at += length;
        Ok(code)
    }

    /// Returns the length of an escape in the syntax of another language, and the text to write
    /// instead.
    fn suggest_escape(&self, c: char) -> (usize, String) {
        let write = |text: &str| (2, format!("write {text:?}"));
        match c {
            'A' => write("^"),
            'z' | 'Z' => write("$"),
            'h' => write("[ \\t]"),
            'H' => write("[^ \\t]"),
            'R' => write("\\r?\\n"),
            'N' => write("."),
            'a' => write("\\x07"),
            'e' => write("\\x1b"),
            'x' if self.peek(2) == Some('{') => {
                let inner = self.text_until(3, '}').unwrap_or_default();
                (
                    4 + inner.chars().count(),
                    format!("write \"\\\\u{{{inner}}}\""),
                )
            }
            'x' => write("\\x0a"),
            'u' => write("\\u000a"),
            'c' => write("\\cA"),
            'p' | 'P' => match self.peek(2).filter(char::is_ascii_alphabetic) {
                Some(category) => (3, format!("write \"\\\\{c}{{{category}}}\"")),
                None => (
                    2,
                    format!("write \"\\\\{c}{{L}}\", with the name of a property"),
                ),
            },
            '0' => (
                3,
                "write \"\\\\x00\" for a character by its code".to_owned(),
            ),
            c if c.is_ascii_alphanumeric() => (
                2,
                "there is no such escape; leave the \"\\\\\" out".to_owned(),
            ),
            c => (
                2,
                format!("the character needs no escape; write {:?}", c.to_string()),
            ),
        }
    }

    /// Parses a class, from its `[` to its `]`.
    fn parse_class(&mut self) -> Result<(), PatternError> {
        let start = self.at;
        self.at += if self.peek(1) == Some('^') { 2 } else { 1 };
        let content = self.at;
        loop {
            match self.peek(0) {
                None => {
                    return Err(pattern_error(
                        start,
                        1,
                        "it is not closed; add \"]\", or write \"\\\\[\" for the character",
                    ));
                }
                Some(']') => break,
                Some(_) => {}
            }
            let first_at = self.at;
            let first = self.parse_class_atom()?;
            if self.peek(0) != Some('-') || matches!(self.peek(1), None | Some(']')) {
                continue;
            }
            self.at += 1;
            let last = self.parse_class_atom()?;
            let length = self.at - first_at;
            match (first, last) {
                (Some(first), Some(last)) if first <= last => {}
                (Some(_), Some(_)) => {
                    return Err(pattern_error(
                        first_at,
                        length,
                        "the range is empty; exchange its ends",
                    ));
                }
                _ => {
                    let instead =
                        "a class has no range to another class; write \"\\\\-\" for the character";
                    return Err(pattern_error(first_at, length, instead));
                }
            }
        }
        if self.at == content {
            // A class without characters matches nothing, and its negation matches everything.
            let negation = if content - start == 1 { "^" } else { "" };
            self.rewrites.push((
                start,
                content + 1 - start,
                format!("[{negation}\\x00-\\u{{10ffff}}]"),
            ));
        }
        self.advance(1, QuantifierTarget::Atom);
        Ok(())
    }

    /// Parses a character of a class. Returns `None` for an escape that matches several characters.
    fn parse_class_atom(&mut self) -> Result<Option<u32>, PatternError> {
        match (self.peek(0), self.peek(1)) {
            (Some('\\'), Some('d' | 'D' | 's' | 'S' | 'w' | 'W')) => {
                self.at += 2;
                Ok(None)
            }
            (Some('\\'), Some('b')) => {
                self.rewrites.push((self.at, 2, "\\x08".to_owned()));
                self.at += 2;
                Ok(Some(8))
            }
            (Some('\\'), Some('-')) => {
                self.at += 2;
                Ok(Some(u32::from('-')))
            }
            (Some('\\'), Some('B' | 'k' | '1'..='9')) => Err(pattern_error(
                self.at,
                2,
                "a class has no such escape; leave the \"\\\\\" out",
            )),
            (Some('\\'), _) => self.parse_character_escape(),
            (Some('['), Some(':')) => {
                // Stop at the first character that cannot belong to a name. A class can contain
                // such a beginning at each of its characters, so searching for the end would be
                // quadratic.
                let is_of_name = |c: &&char| c.is_ascii_alphabetic() || **c == '^';
                let name: String = self
                    .chars
                    .iter()
                    .skip(self.at + 2)
                    .take_while(is_of_name)
                    .collect();
                let end = 2 + name.len();
                if (self.peek(end), self.peek(end + 1)) != (Some(':'), Some(']')) {
                    self.at += 1;
                    return Ok(Some(u32::from('[')));
                }
                let instead = posix_class(&name).map_or_else(
                    || "there are no classes with names; write the characters".to_owned(),
                    |characters| format!("there are no classes with names; write {characters:?}"),
                );
                Err(pattern_error(self.at, 4 + name.len(), &instead))
            }
            (c, _) => {
                self.at += 1;
                Ok(c.map(u32::from))
            }
        }
    }
}

/// Returns whether a group can have this name.
fn is_name(name: &str) -> bool {
    let begins = |c: char| c.is_alphabetic() || c == '_' || c == '$';
    name.starts_with(begins) && name.chars().all(|c| begins(c) || c.is_alphanumeric())
}

/// Returns the text to write instead of the content of `\p{…}`; `None` if it is a valid property.
fn suggest_property(inner: &str) -> Option<String> {
    let is_word = |text: &str| {
        !text.is_empty()
            && text
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    match inner.split_once('=') {
        Some((name, value)) => {
            let names = [
                "General_Category",
                "gc",
                "Script",
                "sc",
                "Script_Extensions",
                "scx",
            ];
            (!names.contains(&name) || !is_word(value)).then(|| {
                "write the name of a general category or script, such as \"Script=Greek\""
                    .to_owned()
            })
        }
        None if is_word(inner) && UNICODE_PROPERTIES.contains(&format!(" {inner} ")) => None,
        None if inner.starts_with('^') => {
            Some("write \"\\\\P\" for characters without the property".to_owned())
        }
        None if is_word(inner) => Some(format!(
            "there is no property with only this name; a script is \"\\\\p{{Script={inner}}}\""
        )),
        None => Some("write the name of a property, such as \"L\"".to_owned()),
    }
}

/// Returns the characters of a named POSIX class, to be written between brackets.
fn posix_class(name: &str) -> Option<&'static str> {
    Some(match name {
        "alpha" => "A-Za-z",
        "digit" => "0-9",
        "alnum" => "A-Za-z0-9",
        "upper" => "A-Z",
        "lower" => "a-z",
        "space" => "\\s",
        "blank" => " \\t",
        "word" => "\\w",
        "xdigit" => "0-9A-Fa-f",
        "punct" => "!-\\/:-@\\[-`{-~",
        "cntrl" => "\\x00-\\x1f\\x7f",
        "print" => " -~",
        "graph" => "!-~",
        "ascii" => "\\x00-\\x7f",
        _ => return None,
    })
}

#[cfg(test)]
mod tests;
