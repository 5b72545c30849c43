//! Edits of JSON as clients read it: with comments and trailing commas, which edits keep.

use std::collections::BTreeSet;
use std::ops::Range;

use jsonc_parser::ast::{Object, ObjectProp, Value as Node};
use jsonc_parser::common::Ranged as _;
use jsonc_parser::cst::{CstInputValue, CstObject, CstRootNode};
use jsonc_parser::errors::ParseError;
use jsonc_parser::tokens::{Token, TokenAndRange};
use jsonc_parser::{CollectOptions, CommentCollectionStrategy, ParseOptions, parse_to_ast};
use serde_json::{Map, Value};

use crate::mistake::ConfigurationMistake;

/// Extensions of JSON that clients accept. No client is known to accept other JSONC extensions.
const PARSE_OPTIONS: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_loose_object_property_names: false,
    allow_trailing_commas: true,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

/// Parses a text whose servers are in the object `servers`. An empty text is an empty object.
pub(crate) fn parse(text: &str, servers: &str) -> Result<Map<String, Value>, ConfigurationMistake> {
    let parsed = parse_to_ast(text, &CollectOptions::default(), &PARSE_OPTIONS)
        .map_err(|error| to_mistake(text, &error))?;
    let Some(root) = parsed.value else {
        return Ok(Map::new());
    };
    let object = expect_object(text, &root, "the file")?;
    check_unique_names(text, object, |name| name == servers)?;
    if let Some(property) = object.get(servers) {
        let servers_object = expect_object(text, &property.value, servers)?;
        check_unique_names(text, servers_object, |_| true)?;
        for property in &servers_object.properties {
            let name = property.name.as_str();
            expect_object(text, &property.value, &format!("{servers}.{name}"))?;
        }
    }
    match parse_tree(text)?.to_serde_value() {
        Some(Value::Object(value)) => Ok(value),
        _ => Ok(Map::new()),
    }
}

/// Sets `entry` as the server `name`. `current` is the existing entry of that name.
pub(crate) fn set_server(
    text: &str,
    servers: &str,
    name: &str,
    current: Option<&Map<String, Value>>,
    entry: &Map<String, Value>,
) -> Result<String, ConfigurationMistake> {
    let root = parse_tree(text)?;
    let servers_object = root
        .object_value_or_create()
        .and_then(|object| object.object_value_or_create(servers));
    let all = servers_object.ok_or_else(|| {
        ConfigurationMistake::at(text, 0, format!("{servers}: expected an object"))
    })?;
    match (current, all.object_value(name)) {
        (Some(current_members), Some(object)) => update_entry(&object, current_members, entry),
        _ => drop(all.append(name, to_cst_value(&Value::Object(entry.clone())))),
    }
    Ok(root.to_string())
}

/// Changes only the members that differ, so that the others keep their position and comments.
fn update_entry(object: &CstObject, current: &Map<String, Value>, entry: &Map<String, Value>) {
    for (key, value) in entry
        .iter()
        .filter(|(key, value)| current.get(*key) != Some(*value))
    {
        match object.get(key) {
            Some(property) => property.set_value(to_cst_value(value)),
            None => drop(object.append(key, to_cst_value(value))),
        }
    }
    for property in object.properties() {
        if property
            .decoded_name()
            .is_some_and(|key| !entry.contains_key(&key))
        {
            property.remove();
        }
    }
}

/// Removes the server `name`. Also removes the object of servers if it becomes empty and contains
/// no comment.
pub(crate) fn remove_server(
    text: &str,
    servers: &str,
    name: &str,
) -> Result<String, ConfigurationMistake> {
    let without_server = remove_property(text, |root| root.get_object(servers)?.get(name))?;
    remove_property(&without_server, |root| {
        root.get(servers)
            .filter(|property| property.value.as_object().is_some_and(is_empty))
    })
}

fn is_empty(object: &Object<'_>) -> bool {
    object.properties.is_empty()
}

/// Removes the property that `find` returns, its comma, and its lines if they contain nothing else.
/// Keeps an empty object that contains a comment.
fn remove_property(
    text: &str,
    find: impl for<'a, 'b> Fn(&'b Object<'a>) -> Option<&'b ObjectProp<'a>>,
) -> Result<String, ConfigurationMistake> {
    let options = CollectOptions {
        comments: CommentCollectionStrategy::AsTokens,
        tokens: true,
    };
    let parsed =
        parse_to_ast(text, &options, &PARSE_OPTIONS).map_err(|error| to_mistake(text, &error))?;
    let tokens = parsed.tokens.unwrap_or_default();
    let root = parsed.value.as_ref().and_then(Node::as_object);
    let Some(property) = root.and_then(find) else {
        return Ok(text.to_owned());
    };
    let start = property.range.start;
    let end = property.range.end;
    let is_comment = |token: &&TokenAndRange<'_>| {
        matches!(token.token, Token::CommentLine(_) | Token::CommentBlock(_))
    };
    let is_within =
        |token: &TokenAndRange<'_>| start <= token.range.start && token.range.end <= end;
    if property.value.as_object().is_some_and(is_empty)
        && tokens.iter().filter(is_comment).any(is_within)
    {
        return Ok(text.to_owned());
    }
    let is_comma = |token: &&TokenAndRange<'_>| token.token == Token::Comma;
    let mut after = tokens
        .iter()
        .filter(|token| token.range.start >= end && !is_comment(token));
    let mut before = tokens
        .iter()
        .rev()
        .filter(|token| token.range.end <= start && !is_comment(token));
    let comma = after
        .next()
        .filter(is_comma)
        .or_else(|| before.next().filter(is_comma));
    let comma = comma.map(|comma| comma.range.start..comma.range.end);
    let mut property_range = start..end;
    let mut comma_range = None;
    match comma {
        // Include the text between the property and the comma, unless it is a comment.
        Some(comma) if comma.start >= end && text.get(end..comma.start).is_some_and(is_blank) => {
            property_range.end = comma.end;
        }
        comma => comma_range = comma,
    }
    let whole_range = extend_over_blanks(text, property_range);
    let mut ranges: Vec<Range<usize>> = comma_range.into_iter().chain([whole_range]).collect();
    ranges.sort_by_key(|range| std::cmp::Reverse(range.start));
    let mut out = text.to_owned();
    for range in ranges {
        out.replace_range(range, "");
    }
    Ok(out)
}

/// Extends a range to its whole lines if they contain nothing else, and otherwise to the blanks
/// before it.
fn extend_over_blanks(text: &str, range: Range<usize>) -> Range<usize> {
    let before = text.get(..range.start).unwrap_or_default();
    let after = text.get(range.end..).unwrap_or_default();
    let blanks = before.len() - before.trim_end_matches([' ', '\t']).len();
    let line = after.find('\n').map_or(after.len(), |at| at + 1);
    let fills_lines = before
        .get(..before.len() - blanks)
        .is_some_and(|before| before.ends_with('\n'))
        && after.get(..line).is_some_and(is_blank);
    if fills_lines {
        range.start - blanks..range.end + line
    } else {
        range.start - blanks..range.end
    }
}

fn is_blank(text: &str) -> bool {
    text.trim().is_empty()
}

fn parse_tree(text: &str) -> Result<CstRootNode, ConfigurationMistake> {
    CstRootNode::parse(text, &PARSE_OPTIONS).map_err(|error| to_mistake(text, &error))
}

fn expect_object<'a, 'b>(
    text: &str,
    value: &'b Node<'a>,
    subject: &str,
) -> Result<&'b Object<'a>, ConfigurationMistake> {
    let message = || format!("{subject}: expected an object in braces");
    value
        .as_object()
        .ok_or_else(|| ConfigurationMistake::at(text, value.range().start, message()))
}

/// Checks that the property names for which `must_be_unique` returns true are unique. Clients
/// differ in which of two properties with the same name they use, so neither can be edited.
fn check_unique_names(
    text: &str,
    object: &Object<'_>,
    must_be_unique: impl Fn(&str) -> bool,
) -> Result<(), ConfigurationMistake> {
    let mut names = BTreeSet::new();
    for property in &object.properties {
        let name = property.name.as_str();
        if must_be_unique(name) && !names.insert(name) {
            return Err(ConfigurationMistake::at(
                text,
                property.range.start,
                format!("{name:?} is defined twice"),
            ));
        }
    }
    Ok(())
}

fn to_mistake(text: &str, error: &ParseError) -> ConfigurationMistake {
    let message = error.kind().to_string();
    let mut rest = message.chars();
    let first = rest.next().map(|c| c.to_ascii_lowercase());
    let lowered: String = first.into_iter().chain(rest).collect();
    ConfigurationMistake::at(text, error.range().start, lowered)
}

fn to_cst_value(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(value) => CstInputValue::Bool(*value),
        Value::Number(value) => CstInputValue::Number(value.to_string()),
        Value::String(value) => CstInputValue::String(value.clone()),
        Value::Array(values) => CstInputValue::Array(values.iter().map(to_cst_value).collect()),
        Value::Object(members) => CstInputValue::Object(
            members
                .iter()
                .map(|(name, value)| (name.clone(), to_cst_value(value)))
                .collect(),
        ),
    }
}
