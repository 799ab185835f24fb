//! Evaluations that the installation makes: `evaluate`, `get evaluations`, `evaluation`, `set sli-provider`.

use super::evaluate::{change, code, criteria};
use super::{migrate, trigger};
use crate::api::Api;
use crate::args::{Evaluate, Evaluated, EvaluationVerb, GetEvaluations, OneEvaluation, SetSliProvider};
use crate::error::CliError;
use crate::output::{one_line, say, say_data};
use crate::table::{Table, print};
use crate::words::{SHORT, age};
use keelway_domain::event::TaskResult;
use keelway_domain::names::{ServiceName, StageName};
use keelway_domain::time::Timestamp;
use keelway_wire::http::{
    EvaluatedIndicator, EvaluatedTarget, EvaluationPage, EvaluationView, ProjectState, SequencePage, SequenceState,
};
use keelway_wire::http::{Page, SliProvider};
use serde_json::{Value, json};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// The pause between two looks.
const LOOK: Duration = Duration::from_secs(1);
/// Signs of a sparkline, from low to high.
const SPARKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Evaluates a window of a service; waits for the result, if asked to.
///
/// # Errors
/// A window that breaks a rule, or the API's refusal.
pub async fn evaluate(api: &Api, what: &Evaluate) -> Result<ExitCode, CliError> {
    let (Some(service), Some(project), Some(stage)) = (&what.service, &what.project, &what.stage) else {
        return Err(CliError::Usage("say which service in which stage: keelway evaluate SERVICE -p PROJECT --stage STAGE".into()));
    };
    let (project, stage, service) = (project.as_str(), stage.as_str(), service.as_str());
    let (accepted, _) = trigger::evaluate(api, [project, stage, service], &what.window, &what.labels).await?;
    let path = path(project, stage, service);
    if !what.watch {
        let shown = format!("evaluation of {service} is triggered in {stage} of {project}: context {}", accepted.context);
        if what.output.format.is_data() {
            say_data(&json!({"keptnContext": accepted.context}), what.output.format)?;
        } else {
            say(&shown)?;
            eprintln!("see it: keelway get evaluations -p {project} --stage {stage} --service {service}");
        }
        return Ok(ExitCode::SUCCESS);
    }
    let until = what.timeout.map(|timeout| Instant::now() + timeout);
    loop {
        let page: EvaluationPage = api.get(&path, &[]).await?;
        let found = page.items.into_iter().find(|one| one.context == accepted.context);
        if let Some(one) = found.as_ref().filter(|one| one.state == "finished") {
            show(one, what.output.format)?;
            return Ok(code(TaskResult::of(Some(&one.result))));
        }
        if found.is_none()
            && let Some(result) = ended(api, project, &accepted.context).await?
        {
            let by = "an executor has answered the task; the installation has no objectives or no source for it";
            say(&format!("{result}: {by}; keelway watch {} -p {project}", accepted.context))?;
            return Ok(code(TaskResult::of(Some(&result))));
        }
        if until.is_some_and(|until| Instant::now() >= until) {
            let state = found.map_or_else(|| "has not begun".to_owned(), |one| format!("is {}: {}", one.state, one.message));
            return Err(CliError::Failed(format!("the evaluation {state}; see later: keelway get evaluations -p {project}")));
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// How the sequence of a context ended, if it has.
async fn ended(api: &Api, project: &str, context: &str) -> Result<Option<String>, CliError> {
    let page: SequencePage = api.get(&["sequence", project], &[("keptnContext", context)]).await?;
    Ok(page.items.into_iter().next().filter(SequenceState::is_over).map(|one| result(&one)))
}

/// The result of the last sequence, or the state of one that was cut off.
fn result(of: &SequenceState) -> String {
    let last = of.executions.last().and_then(|last| last.result.clone());
    last.filter(|result| !result.is_empty()).unwrap_or_else(|| of.state.clone())
}

fn path<'a>(project: &'a str, stage: &'a str, service: &'a str) -> [&'a str; 7] {
    ["project", project, "stage", stage, "service", service, "evaluation"]
}

/// Lists evaluations.
///
/// # Errors
/// As the API answers.
pub async fn get(api: &Api, what: &GetEvaluations) -> Result<(), CliError> {
    let (all, now) = read(api, &what.of).await?;
    let format = what.output.format;
    if format.is_data() {
        return say_data(&json!({"items": all}), format);
    }
    let mut table = Table::new(&["ID", "SERVICE", "STAGE", "RESULT", "SCORE", "SCORES", "ENDED", "SOURCE", "MESSAGE"]);
    for one in &all {
        table.row(vec![
            one.id.chars().take(if format.is_wide() { usize::MAX } else { SHORT }).collect(),
            one.service.clone(),
            one.stage.clone(),
            verdict(one),
            one.score.filter(|_| one.evaluated).map(|score| score.to_string()).unwrap_or_default(),
            sparks(&all, one),
            if one.finished.is_empty() { String::new() } else { age(&one.finished, now) },
            one.provider.clone(),
            one_line(&one.message, if format.is_wide() { usize::MAX } else { 60 }),
        ]);
    }
    print(table, format, "nothing was evaluated yet; objectives are a resource: slo.yaml of a service in a stage")
}

/// The result, or what an evaluation waits for.
fn verdict(one: &EvaluationView) -> String {
    let mut word = if one.state == "finished" { one.result.clone() } else { one.state.clone() };
    if one.state == "finished" && !one.evaluated {
        word += " (not evaluated)";
    }
    if one.invalidated {
        word += " (invalidated)";
    }
    word
}

/// The scores of the same service up to this one.
fn sparks(all: &[EvaluationView], of: &EvaluationView) -> String {
    let same = all.iter().filter(|one| (&one.stage, &one.service) == (&of.stage, &of.service));
    let mut scores: Vec<f64> =
        same.skip_while(|one| one.id != of.id).filter(|one| one.evaluated).filter_map(|one| one.score).take(SPARKS.len()).collect();
    scores.reverse();
    scores.iter().map(|score| spark(*score)).collect()
}

fn spark(score: f64) -> char {
    let place = (score / 100.0 * (SPARKS.len() - 1) as f64).round();
    SPARKS[(place.max(0.0) as usize).min(SPARKS.len() - 1)]
}

/// The evaluations of the services that are meant, newest first, and the server's clock.
async fn read(api: &Api, of: &Evaluated) -> Result<(Vec<EvaluationView>, Option<Timestamp>), CliError> {
    let project: ProjectState = api.get(&["project", of.project.as_str()], &[]).await?;
    let (stage, service) = (of.stage.as_ref().map(StageName::as_str), of.service.as_ref().map(ServiceName::as_str));
    if let Some(stage) = stage.filter(|stage| project.stages.iter().all(|known| known.stage_name != **stage)) {
        return Err(CliError::Failed(format!("project {} has no stage {stage}", of.project)));
    }
    let (mut all, mut now) = (vec![], None);
    for known in project.stages.iter().filter(|known| stage.is_none_or(|stage| known.stage_name == stage)) {
        for one in known.services.iter().filter(|one| service.is_none_or(|service| one.service_name == service)) {
            let page: Page<EvaluationView> = api.get(&path(of.project.as_str(), &known.stage_name, &one.service_name), &[]).await?;
            now = now.or_else(|| Timestamp::parse(&page.extra.now));
            all.extend(page.items);
        }
    }
    // Those under way come first.
    let key = |one: &EvaluationView| (one.state != "finished", one.finished.clone().max(one.begun.clone()));
    all.sort_by_key(|one| std::cmp::Reverse(key(one)));
    Ok((all, now))
}

/// Shows one evaluation, or leaves it out of comparisons.
///
/// # Errors
/// There is none, or the API's refusal.
pub async fn evaluation(api: impl Fn() -> Result<Api, CliError>, what: &EvaluationVerb) -> Result<(), CliError> {
    match what {
        EvaluationVerb::Migrate(what) => migrate::analysis(what),
        EvaluationVerb::Show(what) => {
            let (one, _) = find(&api()?, what).await?;
            show(&one, what.output.format)
        }
        EvaluationVerb::Invalidate(what) => {
            let api = api()?;
            let (one, before) = find(&api, what).await?;
            let place = path(what.of.project.as_str(), &one.stage, &one.service);
            let path: Vec<&str> = place.into_iter().chain([one.id.as_str(), "invalidate"]).collect();
            let one: EvaluationView = api.post(&path, &Value::Null).await?;
            if what.output.format.is_data() {
                return say_data(&one, what.output.format);
            }
            let already = if before { "was invalidated already" } else { "is left out when later ones are compared" };
            say(&format!("evaluation {} of {} in {}: {already}", one.id, one.service, one.stage))
        }
    }
}

/// The evaluation that an id or its beginning means, and whether it is invalidated.
async fn find(api: &Api, what: &OneEvaluation) -> Result<(EvaluationView, bool), CliError> {
    let (all, _) = read(api, &what.of).await?;
    let mut found = all.into_iter().filter(|one| one.id.starts_with(&what.id));
    let none =
        || CliError::Failed(format!("there is no evaluation {}; see: keelway get evaluations -p {}", what.id, what.of.project));
    let one = found.next().ok_or_else(none)?;
    if let Some(other) = found.next() {
        return Err(CliError::Usage(format!("{} is the beginning of {} and {}: give more of it", what.id, one.id, other.id)));
    }
    let invalidated = one.invalidated;
    Ok((one, invalidated))
}

fn show(one: &EvaluationView, format: crate::args::Format) -> Result<(), CliError> {
    if format.is_data() {
        return say_data(one, format);
    }
    let of = match (&one.pipeline, &one.environment, &one.revision) {
        (Some(pipeline), Some(environment), Some(revision)) => format!("for pipeline {pipeline}, {revision} in {environment}"),
        _ => format!("context {}", one.context),
    };
    say(&format!("evaluation {} of {} in {} of {}, {of}", one.id, one.service, one.stage, one.project))?;
    say(&format!("window {} to {}, source {}", one.start, one.end, if one.provider.is_empty() { "none" } else { &one.provider }))?;
    let results = one.indicators.as_deref().unwrap_or_default();
    if !results.is_empty() {
        print(table(results), format, "")?;
    }
    let score = one.score.filter(|_| one.evaluated).map(|score| format!(": score {score}")).unwrap_or_default();
    say(&format!("{}{score}", verdict(one)))?;
    if !one.message.is_empty() {
        say(&one.message)?;
    }
    if one.evaluated {
        say(&match one.compared_events.as_slice() {
            [] => "compared with nothing: there is no earlier evaluation that counts".to_owned(),
            ids => format!("compared with {}", ids.join(", ")),
        })?;
    }
    one.notes.iter().for_each(|note| eprintln!("note: {note}"));
    Ok(())
}

fn table(results: &[EvaluatedIndicator]) -> Table {
    let mut table = Table::new(&["SLI", "VALUE", "BEFORE", "CHANGE", "PASS", "WARNING", "RESULT", "MESSAGE"]);
    for result in results {
        let of = result.value.clone().unwrap_or_default();
        let before = Some(of.compared_value).filter(|before| *before != 0.0);
        table.row(vec![
            format!("{}{}", of.metric, if result.key_sli { " (key)" } else { "" }),
            if of.success { of.value.to_string() } else { String::new() },
            before.map(|before| before.to_string()).unwrap_or_default(),
            before.filter(|_| of.success).map(|before| change(of.value, before)).unwrap_or_default(),
            targets(result.pass_targets.as_deref()),
            targets(result.warning_targets.as_deref()),
            result.status.clone(),
            of.message.clone(),
        ]);
    }
    table
}

fn targets(targets: Option<&[EvaluatedTarget]>) -> String {
    criteria(targets.unwrap_or_default().iter().map(|target| (&*target.criteria, target.target_value, target.violated)))
}

/// Chooses the source that a project evaluates by.
///
/// # Errors
/// The API's refusal.
pub async fn choose(api: &Api, what: &SetSliProvider) -> Result<(), CliError> {
    let wanted = json!(SliProvider { name: what.name.clone() });
    let set: SliProvider = api.put(&["project", what.project.as_str(), "sli-provider"], &[], &wanted).await?;
    say(&format!("project {} is evaluated by {}", what.project, set.name))
}
