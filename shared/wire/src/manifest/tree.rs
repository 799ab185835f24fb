//! YAML as a tree whose every value knows its line and column.
//!
//! Values follow YAML's core schema. Anchors, aliases and merge keys are resolved here, within bounds: a text of 1 MiB cannot
//! become more than [`MOST_NODES`] values or nest deeper than [`DEEPEST`].

use super::finding::Report;
pub use super::mark::{At, Mark, START};
use super::{syntax, twice};
use serde_json::{Map, Number, Value};
use serde_saphyr::granit_parser::{self, Event, Parser, ScalarStyle, Span, StrInput, Tag};
use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

const MOST_NODES: usize = 100_000;
const DEEPEST: usize = 64;

/// A value and its position.
#[derive(Debug, Clone)]
pub struct Node {
    pub at: Mark,
    pub value: Yaml,
    /// Further values of a field that occurs several times.
    pub others: Vec<(Mark, Yaml)>,
    /// How many levels it has, itself included.
    depth: usize,
    /// How many values it holds, itself included.
    size: usize,
}

impl At for Node {
    fn at(&self) -> Mark {
        self.at
    }
}

#[derive(Debug, Clone)]
pub enum Yaml {
    Null,
    /// With the text as written: `name: 1` names something "1".
    Bool(bool, String),
    /// With the text as written.
    Number(Number, String),
    Text(String),
    List(Vec<Node>),
    Map(Vec<Entry>),
}

#[derive(Debug, Clone)]
pub struct Entry {
    pub key: String,
    pub at: Mark,
    pub value: Node,
}

/// One document of a text.
pub struct Tree {
    pub root: Node,
    /// Where its own text is, in bytes.
    pub range: Range<usize>,
    /// Whether there was an error on reading, such as a field that occurs twice.
    pub faulty: bool,
}

impl Node {
    fn new(at: Mark, value: Yaml, depth: usize, size: usize) -> Self {
        Self { at, value, others: vec![], depth, size }
    }

    pub fn leaf(at: Mark, value: Yaml) -> Self {
        Self::new(at, value, 1, 1)
    }

    pub fn entries(&self) -> Option<&[Entry]> {
        if let Yaml::Map(entries) = &self.value { Some(entries) } else { None }
    }

    pub fn list(&self) -> Option<&[Node]> {
        if let Yaml::List(items) = &self.value { Some(items) } else { None }
    }

    pub fn get(&self, key: &str) -> Option<&Node> {
        self.entries()?.iter().find(|entry| entry.key == key).map(|entry| &entry.value)
    }

    pub fn is_null(&self) -> bool {
        matches!(self.value, Yaml::Null)
    }

    /// The text of a scalar as written, whatever its type.
    pub fn scalar(&self) -> Option<&str> {
        match &self.value {
            Yaml::Bool(_, text) | Yaml::Number(_, text) | Yaml::Text(text) => Some(text),
            _ => None,
        }
    }

    /// "a list", "a mapping", …: for messages.
    pub fn what(&self) -> &'static str {
        match self.value {
            Yaml::Null => "empty",
            Yaml::Bool(..) => "a truth value",
            Yaml::Number(..) => "a number",
            Yaml::Text(_) => "a text",
            Yaml::List(_) => "a list",
            Yaml::Map(_) => "a mapping",
        }
    }

    pub fn to_json(&self) -> Value {
        match &self.value {
            Yaml::Null => Value::Null,
            Yaml::Bool(value, _) => Value::Bool(*value),
            Yaml::Number(number, _) => Value::Number(number.clone()),
            Yaml::Text(text) => Value::String(text.clone()),
            Yaml::List(items) => Value::Array(items.iter().map(Node::to_json).collect()),
            Yaml::Map(_) => Value::Object(self.to_object()),
        }
    }

    pub fn to_object(&self) -> Map<String, Value> {
        self.entries().unwrap_or_default().iter().map(|entry| (entry.key.clone(), entry.value.to_json())).collect()
    }
}

/// Reads every document that is not empty; what stops the parser is a finding, the documents before it are kept.
pub fn read(text: &str, report: &mut Report) -> Vec<Tree> {
    let options = granit_parser::options! { block_nesting_limit: DEEPEST, flow_nesting_limit: DEEPEST };
    let parser = Parser::new_from_str_with_options(text, options);
    let mut reader = Reader { parser, anchors: HashMap::new(), nodes: 0, path: vec![], report };
    let mut trees: Vec<Tree> = vec![];
    let mut starts: Vec<usize> = vec![];
    loop {
        let (event, span) = match reader.next() {
            Ok(Some(next)) => next,
            Ok(None) => break,
            Err(Stopped) => {
                // The document that failed ends the one before it.
                break;
            }
        };
        if let Event::DocumentStart(..) = event {
            // Comments ahead of the first document belong to it.
            starts.push(if starts.is_empty() { 0 } else { span.start.byte_offset().unwrap_or(text.len()) });
            reader.anchors.clear();
            let before = reader.report.errors();
            match reader.document() {
                Ok(root) if root.is_null() => (),
                Ok(root) => {
                    trees.push(Tree { root, range: starts[starts.len() - 1]..text.len(), faulty: reader.report.errors() > before })
                }
                Err(Stopped) => break,
            }
        }
    }
    for tree in &mut trees {
        if let Some(next) = starts.iter().find(|start| **start > tree.range.start) {
            tree.range.end = *next;
        }
        if text.get(tree.range.clone()).is_none() {
            tree.range = 0..text.len();
        }
    }
    trees
}

/// The parser cannot go on; the finding is reported.
struct Stopped;

struct Reader<'a, 'r, 't> {
    parser: Parser<'a, StrInput<'a>>,
    anchors: HashMap<usize, Node>,
    nodes: usize,
    /// Where the reader is: `spec`, `.stages`, `[0]`.
    path: Vec<String>,
    report: &'r mut Report<'t>,
}

impl<'a> Reader<'a, '_, '_> {
    fn next(&mut self) -> Result<Option<(Event<'a>, Span)>, Stopped> {
        loop {
            match self.parser.next_event() {
                None => return Ok(None),
                Some(Ok((Event::Comment(..) | Event::Anchor(..), _))) => (),
                Some(Ok(next)) => return Ok(Some(next)),
                Some(Err(error)) => {
                    syntax::explain(&error, self.report);
                    return Err(Stopped);
                }
            }
        }
    }

    fn document(&mut self) -> Result<Node, Stopped> {
        match self.next()? {
            Some((event, span)) => self.node(event, span, 1),
            None => Ok(Node::leaf(START, Yaml::Null)),
        }
    }

    fn node(&mut self, event: Event<'a>, span: Span, level: usize) -> Result<Node, Stopped> {
        let at = mark(&span);
        self.count(at, 1, level)?;
        let (anchor, node) = match event {
            Event::Scalar(text, style, anchor, tag) => {
                let value = self.scalar(text, style, tag.as_deref(), at);
                (anchor, Node::leaf(at, value))
            }
            Event::SequenceStart(_, anchor, tag) => {
                self.tag(tag.as_deref(), at);
                (anchor, self.sequence(at, level)?)
            }
            Event::MappingStart(_, anchor, tag) => {
                self.tag(tag.as_deref(), at);
                (anchor, self.mapping(at, level)?)
            }
            Event::Alias(id) => (0, self.alias(id, at, level)?),
            _ => (0, Node::leaf(at, Yaml::Null)),
        };
        if anchor > 0 {
            self.anchors.insert(anchor, node.clone());
        }
        Ok(node)
    }

    fn count(&mut self, at: Mark, nodes: usize, depth: usize) -> Result<(), Stopped> {
        self.nodes += nodes;
        if self.nodes > MOST_NODES {
            self.report.error_at(
                at,
                "",
                format!("holds more than {MOST_NODES} values, aliases counted as often as used: split it"),
            );
            return Err(Stopped);
        }
        if depth > DEEPEST {
            self.report.error_at(at, "", format!("nests deeper than {DEEPEST} levels: make it flatter"));
            return Err(Stopped);
        }
        Ok(())
    }

    fn sequence(&mut self, at: Mark, level: usize) -> Result<Node, Stopped> {
        let (mut items, mut depth, mut size) = (vec![], 0, 1);
        while let Some((event, span)) = self.next()? {
            if matches!(event, Event::SequenceEnd) {
                break;
            }
            self.path.push(format!("[{}]", items.len()));
            let item = self.node(event, span, level + 1)?;
            self.path.pop();
            (depth, size) = (depth.max(item.depth), size + item.size);
            items.push(item);
        }
        Ok(Node::new(at, Yaml::List(items), depth + 1, size))
    }

    fn mapping(&mut self, at: Mark, level: usize) -> Result<Node, Stopped> {
        let (mut entries, mut merges): (Vec<Entry>, Vec<Node>) = (vec![], vec![]);
        let mut seen: HashMap<String, usize> = HashMap::new();
        let (mut depth, mut size) = (0, 1);
        while let Some((event, span)) = self.next()? {
            if matches!(event, Event::MappingEnd) {
                break;
            }
            let plain = matches!(&event, Event::Scalar(text, ScalarStyle::Plain, ..) if text == "<<");
            let key = self.node(event, span, level + 1)?;
            let Some((event, span)) = self.next()? else { break };
            let dot = if self.path.is_empty() { "" } else { "." };
            self.path.push(format!("{dot}{}", key.scalar().unwrap_or_default()));
            let value = self.node(event, span, level + 1)?;
            let place = self.path.pop().unwrap_or_default();
            (depth, size) = (depth.max(value.depth), size + value.size);
            let Some(name) = key.scalar().or_else(|| key.is_null().then_some("")) else {
                if self.report.line(key.at.line).contains("{{") {
                    let message = "holds a template: render it first, or quote the value that holds `{{`";
                    self.report.error_at(key.at, self.path.concat(), message.into());
                    return Err(Stopped);
                }
                let message = format!("{} cannot be a field's name: write a word, then `:`", key.what());
                self.report.error_at(key.at, self.path.concat(), message);
                continue;
            };
            if plain {
                merges.push(value);
            } else if let Some(first) = seen.get(name).map(|place| &mut entries[*place]) {
                let line = first.at.line;
                let message = format!(
                    "`{name}` stands twice in the same mapping, first in line {line}: only one could count; join them into one"
                );
                self.report.error_at(key.at, self.path.concat() + &place, message);
                twice::join(&mut first.value, value);
            } else {
                seen.insert(name.to_owned(), entries.len());
                entries.push(Entry { key: name.to_owned(), at: key.at, value });
            }
        }
        for merged in merges {
            merge(&mut entries, &mut seen, merged, self.report);
        }
        Ok(Node::new(at, Yaml::Map(entries), depth + 1, size))
    }

    fn alias(&mut self, id: usize, at: Mark, level: usize) -> Result<Node, Stopped> {
        let Some(target) = self.anchors.get(&id) else {
            self.report.error_at(at, "", "an alias inside what its anchor names has no end: write the value out".into());
            return Err(Stopped);
        };
        let (size, depth) = (target.size, level + target.depth);
        self.count(at, size, depth)?;
        // Findings about the copy point to where the value is written.
        Ok(self.anchors[&id].clone())
    }

    fn scalar(&mut self, text: Cow<'a, str>, style: ScalarStyle, tag: Option<&Tag>, at: Mark) -> Yaml {
        self.tag(tag, at);
        let told = tag.and_then(Tag::core_suffix);
        match (told, style) {
            (Some("str"), _) => Yaml::Text(text.into_owned()),
            (Some("null"), _) => Yaml::Null,
            (Some(_), _) | (None, ScalarStyle::Plain) => plain(text),
            _ => Yaml::Text(text.into_owned()),
        }
    }

    fn tag(&mut self, tag: Option<&Tag>, at: Mark) {
        if let Some(tag) = tag.filter(|tag| tag.core_suffix().is_none()) {
            self.report.warning_at(at, "", format!("the tag {:?} is ignored: leave it out", tag.original()));
        }
    }
}

fn merge(entries: &mut Vec<Entry>, seen: &mut HashMap<String, usize>, merged: Node, report: &mut Report) {
    let at = merged.at;
    let sources = match merged.value {
        Yaml::List(items) => items,
        _ => vec![merged],
    };
    for source in sources {
        let Yaml::Map(more) = source.value else {
            report.error_at(at, "<<", "merges a mapping, or a list of mappings: write `<<: *anchor`".into());
            continue;
        };
        for entry in more {
            if !seen.contains_key(&entry.key) {
                seen.insert(entry.key.clone(), entries.len());
                entries.push(entry);
            }
        }
    }
}

fn mark(span: &Span) -> Mark {
    let number = |n: usize| u64::try_from(n).unwrap_or(u64::MAX);
    Mark { line: number(span.start.line()).max(1), column: number(span.start.col()).saturating_add(1) }
}

/// A plain scalar by YAML's core schema; infinities and what is not a number stay text, JSON has no word for them.
fn plain(text: Cow<str>) -> Yaml {
    match text.as_ref() {
        "" | "~" | "null" | "Null" | "NULL" => return Yaml::Null,
        "true" | "True" | "TRUE" => return Yaml::Bool(true, text.into_owned()),
        "false" | "False" | "FALSE" => return Yaml::Bool(false, text.into_owned()),
        _ => (),
    }
    match number(&text) {
        Some(number) => Yaml::Number(number, text.into_owned()),
        None => Yaml::Text(text.into_owned()),
    }
}

fn number(text: &str) -> Option<Number> {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    if let Some(hex) = text.strip_prefix("0x") {
        return u64::from_str_radix(hex, 16).ok().filter(|_| !hex.starts_with('+')).map(Number::from);
    }
    if let Some(octal) = text.strip_prefix("0o") {
        return u64::from_str_radix(octal, 8).ok().filter(|_| !octal.starts_with('+')).map(Number::from);
    }
    if !unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return None;
    }
    if unsigned.chars().all(|c| c.is_ascii_digit()) {
        let whole = text.strip_prefix('+').unwrap_or(text);
        return whole.parse::<i64>().map(Number::from).or_else(|_| whole.parse::<u64>().map(Number::from)).ok();
    }
    let float =
        unsigned.chars().all(|c| c.is_ascii_digit() || ".eE+-".contains(c)) && unsigned.contains(|c: char| c.is_ascii_digit());
    if float { text.parse::<f64>().ok().and_then(Number::from_f64) } else { None }
}
