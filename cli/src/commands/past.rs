//! Which versions came to a stage, and when: `get environments --history`.

use super::environments::{self, the_project};
use crate::api::Api;
use crate::args::{Format, Scope};
use crate::error::CliError;
use crate::output::say_data;
use crate::pages::{self, List};
use crate::table::{Table, print};
use crate::words::{age, short_ids, version};
use keelway_domain::names::{ServiceName, StageName};
use keelway_wire::http::{EnvironmentState, ExecutionState};
use serde::Serialize;
use serde_json::json;

/// The task whose success brings a version.
const DEPLOYMENT: &str = "deployment";
/// So many executions are looked at.
const LOOKED_AT: usize = 1000;
/// So many versions of each service are shown in each stage.
const SHOWN: usize = 5;

/// A version that came to a stage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Came {
    pub service: String,
    pub stage: String,
    /// Empty: a rollback that did not say which.
    pub image: String,
    /// When, RFC 3339.
    pub at: String,
    pub sequence: String,
    #[serde(rename = "shkeptncontext")]
    pub context: String,
}

/// What came to a stage, newest first, as far as the newest executions tell.
///
/// # Errors
/// As the API answers.
pub async fn came(
    api: &Api,
    project: &str,
    stage: Option<&StageName>,
    service: Option<&ServiceName>,
) -> Result<Vec<Came>, CliError> {
    let (stage, service) = (stage.map_or("", StageName::as_str), service.map_or("", ServiceName::as_str));
    let query = [("project", project), ("stage", stage), ("service", service)];
    let list: List<ExecutionState> = pages::read(api, &["sequence-execution"], &query, LOOKED_AT).await?;
    Ok(deployed(list.items))
}

fn deployed(executions: Vec<ExecutionState>) -> Vec<Came> {
    let one = |execution: ExecutionState| {
        let passed = |result: &Option<String>| matches!(result.as_deref(), Some("pass" | "warning"));
        let task = execution.tasks.iter().rfind(|task| task.name == DEPLOYMENT && passed(&task.result))?;
        Some(Came {
            at: task.finished_at.clone().or(execution.finished_at.clone()).unwrap_or_default(),
            image: execution.image?,
            service: execution.service,
            stage: execution.stage,
            sequence: execution.sequence,
            context: execution.context,
        })
    };
    let mut all: Vec<Came> = executions.into_iter().filter_map(one).collect();
    all.sort_by(|a, b| b.at.cmp(&a.at));
    all
}

/// What ran before the present version came for the first time: what came since then may be what somebody has gone back from.
pub fn before<'c>(came: &'c [Came], present: &str) -> Option<&'c Came> {
    let first = came.iter().rposition(|one| one.image == present)?;
    came.get(first + 1)
}

/// Prints what came lately, for each service in each stage.
///
/// # Errors
/// As the API answers.
pub async fn history(api: &Api, scope: &Scope, format: Format) -> Result<(), CliError> {
    let project = the_project(api, scope).await?;
    let (stage, service) = (scope.stage.as_ref(), scope.service.as_ref());
    let (environments, now) = environments::read(api, project.as_str(), stage, service).await?;
    let came = came(api, project.as_str(), stage, service).await?;
    let all: Vec<Came> = environments.iter().flat_map(|environment| of(environment, &came)).collect();
    if format.is_data() {
        return say_data(&json!({"items": all}), format);
    }
    let wide = format.is_wide();
    let ids = short_ids(&all.iter().map(|one| one.context.as_str()).collect::<Vec<_>>());
    let mut table = Table::new(&["SERVICE", "STAGE", "VERSION", if wide { "AT" } else { "AGE" }, "BY", "CONTEXT"]);
    for (one, id) in all.into_iter().zip(ids) {
        let shown = match one.image.as_str() {
            "" => "rolled back".to_owned(),
            image if wide => image.to_owned(),
            image => version(image),
        };
        let (at, id) = if wide { (one.at, one.context) } else { (age(&one.at, now), id) };
        table.row(vec![one.service, one.stage, shown, at, one.sequence, id]);
    }
    print(table, format, "nothing has been deployed here yet; start something: keelway trigger delivery --help")
}

/// What runs, and what came before. A rollback brings a version, too, and only the environment tells which.
fn of(environment: &EnvironmentState, came: &[Came]) -> Vec<Came> {
    let here = came.iter().filter(|one| one.stage == environment.stage && one.service == environment.service);
    let mut all: Vec<Came> = here.take(SHOWN).cloned().collect();
    let image = environment.image.clone().unwrap_or_default();
    if let Some(since) = environment.since.clone()
        && all.first().is_none_or(|newest| newest.image != image)
    {
        let context = environment.context.clone().unwrap_or_default();
        let last = environment.last.as_ref().filter(|last| last.context == context);
        let sequence = last.map(|last| last.sequence.clone()).unwrap_or_default();
        let (service, stage) = (environment.service.clone(), environment.stage.clone());
        all.insert(0, Came { service, stage, image, at: since, sequence, context });
        all.truncate(SHOWN);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(images: &[&str]) -> Vec<Came> {
        let one = |image: &&str| Came {
            service: "carts".into(),
            stage: "prod".into(),
            image: (*image).into(),
            at: String::new(),
            sequence: "delivery".into(),
            context: "c".into(),
        };
        images.iter().map(one).collect()
    }

    #[test]
    fn the_way_back_leads_to_what_ran_before_the_present_version_came_first() {
        let back = |images: &[&str], present: &str| before(&all(images), present).map(|one| one.image.clone());
        assert_eq!(back(&["3", "2", "1"], "3").as_deref(), Some("2"));
        assert_eq!(back(&["3", "3", "2"], "3").as_deref(), Some("2"), "it was delivered twice");
        // 2 is what somebody went back to from 3: nobody goes on to 3 by going back once more.
        assert_eq!(back(&["2", "3", "2", "1"], "2").as_deref(), Some("1"));
        assert_eq!(back(&["3", "2", "1"], "2").as_deref(), Some("1"), "a rollback brought 2");
        assert_eq!((back(&["1"], "1"), back(&[], "1"), back(&["2", "1"], "9")), (None, None, None));
    }
}
