//! Edits marked values: scalars beside a comment `# {"$promotion": "<namespace>:<pipeline>:<environment>"}` become the version, and
//! every other byte stays. The comment is on the line on which the scalar ends, or alone on the line directly above the key or the
//! item's dash, in the same column. The format is that of Weave's pipeline controller, whose markers follow kyaml's setters.

use crate::scalar;
use granit_parser::{Event, Parser, ScalarStyle, StructureStyle};
use std::collections::BTreeMap;
use std::ops::Range;

/// A file without this text has no marker.
pub(crate) const SIGN: &str = "\"$promotion\"";

/// The result for one file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Edit {
    /// The new text. `None`: every marked value is the version already, or there is none.
    pub text: Option<String>,
    /// The number of values that are marked for this environment.
    pub marked: usize,
    /// Why marked text was left unchanged, one sentence each.
    pub notes: Vec<String>,
}

/// A scalar that can be marked: the value of a key, or an item of a list.
struct Scalar {
    at: Range<usize>,
    value: String,
    style: ScalarStyle,
    in_flow: bool,
    /// The position of its key or item, if that comes first on its line and the value is on the same line.
    head: Option<usize>,
}

/// The relevant parser events of a file, in order.
#[derive(Default)]
struct File {
    /// The position of each line.
    starts: Vec<usize>,
    scalars: Vec<Scalar>,
    comments: Vec<Range<usize>>,
    /// The events without positions and values.
    shape: Vec<String>,
    /// The position and value of every scalar.
    values: Vec<(usize, String)>,
}

impl File {
    /// The line of a position, from 0.
    fn line(&self, at: usize) -> usize {
        self.starts.partition_point(|start| *start <= at) - 1
    }

    /// The position itself, if only spaces precede it on its line.
    fn first_on_line(&self, text: &str, at: usize) -> Option<usize> {
        let start = self.starts[self.line(at)];
        text[start..at].trim_start_matches('\u{feff}').chars().all(|c| c == ' ').then_some(at)
    }

    /// The position of an item's dash, if that comes first on its line.
    fn dash(&self, text: &str, at: usize) -> Option<usize> {
        let start = self.starts[self.line(at)];
        let spaces = text[start..at].chars().take_while(|c| *c == ' ').count();
        text[start + spaces..at].starts_with('-').then_some(start + spaces)
    }
}

/// Replaces every scalar that is marked with `marker` by the version.
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
    let marks: Vec<Mark<'_>> = file.comments.iter().filter_map(|comment| Mark::read(text, &file, comment)).collect();
    // A marker on the line of the value takes precedence over one above it.
    let taken: BTreeMap<usize, usize> = marks.iter().filter_map(Mark::beside).collect();
    let mut places: BTreeMap<usize, &Scalar> = BTreeMap::new();
    for Mark { at, name, scalar, above } in &marks {
        if name != marker {
            continue;
        }
        let line = file.line(*at) + 1;
        let Some(scalar) = scalar else {
            edit.notes.push(format!("the marker in line {line} does not stand beside a scalar value that can be replaced"));
            continue;
        };
        match taken.get(&scalar.at.start).filter(|_| *above) {
            Some(nearer) => {
                let nearer = file.line(*nearer) + 1;
                edit.notes.push(format!("the marker in line {line} does not count: the value has another one in line {nearer}"));
            }
            None => drop(places.insert(scalar.at.start, scalar)),
        }
    }
    edit.marked = places.len();
    places.retain(|_, place| place.value != version);
    if places.is_empty() {
        return edit;
    }
    let (mut new, mut from) = (String::with_capacity(text.len() + version.len()), 0);
    for place in places.values() {
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

/// A marker.
struct Mark<'f> {
    at: usize,
    name: String,
    scalar: Option<&'f Scalar>,
    /// Whether it is above the scalar, not beside it.
    above: bool,
}

impl<'f> Mark<'f> {
    fn read(text: &str, file: &'f File, comment: &Range<usize>) -> Option<Self> {
        let name = name(&text[comment.clone()])?;
        let start = file.starts[file.line(comment.start)];
        let before = text[start..comment.start].trim_start_matches('\u{feff}');
        let above = before.chars().all(|c| c == ' ');
        let scalar = if above { below(file, comment, before.len()) } else { last(text, file, start, comment.start) };
        Some(Self { at: comment.start, name, scalar, above })
    }

    fn beside(&self) -> Option<(usize, usize)> {
        self.scalar.filter(|_| !self.above).map(|scalar| (scalar.at.start, self.at))
    }
}

/// The scalar whose key or item begins in the same column on the next line.
fn below<'f>(file: &'f File, comment: &Range<usize>, column: usize) -> Option<&'f Scalar> {
    let next = *file.starts.get(file.line(comment.start) + 1)?;
    let first = file.scalars.partition_point(|scalar| scalar.at.start < next);
    file.scalars.get(first).filter(|scalar| scalar.head == Some(next + column))
}

/// The scalar that ends on the line of the comment, with only spaces between; in a flow collection, a comma, too.
fn last<'f>(text: &str, file: &'f File, start: usize, comment: usize) -> Option<&'f Scalar> {
    let end = file.scalars.partition_point(|scalar| scalar.at.end <= comment);
    let last = file.scalars[..end].last().filter(|scalar| scalar.at.end > start)?;
    let between = &text[last.at.end..comment];
    let between = if last.in_flow { between.trim_end().strip_suffix(',').unwrap_or(between) } else { between };
    between.chars().all(|c| c == ' ' || c == '\t').then_some(last)
}

/// The name in a marker: the comment is a JSON object with it.
fn name(comment: &str) -> Option<String> {
    let object: serde_json::Map<String, serde_json::Value> = serde_json::from_str(comment.strip_prefix('#')?.trim()).ok()?;
    Some(object.get("$promotion")?.as_str()?.to_owned())
}

/// Whether the new text differs from the old one in these scalars only, according to the parser.
fn as_wanted(old: &File, places: &BTreeMap<usize, &Scalar>, new: &str, version: &str) -> bool {
    let Ok(new) = read(new) else { return false };
    let expected = old.values.iter().map(|(at, value)| if places.contains_key(at) { version } else { value.as_str() });
    old.shape == new.shape && expected.eq(new.values.iter().map(|(_, value)| value.as_str()))
}

/// The place of the next node in a collection.
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
    let breaks = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1);
    let mut file = File { starts: std::iter::once(0).chain(breaks).collect(), ..File::default() };
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
                    Some(Within::Item { in_flow: false }) => Some(file.dash(text, at.start)),
                    Some(Within::Item { .. }) => Some(None),
                    _ => None,
                };
                let one_line = !matches!(style, ScalarStyle::Literal | ScalarStyle::Folded);
                if let Some(key) = key.filter(|_| one_line && !at.is_empty()) {
                    let head = key.filter(|key| file.line(*key) == file.line(at.start));
                    let in_flow = within.last().is_some_and(Within::in_flow);
                    file.scalars.push(Scalar { at: at.clone(), value: value.into_owned(), style, in_flow, head });
                }
                advance(&mut within, file.first_on_line(text, at.start));
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

/// After a complete node: a key is followed by its value, a value by the next key.
fn advance(within: &mut [Within], key: Option<usize>) {
    if let Some(last) = within.last_mut() {
        *last = match *last {
            Within::Key { in_flow } => Within::Value { in_flow, key },
            Within::Value { in_flow, .. } => Within::Key { in_flow },
            Within::Item { in_flow } => Within::Item { in_flow },
        };
    }
}

#[cfg(test)]
mod tests;
