//! Edits of TOML as clients read it.
//!
//! A table with its own header is added and removed as text, so that the other bytes are unchanged.
//! Other forms are edited as a tree, which also keeps comments.

use std::ops::Range;

use serde_json::{Map, Value};
use toml_edit::{Document, DocumentMut, Item, Table, TableLike, TomlError, Value as Leaf};

use crate::mistake::ConfigurationMistake;

/// Parses a text whose servers are in the table `servers`.
pub(crate) fn parse(text: &str, servers: &str) -> Result<Map<String, Value>, ConfigurationMistake> {
    let document = Document::parse(text).map_err(|error| to_mistake(text, &error))?;
    if let Some(item) = document.as_table().get(servers) {
        let servers_table = expect_table(text, item, servers)?;
        for (name, item) in servers_table.iter() {
            expect_table(text, item, &format!("{servers}.{name}"))?;
        }
    }
    toml_edit::de::from_str(text).map_err(|error| {
        let offset = error.span().map_or(0, |span| span.start);
        ConfigurationMistake::at(text, offset, error.message())
    })
}

/// Sets `entry` as the server `name`. `current` is the existing entry of that name.
pub(crate) fn set_server(
    text: &str,
    servers: &str,
    name: &str,
    current: Option<&Map<String, Value>>,
    entry: &Map<String, Value>,
) -> Result<String, ConfigurationMistake> {
    let mut document: DocumentMut = text.parse().map_err(|error| to_mistake(text, &error))?;
    let not_a_table = || ConfigurationMistake::at(text, 0, format!("{servers}: expected a table"));
    match (current, document.as_table_mut().get_mut(servers)) {
        (None, Some(Item::Value(Leaf::InlineTable(servers_table)))) => {
            let entry = entry
                .iter()
                .filter_map(|(key, value)| Some((key.as_str(), to_toml_value(value)?)));
            servers_table.insert(name, Leaf::InlineTable(entry.collect()));
        }
        (None, Some(Item::Table(servers_table))) if servers_table.is_dotted() => {
            servers_table.insert(name, Item::Table(to_toml_table(entry)));
        }
        (None, _) => return Ok(append_block(text, &table_text(servers, name, entry))),
        (Some(current_members), Some(servers_item)) => {
            let server_table = servers_item
                .get_mut(name)
                .and_then(Item::as_table_like_mut)
                .ok_or_else(not_a_table)?;
            update_entry(server_table, current_members, entry);
        }
        (Some(_), None) => return Err(not_a_table()),
    }
    Ok(restore_line_ends(text, document.to_string()))
}

/// Removes the server `name`.
pub(crate) fn remove_server(
    text: &str,
    servers: &str,
    name: &str,
) -> Result<String, ConfigurationMistake> {
    let document = Document::parse(text).map_err(|error| to_mistake(text, &error))?;
    let servers_item = document.as_table().get(servers);
    if let Some(table) = servers_item
        .and_then(|item| item.get(name))
        .and_then(Item::as_table)
        .filter(|table| !table.is_dotted())
    {
        let mut blocks = Vec::new();
        collect_blocks(text, table, &mut blocks);
        blocks.sort_by_key(|block| block.start);
        let mut rest = text.to_owned();
        for block in blocks.into_iter().rev() {
            remove_lines(&mut rest, block);
        }
        return Ok(rest);
    }
    let mut document: DocumentMut = text.parse().map_err(|error| to_mistake(text, &error))?;
    if let Some(servers_table) = document
        .as_table_mut()
        .get_mut(servers)
        .and_then(Item::as_table_like_mut)
    {
        servers_table.remove(name);
    }
    Ok(restore_line_ends(text, document.to_string()))
}

/// Collects the lines of a table and its subtables, as byte ranges. Each range extends from a
/// header to the end of the line of its last value.
fn collect_blocks(text: &str, table: &Table, blocks: &mut Vec<Range<usize>>) {
    if let Some(header) = table.span() {
        let end = last_value_end(table).unwrap_or(header.end).max(header.end);
        let rest = text.get(end..).unwrap_or_default();
        let line = rest.find('\n').map_or(rest.len(), |at| at + 1);
        blocks.push(header.start..end + line);
    }
    for (_, item) in table {
        match item {
            Item::Table(inner) => collect_blocks(text, inner, blocks),
            Item::ArrayOfTables(inner) => inner
                .iter()
                .for_each(|inner| collect_blocks(text, inner, blocks)),
            Item::None | Item::Value(_) => {}
        }
    }
}

/// Returns the end of the last value below a header.
fn last_value_end(table: &Table) -> Option<usize> {
    let end = |(_, item): (&str, &Item)| match item {
        Item::Value(value) => value.span().map(|span| span.end),
        Item::Table(inner) if inner.is_dotted() => last_value_end(inner),
        Item::None | Item::Table(_) | Item::ArrayOfTables(_) => None,
    };
    table.iter().filter_map(end).max()
}

/// Removes lines. Also removes the empty line before them if it would be followed by another one or
/// by the end of the text.
fn remove_lines(text: &mut String, lines: Range<usize>) {
    let before = text.get(..lines.start).unwrap_or_default();
    let after = text.get(lines.end..).unwrap_or_default();
    let starts_blank =
        |text: &str| text.is_empty() || text.starts_with('\n') || text.starts_with("\r\n");
    let mut start = lines.start;
    if starts_blank(after) {
        let without_line_end = before
            .strip_suffix("\r\n")
            .or_else(|| before.strip_suffix('\n'));
        // Remove the line end only if its line is empty.
        if let Some(before_blank) =
            without_line_end.filter(|shorter| shorter.is_empty() || shorter.ends_with('\n'))
        {
            start = before_blank.len();
        }
    }
    text.replace_range(start..lines.end, "");
}

/// Returns a table with its own header, as text.
fn table_text(servers: &str, name: &str, entry: &Map<String, Value>) -> String {
    let mut servers_table = Table::new();
    servers_table.set_implicit(true);
    servers_table.insert(name, Item::Table(to_toml_table(entry)));
    let mut document = DocumentMut::new();
    document.insert(servers, Item::Table(servers_table));
    document.to_string()
}

fn append_block(text: &str, block: &str) -> String {
    let end = line_end(text);
    let mut out = text.to_owned();
    if !out.is_empty() && !out.ends_with('\n') {
        out.push_str(end);
    }
    if !out.trim().is_empty() && !out.ends_with("\n\n") && !out.ends_with("\n\r\n") {
        out.push_str(end);
    }
    out + &block.replace('\n', end)
}

/// Changes only the members that differ, so that the others keep their position and comments.
fn update_entry(
    table: &mut dyn TableLike,
    current: &Map<String, Value>,
    entry: &Map<String, Value>,
) {
    for key in current.keys().filter(|key| !entry.contains_key(*key)) {
        table.remove(key);
    }
    for (key, value) in entry
        .iter()
        .filter(|(key, value)| current.get(*key) != Some(*value))
    {
        let Some(mut new_value) = to_toml_value(value) else {
            continue;
        };
        match table.get_mut(key) {
            Some(Item::Value(old_value)) => {
                *new_value.decor_mut() = old_value.decor().clone();
                *old_value = new_value;
            }
            _ => drop(table.insert(key, Item::Value(new_value))),
        }
    }
}

fn to_toml_table(entry: &Map<String, Value>) -> Table {
    entry
        .iter()
        .filter_map(|(key, value)| Some((key.as_str(), Item::Value(to_toml_value(value)?))))
        .collect()
}

/// Converts a value to TOML, which has no null.
fn to_toml_value(value: &Value) -> Option<Leaf> {
    Some(match value {
        Value::Null => return None,
        Value::Bool(value) => Leaf::from(*value),
        Value::Number(value) => match value.as_i64() {
            Some(value) => Leaf::from(value),
            None => Leaf::from(value.as_f64()?),
        },
        Value::String(value) => Leaf::from(value.as_str()),
        Value::Array(values) => Leaf::Array(values.iter().filter_map(to_toml_value).collect()),
        Value::Object(members) => {
            let members = members
                .iter()
                .filter_map(|(key, value)| Some((key.as_str(), to_toml_value(value)?)));
            Leaf::InlineTable(members.collect())
        }
    })
}

fn line_end(text: &str) -> &'static str {
    if text.contains("\r\n") { "\r\n" } else { "\n" }
}

/// Restores Windows line ends, which the tree does not retain. A text with both kinds gets Unix
/// line ends.
fn restore_line_ends(text: &str, edited: String) -> String {
    let line_end_count = text.matches('\n').count();
    let windows_count = text.matches("\r\n").count();
    if windows_count > 0 && windows_count == line_end_count {
        edited.replace('\n', "\r\n")
    } else {
        edited
    }
}

fn expect_table<'a>(
    text: &str,
    item: &'a Item,
    subject: &str,
) -> Result<&'a dyn TableLike, ConfigurationMistake> {
    let offset = item.span().map_or(0, |span| span.start);
    item.as_table_like().ok_or_else(|| {
        ConfigurationMistake::at(text, offset, format!("{subject}: expected a table"))
    })
}

fn to_mistake(text: &str, error: &TomlError) -> ConfigurationMistake {
    let offset = error.span().map_or(0, |span| span.start);
    ConfigurationMistake::at(text, offset, error.message().replace('\n', "; "))
}
