//! Tables of words: columns as wide as their widest cell, no lines drawn, so that `cut` and `awk` work on them, too. On a terminal
//! the widest columns give way until a row fits on a line.

use crate::args::named::Format;
use crate::error::CliError;
use crate::output::{painted, say};
use crate::terminal::{Look, columns, look, padded};
use keelway_wire::http::promotions::Registered;

/// A column is not made narrower than this.
const NARROWEST: usize = 8;
/// Between two columns.
const GAP: usize = 2;

/// A table to print.
pub struct Table {
    head: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// With these column titles.
    pub fn new(head: &[&'static str]) -> Self {
        Self { head: head.to_vec(), rows: vec![] }
    }

    /// Of definitions, with these fields of what they say.
    pub fn registered(all: &[Registered], fields: &[(&'static str, &str)], format: Format) -> Self {
        let namespaced = all.iter().any(|one| one.namespace.is_some());
        let head: &[&str] = if namespaced { &["NAMESPACE", "NAME"] } else { &["NAME"] };
        let tail: &[&str] = if format == Format::Wide { &["APPLIED", "VERSION"] } else { &["APPLIED"] };
        let mut table = Self::new(&[head, &fields.iter().map(|(title, _)| *title).collect::<Vec<_>>(), tail].concat());
        for one in all {
            let field = |(_, field): &(&str, &str)| match one.spec.get(*field) {
                Some(serde_json::Value::String(text)) => text.clone(),
                Some(other) => other.to_string(),
                None => String::new(),
            };
            let mut row: Vec<String> = one.namespace.iter().cloned().chain([one.name.clone()]).collect();
            row.extend(fields.iter().map(field));
            match format {
                Format::Wide => row.extend([one.applied_at.clone(), one.version.to_string()]),
                _ => row.push(one.applied_at.chars().take("2026-11-22".len()).collect()),
            }
            table.row(row);
        }
        table
    }

    /// Adds a row; an empty cell shows as `-`, so that every row has every column.
    pub fn row(&mut self, cells: Vec<String>) {
        let shown = |cell: String| if cell.is_empty() { "-".to_owned() } else { crate::output::one_line(&cell, 200) };
        self.rows.push(cells.into_iter().map(shown).collect());
    }

    /// Whether there is nothing below the titles.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The whole table, without a line break at its end.
    pub fn render(&self, look: &Look) -> String {
        let widths = self.widths(look.width);
        let line = |cells: &[String]| {
            let cells = cells.iter().zip(&widths).map(|(cell, width)| {
                let shown = padded(&look.cut(cell, *width), *width);
                painted(cell, &shown, look)
            });
            cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
        };
        let head: Vec<String> = self.head.iter().map(|title| (*title).to_owned()).collect();
        std::iter::once(line(&head)).chain(self.rows.iter().map(|row| line(row))).collect::<Vec<_>>().join("\n")
    }

    fn widths(&self, limit: Option<usize>) -> Vec<usize> {
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column)).map(|cell| columns(cell));
            cells.chain([self.head[column].len()]).max().unwrap_or(0)
        };
        let mut widths: Vec<usize> = (0..self.head.len()).map(width).collect();
        let room = limit.unwrap_or(usize::MAX).saturating_sub(GAP * self.head.len().saturating_sub(1));
        while widths.iter().sum::<usize>() > room {
            match widths.iter_mut().max() {
                Some(widest) if *widest > NARROWEST => *widest -= 1,
                _ => break,
            }
        }
        widths
    }
}

/// A table in the width there is, or with everything.
///
/// # Errors
/// When nobody reads it any more.
pub fn print(table: &Table, format: Format, empty: &str) -> Result<(), CliError> {
    if table.is_empty() {
        eprintln!("{empty}");
        return Ok(());
    }
    let look = look();
    say(&table.render(&if format == Format::Wide { Look { width: None, ..look } } else { look }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(width: Option<usize>, colours: bool) -> Look {
        Look { width, height: 24, colours, ascii: false, live: false }
    }

    #[test]
    fn columns_line_up() {
        let mut table = Table::new(&["STAGE", "RESULT"]);
        table.row(vec!["production".into(), "pass".into()]);
        table.row(vec!["dev".into(), String::new()]);
        insta::assert_snapshot!(table.render(&look(None, false)), @r"
        STAGE       RESULT
        production  pass
        dev         -
        ");
        assert!(table.render(&look(None, true)).contains("\u{1b}[32mpass  \u{1b}[0m"));
    }

    #[test]
    fn the_widest_columns_give_way() {
        let mut table = Table::new(&["PROJECT", "DESCRIPTION", "STAGES"]);
        table.row(vec!["shop".into(), "two services on their way through three stages".into(), "dev, staging, production".into()]);
        let fits = table.render(&look(Some(50), false));
        insta::assert_snapshot!(fits, @r"
        PROJECT  DESCRIPTION           STAGES
        shop     two services on the…  dev, staging, prod…
        ");
        assert!(fits.lines().all(|line| columns(line) <= 50));
    }
}
