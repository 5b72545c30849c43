//! Reads the lists in `tests/packages` and selects rows.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use super::row::{PackageRegistry, PackageRow};

/// The folder of the lists.
pub(super) const LISTS: &str = "tests/packages";

/// The files, in the order of the table.
const FILES: [(PackageRegistry, &str); 4] = [
    (PackageRegistry::Npm, "npm.toml"),
    (PackageRegistry::Npm, "npm-clients.toml"),
    (PackageRegistry::Pypi, "pypi.toml"),
    (PackageRegistry::Pypi, "pypi-clients.toml"),
];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PackageList {
    #[serde(default)]
    package: Vec<PackageRow>,
    #[serde(default)]
    client: Vec<PackageRow>,
}

/// Reads all rows.
pub(super) fn read(root: &Path) -> Result<Vec<PackageRow>> {
    let mut rows = Vec::new();
    for (registry, file) in FILES {
        let path = root.join(LISTS).join(file);
        let text = fs::read_to_string(&path)
            .with_context(|| format!("failed to read {}", path.display()))?;
        let read = parse(registry, &text).with_context(|| path.display().to_string())?;
        rows.extend(read);
    }
    Ok(rows)
}

fn parse(registry: PackageRegistry, text: &str) -> Result<Vec<PackageRow>> {
    let list: PackageList = toml::from_str(text)?;
    let mut rows = list.package;
    let clients = rows.len();
    rows.extend(list.client);
    let mut names = BTreeSet::new();
    for (index, row) in rows.iter_mut().enumerate() {
        row.registry = registry;
        let letter = if row.is_client() { 'c' } else { 'p' };
        let name = row
            .name
            .to_lowercase()
            .replace(|c: char| !c.is_ascii_alphanumeric(), "_");
        row.id = format!("{letter}{index}_{name}");
        if row.is_client() != (index >= clients) || row.is_client() != row.result.is_some() {
            bail!(
                "{}: a [[client]], and no other row, has `over` and `result`",
                row.name
            );
        }
        if row.instead.is_some() && row.fails.is_some() {
            bail!("{}: `instead` and `fails` exclude each other", row.name);
        }
        if !names.insert(row.name.to_lowercase()) {
            bail!("{}: it is listed twice", row.name);
        }
    }
    Ok(rows)
}

/// Returns the rows with these names. An unknown name is an error.
pub(super) fn select_named(rows: Vec<PackageRow>, names: &[String]) -> Result<Vec<PackageRow>> {
    let is_same = |row: &PackageRow, name: &String| row.name.eq_ignore_ascii_case(name);
    if let Some(name) = names
        .iter()
        .find(|name| !rows.iter().any(|row| is_same(row, name)))
    {
        bail!("no package {name} in {LISTS}");
    }
    let mut rows = rows;
    rows.retain(|row| names.iter().any(|name| is_same(row, name)));
    Ok(rows)
}

/// Returns at most `count` rows at equal distances, which are the same in each run.
pub(super) fn sample(rows: Vec<PackageRow>, count: usize) -> Vec<PackageRow> {
    let all = rows.len();
    let chosen: BTreeSet<usize> = (0..count)
        .filter_map(|index| ((2 * index + 1) * all).checked_div(2 * count))
        .collect();
    let numbered = rows.into_iter().enumerate();
    numbered
        .filter(|(index, _)| chosen.contains(index))
        .map(|(_, row)| row)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, more: &str) -> String {
        format!("[[package]]\nname = \"{name}\"\nversion = \"1\"\ncode = \"return 1\"\n{more}\n")
    }

    fn named(text: &str) -> Vec<PackageRow> {
        parse(PackageRegistry::Pypi, text).unwrap()
    }

    fn refusal(text: &str) -> String {
        format!("{:#}", parse(PackageRegistry::Npm, text).unwrap_err())
    }

    #[test]
    fn rows_have_unique_names_for_tools() {
        let rows = named(&format!("{}{}", row("@a/b-c", ""), row("a.b_c", "")));
        assert_eq!([&rows[0].id, &rows[1].id], ["p0__a_b_c", "p1_a_b_c"]);
    }

    #[test]
    fn contradictions_are_refused() {
        let twice = refusal(&format!("{}{}", row("Ab", ""), row("aB", "")));
        assert_eq!(twice, "aB: it is listed twice");
        let both = refusal(&row("a", "instead = \"x\"\nfails = \"y\""));
        assert_eq!(both, "a: `instead` and `fails` exclude each other");
        let client = refusal(&row("a", "over = \"fetch\"\nresult = 1"));
        assert!(client.starts_with("a: a [[client]]"), "{client}");
    }

    #[test]
    fn rows_are_selected() {
        let all: String = ["a", "b", "c", "d", "e"].map(|name| row(name, "")).concat();
        let chosen =
            |rows: Vec<PackageRow>| rows.into_iter().map(|row| row.name).collect::<String>();
        assert_eq!(chosen(sample(named(&all), 2)), "bd");
        assert_eq!(chosen(sample(named(&all), 9)), "abcde");
        assert_eq!(chosen(sample(named(&all), 0)), "");
        let names = ["D".to_owned(), "a".to_owned()];
        assert_eq!(chosen(select_named(named(&all), &names).unwrap()), "ad");
        let unknown = select_named(named(&all), &["x".to_owned()]).unwrap_err();
        assert_eq!(unknown.to_string(), "no package x in tests/packages");
    }
}
