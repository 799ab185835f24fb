//! Tells a case to a stand and compares everything it does with what the case states.

use super::stand::{Answer, Said, Stand};
use super::{Case, Expected, Outgoing, Step};
use super::{Dialect, Entrance, Tells, expect, outputs};
use keelway_cases::Word;
use keelway_domain::ids::context_of;
use keelway_domain::time::Span;
use keelway_engine::protocol::Handled;
use serde_json::Value;
use std::collections::BTreeMap;
use std::ops::ControlFlow;

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
pub struct Telling<'a, D: Dialect> {
    /// The case.
    pub case: &'a Case<D>,
    /// Distinguishes this run's names from other runs'.
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
    /// What is there before the first step was put in.
    set_up: bool,
}

/// By hand: a derived one would ask it of the dialect, too.
impl<D: Dialect> Clone for Telling<'_, D> {
    fn clone(&self) -> Self {
        Self {
            case: self.case,
            salt: self.salt.clone(),
            named: self.named.clone(),
            contexts: self.contexts.clone(),
            sent: self.sent.clone(),
            inputs: self.inputs.clone(),
            step: self.step,
            set_up: self.set_up,
        }
    }
}

impl<D: Dialect> Telling<'_, D> {
    /// Whether another runner of the case is before the same step, and knows the same.
    pub fn goes_on_like(&self, other: &Self) -> bool {
        (self.step, self.set_up) == (other.step, other.set_up)
            && (&self.named, &self.contexts) == (&other.named, &other.contexts)
            && (&self.sent, &self.inputs) == (&other.sent, &other.inputs)
    }
    /// A name that is this run's own.
    pub fn project(&self, alias: &str) -> String {
        project(&self.case.id, alias, &self.salt)
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
    /// The id of the present step's event.
    pub fn fresh_id(&self) -> String {
        context_of(&format!("{}{}", self.case.id, self.salt), &format!("event {}", self.step)).to_string()
    }
    /// Sends a step's event.
    pub fn send(&mut self, step: &Step<D>, event: Value, at: Entrance, stand: &mut impl Stand) -> Answer {
        if let Some(name) = &step.alias {
            self.named.insert(name.clone(), event.clone());
        }
        self.inputs.push(event.clone());
        stand.send(&event, at)
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

/// The name of a case's project in a run with this salt.
pub fn project(case: &str, alias: &str, salt: &str) -> String {
    let id: String = case.to_lowercase().chars().filter(char::is_ascii_alphanumeric).collect();
    format!("{id}-{alias}{salt}")
}

/// Runs a case.
///
/// # Errors
/// The first thing that is not as the case says.
pub fn run<D: Tells<S>, S: Stand>(case: &Case<D>, stand: &mut S) -> Result<(), Failure> {
    run_watched(case, stand, |_, _| ControlFlow::Continue(())).map(drop)
}

/// Runs a case; `watch` is shown what there is before its beginning, before each of its steps and whenever time has passed on a
/// disturbed stand, and may have seen enough.
///
/// # Errors
/// The first thing that is not as the case says.
pub fn run_watched<'a, D: Tells<S>, S: Stand>(
    case: &'a Case<D>,
    stand: &mut S,
    watch: impl FnMut(&Telling<'a, D>, &S) -> ControlFlow<()>,
) -> Result<ControlFlow<()>, Failure> {
    let telling = Telling {
        case,
        salt: stand.salt(),
        named: BTreeMap::new(),
        contexts: BTreeMap::new(),
        sent: vec![],
        inputs: vec![],
        step: 0,
        set_up: false,
    };
    go_on(telling, stand, watch)
}

/// Goes on with a case to its end, or until `watch` has seen enough.
///
/// # Errors
/// As [`run`].
pub fn go_on<'a, D: Tells<S>, S: Stand>(
    mut telling: Telling<'a, D>,
    stand: &mut S,
    watch: impl FnMut(&Telling<'a, D>, &S) -> ControlFlow<()>,
) -> Result<ControlFlow<()>, Failure> {
    tell(&mut telling, stand, watch).map_err(|message| Failure { case: telling.case.id.clone(), step: telling.step, message })
}

fn tell<'a, D: Tells<S>, S: Stand>(
    telling: &mut Telling<'a, D>,
    stand: &mut S,
    mut watch: impl FnMut(&Telling<'a, D>, &S) -> ControlFlow<()>,
) -> Result<ControlFlow<()>, String> {
    if !telling.set_up {
        if watch(telling, stand).is_break() {
            return Ok(ControlFlow::Break(()));
        }
        D::set_up(telling, stand)?;
        telling.set_up = true;
    }
    loop {
        if watch(telling, stand).is_break() {
            return Ok(ControlFlow::Break(()));
        }
        while stand.passes_time() {
            if watch(telling, stand).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        let Some(step) = telling.case.steps.get(telling.step) else { return Ok(ControlFlow::Continue(())) };
        telling.step += 1;
        stand.step();
        D::before(step, stand);
        let answer = put_in(telling, step, stand)?;
        if stand.is_disturbed() {
            continue;
        }
        check_answer(step, &answer)?;
        compare_outgoing(telling, step, stand)?;
        D::compare(telling, step, stand)?;
    }
}

fn put_in<D: Tells<S>, S: Stand>(telling: &mut Telling<'_, D>, step: &Step<D>, stand: &mut S) -> Result<Answer, String> {
    let alias = step.about();
    if !telling.contexts.contains_key(alias) {
        telling.contexts.insert(alias.to_owned(), telling.context(alias));
    }
    if let Some(span) = &step.wait {
        stand.wait(Span::parse(span).map_err(|e| e.to_string())?);
        return Ok(Answer::unknown());
    }
    let event = match (&step.duplicate, &step.event) {
        (Some(alias), _) if alias == "last" => telling.inputs.last().ok_or("there is no event before it")?.clone(),
        (Some(alias), _) => telling.event(alias)?.clone(),
        (None, Some(event)) => D::adapt(telling, step, telling.resolve(event)?)?,
        (None, None) => return D::put_in(telling, step, stand),
    };
    Ok(telling.send(step, event, D::entrance(step), stand))
}

/// As the engine says it.
fn handled(word: Word) -> Handled {
    match word {
        Word::Committed => Handled::Committed,
        Word::Settled => Handled::Settled,
        Word::Stale => Handled::Stale,
        Word::Invalid => Handled::Invalid,
        Word::Recorded => Handled::Recorded,
    }
}

fn check_answer<D: Dialect>(step: &Step<D>, answer: &Answer) -> Result<(), String> {
    let Some(said) = answer.said else { return Ok(()) };
    let fine = match (&step.answer, said) {
        (Some(Expected::Status(expected)), Said::Status(got)) => *expected == got,
        (Some(Expected::Word(expected)), Said::Handled(got)) => handled(*expected) == got,
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

fn compare_outgoing<D: Dialect>(story: &mut Telling<'_, D>, step: &Step<D>, stand: &mut impl Stand) -> Result<(), String> {
    let all = stand.outgoing();
    let fresh = all.get(story.sent.len()..).unwrap_or_default().to_vec();
    let default = step.about();
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
