//! Markdown tables.

use std::fmt;

/// A table whose first column is text, and whose other columns are numbers.
#[derive(Clone, Debug)]
pub struct Markdown {
    header: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Markdown {
    /// Creates a table without rows.
    pub fn new(header: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self {
            header: header.into_iter().map(Into::into).collect(),
            rows: Vec::new(),
        }
    }

    /// Adds a row. Missing cells at its end are empty.
    pub fn row(&mut self, cells: impl IntoIterator<Item = impl Into<String>>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }
}

impl fmt::Display for Markdown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = |f: &mut fmt::Formatter<'_>, cells: &[String]| {
            let filled =
                (0..self.header.len()).map(|column| cells.get(column).map_or("", String::as_str));
            for cell in filled {
                // A pipe character would end the cell.
                write!(f, "| {} ", cell.replace('|', "\\|").replace('\n', " "))?;
            }
            writeln!(f, "|")
        };
        line(f, &self.header)?;
        for column in 0..self.header.len() {
            f.write_str(if column == 0 { "| --- " } else { "| ---: " })?;
        }
        writeln!(f, "|")?;
        self.rows.iter().try_for_each(|row| line(f, row))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_markdown() {
        let mut table = Markdown::new(["what", "ours"]);
        table.row(["a|b", "1 µs"]);
        table.row(["c"]);
        let expected = "| what | ours |\n| --- | ---: |\n| a\\|b | 1 µs |\n| c |  |\n";
        assert_eq!(table.to_string(), expected);
    }
}
