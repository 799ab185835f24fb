//! What goes to the terminal: whole lines, colours only where a person looks, nothing a terminal would obey.

use crate::args::named::Format;
use crate::error::CliError;
use crate::terminal::Look;
use std::io::Write;

/// Prints a line on standard output.
///
/// # Errors
/// When nobody reads it any more.
pub fn say(line: &str) -> Result<(), CliError> {
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
    lines.iter().for_each(|line| eprintln!("{line}"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_is_short_and_harmless() {
        assert_eq!(one_line("a\n b\t\u{1b}[31mc", 40), "a b [31mc");
        assert_eq!(one_line("abcdefgh", 5), "abcd…");
        assert_eq!(one_line("", 5), "");
    }
}
