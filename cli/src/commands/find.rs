//! Contexts as people write them: the first eight characters, as every list shows them, are enough.

use crate::api::Api;
use crate::api_error::ApiError;
use crate::error::CliError;
use crate::pages::{self, List};
use crate::words::{SHORT, age, short_ids, version};
use futures_util::stream::{self, StreamExt, TryStreamExt};
use keelway_domain::names::{Context, ProjectName};
use keelway_domain::time::Timestamp;
use keelway_wire::http::{ProjectState, SequencePage, SequenceState};
use std::fmt::Write;

/// So many contexts are looked up at a time.
const AT_ONCE: usize = 8;
/// More projects than this are not searched.
const PROJECTS: usize = 50;

/// Says why a list of a project is empty, if its name is probably a slip: there is another one of nearly the same.
///
/// # Errors
/// It is a slip.
pub async fn mistyped(api: &Api, project: Option<&str>) -> Result<(), CliError> {
    let Some(project) = project.filter(|name| !name.is_empty()) else { return Ok(()) };
    match slip(api, project).await {
        Some(error) => Err(error.into()),
        None => Ok(()),
    }
}

/// The API's refusal of a project that does not exist, if another one is nearly called so. A namespace may have no project.
pub async fn slip(api: &Api, project: &str) -> Option<ApiError> {
    let found: Result<ProjectState, ApiError> = api.get(&["project", project], &[]).await;
    found.err().filter(|error| error.status() == Some(404) && error.to_string().contains("did you mean"))
}

/// A context that was found, or is taken as it was given.
pub struct Place {
    /// Its project, if it was given or found.
    pub project: Option<String>,
    /// The whole name.
    pub context: Context,
}

/// The context that is meant: the given one if nothing begins with it.
///
/// # Errors
/// Several begin with it; the API.
pub async fn place(api: &Api, project: Option<&ProjectName>, given: &Context) -> Result<Place, CliError> {
    let found = places(api, project, std::slice::from_ref(given)).await?;
    Ok(found.into_iter().next().unwrap_or_else(|| as_given(project, given)))
}

/// The contexts that are meant, in the same order.
///
/// # Errors
/// As [`place`].
pub async fn places(api: &Api, project: Option<&ProjectName>, given: &[Context]) -> Result<Vec<Place>, CliError> {
    let Some(short) = given.iter().find(|given| !is_whole(given.as_str())) else {
        return Ok(given.iter().map(|given| as_given(project, given)).collect());
    };
    let projects = &searched(api, project, short).await?;
    let each = stream::iter(given).map(async |given| {
        if is_whole(given.as_str()) {
            return Ok(as_given(project, given));
        }
        let (states, now) = like_in(api, projects, given).await?;
        match states.as_slice() {
            [] => Ok(as_given(project, given)),
            [state] => Ok(Place { project: Some(state.project.clone()), context: whole(&state.shkeptncontext)? }),
            several => Err(ambiguous(given, several, now)),
        }
    });
    each.buffered(AT_ONCE).try_collect().await
}

/// A context as it was given, wherever it is.
pub fn as_given(project: Option<&ProjectName>, given: &Context) -> Place {
    Place { project: project.map(ToString::to_string), context: given.clone() }
}

impl Place {
    /// The project, which is searched for if it is not known yet.
    ///
    /// # Errors
    /// No project has the context; the API.
    pub async fn project(&self, api: &Api) -> Result<String, CliError> {
        match &self.project {
            Some(project) => Ok(project.clone()),
            None => project_of(api, &self.context).await,
        }
    }
}

async fn project_of(api: &Api, context: &Context) -> Result<String, CliError> {
    let (states, _) = like(api, None, context).await?;
    let found = states.into_iter().next().map(|state| state.project);
    found.ok_or_else(|| {
        CliError::Failed(format!("no context is, or begins with, {context}: keelway get sequences --project P lists them"))
    })
}

/// The contexts that begin with what was given; only the one of exactly that name if there is one. And the server's clock.
///
/// # Errors
/// As the API answers.
pub async fn like(
    api: &Api,
    project: Option<&ProjectName>,
    given: &Context,
) -> Result<(Vec<SequenceState>, Option<Timestamp>), CliError> {
    like_in(api, &searched(api, project, given).await?, given).await
}

/// The projects in which a context is searched for.
async fn searched(api: &Api, project: Option<&ProjectName>, given: &Context) -> Result<Vec<String>, CliError> {
    let projects = match project {
        Some(project) => vec![project.to_string()],
        None => projects(api).await?,
    };
    if projects.len() > PROJECTS {
        let n = projects.len();
        return Err(CliError::Failed(format!("there are {n} projects to search for context {given}: say which by --project")));
    }
    Ok(projects)
}

async fn like_in(api: &Api, projects: &[String], given: &Context) -> Result<(Vec<SequenceState>, Option<Timestamp>), CliError> {
    let exact = is_whole(given.as_str()) || given.as_str().chars().count() < SHORT;
    let field = if exact { "keptnContext" } else { "contextPrefix" };
    let (mut states, mut now) = (vec![], None);
    for project in projects {
        let page: SequencePage = api.get(&["sequence", project], &[(field, given.as_str()), ("pageSize", "100")]).await?;
        now = Timestamp::parse(&page.extra.now).or(now);
        states.extend(page.items);
    }
    states.retain(|state: &SequenceState| state.shkeptncontext.starts_with(given.as_str()));
    if states.iter().any(|state| state.shkeptncontext == given.as_str()) {
        states.retain(|state| state.shkeptncontext == given.as_str());
    }
    Ok((states, now))
}

/// Several contexts begin like this.
pub fn ambiguous(given: &Context, states: &[SequenceState], now: Option<Timestamp>) -> CliError {
    let contexts: Vec<&str> = states.iter().map(|state| state.shkeptncontext.as_str()).collect();
    let mut text = format!("{} contexts begin with {given}: give more characters", states.len());
    for (state, id) in states.iter().zip(short_ids(&contexts)).take(10) {
        let image = state.executions.iter().find_map(|execution| execution.image.as_deref()).map(version).unwrap_or_default();
        let subject = [state.service.as_str(), &image].join(" ");
        // Writing to a string does not fail.
        write!(text, "\n  {id}  {} of {}, triggered {} ago", subject.trim(), state.project, age(&state.time, now)).ok();
    }
    CliError::Failed(text)
}

/// A context's name as the API tells it.
///
/// # Errors
/// One that breaks the rule for names.
pub fn whole(text: &str) -> Result<Context, CliError> {
    Context::new(text).map_err(|error| CliError::Failed(format!("the API's answer is odd: {error}")))
}

/// Whether nothing can be missing: a UUID in full.
fn is_whole(text: &str) -> bool {
    text.len() == 36 && uuid::Uuid::parse_str(text).is_ok()
}

/// The projects that the token shows, as many as are searched and one more.
///
/// # Errors
/// As the API answers.
pub async fn projects(api: &Api) -> Result<Vec<String>, CliError> {
    let list: List<ProjectState> = pages::read(api, &["project"], &[], PROJECTS + 1).await?;
    Ok(list.items.into_iter().map(|project| project.project_name).collect())
}
