//! Printing: tables for people, JSON and CSV for programs.

use std::io::{self, Write};

use clap::ValueEnum;
use serde::Serialize;

use super::exit::Outcome;

/// Form of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Form {
    /// For people.
    Table,
    /// For programs.
    Json,
    /// For spreadsheets.
    Csv,
}

/// Rows under headings.
#[derive(Clone, Debug, Default)]
pub(super) struct Table {
    headings: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(super) fn new(headings: &[&'static str]) -> Self {
        Self {
            headings: headings.to_vec(),
            rows: Vec::new(),
        }
    }

    pub(super) fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// Columns as wide as their widest cell; an empty cell shows as `-`.
    pub(super) fn text(&self) -> String {
        let shown = |cell: &str| {
            if cell.is_empty() {
                "-".to_owned()
            } else {
                cell.to_owned()
            }
        };
        let mut lines: Vec<Vec<String>> = vec![
            self.headings
                .iter()
                .map(|heading| (*heading).to_owned())
                .collect(),
        ];
        lines.extend(
            self.rows
                .iter()
                .map(|row| row.iter().map(|cell| shown(cell)).collect()),
        );
        let mut widths = vec![0; self.headings.len()];
        for line in &lines {
            for (width, cell) in widths.iter_mut().zip(line) {
                *width = (*width).max(cell.chars().count());
            }
        }
        let mut text = String::new();
        for line in &lines {
            let mut written = String::new();
            for (width, cell) in widths.iter().zip(line) {
                written.push_str(cell);
                let padding = width.saturating_sub(cell.chars().count()) + 2;
                written.extend(std::iter::repeat_n(' ', padding));
            }
            text.push_str(written.trim_end());
            text.push('\n');
        }
        text
    }

    pub(super) fn csv(&self) -> String {
        let quoted = |cell: &str| {
            if cell.contains([',', '"', '\n', '\r']) {
                format!("\"{}\"", cell.replace('"', "\"\""))
            } else {
                cell.to_owned()
            }
        };
        let mut text = self.headings.join(",").to_lowercase().replace(' ', "_");
        text.push('\n');
        for row in &self.rows {
            let cells: Vec<String> = row.iter().map(|cell| quoted(cell)).collect();
            text.push_str(&cells.join(","));
            text.push('\n');
        }
        text
    }
}

/// Prints a text as it is.
pub(super) fn print(text: &str) -> Outcome {
    match io::stdout().lock().write_all(text.as_bytes()) {
        Ok(()) => Outcome::Done,
        // The reader of a pipe has seen enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Outcome::Done,
        Err(error) => Outcome::Failed(format!("the output cannot be written: {error}")),
    }
}

/// Prints a document in one of the forms.
pub(super) fn print_as(form: Form, document: &impl Serialize, table: &Table) -> Outcome {
    match form {
        Form::Table => print(&table.text()),
        Form::Csv => print(&table.csv()),
        Form::Json => print_json(document),
    }
}

pub(super) fn print_json(document: &impl Serialize) -> Outcome {
    match serde_json::to_string_pretty(document) {
        Ok(text) => print(&format!("{text}\n")),
        Err(error) => Outcome::Failed(format!("the output cannot be written as JSON: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new(&["CHIP", "HELD BY"]);
        table.row(vec!["0".to_owned(), "a/b, \"c\"".to_owned()]);
        table.row(vec!["10".to_owned(), String::new()]);
        table
    }

    #[test]
    fn columns_line_up_and_empty_cells_show() {
        assert_eq!(table().text(), "CHIP  HELD BY\n0     a/b, \"c\"\n10    -\n");
    }

    #[test]
    fn csv_quotes_what_must_be_quoted() {
        assert_eq!(table().csv(), "chip,held_by\n0,\"a/b, \"\"c\"\"\"\n10,\n");
    }
}
