//! The marker edit: scalars beside a comment `# {"$promotion": "<namespace>:<pipeline>:<environment>"}` become the version, and every other
//! byte stays. The comment stands on the line on which the scalar ends, or alone on the line directly above the key or the item's dash, in
//! the same column. The format is the one of Weave's pipeline controller, whose markers follow kyaml's setters.

use crate::scalar;
use granit_parser::{Event, Parser, ScalarStyle, StructureStyle};
use std::ops::Range;

/// A file without this text has no marker.
pub(crate) const SIGN: &str = "\"$promotion\"";

/// What became of one file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Edit {
    /// The file's text with the new values; `None`: every marked value is the version already, or there is none.
    pub text: Option<String>,
    /// How many values are marked for this environment.
    pub marked: usize,
    /// Why something with a marker was left as it is, a sentence each.
    pub notes: Vec<String>,
}

/// A scalar that can be marked: the value of a key, or an item.
struct Scalar {
    at: Range<usize>,
    value: String,
    style: ScalarStyle,
    in_flow: bool,
    /// Where its key or its item begins, if that is the first thing on its line and the value is on that line.
    head: Option<usize>,
}

/// A file's events, as far as they matter.
#[derive(Default)]
struct File {
    scalars: Vec<Scalar>,
    comments: Vec<Range<usize>>,
    /// All of it, in order, without positions: scalars by their number in `values`.
    shape: Vec<String>,
    values: Vec<(usize, String)>,
}

/// Makes every scalar that is marked with `marker` the version.
pub fn edit(text: &str, marker: &str, version: &str) -> Edit {
    let mut edit = Edit::default();
    if !text.contains(SIGN) || !text.contains(marker) {
        return edit;
    }
    let file = match read(text) {
        Ok(file) => file,
        Err(error) => {
            edit.notes.push(format!("it is not valid YAML ({error})"));
            return edit;
        }
    };
    let marks: Vec<(&Range<usize>, Option<&Scalar>, bool)> = file
        .comments
        .iter()
        .filter_map(|comment| Some((comment, name(&text[comment.clone()])?)))
        .map(|(comment, name)| (comment, marked(text, &file, comment), name == marker))
        .collect();
    let mut places: Vec<&Scalar> = vec![];
    for (comment, scalar, ours) in &marks {
        if !ours {
            continue;
        }
        let line = line(text, comment.start);
        let Some(scalar) = scalar else {
            edit.notes.push(format!("the marker in line {line} does not stand beside a scalar value that can be replaced"));
            continue;
        };
        // A marker on the value's own line is nearer than one above it.
        let nearer = |(other, place, ours): &&(&Range<usize>, Option<&Scalar>, bool)| {
            !ours && other.start > comment.start && place.is_some_and(|place| place.at == scalar.at)
        };
        if let Some((other, ..)) = marks.iter().find(nearer) {
            let nearer = self::line(text, other.start);
            edit.notes.push(format!("the marker in line {line} does not count: the value has another one in line {nearer}"));
        } else if !places.iter().any(|place| place.at == scalar.at) {
            places.push(scalar);
        }
    }
    edit.marked = places.len();
    places.retain(|place| place.value != version);
    if places.is_empty() {
        return edit;
    }
    places.sort_by_key(|place| place.at.start);
    let (mut new, mut from) = (String::with_capacity(text.len() + version.len()), 0);
    for place in &places {
        new += &text[from..place.at.start];
        new += &scalar::write(version, place.style, place.in_flow);
        from = place.at.end;
    }
    new += &text[from..];
    if as_wanted(&file, &places, &new, version) {
        edit.text = Some(new);
    } else {
        edit.marked = 0;
        edit.notes.push(format!("{version:?} cannot be written into it without changing something else"));
    }
    edit
}

/// The name in a marker: the comment is a JSON object with it.
fn name(comment: &str) -> Option<String> {
    let object: serde_json::Map<String, serde_json::Value> = serde_json::from_str(comment.strip_prefix('#')?.trim()).ok()?;
    Some(object.get("$promotion")?.as_str()?.to_owned())
}

/// The scalar that a comment marks.
fn marked<'f>(text: &str, file: &'f File, comment: &Range<usize>) -> Option<&'f Scalar> {
    let start = line_start(text, comment.start);
    let before = text[start..comment.start].trim_start_matches('\u{feff}');
    if before.chars().all(|c| c == ' ') {
        let next = comment.end + text[comment.end..].find('\n')? + 1;
        return file.scalars.iter().find(|scalar| scalar.head == Some(next + before.len()));
    }
    let last = file.scalars.iter().rfind(|scalar| scalar.at.end <= comment.start && scalar.at.end > start)?;
    let between = &text[last.at.end..comment.start];
    let between = if last.in_flow { between.trim_end().strip_suffix(',').unwrap_or(between) } else { between };
    between.chars().all(|c| c == ' ' || c == '\t').then_some(last)
}

fn line_start(text: &str, at: usize) -> usize {
    text[..at].rfind(['\n', '\r']).map_or(0, |end| end + 1)
}

fn line(text: &str, at: usize) -> usize {
    text[..at].matches('\n').count() + 1
}

/// Whether the new text is the old one but for these scalars. The parser is the judge, not the edit.
fn as_wanted(old: &File, places: &[&Scalar], new: &str, version: &str) -> bool {
    let Ok(new) = read(new) else { return false };
    let expected = old.values.iter().map(|(at, value)| {
        let replaced = places.iter().any(|place| place.at.start == *at);
        if replaced { version } else { value.as_str() }
    });
    old.shape == new.shape && expected.eq(new.values.iter().map(|(_, value)| value.as_str()))
}

/// Where in a collection the next node stands.
enum Within {
    Key { in_flow: bool },
    Value { in_flow: bool, key: Option<usize> },
    Item { in_flow: bool },
}

impl Within {
    fn in_flow(&self) -> bool {
        match self {
            Self::Key { in_flow } | Self::Value { in_flow, .. } | Self::Item { in_flow } => *in_flow,
        }
    }
}

fn read(text: &str) -> Result<File, String> {
    let mut file = File::default();
    let mut within: Vec<Within> = vec![];
    for next in Parser::new_from_str(text) {
        let (event, span) = next.map_err(|error| format!("line {}: {}", error.marker().line(), error.info()))?;
        let at = span.byte_range().unwrap_or(0..0);
        match event {
            Event::Comment(..) => {
                file.shape.push(format!("# {}", &text[at.clone()]));
                file.comments.push(at);
            }
            Event::Scalar(value, style, anchor, tag) => {
                file.shape.push(format!("scalar {anchor} {tag:?}"));
                file.values.push((at.start, value.to_string()));
                let key = match within.last() {
                    Some(Within::Value { key, .. }) => Some(*key),
                    Some(Within::Item { .. }) => Some(dash(text, at.start)),
                    _ => None,
                };
                let one_line = !matches!(style, ScalarStyle::Literal | ScalarStyle::Folded);
                if let Some(key) = key.filter(|_| one_line && !at.is_empty()) {
                    let head = key.filter(|key| line_start(text, *key) == line_start(text, at.start));
                    let in_flow = within.last().is_some_and(Within::in_flow);
                    file.scalars.push(Scalar { at: at.clone(), value: value.into_owned(), style, in_flow, head });
                }
                advance(&mut within, first_on_line(text, at.start));
            }
            Event::Alias(id) => {
                file.shape.push(format!("alias {id}"));
                advance(&mut within, None);
            }
            Event::MappingStart(style, anchor, tag) => {
                file.shape.push(format!("mapping {style:?} {anchor} {tag:?}"));
                within.push(Within::Key { in_flow: flow(&within, style) });
            }
            Event::SequenceStart(style, anchor, tag) => {
                file.shape.push(format!("sequence {style:?} {anchor} {tag:?}"));
                within.push(Within::Item { in_flow: flow(&within, style) });
            }
            Event::MappingEnd | Event::SequenceEnd => {
                file.shape.push("end".to_owned());
                within.pop();
                advance(&mut within, None);
            }
            other => file.shape.push(format!("{other:?}")),
        }
    }
    Ok(file)
}

fn flow(within: &[Within], style: StructureStyle) -> bool {
    style == StructureStyle::Flow || within.last().is_some_and(Within::in_flow)
}

/// A node is complete: after a key comes its value, after a value the next key.
fn advance(within: &mut [Within], key: Option<usize>) {
    if let Some(last) = within.last_mut() {
        *last = match *last {
            Within::Key { in_flow } => Within::Value { in_flow, key },
            Within::Value { in_flow, .. } => Within::Key { in_flow },
            Within::Item { in_flow } => Within::Item { in_flow },
        };
    }
}

/// The place itself, if only spaces are before it on its line.
fn first_on_line(text: &str, at: usize) -> Option<usize> {
    text[line_start(text, at)..at].trim_start_matches('\u{feff}').chars().all(|c| c == ' ').then_some(at)
}

/// Where the dash of an item is, if that is the first thing on its line.
fn dash(text: &str, at: usize) -> Option<usize> {
    let start = line_start(text, at);
    let dash = start + text[start..at].find('-')?;
    first_on_line(text, dash)
}

#[cfg(test)]
mod tests;
