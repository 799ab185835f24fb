//! Permission to apply manifests, and the audit of it.

use super::planned::Planned;
use crate::fence::caller::Caller;
use crate::fence::problem::Answer;
use crate::kinds::{Called, Document};
use keelway_domain::access::Need;
use keelway_domain::border::Update;
use keelway_domain::names::ProjectName;
use keelway_wire::http::AppliedDocument;

/// The caller must administer the project or namespace of every document. Git hosts and policies belong to the installation.
pub fn check(caller: &Caller, planned: &[Planned]) -> Answer<()> {
    for document in planned {
        caller.check(Need::Administer, document.called().project)?;
        if let Planned::Project(settings) = document
            && settings.policy != Update::Keep
        {
            policy(caller, &settings.name).map_err(|mut refused| {
                refused.problem.detail.push_str(", or leave it out: then the policy stays as it is");
                refused
            })?;
        }
    }
    Ok(())
}

/// Checks that the caller may write or delete a project's policy.
pub fn policy(caller: &Caller, project: &ProjectName) -> Answer<()> {
    caller.check(Need::Administer, None).map_err(|mut refused| {
        refused.problem.detail = format!("spec.policy of project {project}: {}", refused.problem.detail);
        refused
    })
}

/// Records in the audit what was applied, and whether the border of a project has changed.
pub fn tell(caller: &Caller, planned: &[Planned], applied: &[AppliedDocument]) {
    let mut told: Vec<(String, String)> = vec![];
    for (document, applied) in planned.iter().zip(applied) {
        let Called { kind, name, project, .. } = document.called();
        let what = match moved(document, applied)[..] {
            [] => format!("{kind} {name}"),
            ref moved => format!("{kind} {name} (changed its {})", moved.join(" and its ")),
        };
        // What belongs to no project has an entry of its own.
        let project = project.unwrap_or_default();
        match told.iter_mut().find(|(known, _)| known == project) {
            Some((_, words)) => words.extend([", ", &what]),
            None => told.push((project.to_owned(), format!("applied {what}"))),
        }
    }
    caller.tells_each(told.into_iter().map(|(project, what)| (project, what.chars().take(1000).collect())).collect());
}

/// The changes of a project's border.
fn moved(document: &Planned, applied: &AppliedDocument) -> Vec<&'static str> {
    let Planned::Project(settings) = document else { return vec![] };
    let differs = |member: &str| {
        let inside = |field: &str| field.strip_prefix(member).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']));
        applied.changes.iter().any(|change| inside(&change.field))
    };
    // For a new project, no changes are recorded.
    let new = applied.changed && applied.changes.is_empty();
    let policy = differs("spec.policy") || new && matches!(settings.policy, Update::Set(Some(_)));
    let consents = differs("spec.consents") || new && matches!(&settings.consents, Update::Set(consents) if !consents.0.is_empty());
    [policy.then_some("policy"), consents.then_some("consents")].into_iter().flatten().collect()
}
