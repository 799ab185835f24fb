//! A request for an evaluation: it becomes the trigger of the stage's sequence `evaluation`.

use crate::ports::Ports;
use crate::projects::stage_of;
use crate::refusal::Refusal;
use crate::sequences::Sequences;
use crate::sequences::commands::DECISION_SOURCE;
use keelway_domain::event::{CloudEvent, EventType, Kind, Object};
use keelway_domain::ids::context_of;
use keelway_domain::names::{Context, SequenceName, StageName};
use keelway_domain::sequences::Window;
use keelway_domain::shipyard::EVALUATION;
use serde_json::json;

/// What is to be evaluated.
#[derive(Debug, Clone, Default)]
pub struct Wanted<'a> {
    /// The project.
    pub project: &'a str,
    /// The stage.
    pub stage: &'a str,
    /// The service.
    pub service: &'a str,
    /// Start, end and timeframe, as far as given.
    pub window: (Option<&'a str>, Option<&'a str>, Option<&'a str>),
    /// Labels of the event.
    pub labels: Object,
    /// Which configuration the executors should use.
    pub git_commit_id: Option<String>,
    /// The event's id.
    pub id: String,
}

impl<P: Ports> Sequences<P> {
    /// The trigger that a request for an evaluation means.
    ///
    /// # Errors
    /// Unknown project or stage; a service that the project does not have; a window that breaks a rule.
    pub async fn evaluation(&self, wanted: Wanted<'_>) -> Result<CloudEvent, Refusal> {
        let project = self.projects().find(wanted.project).await?;
        let name = &project.settings.name;
        let stage: &StageName = &stage_of(&project.shipyard, wanted.stage)?.name;
        let invalid = |(field, message): (&'static str, String)| Refusal::Invalid { field, message };
        if self.projects().service(name, wanted.service).await?.is_none() {
            let (known, _) = self.projects().services(name, None, 20).await?;
            let known: Vec<&str> = known.iter().map(|(service, _)| service.as_str()).collect();
            let service: String = wanted.service.chars().take(50).collect();
            let message = match known.is_empty() {
                true => {
                    format!(
                        "{service:?} is unknown: project {name} has no services yet: create it, or begin with another sequence of it"
                    )
                }
                false => format!("{service:?} is unknown: project {name} has {}", known.join(", ")),
            };
            return Err(invalid(("service", message)));
        }
        let now = self.ports.now();
        let window = Window::requested(wanted.window, now).map_err(invalid)?;
        let mut data = Object::new();
        for (field, value) in [("project", name.as_str()), ("stage", stage.as_str()), ("service", wanted.service)] {
            data.insert(field.into(), json!(value));
        }
        if !wanted.labels.is_empty() {
            data.insert("labels".into(), json!(wanted.labels));
        }
        data.insert(EVALUATION.into(), json!({"start": window.start.rfc3339(), "end": window.end.rfc3339()}));
        let sequence = SequenceName::new(EVALUATION).map_err(|error| invalid(("sequence", error.to_string())))?;
        Ok(CloudEvent {
            context: Context::of(&context_of(DECISION_SOURCE, &wanted.id).to_string()),
            id: wanted.id,
            source: DECISION_SOURCE.into(),
            ty: EventType::sequence(stage, &sequence, Kind::Triggered),
            time: now,
            authors: vec![],
            triggered_id: None,
            git_commit_id: wanted.git_commit_id,
            data,
        })
    }
}
