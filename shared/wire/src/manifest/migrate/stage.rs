//! One stage of a shipyard of version 0.1.

use super::unknown;
use crate::manifest::finding::Report;
use crate::manifest::levels::{self, shipyards};
use crate::manifest::named::{checked, entry, name_of, unique};
use crate::manifest::names::nearest;
use crate::manifest::tree::{Entry, Node};
use crate::manifest::values::text;
use keelway_domain::names::StageName;
use std::collections::HashMap;

const ANSWERS: [&str; 2] = ["automatic", "manual"];

/// A stage as far as it is carried over.
pub struct OldStage {
    pub name: StageName,
    /// As the documentation page spells it.
    pub deployment: Option<Deployment>,
    pub test: Option<String>,
    pub approval: Option<Approval>,
    pub remediation: bool,
    /// Fields that are not carried over.
    pub dropped: Vec<String>,
}

/// How a version is deployed.
#[derive(PartialEq, Eq)]
pub enum Deployment {
    BlueGreen,
    /// `direct`, or what only the executor knows.
    Other(String),
}

/// Who decides, by the result so far.
pub struct Approval {
    pub pass: &'static str,
    pub warning: &'static str,
}

impl OldStage {
    /// Whether a failed delivery is rolled back.
    pub fn rolls_back(&self) -> bool {
        self.deployment == Some(Deployment::BlueGreen) && self.test.is_some()
    }

    /// Whether a person may be asked before anything is deployed.
    pub fn asks(&self) -> bool {
        self.approval.as_ref().is_some_and(|approval| [approval.pass, approval.warning].contains(&"manual"))
    }
}

pub fn read(node: &Node, path: &str, seen: &mut HashMap<String, u64>, report: &mut Report) -> Option<OldStage> {
    entry(node, &shipyards::OLD_STAGE, path, report)?;
    levels::check(node, &shipyards::OLD_STAGE, path, report);
    let written = name_of(node, &shipyards::OLD_STAGE, path, report);
    let name = written.and_then(|name| checked(node, name, StageName::new, (true, "-"), path, report));
    if let Some(written) = written {
        unique(node, written, "stage", "the shipyard", path, seen, report);
    }
    let mut given = |field: &str| {
        let text = text(node, field, path, report)?;
        Some(text.trim().to_owned()).filter(|text| !text.is_empty())
    };
    let (deployment, test) = (given("deployment_strategy").map(deployment), given("test_strategy"));
    let approval = approval(node, path, report);
    let remediation = remediation(node, path, report);
    Some(OldStage { name: name?, deployment, test, approval, remediation, dropped: unknown(node, &shipyards::OLD_STAGE) })
}

/// All spellings of blue/green are the one of the documentation page.
fn deployment(written: String) -> Deployment {
    let plain: String = written.to_lowercase().chars().filter(char::is_ascii_alphanumeric).collect();
    match plain.as_str() {
        plain if plain.contains("bluegreen") => Deployment::BlueGreen,
        "direct" => Deployment::Other("direct".into()),
        _ => Deployment::Other(written),
    }
}

fn remediation(node: &Node, path: &str, report: &mut Report) -> bool {
    let given = text(node, "remediation_strategy", path, report).unwrap_or_default();
    match given.trim() {
        "automated" | "automatic" => true,
        "" | "none" => false,
        _ => {
            let at = node.get("remediation_strategy").unwrap_or(node);
            let message = format!("{given:?} is not a strategy of 0.1: write `automated`, or leave it out");
            report.error(at, format!("{path}.remediation_strategy"), message);
            false
        }
    }
}

/// `{pass: …, warning: …}`, the same as a list of single fields, or one word for both.
fn approval(node: &Node, path: &str, report: &mut Report) -> Option<Approval> {
    let given = node.get("approval_strategy").filter(|given| !given.is_null())?;
    let path = format!("{path}.approval_strategy");
    if let Some(text) = given.scalar() {
        if let Some(answer) = ANSWERS.into_iter().find(|answer| *answer == text.trim()) {
            return Some(Approval { pass: answer, warning: answer });
        }
        let message = format!("{text:?} does not say who decides: write `approval_strategy: {{pass: automatic, warning: manual}}`");
        report.error(given, path, message);
        return None;
    }
    let listed = given.list().unwrap_or_default().iter().flat_map(|item| item.entries().unwrap_or_default());
    let entries: Vec<&Entry> = given.entries().unwrap_or_default().iter().chain(listed).collect();
    let mut approval = Approval { pass: "automatic", warning: "automatic" };
    for entry in entries {
        let path = format!("{path}.{}", entry.key);
        let text = entry.value.scalar().unwrap_or_default().trim();
        let answer = ANSWERS.into_iter().find(|answer| *answer == text);
        match (entry.key.as_str(), answer) {
            ("pass", Some(answer)) => approval.pass = answer,
            ("warning", Some(answer)) => approval.warning = answer,
            ("pass" | "warning", None) => {
                let meant = nearest(text, ANSWERS).map_or("`automatic` or `manual`".into(), |near| format!("`{near}`"));
                report.error(&entry.value, path, format!("{text:?} is not an approval strategy: write {meant}"));
            }
            _ => report.error_at(entry.at, path, "is not a result that is asked about: write `pass` or `warning`".into()),
        }
    }
    Some(approval)
}
