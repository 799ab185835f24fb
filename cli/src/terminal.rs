//! What the terminal is like, and what the command line says about it: width, colour, characters, whether lines can be redrawn.

use crate::args::printing::{Colour, Display};
use std::io::IsTerminal;
use std::sync::OnceLock;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// How to draw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    /// Columns of a line; `None`: nobody cuts it, as in a pipe.
    pub width: Option<usize>,
    /// Rows of the terminal.
    pub height: usize,
    /// Colour what has a state.
    pub colours: bool,
    /// Only ASCII characters.
    pub ascii: bool,
    /// Lines can be drawn again in their place.
    pub live: bool,
}

static LOOK: OnceLock<(Colour, bool)> = OnceLock::new();

/// Keeps what the command line says, once, before anything is printed.
pub fn set(display: Display) {
    LOOK.get_or_init(|| (display.color, display.ascii));
}

/// How standard output is to be drawn now: its size may change.
pub fn look() -> Look {
    let (colour, ascii) = LOOK.get().copied().unwrap_or((Colour::Auto, false));
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let terminal = std::io::stdout().is_terminal();
    let dumb = variable("TERM").is_some_and(|term| term == "dumb");
    let size = terminal_size::terminal_size_of(std::io::stdout()).map(|(width, height)| (width.0, height.0));
    let told = variable("COLUMNS").and_then(|columns| columns.parse().ok()).filter(|_| terminal && size.is_none());
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(variable);
    let utf8 = locale.is_none_or(|locale| locale.to_ascii_lowercase().replace('-', "").contains("utf8"));
    Look {
        width: size.map(|(width, _)| usize::from(width)).or(told).filter(|width| *width > 0),
        height: size.map_or(24, |(_, height)| usize::from(height).max(2)),
        colours: match colour {
            Colour::Always => true,
            Colour::Never => false,
            Colour::Auto => terminal && !dumb && variable("NO_COLOR").is_none(),
        },
        ascii: ascii || !utf8,
        live: terminal && !dumb,
    }
}

impl Look {
    /// The text in a colour, by the number of the colour; 0 = as it is.
    pub fn paint(&self, code: u8, text: &str) -> String {
        if self.colours && code != 0 && !text.is_empty() { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }

    /// Something that was cut ends in this.
    pub fn ellipsis(&self) -> &'static str {
        if self.ascii { "..." } else { "…" }
    }

    /// At most `most` columns of a text without escapes.
    pub fn cut(&self, text: &str, most: usize) -> String {
        if columns(text) <= most {
            return text.to_owned();
        }
        let end = if most > columns(self.ellipsis()) { self.ellipsis() } else { "" };
        let mut left = most - columns(end);
        let fits = |c: &char| {
            let width = c.width().unwrap_or(0);
            let fits = width <= left;
            left = if fits { left - width } else { 0 };
            fits
        };
        let kept: String = text.chars().take_while(fits).collect();
        format!("{}{end}", kept.trim_end())
    }
}

/// The columns that a text without escapes takes.
pub fn columns(text: &str) -> usize {
    text.width()
}

/// A text, and blanks up to a width.
pub fn padded(text: &str, width: usize) -> String {
    format!("{text}{}", " ".repeat(width.saturating_sub(columns(text))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_text_has_the_width_it_may_have() {
        let look = Look { width: None, height: 24, colours: false, ascii: false, live: false };
        assert_eq!(look.cut("evaluation: p95 431", 12), "evaluation:…");
        assert_eq!((look.cut("部署失败了", 7), columns("部署失…")), ("部署失…".into(), 7));
        assert_eq!(look.cut("short", 5), "short");
        let ascii = Look { ascii: true, ..look };
        assert_eq!((ascii.cut("evaluation", 6), ascii.cut("evaluation", 2)), ("eva...".into(), "ev".into()));
    }
}
