//! Tables of words: columns as wide as their widest cell, no lines drawn, so that `cut` and `awk` work on them, too.

use crate::output::painted;

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

    /// Adds a row; an empty cell shows as `-`, so that every row has every column.
    pub fn row(&mut self, cells: Vec<String>) {
        let shown = |cell: String| if cell.is_empty() { "-".to_owned() } else { crate::output::one_line(&cell, 100) };
        self.rows.push(cells.into_iter().map(shown).collect());
    }

    /// Whether there is nothing below the titles.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The whole table, without a line break at its end.
    pub fn render(&self, colours: bool) -> String {
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
            cells.chain([self.head[column].len()]).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.head.len()).map(width).collect();
        let line = |cells: &[String]| {
            let cells = cells.iter().zip(&widths).map(|(cell, width)| {
                let padded = format!("{cell}{}", " ".repeat(width - cell.chars().count()));
                painted(cell, &padded, colours)
            });
            cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
        };
        let head: Vec<String> = self.head.iter().map(|title| (*title).to_owned()).collect();
        std::iter::once(line(&head)).chain(self.rows.iter().map(|row| line(row))).collect::<Vec<_>>().join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let mut table = Table::new(&["STAGE", "RESULT"]);
        table.row(vec!["production".into(), "pass".into()]);
        table.row(vec!["dev".into(), String::new()]);
        insta::assert_snapshot!(table.render(false), @r"
        STAGE       RESULT
        production  pass
        dev         -
        ");
        assert!(table.render(true).contains("\u{1b}[32mpass  \u{1b}[0m"));
    }
}
