//! The gates before the first attempt of a promotion. They are checked in a fixed order, and the first closed one is shown.

use super::definition::{Definition, EnvironmentSpec, PromotionSpec};
use super::evaluation;
use super::facts::Facts;
use super::state::{Pipeline, Promotion};
use crate::condition::Condition;
use crate::time::Timestamp;
use crate::windows;

/// A closed gate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gate {
    /// The reason, for machines and for people.
    pub why: Condition,
    /// When the gate opens by itself, if that is known.
    pub opens: Option<Timestamp>,
}

impl Gate {
    pub(super) fn new(reason: &str, message: String, opens: Option<Timestamp>) -> Option<Self> {
        Some(Self { why: Condition::new(reason, message), opens })
    }
}

/// The first closed gate for a promotion into the environment with this index.
pub fn closed(x: &Pipeline, place: usize, promotion: &Promotion, settings: &PromotionSpec, facts: &Facts<'_>) -> Option<Gate> {
    let definition = facts.definition?;
    let environment = definition.environments.get(place)?;
    let state = x.environments.get(&environment.name);
    let name = &environment.name;
    if x.abandoned.contains(&promotion.revision) {
        return Gate::new("RevisionAbandoned", format!("{} was abandoned: it is promoted nowhere", promotion.revision), None);
    }
    if let Some(note) = &x.suspended {
        return Gate::new("Suspended", format!("the pipeline is suspended{}: resume it", said(&note.by, &note.message)), None);
    }
    approval(promotion, settings, name)
        .or_else(|| soak(x, definition, place, facts))
        .or_else(|| evaluation::gate(x, definition, place))
        .or_else(|| window(settings, facts))
        .or_else(|| {
            let (revision, note) =
                state?.hold.as_ref().filter(|(revision, _)| !definition.compare.same(revision, &promotion.revision))?;
            let by = said(&note.by, &note.message);
            Gate::new("Held", format!("{name} is held on {revision}{by}: release it"), None)
        })
        .or_else(|| {
            // The superseded pull request is closed first. If that fails once, the new one no longer waits for it.
            let first = state?.closing.iter().filter(|closing| closing.tries == 0).map(|closing| closing.due).max()?;
            let message = format!("what is open for an earlier revision in {name} is being closed");
            Gate::new("Closing", message, Some(first))
        })
}

fn approval(promotion: &Promotion, settings: &PromotionSpec, name: &str) -> Option<Gate> {
    if promotion.approved {
        return None;
    }
    let (given, needed) = (promotion.approvals.len(), settings.approval.quorum.max(1));
    let so_far = if needed > 1 { format!(" ({given} of {needed} approvals so far)") } else { String::new() };
    let message = format!("{} waits for approval for {name}{so_far}", promotion.revision);
    Gate::new("ApprovalNeeded", message, None)
}

fn soak(x: &Pipeline, definition: &Definition, place: usize, facts: &Facts<'_>) -> Option<Gate> {
    let before = definition.environments.get(place.checked_sub(1)?)?;
    let soak = before.soak?;
    let revision = &x.run.as_ref()?.revision;
    let ends = healthy_since(x, definition, before).map(|since| since + soak);
    if ends.is_some_and(|ends| ends <= facts.now) {
        return None;
    }
    let until = ends.map_or_else(|| "begins when it is healthy there".to_owned(), |ends| format!("until {}", ends.rfc3339()));
    Gate::new("Soaking", format!("{revision} must be healthy in {} for {soak}: {until}", before.name), ends)
}

/// Whether the promotion into the environment with this index waits for something that does not come by itself, when the first
/// environment has moved on to another revision: the soak time there, or an evaluation that has failed.
pub(super) fn never_opens(x: &Pipeline, definition: &Definition, place: usize) -> bool {
    let first = definition.environments.first().filter(|first| place == 1 && first.soak.is_some());
    first.is_some_and(|first| healthy_since(x, definition, first).is_none()) || evaluation::has_failed(x, definition, place)
}

/// Since when an environment has been healthy on the revision of the run.
pub(super) fn healthy_since(x: &Pipeline, definition: &Definition, environment: &EnvironmentSpec) -> Option<Timestamp> {
    let revision = &x.run.as_ref()?.revision;
    let (on, since) = x.environments.get(&environment.name)?.healthy.as_ref()?;
    definition.compare.same(on, revision).then_some(*since)
}

fn window(settings: &PromotionSpec, facts: &Facts<'_>) -> Option<Gate> {
    match windows::gate(&settings.windows, facts.now) {
        windows::Gate::Open => None,
        windows::Gate::Closed(opens) => {
            let until = opens
                .map_or_else(|| "it does not open within two years".to_owned(), |opens| format!("it opens at {}", opens.rfc3339()));
            Gate::new("WindowClosed", format!("the window for promotions is closed: {until}"), opens)
        }
    }
}

/// ` by <who> (<why>)`, without the parts that are not known.
pub(super) fn said(by: &str, why: &str) -> String {
    let by = if by.is_empty() { String::new() } else { format!(" by {by}") };
    if why.is_empty() { by } else { format!("{by} ({why})") }
}
