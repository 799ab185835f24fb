//! What goes to the terminal: whole lines, colours only where a person looks, nothing a terminal would obey.

use crate::args::named::Format;
use crate::error::CliError;
use crate::terminal::Look;
use std::cell::RefCell;
use std::io::Write;

/// What was printed while it is kept.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Kept {
    /// For standard output.
    pub lines: Vec<String>,
    /// For people, on standard error.
    pub notes: Vec<String>,
}

thread_local! {
    // The command has one thread: its runtime is the current one's.
    static KEPT: RefCell<Option<Kept>> = const { RefCell::new(None) };
}

/// Keeps what is printed from now on, for whoever draws it.
pub fn keep() {
    KEPT.set(Some(Kept::default()));
}

/// What was printed since [`keep`], which ends with it.
pub fn kept() -> Kept {
    KEPT.take().unwrap_or_default()
}

/// Adds to what is kept, if something is.
fn kept_with(add: impl FnOnce(&mut Kept)) -> bool {
    KEPT.with_borrow_mut(|kept| kept.as_mut().map(add).is_some())
}

/// Prints a line on standard output.
///
/// # Errors
/// When nobody reads it any more.
pub fn say(line: &str) -> Result<(), CliError> {
    if kept_with(|kept| kept.lines.extend(line.split('\n').map(str::to_owned))) {
        return Ok(());
    }
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")?;
    Ok(out.flush()?)
}

/// Prints data for programs on standard output: as YAML if that was asked for, otherwise as indented JSON.
///
/// # Errors
/// As [`say`].
pub fn say_data(value: &impl serde::Serialize, format: Format) -> Result<(), CliError> {
    let text = if format == Format::Yaml {
        serde_saphyr::to_string(value).map_err(|error| error.to_string())
    } else {
        serde_json::to_string_pretty(value).map_err(|error| error.to_string())
    };
    say(text.map_err(|error| CliError::Failed(format!("the answer cannot be written as text: {error}")))?.trim_end())
}

/// One line of at most `most` characters, without anything a terminal would obey.
pub fn one_line(text: &str, most: usize) -> String {
    let flat: Vec<&str> = text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty()).collect();
    let flat = flat.join(" ");
    if flat.chars().count() <= most {
        return flat;
    }
    let cut: String = flat.chars().take(most.saturating_sub(1)).collect();
    format!("{}…", cut.trim_end())
}

/// A word in the colour of what it says; other words as they are. `shown` is what to print, for example padded.
pub fn painted(word: &str, shown: &str, look: &Look) -> String {
    let code = match word.split(' ').next().unwrap_or_default() {
        "pass" | "ok" => 32,
        "warning" | "waitingForApproval" | "paused" | "stale" => 33,
        "fail" | "aborted" | "timedOut" | "error" => 31,
        _ => 0,
    };
    look.paint(code, shown)
}

/// Commands that would help, for people: not on standard output.
pub fn hint(lines: &[String]) {
    lines.iter().for_each(|line| note(line));
}

/// A line for people: not on standard output.
pub fn note(line: &str) {
    if !kept_with(|kept| kept.notes.push(line.to_owned())) {
        eprintln!("{line}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_not_printed() {
        keep();
        say("a\nb").unwrap();
        hint(&["c".into()]);
        let text = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        assert_eq!(kept(), Kept { lines: text(&["a", "b"]), notes: text(&["c"]) });
        assert_eq!(kept(), Kept::default());
    }

    #[test]
    fn one_line_is_short_and_harmless() {
        assert_eq!(one_line("a\n b\t\u{1b}[31mc", 40), "a b [31mc");
        assert_eq!(one_line("abcdefgh", 5), "abcd…");
        assert_eq!(one_line("", 5), "");
    }
}
