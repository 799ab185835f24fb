//! `kind: Project`: a project's name and what differs from the installation's defaults.

use super::border;
use super::finding::Report;
use super::levels::{self, projects};
use super::names::repaired;
use super::objects::{self, with_example};
use super::tree::Node;
use super::values::{positive, text, timeout};
use keelway_domain::border::{Consents, Policy, Update};
use keelway_domain::names::ProjectName;
use keelway_domain::time::Span;

/// A project as its manifest declares it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "named as the fields of the manifest are")]
pub struct ProjectManifest {
    pub name: ProjectName,
    /// For people.
    pub description: Option<String>,
    /// How long executors have to answer a task's trigger.
    pub start_deadline: Option<Span>,
    /// How long a started task may take; 0 is for ever.
    pub task_timeout: Option<Span>,
    /// What other projects may do in this one.
    pub consents: Consents,
    /// What the project may use of the installation. Only administrators of the installation may write it.
    pub policy: Update<Option<Policy>>,
}

pub fn read(root: &Node, _: &str, report: &mut Report) -> Option<ProjectManifest> {
    levels::check(root, &projects::PROJECT, "", report);
    objects::version(root, "Project", projects::API_VERSION, report);
    let metadata = levels::mapping(root, "metadata", &projects::METADATA, "", report).map(|(metadata, _)| metadata);
    let name = project_name(root, metadata, report);
    let (mut description, mut start_deadline, mut task_timeout) = (None, None, None);
    let (mut consents, mut policy) = (Consents::default(), Update::Keep);
    if let Some((spec, _)) = levels::mapping(root, "spec", &projects::SPEC, "", report) {
        description = text(spec, "description", "spec", report);
        start_deadline = positive(spec, "startDeadline", "spec", report);
        task_timeout = timeout(spec, "taskTimeout", "spec", report);
        consents = border::consents(spec, report);
        policy = border::policy(spec, report);
    }
    Some(ProjectManifest { name: name?, description, start_deadline, task_timeout, consents, policy })
}

fn project_name(root: &Node, metadata: Option<&Node>, report: &mut Report) -> Option<ProjectName> {
    let at = metadata.unwrap_or(root);
    let name = metadata.and_then(|metadata| metadata.get("name"));
    let Some(text) = name.and_then(Node::scalar) else {
        report.error(name.unwrap_or(at), "metadata.name", "is missing: name the project, for example `name: shop`".into());
        return None;
    };
    ProjectName::new(text)
        .map_err(|error| {
            let example = repaired(text, true, "-").filter(|name| ProjectName::new(name.as_str()).is_ok());
            report.error(name.unwrap_or(at), "metadata.name", with_example(error.to_string(), example));
        })
        .ok()
}
