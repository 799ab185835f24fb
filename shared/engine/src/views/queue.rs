//! Queues: which executions wait for their turn, in which order, and behind whom.

use super::Views;
use super::environments::EnvironmentFilter;
use super::execution::{self, Shown};
use crate::ports::{PortError, Ports};
use crate::projects::{self, stage_of};
use crate::refusal::Refusal;
use crate::sequences::keys;
use crate::sequences::subject::entry;
use keelway_domain::names::ProjectName;
use keelway_domain::sequences::{Lane, Policy};
use serde_json::{Value, json};
use std::collections::BTreeMap;

impl<P: Ports> Views<'_, P> {
    /// The queues of a project's stages and services, those without anybody in them left out. `holder` is the execution that runs
    /// there, if one does; `waiting` are the others in the order in which they will run. Of the project's open executions, the
    /// first 500 are looked at.
    ///
    /// # Errors
    /// An unknown project or stage.
    pub async fn queues(&self, project: &ProjectName, filter: &EnvironmentFilter) -> Result<Vec<Value>, Refusal> {
        let known = self.engine.projects().get(project).await?;
        if let Some(stage) = &filter.stage {
            stage_of(&known.shipyard, stage)?;
        }
        let wanted = |given: &Option<String>, name: &str| given.as_ref().is_none_or(|given| given == name);
        let mut waiting = self.candidates(project, vec![]).await?;
        waiting.retain(|x| x.outcome.is_none() && x.lane == Lane::Wants);
        waiting.retain(|x| wanted(&filter.stage, &x.stage) && wanted(&filter.service, x.service.as_str()));
        let waiting: Vec<Shown> = waiting.into_iter().map(|x| Shown { x, depth: 0 }).collect();
        let behind = self.holders(project, waiting.iter()).await?;
        let items = self.engine.read(&[projects::keys::project(project)]).await?;
        let policy = self.engine.project(project, items.get(&projects::keys::project(project))).await?.policy;
        let mut queues: BTreeMap<(String, String), Vec<Shown>> = BTreeMap::new();
        for one in waiting {
            queues.entry((one.x.service.to_string(), one.x.stage.clone())).or_default().push(one);
        }
        let mut told = vec![];
        for ((service, stage), mut queue) in queues {
            // The entries' keys are the order in which they are served.
            queue.sort_by_key(|one| entry(&one.x).sk);
            let lock = queue.first().map(|one| keys::LaneKey::of(&one.x).lock());
            let holder = lock.and_then(|lock| behind.get(&lock)).cloned();
            let mut shown = vec![];
            for (place, one) in queue.into_iter().enumerate() {
                let mut line = self.line(&one, &policy, &behind).await?;
                line["position"] = json!(place + 1);
                shown.push(line);
            }
            let mut queue = json!({"service": service, "stage": stage, "waiting": shown});
            if let Some(x) = holder {
                let one = Shown { x, depth: 0 };
                let heard = self.heard(std::iter::once(&one.x)).await?;
                let mut line = self.line(&one, &policy, &behind).await?;
                heard.tell(&one.x, &mut line);
                queue["holder"] = line;
            }
            told.push(queue);
        }
        Ok(told)
    }

    async fn line(&self, one: &Shown, policy: &Policy, behind: &execution::Behind) -> Result<Value, PortError> {
        let shipyard = self.accepted_with(&one.x).await?;
        let definition = shipyard.as_deref().and_then(|shipyard| execution::definition(&one.x, shipyard));
        let mut line = execution::shown(one, definition.as_ref(), policy, behind);
        line["shkeptncontext"] = json!(one.x.context.as_str());
        Ok(line)
    }
}
