//! The tables of packages in the book.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use toolbay_testkit::markdown::replace_part;

use super::row::{PackageRegistry, PackageRow, RowClaim};

/// The page of the book.
pub(super) const PAGE: &str = "docs/src/packages-javascript-python.md";

/// Writes the table of a registry into the book.
pub(super) fn write(root: &Path, registry: PackageRegistry, rows: &[&PackageRow]) -> Result<()> {
    let path = root.join(PAGE);
    let page =
        fs::read_to_string(&path).with_context(|| format!("failed to read {}", path.display()))?;
    let page = replace_part(&page, registry.key(), &text(registry, rows))
        .with_context(|| format!("failed to change {}", path.display()))?;
    fs::write(&path, page).with_context(|| format!("failed to write {}", path.display()))
}

/// Returns the number of packages in pure JavaScript or Python, and the number of those that work.
pub(super) fn count_pure(rows: &[&PackageRow]) -> (usize, usize) {
    let pure = rows
        .iter()
        .filter(|row| !row.is_client() && row.instead.is_none());
    let working = pure.clone().filter(|row| row.claim() == RowClaim::Works);
    (pure.count(), working.count())
}

/// Returns the tables of a registry. They state the claims of the rows, which the run has checked.
fn text(registry: PackageRegistry, rows: &[&PackageRow]) -> String {
    let (pure, working) = count_pure(rows);
    let language = match registry {
        PackageRegistry::Npm => "JavaScript",
        PackageRegistry::Pypi => "Python",
    };
    let clients: Vec<&&PackageRow> = rows.iter().filter(|row| row.is_client()).collect();
    let packages = rows.iter().filter(|row| !row.is_client());
    let (refused, listed): (Vec<&&PackageRow>, Vec<&&PackageRow>) =
        packages.partition(|row| row.instead.is_some());
    let mut text = vec![format!(
        "Of {pure} packages in pure {language}, {working} work:\n\n| package | version | in a plugin |\n| --- | --- | --- |\n"
    )];
    for row in sorted(listed) {
        text.push(format!(
            "| {} | {} | {} |\n",
            row.name,
            row.version,
            cell(row)
        ));
    }
    text.push(format!(
        "\nEach of these {} API clients sends its requests to a local server that the grant allows:\n\n\
         | client | version | sends requests with | in a plugin |\n| --- | --- | --- | --- |\n",
        clients.len()
    ));
    for row in sorted(clients) {
        let over = row.over.as_deref().unwrap_or_default();
        text.push(format!(
            "| {} | {} | `{over}` | {} |\n",
            row.name,
            row.version,
            cell(row)
        ));
    }
    text.push(format!(
        "\nThese {} packages cannot be in a plugin:\n\n| package | version | the error names |\n| --- | --- | --- |\n",
        refused.len()
    ));
    for row in sorted(refused) {
        let instead = row.instead.as_deref().unwrap_or_default();
        text.push(format!(
            "| {} | {} | {} |\n",
            row.name,
            row.version,
            escape(instead)
        ));
    }
    text.concat()
}

/// Returns the cell with the outcome of a row.
fn cell(row: &PackageRow) -> String {
    match row.claim() {
        RowClaim::Works if row.include.is_empty() => "works".to_owned(),
        RowClaim::Works => format!("works with `include = {:?}`", row.include),
        RowClaim::Fails(part) | RowClaim::Refused(part) => {
            format!("fails: {}", escape(part))
        }
    }
}

/// Escapes a text for a cell of a table.
fn escape(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

fn sorted<'a>(mut rows: Vec<&'a &'a PackageRow>) -> Vec<&'a &'a PackageRow> {
    rows.sort_by_key(|row| row.name.trim_start_matches('@').to_lowercase());
    rows
}

#[cfg(test)]
mod tests {
    use toolbay_testkit::workspace;

    use super::*;
    use crate::packages::lists;

    fn row(text: &str) -> PackageRow {
        toml::from_str(&format!("version = \"1.2\"\ncode = \"\"\n{text}")).unwrap()
    }

    #[test]
    fn the_tables_have_a_row_for_each_package() {
        let rows = [
            row("name = \"b\"\nfails = \"no | here\""),
            row("name = \"@a/c\"\ninclude = [\"x\"]"),
            row("name = \"d\"\nover = \"fetch\"\nresult = 1"),
            row("name = \"e\"\ninstead = \"use `f`\""),
        ];
        let rows: Vec<&PackageRow> = rows.iter().collect();
        assert_eq!(count_pure(&rows), (2, 1));
        let text = text(PackageRegistry::Npm, &rows);
        assert!(text.starts_with("Of 2 packages in pure JavaScript, 1 work:"));
        for line in [
            "| @a/c | 1.2 | works with `include = [\"x\"]` |\n| b | 1.2 | fails: no \\| here |\n",
            "| d | 1.2 | `fetch` | works |\n",
            "| e | 1.2 | use `f` |\n",
        ] {
            assert!(text.contains(line), "{text}");
        }
    }

    #[test]
    fn the_book_has_the_tables_of_the_lists() {
        let root = workspace::root();
        let page = fs::read_to_string(root.join(PAGE)).unwrap();
        let rows = lists::read(root).unwrap();
        for registry in [PackageRegistry::Npm, PackageRegistry::Pypi] {
            let rows: Vec<&PackageRow> =
                rows.iter().filter(|row| row.registry == registry).collect();
            let tables = text(registry, &rows);
            assert!(
                page.contains(tables.trim()),
                "{PAGE} is not that of the lists; run `cargo xtask packages`, which checks them"
            );
            let (pure, working) = count_pure(&rows);
            assert!(working * 5 >= pure * 4, "{working} of {pure} work");
            assert!(pure >= 80, "{pure} packages of {}", registry.title());
            assert!(rows.iter().filter(|row| row.is_client()).count() >= 6);
        }
    }
}
