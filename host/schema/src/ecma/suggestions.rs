//! The text to write instead of a part of a pattern in the syntax of another language.

use super::pattern_cursor::{PatternCursor, is_group_name};

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

/// Returns the length of a group in the syntax of another language, and the text to write
/// instead.
pub(super) fn suggest_group(cursor: &PatternCursor) -> (usize, String) {
    let name = |ahead: usize, end: char| {
        cursor
            .text_until(ahead, end)
            .filter(|name| is_group_name(name))
    };
    let flags = cursor.text_while(2, |c| c.is_ascii_alphabetic() || c == '-');
    match (cursor.peek(2), cursor.peek(3)) {
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
            let replacement = if flags.contains('i') {
                "there are no flags within a pattern; leave them out, and write both cases, such as \"[Aa]\""
            } else if flags.contains('s') {
                "there are no flags within a pattern; leave them out, and write \"[^]\" for any character"
            } else {
                "there are no flags within a pattern; leave them out"
            };
            (length, replacement.to_owned())
        }
        _ => (
            3,
            "there is no such group; write \"(?:\", or \"\\\\(\" for the character".to_owned(),
        ),
    }
}

/// Returns the length of an escape in the syntax of another language, and the text to write
/// instead.
pub(super) fn suggest_escape(cursor: &PatternCursor, c: char) -> (usize, String) {
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
        'x' if cursor.peek(2) == Some('{') => {
            let inner = cursor.text_until(3, '}').unwrap_or_default();
            (
                4 + inner.chars().count(),
                format!("write \"\\\\u{{{inner}}}\""),
            )
        }
        'x' => write("\\x0a"),
        'u' => write("\\u000a"),
        'c' => write("\\cA"),
        'p' | 'P' => match cursor.peek(2).filter(char::is_ascii_alphabetic) {
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

/// Returns the text to write instead of the content of `\p{…}`; `None` if it is a valid property.
pub(super) fn suggest_property(inner: &str) -> Option<String> {
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
pub(super) fn posix_class(name: &str) -> Option<&'static str> {
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
