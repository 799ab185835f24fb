//! Criteria that cannot be read, that say something else than they seem to, that never hold, or that always do.

use super::super::finding::Report;
use super::super::tree::Node;
use keelway_domain::evaluation::{Criterion, CriterionError, Kind, Operator};

/// The entries of `pass` or `warning`, each with its criteria.
pub struct Sets<'n> {
    pub field: &'static str,
    pub path: String,
    pub lists: Vec<(&'n Node, &'n [Node])>,
}

/// Between which values something holds.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Span {
    low: f64,
    high: f64,
    /// Whether the ends themselves are outside.
    open: (bool, bool),
}

/// Spans of the value itself, of its change in percent, and of its change.
type Spans = [Span; 3];

const ALL: Span = Span { low: f64::NEG_INFINITY, high: f64::INFINITY, open: (true, true) };

pub fn check(pass: &Sets, warning: &Sets, report: &mut Report) {
    let (passes, warns) = (spans(pass, report), spans(warning, report));
    for (sets, spans) in [(pass, &passes), (warning, &warns)] {
        if covers(spans) {
            let message = "always holds: each value meets one of its entries; entries are alternatives, the criteria of one entry hold together";
            if let Some((first, _)) = sets.lists.first() {
                report.warning(*first, sets.path.clone(), message.into());
            }
        }
    }
    let reached = |warn: &Spans| !passes.iter().flatten().any(|pass| within(warn, pass));
    if !warns.is_empty() && !passes.is_empty() && warns.iter().all(|warn| warn.as_ref().is_some_and(|warn| !reached(warn))) {
        let message = "is never reached: every value that meets it passes already; a warning needs a wider limit than `pass`";
        if let Some((first, _)) = warning.lists.first() {
            report.warning(*first, warning.path.clone(), message.into());
        }
    }
}

/// The spans of each entry; `None` for one that cannot be read.
fn spans(sets: &Sets, report: &mut Report) -> Vec<Option<Spans>> {
    let mut all = vec![];
    for (place, (entry, texts)) in sets.lists.iter().enumerate() {
        let path = format!("{}[{place}]", sets.path);
        if texts.iter().all(Node::is_null) {
            all.push(None);
            if entry.get("criteria").is_some_and(|criteria| !criteria.is_null() && criteria.list().is_none()) {
                continue;
            }
            let what = if sets.field == "pass" { "passes, and adds nothing to the score" } else { "is always met" };
            report.error(*entry, path, format!("has no criterion: it {what}; write for example `- criteria: [\"<600\"]`"));
            continue;
        }
        let mut spans = Some([ALL; 3]);
        for (place, node) in texts.iter().enumerate() {
            if node.is_null() {
                report.error(
                    node,
                    format!("{path}.criteria[{place}]"),
                    "is empty, and is left out: write a criterion, or take out the `-`".into(),
                );
                continue;
            }
            let criterion = criterion(sets, node, &format!("{path}.criteria[{place}]"), report);
            spans = spans.zip(criterion).map(|(spans, criterion)| narrowed(spans, &criterion));
        }
        if spans.is_some_and(|spans| spans.iter().any(Span::is_empty)) {
            let message = "never holds: no value meets all of its criteria; alternatives are entries of their own";
            report.warning(*entry, path, message.into());
        }
        all.push(spans);
    }
    all
}

fn criterion(sets: &Sets, node: &Node, path: &str, report: &mut Report) -> Option<Criterion> {
    let text = node.scalar().unwrap_or_default();
    match Criterion::parse(text) {
        Ok(criterion) => {
            if criterion.kind == Kind::PercentMore && !text.contains('+') {
                let value = criterion.value;
                let plain = text.replace([' ', '%'], "");
                let signed = format!("{}+{value}%", plain.trim_end_matches(|c: char| !"<>=".contains(c)));
                let message = format!(
                    "{text:?} is {value} % more than earlier values, and no threshold of {value} %: write `{signed}` to say so, or \
                     `{plain}` for a threshold"
                );
                report.warning(node, path, message);
            }
            Some(criterion)
        }
        Err(error) => {
            let effect = match sets.field {
                "pass" => "the evaluation would fail with it",
                _ => "no warning criterion of the objective would count",
            };
            report.error(node, path, format!("{text:?} is no criterion ({error}), and {effect}: {}", remedy(text, error)));
            None
        }
    }
}

/// What was probably meant.
fn remedy(text: &str, error: CriterionError) -> String {
    let plain: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    let signs: String = plain.chars().take_while(|c| "<>=!~".contains(*c)).collect();
    let rest = &plain[signs.len()..];
    let numeric = rest.find(|c: char| !(c.is_ascii_digit() || ".+-".contains(c))).unwrap_or(rest.len());
    let operator = match signs.as_str() {
        "=<" => "<=",
        "=>" => ">=",
        "==" => "=",
        "" if error == CriterionError::Operator => "<=",
        signs => signs,
    };
    let number = &rest[..numeric];
    let percent = if rest[numeric..].starts_with('%') { "%" } else { "" };
    let meant = format!("{operator}{number}{percent}");
    match Criterion::parse(&meant) {
        Ok(_) if meant != plain => format!("write `{meant}`"),
        _ => "write an operator and a number, like `<600`, `<=+10%` or `>=-8`".into(),
    }
}

fn narrowed(mut spans: Spans, criterion: &Criterion) -> Spans {
    let (of, value) = match criterion.kind {
        Kind::Threshold => (0, criterion.value),
        Kind::PercentMore => (1, criterion.value),
        Kind::PercentLess => (1, -criterion.value),
        Kind::More => (2, criterion.value),
        Kind::Less => (2, -criterion.value),
    };
    let span = &mut spans[of];
    let (from, to) = match criterion.operator {
        Operator::Below => (None, Some((value, true))),
        Operator::AtMost => (None, Some((value, false))),
        Operator::Equal => (Some((value, false)), Some((value, false))),
        Operator::AtLeast => (Some((value, false)), None),
        Operator::Above => (Some((value, true)), None),
    };
    if let Some((low, open)) = from
        && (low > span.low || low == span.low && open)
    {
        (span.low, span.open.0) = (low, open);
    }
    if let Some((high, open)) = to
        && (high < span.high || high == span.high && open)
    {
        (span.high, span.open.1) = (high, open);
    }
    spans
}

impl Span {
    fn is_empty(&self) -> bool {
        self.low > self.high || self.low == self.high && (self.open.0 || self.open.1)
    }

    fn within(&self, other: &Self) -> bool {
        let low = self.low > other.low || self.low == other.low && (self.open.0 || !other.open.0);
        let high = self.high < other.high || self.high == other.high && (self.open.1 || !other.open.1);
        low && high
    }
}

fn within(spans: &Spans, others: &Spans) -> bool {
    spans.iter().zip(others).all(|(span, other)| span.within(other))
}

/// Whether one entry holds below a value, and another one above it, without a gap.
fn covers(sets: &[Option<Spans>]) -> bool {
    let only = |of: usize| {
        let alone = move |spans: &&Spans| spans.iter().enumerate().all(|(place, span)| place == of || *span == ALL);
        sets.iter().flatten().filter(alone).map(move |spans| spans[of])
    };
    (0..3).any(|of| {
        only(of).filter(|below| below.low == f64::NEG_INFINITY && below.high.is_finite()).any(|below| {
            let meets = |above: Span| above.low < below.high || above.low == below.high && !(above.open.0 && below.open.1);
            only(of).filter(|above| above.high == f64::INFINITY && above.low.is_finite()).any(meets)
        })
    })
}
