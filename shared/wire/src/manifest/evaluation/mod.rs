//! Keptn's `slo.yaml` and `sli.yaml`: resources of a project, and no manifests. They have no `kind`, so their shape or the name of
//! the file tells what they are.
//!
//! They are read twice as it were. What the lighthouse would make of a file is in the result; a file that the lighthouse could not
//! read has none. The findings are stricter: they name what it would pass over.

mod criteria;
mod read;
mod sli;
mod slo;

use super::finding::Report;
use super::tree::{self, Node};
use super::{Finding, MAX_BYTES, Parsed, Severity, parse};
use keelway_domain::evaluation::{Queries, Slo};
use std::collections::BTreeSet;

/// What a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resource {
    /// `slo.yaml`
    Objectives,
    /// `sli.yaml`
    Indicators,
}

/// A file of any form, as checked.
#[derive(Debug, Clone, PartialEq)]
pub enum Checked {
    /// Manifests.
    Manifests(Parsed),
    /// Objectives, as far as the lighthouse could read them.
    Objectives(Option<Slo>, Vec<Finding>),
    /// Indicators with their queries, as far as they can be read.
    Indicators(Option<Queries>, Vec<Finding>),
}

impl Checked {
    /// By line.
    pub fn findings(&self) -> &[Finding] {
        match self {
            Self::Manifests(parsed) => &parsed.findings,
            Self::Objectives(_, findings) | Self::Indicators(_, findings) => findings,
        }
    }

    /// Whether any finding is an error.
    pub fn refused(&self) -> bool {
        self.findings().iter().any(|finding| finding.severity == Severity::Error)
    }
}

impl Resource {
    /// What a file is by its fields; by its name if they say nothing. `None` for manifests.
    pub fn of(text: &str, file: &str) -> Option<Self> {
        let trees = if text.len() > MAX_BYTES { vec![] } else { tree::read(text, &mut Report::new(file, text)) };
        let root = trees.first().map(|tree| &tree.root);
        let has = |fields: &[&str]| root.is_some_and(|root: &Node| fields.iter().any(|field| root.get(field).is_some()));
        if has(&["kind", "apiVersion", "spec", "stages", "items", "objects"]) {
            return None;
        }
        let name = file.rsplit(['/', '\\']).next().unwrap_or_default().to_lowercase();
        let named = |start: &str| name.starts_with(start) && (name.ends_with(".yaml") || name.ends_with(".yml"));
        match (has(&["indicators"]), has(&["objectives", "total_score", "comparison"])) {
            (true, false) => Some(Self::Indicators),
            (_, true) => Some(Self::Objectives),
            _ if named("slo") => Some(Self::Objectives),
            _ if named("sli") => Some(Self::Indicators),
            _ => None,
        }
    }
}

/// Checks a file of any form. `known` are the indicators that have queries, if the files with them are at hand.
pub fn check(text: &str, file: &str, known: Option<&BTreeSet<String>>) -> Checked {
    match Resource::of(text, file) {
        None => Checked::Manifests(parse(text, file)),
        Some(Resource::Objectives) => {
            let (slo, findings) = objectives(text, file, known);
            Checked::Objectives(slo, findings)
        }
        Some(Resource::Indicators) => {
            let (queries, findings) = indicators(text, file);
            Checked::Indicators(queries, findings)
        }
    }
}

/// Checks a file of objectives, whatever else it may look like.
pub(crate) fn objectives(text: &str, file: &str, known: Option<&BTreeSet<String>>) -> (Option<Slo>, Vec<Finding>) {
    whole(text, file, |root, read| slo::read(root, known, read))
}

/// Checks a file of indicators, whatever else it may look like.
pub(crate) fn indicators(text: &str, file: &str) -> (Option<Queries>, Vec<Finding>) {
    whole(text, file, sli::read)
}

/// Reads the first document, which is the only one that Keptn reads.
fn whole<T>(text: &str, file: &str, of: impl FnOnce(&Node, &mut read::Reader) -> T) -> (Option<T>, Vec<Finding>) {
    let mut report = Report::new(file, text);
    if text.len() > MAX_BYTES {
        report.error_at(tree::START, "", format!("the file has {} bytes: at most {MAX_BYTES} (1 MiB) are read", text.len()));
        return (None, report.finish());
    }
    let trees = tree::read(text, &mut report);
    let mut reader = read::Reader { broken: report.has_errors(), report: &mut report };
    if let Some(second) = trees.get(1) {
        let message = "is a second document, which is not read: leave it out, or put it into a file of its own";
        reader.report.error(&second.root, "", message.into());
    }
    let found = match trees.first() {
        Some(tree) if tree.root.entries().is_none() => {
            let message = format!("is {}, not a mapping: write its fields, each with a value", tree.root.what());
            reader.broken(&tree.root, "", message);
            None
        }
        Some(tree) => Some(of(&tree.root, &mut reader)),
        None if reader.broken => None,
        None => {
            reader.report.error_at(
                tree::START,
                "",
                "holds nothing, as if there were no file: write its fields, or delete it".into(),
            );
            None
        }
    };
    let broken = reader.broken;
    (found.filter(|_| !broken), report.finish())
}
