//! Tells a case to a stand and compares everything it does with what the case states.

use super::format::{Case, CaseError, Expected, Lane, Outgoing, Step, shipyard};
use super::stand::{Answer, Said, Stand};
use super::{expect, inputs, outputs};
use keelway_domain::ids::context_of;
use keelway_domain::time::Span;
use serde_json::Value;
use std::collections::BTreeMap;

/// How a case failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Which case.
    pub case: String,
    /// Which step, from 1; 0 = before the first.
    pub step: usize,
    /// What was expected and what happened, for people.
    pub message: String,
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}, step {}: {}", self.case, self.step, self.message)
    }
}

impl std::error::Error for Failure {}

/// What the runner knows while it tells a case.
pub(super) struct Story<'a> {
    pub case: &'a Case,
    pub salt: String,
    /// Events by alias.
    pub named: BTreeMap<String, Value>,
    /// Contexts by alias.
    pub contexts: BTreeMap<String, String>,
    /// Everything sent by the engine so far.
    pub sent: Vec<Value>,
    /// Everything put in so far.
    pub inputs: Vec<Value>,
    /// The present step, from 1.
    pub step: usize,
}

impl Story<'_> {
    /// The real name of a project.
    pub fn project(&self, alias: &str) -> String {
        let id: String = self.case.id.to_lowercase().chars().filter(char::is_ascii_alphanumeric).collect();
        format!("{id}-{alias}{}", self.salt)
    }
    /// The real context behind an alias; new ones follow from the alias and the run.
    pub fn context(&self, alias: &str) -> String {
        let fresh = || context_of(&format!("{}{}", self.case.id, self.salt), alias).to_string();
        self.contexts.get(alias).cloned().unwrap_or_else(fresh)
    }
    /// The alias of a real context.
    pub fn alias(&self, context: &str) -> String {
        let known = self.contexts.iter().find(|(_, real)| *real == context).map(|(alias, _)| alias.clone());
        known.unwrap_or_else(|| context.to_owned())
    }
    /// An event by alias.
    pub fn event(&self, alias: &str) -> Result<&Value, String> {
        self.named.get(alias).ok_or_else(|| format!("the case names no event {alias:?}"))
    }
    /// Replaces `$…` strings.
    pub fn resolve(&self, value: &Value) -> Result<Value, String> {
        expect::strings(value, &|text| {
            let Some(variable) = text.strip_prefix('$') else { return Ok(text.into()) };
            let of = |alias: &str, attribute: &str| self.event(alias).map(|event| event[attribute].clone());
            match variable.split_once('.') {
                None if variable == "project" => Ok(self.project("p").into()),
                Some(("project", alias)) => Ok(self.project(alias).into()),
                Some(("context", alias)) => Ok(self.context(alias).into()),
                Some(("id", alias)) => of(alias, "id"),
                Some(("time", alias)) => of(alias, "time"),
                _ => Ok(text.into()),
            }
        })
    }
}

/// Runs a case.
///
/// # Errors
/// The first thing that is not as the case says.
pub fn run(case: &Case, stand: &mut impl Stand) -> Result<(), Failure> {
    let mut story = Story {
        case,
        salt: stand.salt(),
        named: BTreeMap::new(),
        contexts: BTreeMap::new(),
        sent: vec![],
        inputs: vec![],
        step: 0,
    };
    tell(&mut story, stand).map_err(|message| Failure { case: case.id.clone(), step: story.step, message })
}

fn tell(story: &mut Story<'_>, stand: &mut impl Stand) -> Result<(), String> {
    let case = story.case;
    let one = case.shipyard.iter().map(|name| ("p", name.as_str()));
    let many = case.shipyards.iter().map(|(project, name)| (project.as_str(), name.as_str()));
    for (project, name) in one.chain(many) {
        let answer = stand.apply(&story.project(project), &text(name)?);
        if answer.said.is_some_and(|said| !matches!(said, Said::Status(200..=299))) {
            return Err(format!("shipyard {name} was refused: {}", answer.problem));
        }
    }
    for step in &case.steps {
        story.step += 1;
        stand.step();
        let answer = put_in(story, step, stand)?;
        check_answer(step, &answer)?;
        compare_outgoing(story, step, stand)?;
        compare_state(story, step, stand)?;
    }
    Ok(())
}

fn text(name: &str) -> Result<String, String> {
    shipyard(name).map_err(|e: CaseError| e.to_string())
}

fn put_in(story: &mut Story<'_>, step: &Step, stand: &mut impl Stand) -> Result<Answer, String> {
    let alias = step.context.as_deref().unwrap_or("C1");
    if !story.contexts.contains_key(alias) {
        story.contexts.insert(alias.to_owned(), story.context(alias));
    }
    let context = story.context(alias);
    let project = story.project(step.project.as_deref().unwrap_or("p"));
    if let Some(span) = &step.wait {
        stand.wait(Span::parse(span).map_err(|e| e.to_string())?);
        return Ok(Answer::unknown());
    }
    if let Some(name) = &step.apply {
        return Ok(stand.apply(&project, &text(name)?));
    }
    if let Some(control) = step.control {
        return Ok(stand.control(&project, &context, step.stage.as_deref(), control));
    }
    if step.approve.is_some() || step.decline.is_some() {
        let approval = inputs::answered(story, step, "approval")?.clone();
        return Ok(stand.decide(&approval, step.approve == Some(true)));
    }
    let event = inputs::event(story, step, stand.now())?;
    if step.anonymous {
        let text = |field: &str| event[field].as_str().unwrap_or_default().to_owned();
        story.contexts.insert(alias.to_owned(), context_of(&text("source"), &text("id")).to_string());
    }
    if let Some(name) = &step.alias {
        story.named.insert(name.clone(), event.clone());
    }
    story.inputs.push(event.clone());
    Ok(stand.send(&event, step.at))
}

fn check_answer(step: &Step, answer: &Answer) -> Result<(), String> {
    let Some(said) = answer.said else { return Ok(()) };
    let fine = match (&step.answer, said) {
        (Some(Expected::Status(expected)), Said::Status(got)) => *expected == got,
        (Some(Expected::Word(expected)), Said::Handled(got)) => expected.handled() == got,
        (Some(_), _) => false,
        // Unless the case says otherwise, what comes in through the API is welcome.
        (None, Said::Status(status)) => status < 300,
        (None, Said::Handled(_)) => true,
    };
    if !fine {
        return Err(format!("the answer is {said:?} {}, expected {:?}", answer.problem, step.answer));
    }
    match &step.problem {
        Some(text) if !answer.problem.contains(text) => {
            Err(format!("the refusal is {:?}, expected it to contain {text:?}", answer.problem))
        }
        _ => Ok(()),
    }
}

fn compare_outgoing(story: &mut Story<'_>, step: &Step, stand: &mut impl Stand) -> Result<(), String> {
    let all = stand.outgoing();
    let fresh = all.get(story.sent.len()..).unwrap_or_default().to_vec();
    let default = step.context.as_deref().unwrap_or("C1");
    let expected: Vec<outputs::Wanted> =
        step.out.iter().map(|out: &Outgoing| outputs::wanted(story, out, default)).collect::<Result<_, _>>()?;
    let pairs = outputs::pair(story, &expected, &fresh, stand.ordered())?;
    for event in &fresh {
        outputs::sound(story, event)?;
        story.sent.push(event.clone());
    }
    for (wanted, event) in pairs {
        outputs::compare(story, wanted, event)?;
        if let Some(alias) = &wanted.details.alias {
            story.named.insert(alias.clone(), event.clone());
        }
    }
    Ok(())
}

fn compare_state(story: &Story<'_>, step: &Step, stand: &mut impl Stand) -> Result<(), String> {
    let project = story.project(step.project.as_deref().unwrap_or("p"));
    for (alias, expected) in &step.state {
        let Some(got) = stand.sequence(&project, &story.context(alias)) else { continue };
        compare_view(got.as_ref(), &story.resolve(expected)?).map_err(|e| format!("state of {alias}: {e}; it is {got:?}"))?;
    }
    for (place, lane) in &step.lanes {
        compare_lane(story, place, lane, stand)?;
    }
    match &step.open {
        Some(open) => compare_open(story, step, open, stand),
        None => Ok(()),
    }
}

fn compare_view(got: Option<&Value>, expected: &Value) -> Result<(), String> {
    let Some(got) = got else {
        return if expected == "absent" { Ok(()) } else { Err("there is none".into()) };
    };
    if let Some(state) = expected.as_str() {
        return expect::matches(&got["state"], &state.into(), "state");
    }
    for (name, value) in expected.as_object().into_iter().flatten() {
        if name != "stages" {
            expect::matches(got.get(name).unwrap_or(&Value::Null), value, name)?;
            continue;
        }
        for (stage, value) in value.as_object().into_iter().flatten() {
            let mut stages = got["stages"].as_array().into_iter().flatten();
            let found = stages.find(|entry| entry["name"] == **stage);
            let path = format!("stages.{stage}");
            match (found, value.as_str()) {
                (None, Some("absent")) => {}
                (None, _) => return Err(format!("{path} is missing")),
                (Some(entry), Some(state)) => expect::matches(&entry["state"], &state.into(), &format!("{path}.state"))?,
                (Some(entry), None) => expect::matches(entry, value, &path)?,
            }
        }
    }
    Ok(())
}

fn compare_lane(story: &Story<'_>, place: &str, lane: &Lane, stand: &mut impl Stand) -> Result<(), String> {
    let (project, rest) = place.split_once(':').unwrap_or(("p", place));
    let (stage, service) = rest.split_once('/').ok_or_else(|| format!("lane {place:?} is not <stage>/<service>"))?;
    let Some(got) = stand.lane(&story.project(project), stage, service) else { return Ok(()) };
    let holder = got.holder.map_or("none".to_owned(), |context| story.alias(&context));
    let queue: Vec<String> = got.queue.iter().map(|context| story.alias(context)).collect();
    if holder != lane.holder || lane.queue.as_ref().is_some_and(|expected| *expected != queue) {
        return Err(format!("lane {place} is held by {holder}, queue {queue:?}; expected {} and {:?}", lane.holder, lane.queue));
    }
    Ok(())
}

fn compare_open(story: &Story<'_>, step: &Step, open: &[String], stand: &mut impl Stand) -> Result<(), String> {
    let mut types: Vec<String> = story.sent.iter().filter_map(|event| Some(event["type"].as_str()?.to_owned())).collect();
    types.retain(|ty| ty.ends_with(".triggered") && ty.split('.').count() == 5);
    types.sort();
    types.dedup();
    let mut projects: Vec<&str> = story.case.shipyards.keys().map(String::as_str).collect();
    projects.extend(story.case.shipyard.as_ref().map(|_| "p"));
    let mut got = vec![];
    for project in projects {
        let Some(events) = stand.open(&story.project(project), &types) else { return Ok(()) };
        for event in events {
            got.push(outputs::line(story, &event));
        }
    }
    let default = step.context.as_deref().unwrap_or("C1");
    let full = |line: &String| if line.contains('@') { line.clone() } else { format!("{line} @{default}") };
    let mut expected: Vec<String> = open.iter().map(full).collect();
    got.sort();
    expected.sort();
    if got == expected { Ok(()) } else { Err(format!("open triggers are {got:?}, expected {expected:?}")) }
}
