//! Tables of words: columns as wide as their widest cell, no lines drawn, so that `cut` and `awk` work on them, too. On a terminal
//! the widest columns give way until a row fits on a line.

use crate::args::named::Format;
use crate::error::CliError;
use crate::output::{note, painted, say};
use crate::terminal::{Look, columns, look, padded};
use keelway_wire::http::promotions::Registered;
use std::sync::OnceLock;

/// A column is not made narrower than this.
const NARROWEST: usize = 8;
/// Between two columns.
const GAP: usize = 2;

/// By which column the command line wants rows sorted.
static ORDER: OnceLock<String> = OnceLock::new();

/// Keeps what the command line says of the order of rows, once, before anything is printed.
pub fn set(order: String) {
    ORDER.get_or_init(|| order);
}

/// What a cell amounts to: a number, or an age as it is shown; infinite if it is neither.
fn weight(cell: &str) -> u64 {
    let digits = cell.chars().take_while(char::is_ascii_digit).count();
    let (Ok(number), unit) = (cell[..digits].parse::<u64>(), &cell[digits..]) else { return u64::MAX };
    let seconds = match unit.trim_start_matches(|c: char| c == '.' || c.is_ascii_digit()).chars().next() {
        None | Some('%') | Some('s') => 1,
        Some('m') => 60,
        Some('h') => 3600,
        Some('d') => 86_400,
        Some(_) => return u64::MAX,
    };
    number.saturating_mul(seconds)
}

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
        let tail: &[&str] = if format.is_wide() { &["APPLIED", "VERSION"] } else { &["APPLIED"] };
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
                _ if format.is_wide() => row.extend([one.applied_at.clone(), one.version.to_string()]),
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

    /// The rows in this order: numbers and ages by what they amount to, other words by their letters.
    ///
    /// # Errors
    /// There is no such column.
    fn sort(&mut self, order: &str) -> Result<(), CliError> {
        let (name, backwards) = order.strip_prefix('-').map_or((order, false), |name| (name, true));
        let wanted = name.to_uppercase().replace(['-', '_'], " ");
        let Some(column) = self.head.iter().position(|title| *title == wanted) else {
            let columns = self.head.join(", ");
            return Err(CliError::Usage(format!("--sort-by: there is no column {name:?}: there are {columns}")));
        };
        self.rows.sort_by_cached_key(|row| row.get(column).map(|cell| (weight(cell), cell.clone())));
        if backwards {
            self.rows.reverse();
        }
        Ok(())
    }

    /// What other verbs take for each row: `NAMESPACE/NAME`, or a name, a context or an id.
    fn names(&self) -> Vec<String> {
        let column = |title: &str| self.head.iter().position(|known| *known == title);
        let named = ["NAME", "CONTEXT", "ID"].into_iter().find_map(column).unwrap_or(0);
        let place = column("NAMESPACE").filter(|_| self.head[named] == "NAME");
        let name = |row: &Vec<String>| match place {
            Some(place) => format!("{}/{}", row[place], row[named]),
            None => row[named].clone(),
        };
        self.rows.iter().map(name).collect()
    }

    fn widths(&self, limit: Option<usize>) -> Vec<usize> {
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column)).map(|cell| columns(cell));
            cells.chain([self.head[column].len()]).max().unwrap_or(0)
        };
        let mut widths: Vec<usize> = (0..self.head.len()).map(width).collect();
        let room = limit.unwrap_or(usize::MAX).saturating_sub(GAP * self.head.len().saturating_sub(1));
        // The next command takes an id, so it is shown whole.
        let is_id = |column: usize| self.head[column] == "ID";
        while widths.iter().sum::<usize>() > room {
            match widths.iter_mut().enumerate().filter(|(column, _)| !is_id(*column)).map(|(_, width)| width).max() {
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
pub fn print(mut table: Table, format: Format, empty: &str) -> Result<(), CliError> {
    if table.is_empty() {
        note(empty);
        return Ok(());
    }
    if let Some(order) = ORDER.get() {
        table.sort(order)?;
    }
    if format == Format::Name {
        return table.names().iter().try_for_each(|name| say(name));
    }
    let look = look();
    say(&table.render(&if format.is_wide() { Look { width: None, ..look } } else { look }))
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
    fn rows_are_sorted_by_what_cells_amount_to() {
        let mut table = Table::new(&["NAMESPACE", "NAME", "AGE"]);
        for (name, age) in [("carts", "2h"), ("web", "90s"), ("api", "3d")] {
            table.row(vec!["shop".into(), name.into(), age.into()]);
        }
        table.sort("age").unwrap();
        assert_eq!(table.names(), ["shop/web", "shop/carts", "shop/api"]);
        table.sort("-NAME").unwrap();
        assert_eq!(table.names(), ["shop/web", "shop/carts", "shop/api"]);
        let refused = table.sort("size").unwrap_err().to_string();
        assert_eq!(refused, "--sort-by: there is no column \"size\": there are NAMESPACE, NAME, AGE");
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
