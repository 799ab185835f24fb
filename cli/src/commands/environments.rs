//! `get environments`: which version runs where, since when, and what is on its way.

use crate::api::Api;
use crate::args::{Format, Scope};
use crate::delivery;
use crate::error::CliError;
use crate::output::say_data;
use crate::pages::{self, List};
use crate::table::Table;
use crate::table::print;
use crate::terminal::Look;
use crate::words::{age, version};
use keelway_domain::names::{ProjectName, ServiceName, StageName};
use keelway_domain::time::Timestamp;
use keelway_wire::http::{EnvironmentState, ProjectPage};
use serde_json::json;

/// The environments of a scope with one project, and the server's clock.
///
/// # Errors
/// As the API answers.
pub async fn read(
    api: &Api,
    project: &str,
    stage: Option<&StageName>,
    service: Option<&ServiceName>,
) -> Result<(Vec<EnvironmentState>, Option<Timestamp>), CliError> {
    let (stage, service) = (stage.map_or("", StageName::as_str), service.map_or("", ServiceName::as_str));
    let query = [("stage", stage), ("service", service)];
    let list: List<EnvironmentState> = pages::read(api, &["project", project, "environment"], &query, usize::MAX).await?;
    Ok((list.items, Timestamp::parse(&list.extra.now)))
}

/// Prints them.
///
/// # Errors
/// As the API answers.
pub async fn environments(api: &Api, scope: &Scope, format: Format) -> Result<(), CliError> {
    let project = the_project(api, scope).await?;
    let (environments, now) = read(api, project.as_str(), scope.stage.as_ref(), scope.service.as_ref()).await?;
    if format.is_data() {
        return say_data(&json!({"items": environments}), format);
    }
    let table = if format.is_wide() { wide(&environments) } else { table(&environments, now, &crate::terminal::look()) };
    print(table, format, "nothing has happened in this project yet; start something: keelway trigger delivery --help")
}

/// The project of a scope, or the only one.
///
/// # Errors
/// There are several, or none.
pub async fn the_project(api: &Api, scope: &Scope) -> Result<ProjectName, CliError> {
    if let Some(project) = &scope.project {
        return Ok(project.clone());
    }
    let page: ProjectPage = api.get(&["project"], &[("pageSize", "2")]).await?;
    match page.items.as_slice() {
        [one] => ProjectName::new(one.project_name.clone())
            .map_err(|error| CliError::Failed(format!("the API's answer is odd: {error}; give --project"))),
        [] => Err(CliError::Failed("there is no project yet; apply one: keelway apply -f FILE".into())),
        _ => Err(CliError::Usage("there are several projects: say which by --project".into())),
    }
}

fn table(environments: &[EnvironmentState], now: Option<Timestamp>, look: &Look) -> Table {
    let mut table = Table::new(&["SERVICE", "STAGE", "VERSION", "SINCE", "LAST", "ON ITS WAY"]);
    for one in environments {
        let last = one.last.as_ref().map(|last| format!("{} {}", last.result, last.sequence));
        let coming = one.coming.iter().map(|execution| {
            let (mark, what, time) = delivery::about(execution, now);
            let version = execution.image.as_deref().map(version).unwrap_or_else(|| execution.sequence.clone());
            [version.as_str(), mark.sign(look.ascii), what.as_str(), time.as_str()].join(" ").trim().to_owned()
        });
        table.row(vec![
            one.service.clone(),
            one.stage.clone(),
            runs(one),
            one.since.as_deref().map(|since| age(since, now)).unwrap_or_default(),
            last.unwrap_or_default(),
            coming.collect::<Vec<_>>().join("; "),
        ]);
    }
    table
}

fn runs(one: &EnvironmentState) -> String {
    match (&one.image, &one.since) {
        (Some(image), _) => version(image),
        (None, Some(_)) => "rolled back".into(),
        (None, None) => String::new(),
    }
}

fn wide(environments: &[EnvironmentState]) -> Table {
    let mut table =
        Table::new(&["SERVICE", "STAGE", "IMAGE", "SINCE", "CONTEXT", "LAST", "RESULT", "ENDED", "LAST CONTEXT", "ON ITS WAY"]);
    for one in environments {
        let text = |value: &Option<String>| value.clone().unwrap_or_default();
        let last = one.last.clone().unwrap_or_default();
        let coming = one.coming.iter().map(|execution| {
            format!("{} {} {}", execution.image.clone().unwrap_or_default(), execution.state, execution.context).trim().to_owned()
        });
        table.row(vec![
            one.service.clone(),
            one.stage.clone(),
            text(&one.image),
            text(&one.since),
            text(&one.context),
            last.sequence,
            crate::timeline::outcome(&last.result, &last.status),
            last.finished_at,
            last.context,
            coming.collect::<Vec<_>>().join("; "),
        ]);
    }
    table
}
