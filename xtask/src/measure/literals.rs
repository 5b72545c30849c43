//! String literals of Rust source text.

/// A string literal.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Literal {
    /// The number of the line in which it begins.
    pub(super) line: usize,
    /// The text, on one line. Escape sequences other than line breaks stay as they are written.
    pub(super) text: String,
}

/// Returns the string literals in the text of a Rust source file. Omits the reasons of lint
/// attributes, which are comments.
pub(super) fn string_literals(source: &str) -> Vec<Literal> {
    let mut literals = Vec::new();
    let mut rest = source;
    let mut line = 1;
    let mut is_reason = false;
    while let Some(first) = rest.chars().next() {
        let string = parse_string(rest);
        let length = match first {
            _ if string.is_some() => string.as_ref().map_or(0, |(length, _)| *length),
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => block_comment_length(rest),
            '\'' => char_literal_length(rest),
            _ if is_word(first) => rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
            _ => first.len_utf8(),
        };
        let (token, after) = rest.split_at(length);
        if let Some((_, text)) = string
            && !is_reason
        {
            literals.push(Literal { line, text });
        }
        is_reason = token == "reason" || (is_reason && (token == "=" || token.trim().is_empty()));
        line += token.matches('\n').count();
        rest = after;
    }
    literals
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Parses the string literal at the beginning of `rest`. Returns its length in bytes and its text.
fn parse_string(rest: &str) -> Option<(usize, String)> {
    let unprefixed = rest.trim_start_matches(['b', 'c', 'r']);
    let is_raw = rest.len() > unprefixed.len()
        && rest
            .get(..rest.len() - unprefixed.len())
            .is_some_and(|prefix| prefix.ends_with('r'));
    let opened = unprefixed.trim_start_matches('#');
    let hashes = unprefixed.len() - opened.len();
    let body = opened.strip_prefix('"')?;
    if !is_raw && hashes > 0 {
        return None;
    }
    let length = if is_raw {
        body.find(&format!("\"{}", "#".repeat(hashes)))?
    } else {
        quoted_length(body)?
    };
    let text = body.get(..length)?;
    let text = if is_raw {
        text.to_owned()
    } else {
        join_lines(text)
    };
    Some((rest.len() - body.len() + length + 1 + hashes, text))
}

/// Returns the length of the text before the first quotation mark that is not escaped.
fn quoted_length(text: &str) -> Option<usize> {
    let mut is_escaped = false;
    text.char_indices().find_map(|(index, c)| {
        let is_end = c == '"' && !is_escaped;
        is_escaped = c == '\\' && !is_escaped;
        is_end.then_some(index)
    })
}

/// Removes escaped line breaks, and replaces the escape sequences of others by spaces.
fn join_lines(text: &str) -> String {
    let mut lines = text.split("\\\n");
    let first = lines.next().unwrap_or_default().to_owned();
    lines
        .fold(first, |joined, line| joined + line.trim_start())
        .replace("\\n", " ")
}

/// Returns the length of the block comment at the beginning of `rest`. Block comments nest.
fn block_comment_length(rest: &str) -> usize {
    let mut depth = 0_usize;
    let mut length = 0;
    while let Some(tail) = rest.get(length..).filter(|tail| !tail.is_empty()) {
        if tail.starts_with("/*") {
            depth += 1;
            length += 2;
        } else if tail.starts_with("*/") {
            depth -= 1;
            length += 2;
            if depth == 0 {
                return length;
            }
        } else {
            length += tail.chars().next().map_or(1, char::len_utf8);
        }
    }
    rest.len()
}

/// Returns the length of the character literal at the beginning of `rest`, or that of the quotation
/// mark if it begins a lifetime.
fn char_literal_length(rest: &str) -> usize {
    let mut chars = rest.char_indices().skip(1);
    match chars.next() {
        Some((_, '\\')) => {
            // The escaped character itself can be a quotation mark.
            let end = chars.skip(1).find(|(_, c)| *c == '\'');
            end.map_or(1, |(index, _)| index + 1)
        }
        _ => match chars.next() {
            Some((index, '\'')) => index + 1,
            _ => 1,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(source: &str) -> Vec<String> {
        string_literals(source)
            .into_iter()
            .map(|literal| literal.text)
            .collect()
    }

    #[test]
    fn every_form_of_a_literal_is_found() {
        assert_eq!(
            texts(r##"f("a \" b", r"c", r#"d "e" f"#, b"g", 'h', b"i\\")"##),
            ["a \\\" b", "c", "d \"e\" f", "g", "i\\\\"]
        );
    }

    #[test]
    fn comments_characters_and_reasons_are_not_messages() {
        let source = "// \"a\"\n/* \"b\" /* \"c\" */ \"d\" */\n\
            fn f<'a>(g: &'a str) { h('\"', '\\'', '\\u{22}', \"i\") }\n\
            #[expect(dead_code, reason = \"j\")]\nconst bar: &str = \"k\";";
        assert_eq!(texts(source), ["i", "k"]);
    }

    #[test]
    fn a_text_on_several_lines_is_one_message() {
        let literals = string_literals("\n\nf(\"a \\\n    b\\nc\");\ng(\"d\")");
        let expected = [(3, "a b c"), (5, "d")].map(|(line, text)| Literal {
            line,
            text: text.to_owned(),
        });
        assert_eq!(literals, expected);
    }
}
