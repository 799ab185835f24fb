//! What is wrong with a manifest, where, and what to write instead.

use super::mark::{At, Mark};
use serde::{Deserialize, Serialize};

/// At most this many findings are reported; further ones are counted.
const MOST: usize = 200;
/// A message or path is cut after this many characters.
const LONGEST: usize = 600;
/// At most this many characters of a line are shown.
const WIDEST: usize = 120;

/// Whether a finding stops the manifest from being applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The manifest is refused.
    Error,
    /// The manifest is taken; it may not do what its author expects.
    Warning,
}

/// One thing wrong with a manifest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// Error or warning.
    pub severity: Severity,
    /// The file as the caller named it.
    pub file: String,
    /// Counted from 1, over the whole file.
    pub line: u64,
    /// In characters, counted from 1.
    pub column: u64,
    /// The field, `spec.stages[0].name`; empty for the document as a whole.
    pub path: String,
    /// What is wrong and what to write instead.
    pub message: String,
    /// The line with a mark under the place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snippet: Option<String>,
}

impl std::fmt::Display for Finding {
    /// As compilers write it: `error: shipyard.yaml:3:5: spec.stages: …`, then the line.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let severity = match self.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        write!(f, "{severity}: {}:{}:{}: ", self.file, self.line, self.column)?;
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.message)?;
        self.snippet.iter().flat_map(|snippet| snippet.lines()).try_for_each(|line| write!(f, "\n  {line}"))
    }
}

/// Collects findings about one text.
pub struct Report<'a> {
    file: &'a str,
    lines: Vec<&'a str>,
    findings: Vec<Finding>,
    errors: usize,
    untold: usize,
    /// Where the object at hand stands in a document that holds several: `items[2]`.
    within: String,
}

impl<'a> Report<'a> {
    pub fn new(file: &'a str, text: &'a str) -> Self {
        Self { file, lines: lines(text), findings: vec![], errors: 0, untold: 0, within: String::new() }
    }

    /// What `read` finds has paths below `place`.
    pub fn within<T>(&mut self, place: &str, read: impl FnOnce(&mut Self) -> T) -> T {
        let outer = self.within.clone();
        self.within = joined(&outer, place);
        let result = read(self);
        self.within = outer;
        result
    }

    /// How many errors so far.
    pub fn errors(&self) -> usize {
        self.errors
    }

    pub fn has_errors(&self) -> bool {
        self.errors > 0
    }

    pub fn error(&mut self, node: &impl At, path: impl Into<String>, message: String) {
        self.error_at(node.at(), path, message);
    }

    pub fn warning(&mut self, node: &impl At, path: impl Into<String>, message: String) {
        self.warning_at(node.at(), path, message);
    }

    pub fn error_at(&mut self, at: Mark, path: impl Into<String>, message: String) {
        self.errors += 1;
        self.add(Severity::Error, at, path.into(), message);
    }

    pub fn warning_at(&mut self, at: Mark, path: impl Into<String>, message: String) {
        self.add(Severity::Warning, at, path.into(), message);
    }

    /// Adds the errors of another report about the same text that are not known yet.
    pub fn add_errors(&mut self, other: Report) {
        for finding in other.findings {
            if finding.severity == Severity::Error && !self.findings.contains(&finding) {
                self.errors += 1;
                match self.is_full() {
                    true => self.untold += 1,
                    false => self.findings.push(finding),
                }
            }
        }
    }

    /// How many lines the text has.
    pub fn last_line(&self) -> u64 {
        u64::try_from(self.lines.len()).unwrap_or(u64::MAX)
    }

    /// The text of a line, counted from 1; empty outside the text.
    pub fn line(&self, number: u64) -> &'a str {
        number.checked_sub(1).and_then(|i| self.lines.get(usize::try_from(i).ok()?)).copied().unwrap_or_default()
    }

    /// Whether further findings would only be counted.
    pub fn is_full(&self) -> bool {
        self.findings.len() >= MOST
    }

    fn add(&mut self, severity: Severity, at: Mark, path: String, message: String) {
        if self.is_full() {
            self.untold += 1;
            return;
        }
        let (path, message) = (shortened(joined(&self.within, &path)), shortened(message));
        let file = self.file.to_owned();
        let snippet = self.snippet(at);
        self.findings.push(Finding { severity, file, line: at.line, column: at.column, path, message, snippet });
    }

    fn snippet(&self, at: Mark) -> Option<String> {
        let line = self.line(at.line);
        if line.trim().is_empty() {
            return None;
        }
        // What a terminal might obey is not shown; a tab is one column to the parser.
        let shown: Vec<char> = line.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        let column = usize::try_from(at.column).unwrap_or(1).max(1) - 1;
        let from = if column > WIDEST - 20 { column - 20 } else { 0 };
        let window: String = shown.iter().skip(from).take(WIDEST).collect();
        let number = at.line.to_string();
        let margin = " ".repeat(number.len());
        Some(format!("{number} | {}\n{margin} | {}^", window.trim_end(), " ".repeat(column.min(from + WIDEST) - from)))
    }

    /// The findings by place, the first [`MOST`] of them.
    pub fn finish(mut self) -> Vec<Finding> {
        self.findings.sort_by_key(|finding| (finding.line, finding.column));
        if self.untold > 0 {
            let (file, message) = (self.file.to_owned(), format!("{} more findings are not shown: mend these first", self.untold));
            let severity = if self.errors > 0 { Severity::Error } else { Severity::Warning };
            let last = self.last_line();
            self.findings.push(Finding { severity, file, line: last, column: 1, path: String::new(), message, snippet: None });
        }
        self.findings
    }
}

/// A path below another one; either may be empty. Fields of the document itself come as `.name`, too.
fn joined(outer: &str, path: &str) -> String {
    let path = path.strip_prefix('.').unwrap_or(path);
    let dot = if outer.is_empty() || path.is_empty() { "" } else { "." };
    format!("{outer}{dot}{path}")
}

/// Cuts a message or a path: it may hold a name that is as long as the text.
fn shortened(text: String) -> String {
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// Lines as YAML counts them: LF, CRLF, or a lone CR.
fn lines(text: &str) -> Vec<&str> {
    text.split('\n')
        .flat_map(|line| {
            let line = line.strip_suffix('\r').unwrap_or(line);
            line.split('\r')
        })
        .collect()
}
