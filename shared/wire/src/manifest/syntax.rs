//! What to do about YAML that does not parse.

use super::finding::Report;
use super::mark::Mark;
use serde_saphyr::granit_parser::{ErrorKind, ScanError};

/// Reports why the parser stopped, at the line to mend.
pub fn explain(error: &ScanError, report: &mut Report) {
    let marker = error.marker();
    let number = |n: usize| u64::try_from(n).unwrap_or(u64::MAX);
    let at = Mark { line: number(marker.line()).max(1), column: number(marker.col()).saturating_add(1) };
    let (at, remedy) = remedy(error.kind(), at, report);
    report.error_at(at, "", format!("is not YAML ({}): {remedy}", error.kind()));
}

/// The place to mend, often a line before the one the parser stopped at, and how.
fn remedy(kind: &ErrorKind, at: Mark, report: &Report) -> (Mark, String) {
    let before = (1..at.line).rev().find(|n| !is_blank(report.line(*n)));
    if *kind == ErrorKind::TabInPlainScalar {
        // The parser names the line where the value begins; the tab is in the indentation of a line below it.
        let below = (at.line + 1..=report.last_line()).filter(|n| !is_blank(report.line(*n)));
        if let Some(fault) = below.filter_map(|n| Some((n, tab_in_indent(report.line(n))?))).next() {
            return (Mark { line: fault.0, column: fault.1 }, INDENT.into());
        }
    }
    // The line itself first, then the one before: the parser notices late.
    for line in std::iter::once(at.line).chain(before) {
        if let Some((column, remedy)) = seen_in(report.line(line)) {
            return (Mark { line, column }, remedy);
        }
    }
    let remedy = match kind {
        ErrorKind::UnclosedQuotedScalar | ErrorKind::InvalidQuotedScalarIndent | ErrorKind::DocumentIndicatorInQuotedScalar => {
            return match opened(at.line, report) {
                Some(at) => (at, "this quote is never closed: close it with the same sign".into()),
                None => (at, "a quote is never closed: close it with the same sign".into()),
            };
        }
        ErrorKind::UnclosedFlowCollection { open } => format!("`{open}` is never closed: close it"),
        ErrorKind::MismatchedFlowCollectionEnd { open, .. } => {
            format!("the `{open}` before it is not closed yet: close it first")
        }
        ErrorKind::UnknownAnchor => {
            "no anchor of that name stands before this alias: define it with `&name`, or quote the `*`".into()
        }
        ErrorKind::RecursionLimitExceeded => "it nests too deep: make it flatter".into(),
        _ => indentation(at, before, report),
    };
    (at, remedy)
}

const INDENT: &str = "indent with blanks, a tab does not count";

/// The column of a tab in a line's indentation.
fn tab_in_indent(line: &str) -> Option<u64> {
    let place = line.chars().take_while(|c| c.is_whitespace()).position(|c| c == '\t')?;
    Some(u64::try_from(place).unwrap_or(0) + 1)
}

fn is_blank(line: &str) -> bool {
    let line = line.trim();
    line.is_empty() || line.starts_with('#')
}

/// An error that the line alone shows.
fn seen_in(line: &str) -> Option<(u64, String)> {
    if is_blank(line) {
        return None;
    }
    let indent: String = line.chars().take_while(|c| c.is_whitespace()).collect();
    let column = |offset: usize| u64::try_from(line[..offset].chars().count()).unwrap_or(0) + 1;
    if let Some(tab) = tab_in_indent(line) {
        return Some((tab, INDENT.into()));
    }
    let content = line[indent.len()..].trim_end();
    let start = column(indent.len());
    if ["<<<<<<<", ">>>>>>>", "======="].iter().any(|sign| content.starts_with(sign)) {
        return Some((start, "this is what a merge conflict left: settle it".into()));
    }
    if let Some(offset) = line.find("{{") {
        let quoted = line[..offset].matches(['"', '\'']).count() % 2 == 1;
        if !quoted {
            return Some((column(offset), "render the template first, or quote the value that holds `{{`".into()));
        }
    }
    if let Some(rest) = content.strip_prefix('-')
        && rest.starts_with(|c: char| c.is_ascii_alphabetic() || c == '"' || c == '\'')
    {
        return Some((start, "put a blank after `-`".into()));
    }
    let content = content.trim_start_matches("- ").trim_start();
    if let Some((key, value)) = content.split_once(':')
        && is_word(key)
    {
        let offset = line.len() - line.trim_end().len();
        let at_value = column(line.len() - offset - value.len());
        return value_fault(value).map(|remedy| (at_value, remedy));
    }
    (is_word(content) && KNOWN.contains(&content)).then(|| (start, format!("put `:` after `{content}`")))
}

const KNOWN: [&str; 12] = [
    "apiVersion",
    "kind",
    "metadata",
    "spec",
    "stages",
    "sequences",
    "tasks",
    "properties",
    "triggeredOn",
    "selector",
    "match",
    "name",
];

fn is_word(text: &str) -> bool {
    let text = text.trim_matches(['"', '\'']);
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c))
}

fn value_fault(value: &str) -> Option<String> {
    if value.starts_with(['"', '\'']) {
        return Some("put a blank after `:`".into());
    }
    let value = value.trim_start();
    if value.starts_with(['@', '`', '%']) {
        return Some("put the value in quotes, it starts with a sign YAML keeps for itself".into());
    }
    let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    let rest = &value[1..];
    match rest.find(quote) {
        None if rest.ends_with(['"', '\'']) => Some(format!("close the value with the quote it begins with, {quote}")),
        None => None,
        Some(end) => {
            let after = rest[end + 1..].trim();
            let goes_on = !after.is_empty() && !after.starts_with(['#', quote, ',', '}', ']']);
            goes_on
                .then(|| format!("the value ends at its closing quote: leave out what follows it ({after:?}), or quote the whole"))
        }
    }
}

/// The last line up to `line` whose quotes do not pair.
fn opened(line: u64, report: &Report) -> Option<Mark> {
    for quote in ['"', '\''] {
        let odd = (1..=line).find(|n| !is_blank(report.line(*n)) && report.line(*n).matches(quote).count() % 2 == 1);
        if let Some(line) = odd {
            let before = report.line(line).split(quote).next().unwrap_or_default().chars().count();
            return Some(Mark { line, column: u64::try_from(before).unwrap_or(0) + 1 });
        }
    }
    None
}

/// The usual error: the indentation of a line matches no list or mapping around it.
fn indentation(at: Mark, before: Option<u64>, report: &Report) -> String {
    let here = report.line(at.line);
    let depth = |line: &str| line.chars().take_while(|c| *c == ' ').count();
    let general = "entries of one list or mapping start in the same column: mend the indentation of this line or the one before";
    let Some(before) = before.filter(|_| !is_blank(here)) else {
        return general.into();
    };
    let (mine, previous) = (depth(here), depth(report.line(before)));
    let item = |line: &str| line.trim_start().starts_with("- ");
    if item(report.line(before)) && !item(here) && mine == previous {
        return format!("this line belongs to the entry above, which begins with `-`: indent it by {}", mine + 2);
    }
    let inside = report.line(before).trim_start().starts_with("- ").then_some(previous + 2);
    let mut columns: Vec<usize> = vec![];
    let mut least = usize::MAX;
    for n in (1..=before).rev() {
        let line = report.line(n);
        if is_blank(line) || depth(line) >= least {
            continue;
        }
        least = depth(line);
        let both = if line.trim_start().starts_with("- ") { vec![least + 2, least] } else { vec![least] };
        columns.extend(both);
    }
    if columns.contains(&mine) && mine != previous && inside != Some(mine) {
        return general.into();
    }
    let nearest = columns.iter().copied().min_by_key(|column| column.abs_diff(mine));
    match nearest.filter(|column| *column != mine) {
        Some(column) => format!(
            "this line is indented by {mine}, where nothing around it is: indent it by {column}, like the lines it belongs to"
        ),
        None => general.into(),
    }
}
