//! Findings about manifests, drawn on the line they are about.

use crate::terminal::Look;
use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
use keelway_wire::manifest::{Finding, Severity};

/// A longer line is shown as the finding's own excerpt of it.
const WIDEST: usize = 160;
/// So many lines before and after the place are shown.
const AROUND: usize = 1;

/// One finding as text; `source` is the whole file.
pub fn draw(finding: &Finding, source: &str, look: &Look) -> String {
    let text = harmless(source);
    let Some((index, at)) = place(&text, finding.line, finding.column) else { return finding.to_string() };
    let first = index.saturating_sub(AROUND);
    let shown: Vec<&str> = text.split('\n').skip(first).take(index - first + 1 + AROUND).collect();
    let line = shown[index - first];
    if line.chars().count() > WIDEST || line.trim().is_empty() {
        return finding.to_string();
    }
    let path = if finding.path.is_empty() { String::new() } else { format!("{}: ", finding.path) };
    let level = match finding.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let start = shown[..index - first].iter().map(|line| line.len() + 1).sum::<usize>() + at;
    // The character there, or the end of the line.
    let end = start + line[at..].chars().next().map_or(0, char::len_utf8);
    let excerpt = Snippet::source(shown.join("\n"))
        .line_start(first + 1)
        .path(finding.file.as_str())
        .fold(false)
        .annotation(AnnotationKind::Primary.span(start..end));
    let renderer = if look.colours { Renderer::styled() } else { Renderer::plain() };
    let report = [level.primary_title(format!("{path}{}", finding.message)).element(excerpt)];
    renderer.decor_style(if look.ascii { DecorStyle::Ascii } else { DecorStyle::Unicode }).render(&report).trim_end().to_owned()
}

/// All findings as text; what is said of several places, once, with the lines of the others.
pub fn draw_all(findings: &[Finding], source: &str, look: &Look) -> Vec<String> {
    let same = |one: &Finding, other: &Finding| one.severity == other.severity && one.message == other.message;
    let mut drawn = vec![];
    for (n, finding) in findings.iter().enumerate() {
        if findings[..n].iter().any(|before| same(before, finding)) {
            continue;
        }
        let others: Vec<String> =
            findings[n + 1..].iter().filter(|later| same(finding, later)).map(|later| later.line.to_string()).collect();
        let again = match others.as_slice() {
            [] => String::new(),
            [line] => format!("\n  the same in line {line}"),
            lines => format!("\n  the same in {} other lines: {}", lines.len(), lines.join(", ")),
        };
        drawn.push(format!("{}{again}", draw(finding, source, look)));
    }
    drawn
}

/// The text with lines as the parser counts them, of the same length, without what a terminal would obey.
fn harmless(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\n' => shown.push('\n'),
            '\r' if rest.peek() != Some(&'\n') => shown.push('\n'),
            c if c.is_control() => (0..c.len_utf8()).for_each(|_| shown.push(' ')),
            c => shown.push(c),
        }
    }
    shown
}

/// The index of the line that a place counted from 1 is in, and the byte offset in it; `None` outside the text.
fn place(text: &str, line: u64, column: u64) -> Option<(usize, usize)> {
    let index = usize::try_from(line.checked_sub(1)?).ok()?;
    let line = text.split('\n').nth(index)?;
    let column = usize::try_from(column.max(1) - 1).ok()?;
    Some((index, line.char_indices().nth(column).map_or(line.len(), |(at, _)| at)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use keelway_wire::manifest;

    const PLAIN: Look = Look { width: None, height: 24, colours: false, ascii: false, live: false };

    #[test]
    fn a_finding_points_at_its_place() {
        let text = "apiVersion: spec.keptn.sh/0.2.3\nkind: Shipyard\nspec:\n  stages:\n    - name: Dev\n      sequences: []\n";
        let parsed = manifest::parse(text, "shipyard.yaml");
        let shown: Vec<String> = parsed.findings.iter().map(|finding| draw(finding, text, &PLAIN)).collect();
        insta::assert_snapshot!(shown.join("\n"));
    }

    #[test]
    fn what_is_wrong_in_several_places_is_said_once() {
        let stage = |name: &str| {
            format!("    - name: {name}\n      sequences: [{{name: delivery, tasks: [{{name: test}}], colour: red}}]\n")
        };
        let text = format!(
            "apiVersion: spec.keptn.sh/0.2.3\nkind: Shipyard\nspec:\n  stages:\n{}{}{}",
            stage("a"),
            stage("b"),
            stage("c")
        );
        let parsed = manifest::parse(&text, "shipyard.yaml");
        assert_eq!(parsed.findings.len(), 3, "{:?}", parsed.findings);
        let shown = draw_all(&parsed.findings, &text, &PLAIN);
        assert_eq!(shown.len(), 1, "{shown:?}");
        assert!(shown[0].ends_with("\n  the same in 2 other lines: 8, 10") && shown[0].contains("shipyard.yaml:6"), "{shown:?}");
        assert!(draw_all(&parsed.findings[..2], &text, &PLAIN)[0].ends_with("\n  the same in line 8"));
    }

    #[test]
    fn no_text_breaks_the_drawing() {
        for text in ["", "\r\r\r", "a: [\u{1b}[31m", "\u{85}: x", "kind: \u{0}", "-\t- x", "ö: ä\r\nö: ü"] {
            for finding in &manifest::parse(text, "x").findings {
                assert!(!draw(finding, text, &PLAIN).contains('\u{1b}'), "{text:?}");
            }
        }
    }

    #[test]
    fn the_mark_is_under_the_character_however_the_text_and_the_terminal_are() {
        let at = |severity, line, column| Finding {
            severity,
            file: "a.yaml".into(),
            line,
            column,
            path: String::new(),
            message: "odd".into(),
            snippet: None,
        };
        let text = "grüße: [ü]\r\nlast";
        // A character of several bytes, in the first line, whose return is a blank.
        assert_eq!(
            draw(&at(Severity::Warning, 1, 9), text, &Look { ascii: true, ..PLAIN }),
            "warning: odd\n --> a.yaml:1:9\n  |\n1 | grüße: [ü] \n  |         ^\n2 | last\n  |"
        );
        // Behind the end of the last line.
        assert_eq!(
            draw(&at(Severity::Error, 2, 5), text, &PLAIN),
            "error: odd\n  ╭▸ a.yaml:2:5\n  │\n1 │ grüße: [ü] \n2 │ last\n  ╰╴    ━"
        );
        let coloured = draw(&at(Severity::Error, 2, 5), text, &Look { colours: true, ..PLAIN });
        assert!(coloured.starts_with("\u{1b}[1m\u{1b}[91merror"), "{coloured:?}");
        assert_eq!(draw(&at(Severity::Error, 3, 1), text, &PLAIN), "error: a.yaml:3:1: odd", "there is no such line");
    }
}
