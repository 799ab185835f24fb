//! The lines at the end of the output that are drawn again in their place, and what is printed above them. One writer: everything
//! that `watch` prints goes through here.

use crate::error::CliError;
use crate::output::say;
use crate::terminal::{Look, columns, look};
use std::io::Write;

/// The lines that can be drawn again.
#[derive(Default)]
pub struct Live {
    /// As they were drawn last, and without escapes how wide.
    drawn: Vec<(String, usize)>,
}

impl Live {
    /// Draws these lines in place of the last ones. Of more than fit on the screen, the last ones are shown.
    ///
    /// # Errors
    /// When nobody reads it any more.
    pub fn draw(&mut self, lines: Vec<String>, look: &Look) -> Result<(), CliError> {
        let hidden = (lines.len() + 1).saturating_sub(look.height);
        let more =
            (hidden > 0).then(|| look.cut(&format!("{} {} more above", look.ellipsis(), hidden + 1), look.width.unwrap_or(80)));
        let shown = more.into_iter().chain(lines.into_iter().skip(if hidden > 0 { hidden + 1 } else { 0 }));
        let next: Vec<(String, usize)> = shown.map(|line| (line.clone(), columns(&plain(&line)))).collect();
        if next == self.drawn {
            return Ok(());
        }
        let text: String = next.iter().map(|(line, _)| format!("{line}\u{1b}[K\n")).collect();
        self.write(&format!("{}{text}\u{1b}[J", self.up(look)))?;
        self.drawn = next;
        Ok(())
    }

    /// Prints a line above them.
    ///
    /// # Errors
    /// As [`Live::draw`].
    pub fn say(&mut self, line: &str, look: &Look) -> Result<(), CliError> {
        if self.drawn.is_empty() {
            return say(line);
        }
        let below: String = self.drawn.iter().map(|(line, _)| format!("{line}\u{1b}[K\n")).collect();
        self.write(&format!("{}\u{1b}[J{line}\n{below}", self.up(look)))
    }

    /// Prints a warning: above them on a terminal, because standard error may be the same one, and otherwise on standard error.
    ///
    /// # Errors
    /// As [`Live::draw`].
    pub fn warn(&mut self, text: &str) -> Result<(), CliError> {
        let look = look();
        if look.live {
            return self.say(&look.cut(text, look.width.unwrap_or(80)), &look);
        }
        eprintln!("{text}");
        Ok(())
    }

    /// Leaves them where they are: what comes next is printed below.
    pub fn leave(&mut self) {
        self.drawn.clear();
    }

    /// To the beginning of the first line. A terminal that has become narrower has broken lines in two.
    fn up(&self, look: &Look) -> String {
        let width = look.width.unwrap_or(usize::MAX).max(1);
        let rows: usize = self.drawn.iter().map(|(_, columns)| columns.div_ceil(width).max(1)).sum();
        if rows == 0 { String::new() } else { format!("\r\u{1b}[{rows}A") }
    }

    fn write(&self, text: &str) -> Result<(), CliError> {
        let mut out = std::io::stdout().lock();
        out.write_all(text.as_bytes())?;
        Ok(out.flush()?)
    }
}

/// A line without its colours.
fn plain(line: &str) -> String {
    let mut parts = line.split('\u{1b}');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + part.split_once('m').map_or("", |(_, text)| text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_take_no_columns() {
        assert_eq!(plain("dev \u{1b}[32m✓ 4s\u{1b}[0m  x"), "dev ✓ 4s  x");
    }

    #[test]
    fn a_line_that_has_become_too_wide_takes_two_rows() {
        let look = |width| Look { width: Some(width), height: 9, colours: false, ascii: false, live: true };
        let live = Live { drawn: vec![("x".repeat(50), 50), (String::new(), 0)] };
        assert_eq!((live.up(&look(80)), live.up(&look(40))), ("\r\u{1b}[2A".into(), "\r\u{1b}[3A".into()));
    }
}
