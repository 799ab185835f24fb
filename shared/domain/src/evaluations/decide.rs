//! What an input does to the evaluations of a service. Pure and total.

use super::announce::{self, About};
use super::answer::{Answer, Asker};
use super::state::{Asked, Ended, KEPT, MOST_OPEN, Open, Order, Past, Phase, Record, Service, Told, words};
use crate::cause::Cause;
use crate::evaluation::{Earlier, Finished, Judged, Measured, Objectives, Period, Provided, finish};
use crate::event::{Object, Status, TaskResult};
use crate::time::{Span, Timestamp};

/// How often a source is asked that is busy or cannot be reached.
const TRIES: u32 = 5;
/// The pause before the second time; it doubles.
const PAUSE: Span = Span::seconds(10);
/// The pause before a source is asked once more that had no value for some query.
const LATE: Span = Span::seconds(30);
/// When an order to ask is given again: the function that was to ask may have died.
const LEASE: Span = Span::minutes(2);
/// The longest window, and how far ahead it may end.
const LONGEST: Span = Span::minutes(366 * 24 * 60);
const AHEAD: Span = Span::minutes(24 * 60);

/// Settings of the installation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// How long a service on the bus has to answer `get-sli.triggered`.
    pub answer_within: Span,
}

impl Default for Rules {
    fn default() -> Self {
        Self { answer_within: Span::minutes(10) }
    }
}

/// Where the values of an evaluation come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// The project names no source.
    Nothing,
    /// A source that Keelway asks itself, so long after the end of the window.
    Source(String, Span),
    /// A service on the bus.
    Service(String),
}

/// Why a source was not asked with success.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lost {
    /// It may be tried again.
    Later(String),
    /// It would fail again.
    Refused(String),
}

/// An input.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Input<'a> {
    /// The trigger of a task, or the message of a pipeline.
    Triggered(&'a Asked),
    /// What a source has answered; `attempt`: the order that it belongs to.
    Measured {
        /// The trigger of the evaluation.
        id: &'a str,
        /// Which time this was.
        attempt: u32,
        /// The values, one for each objective.
        outcome: &'a Result<Vec<Measured>, Lost>,
    },
    /// `get-sli.started`.
    Began(&'a str),
    /// `get-sli.finished`, for the event with this id.
    Provided(&'a str, &'a Provided),
    /// The sequence waits for this trigger no longer.
    Over(&'a str),
    /// The evaluation with this trigger is void. Whether that has been told already.
    Invalidated(&'a str, bool),
    /// Time has passed.
    Wake(Timestamp),
}

/// What a decision depends on besides state and input.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    /// The present time.
    pub now: Timestamp,
    /// The message.
    pub cause: Cause,
    /// Settings.
    pub rules: Rules,
    /// The source that the project names. Only looked at for a trigger.
    pub found: &'a Found,
    /// The objectives, at the revision of the evaluation that the input is about.
    pub objectives: &'a Objectives,
    /// Their file, in base64.
    pub file: &'a str,
    /// The evaluations to compare with, newest first.
    pub earlier: &'a [Earlier],
}

/// What an input comes to.
#[derive(Debug, Clone, PartialEq)]
pub enum Decision {
    /// The next state, its record if it says something, and the evaluations that have ended with it.
    Commit(Box<Service>, Option<Box<Record>>, Vec<Ended>),
    /// Nothing changes; what the message began, if anything, is to be finished.
    Settle,
    /// The input is about something that is over, or never was.
    Late,
}

/// Decides an input.
pub fn decide(x: &Service, input: Input<'_>, facts: &Facts<'_>) -> Decision {
    let record = Record::after(x.record, facts.cause, facts.now);
    let mut step = Step { next: x.clone(), facts, file: facts.file, record, began: facts.now, void: false, ended: vec![] };
    match input {
        Input::Triggered(asked) if x.knows(&asked.id) => match asked_again(&mut step.next, asked) {
            Some(order) => step.record.sends.extend(order),
            None => return Decision::Settle,
        },
        Input::Triggered(asked) => step.begin(asked),
        Input::Measured { id, attempt, outcome } => match x.open(id).map(|open| open.phase.clone()) {
            Some(Phase::Measuring { attempt: now, late, .. }) if now == attempt => step.measured(id, (attempt, late), outcome),
            // An order that was given up: the next one counts.
            _ => return Decision::Late,
        },
        Input::Began(get_sli) => match step.next.open.iter_mut().find_map(|open| asked(open, get_sli)) {
            Some(started) if !*started => *started = true,
            Some(_) => return Decision::Settle,
            None => return Decision::Late,
        },
        Input::Provided(get_sli, provided) => match x.asking(get_sli).map(|open| open.id.clone()) {
            Some(id) => step.judge(&id, provided),
            None => return Decision::Late,
        },
        Input::Over(id) => match x.open(id) {
            Some(_) => step.next.open.retain(|open| open.id != id),
            None => return Decision::Late,
        },
        Input::Invalidated(id, told) => match invalidity(&mut step.next, id) {
            Some((void, _)) if *void => return Decision::Settle,
            Some((void, context)) => {
                *void = true;
                let labels = Object::new();
                let about = About { id, context: &context, labels: &labels, revision: None, asker: None };
                step.record.events.extend((!told).then(|| announce::invalidated(x, &about, facts.now)));
            }
            None => return Decision::Late,
        },
        // Replaced, or too early: what is owed is performed when the message settles.
        Input::Wake(at) if x.wake != Some(at) || facts.now < at => return Decision::Settle,
        Input::Wake(_) => {}
    }
    step.advance();
    step.commit()
}

/// Whether a service has begun, if it was asked with this event.
fn asked<'o>(open: &'o mut Open, get_sli: &str) -> Option<&'o mut bool> {
    match &mut open.phase {
        Phase::Asked { id, started, .. } if id == get_sli => Some(started),
        _ => None,
    }
}

/// A pipeline asks once more, because it has got no answer. Of an evaluation that has ended, it is told again; otherwise it is told
/// when that ends. `None`: it is the message of an earlier time, which says nothing new.
fn asked_again(x: &mut Service, asked: &Asked) -> Option<Option<Order>> {
    let asker = asked.asker.as_ref()?;
    let newer = |known: &&mut Asker| asker.time > known.time;
    if let Some(open) = x.open.iter_mut().find(|open| open.id == asked.id) {
        open.asker.as_mut().filter(newer)?.time = asker.time;
        return Some(None);
    }
    let told = x.past.iter_mut().find(|past| past.id == asked.id)?.told.as_mut()?;
    Some(&mut told.asker).filter(newer)?.time = asker.time;
    Some(Some(Order::Tell { id: asked.id.clone(), told: told.clone() }))
}

/// Whether the evaluation with this trigger is void, and its context. One that is under way will have been void when it ends: the
/// order in which messages arrive does not matter.
fn invalidity<'s>(x: &'s mut Service, id: &str) -> Option<(&'s mut bool, String)> {
    let open = x.open.iter_mut().map(|open| (&open.id, &mut open.invalidated, &open.context));
    let past = x.past.iter_mut().map(|past| (&past.id, &mut past.invalidated, &past.context));
    open.chain(past).find(|(other, ..)| *other == id).map(|(_, void, context)| (void, context.clone()))
}

struct Step<'a> {
    next: Service,
    facts: &'a Facts<'a>,
    /// The file of objectives of the evaluation at hand.
    file: &'a str,
    record: Record,
    /// When the evaluation began that ends.
    began: Timestamp,
    /// Whether it is void.
    void: bool,
    ended: Vec<Ended>,
}

impl Step<'_> {
    /// Begins an evaluation; if there is nothing to measure, ends it at once.
    fn begin(&mut self, asked: &Asked) {
        let Facts { now, found, objectives, .. } = *self.facts;
        if asked.asker.is_none() {
            self.record.events.push(announce::started(&self.next, &asked.into(), now));
        }
        let period = match asked.period.clone().and_then(|period| self.sound(period)) {
            Ok(period) => period,
            Err(why) => return self.end(&asked.into(), None, String::new(), errored(&why), vec![]),
        };
        let project = &self.next.place[0];
        let nothing = |result| (result, Some(period), String::new());
        let (judged, period, provider) = match (objectives, found) {
            (Objectives::Read(_), Found::Source(..) | Found::Service(_)) if self.next.open.len() >= MOST_OPEN => nothing(errored(
                &format!("{MOST_OPEN} evaluations of the service are under way: abort the sequences that wait for them"),
            )),
            (Objectives::Read(slo), Found::Source(name, delay)) => {
                let phase = Phase::Due { at: now.max(period.end + *delay), attempt: 1, late: delay.0 > 0, why: String::new() };
                let open = self.opened(asked, period, name, phase);
                return match slo.objectives.is_empty() {
                    true => self.end(&(&open).into(), Some(period), name.clone(), self.judged(&nothing_provided()), vec![]),
                    false => self.next.open.push(open),
                };
            }
            (Objectives::Read(slo), Found::Service(name)) => {
                let mut open = self.opened(asked, period, name, Phase::Asked { id: String::new(), started: false, until: now });
                let event = announce::ask(&self.next, &open, slo, now);
                let until = now + self.facts.rules.answer_within;
                open.phase = Phase::Asked { id: event.id.clone().unwrap_or_default(), started: false, until };
                self.record.events.push(event);
                return self.next.open.push(open);
            }
            (Objectives::Read(_), Found::Nothing) => {
                let message =
                    format!("no evaluation performed by lighthouse because no SLI-provider configured for project {project}");
                nothing(without(Status::Succeeded, TaskResult::Pass, message))
            }
            (Objectives::Missing | Objectives::Unreadable(_), _) => nothing(self.judged(&nothing_provided())),
        };
        self.end(&asked.into(), period, provider, judged, vec![]);
    }

    fn opened(&self, asked: &Asked, period: Period, provider: &str, phase: Phase) -> Open {
        Open {
            id: asked.id.clone(),
            context: asked.context.clone(),
            began: self.facts.now,
            period,
            labels: asked.labels.clone(),
            deployment: asked.deployment.clone(),
            revision: asked.revision.clone(),
            asker: asked.asker.clone(),
            provider: provider.to_owned(),
            invalidated: false,
            phase,
        }
    }

    /// A window that can be evaluated.
    fn sound(&self, period: Period) -> Result<Period, String> {
        let (length, ahead) = (period.end - period.start, period.end - self.facts.now);
        match () {
            () if length < Span::minutes(1) => Err("end date must be at least 1 minute after start date".into()),
            () if length > LONGEST => Err(format!("the window covers {length}: evaluate at most a year")),
            () if ahead > AHEAD => {
                Err(format!("the window ends at {}, more than a day ahead: evaluate what was measured", period.end.rfc3339()))
            }
            () => Ok(period),
        }
    }

    fn measured(&mut self, id: &str, (attempt, late): (u32, bool), outcome: &Result<Vec<Measured>, Lost>) {
        let now = self.facts.now;
        let again = |at, late, why: &str| Phase::Due { at, attempt: attempt + 1, late, why: why.to_owned() };
        let next = match outcome {
            Ok(values) if late && values.iter().any(|value| !value.success) => again(now + LATE, false, "some values are missing"),
            Err(Lost::Later(why)) if attempt < TRIES => again(now + Span(PAUSE.0 << (attempt - 1)), late, why),
            Ok(values) => return self.judge(id, &provided(values)),
            Err(Lost::Later(why)) => return self.judge(id, &failed(&format!("{why} ({attempt} times)"))),
            Err(Lost::Refused(why)) => return self.judge(id, &failed(why)),
        };
        if let Some(open) = self.next.open.iter_mut().find(|open| open.id == id) {
            open.phase = next;
        }
    }

    /// Judges what was provided, and ends the evaluation.
    fn judge(&mut self, id: &str, provided: &Provided) {
        let Some(place) = self.next.open.iter().position(|open| open.id == id) else { return };
        let open = self.next.open.remove(place);
        let judged = self.judged(provided);
        (self.began, self.void) = (open.began, open.invalidated);
        self.end(&(&open).into(), Some(open.period), open.provider.clone(), judged, provided.values.clone());
    }

    fn judged(&self, provided: &Provided) -> Judged {
        finish(&self.next.place[0], self.facts.objectives, provided, self.facts.earlier)
    }

    fn end(&mut self, of: &About<'_>, period: Option<Period>, provider: String, judged: Judged, values: Vec<Measured>) {
        let (now, began) = (self.facts.now, self.began);
        let Judged { finished, notes, .. } = judged;
        let evaluated = finished.evaluation.indicator_results.is_some();
        let (id, context) = (of.id.to_owned(), of.context.to_owned());
        let said = serde_json::to_value(&finished).unwrap_or_default();
        let told = of.asker.map(|asker| Told { asker: asker.clone(), answer: Answer::of(&finished) });
        match told.clone() {
            // No sequence waits, so there is no trigger that the event could answer.
            Some(told) => self.record.sends.push(Order::Tell { id: id.clone(), told }),
            None => self.record.events.push(announce::finished(&self.next, of, period, (&finished, self.file), now)),
        }
        let (notes, values) = (words(&notes), values.iter().map(Measured::finite).collect());
        let asker = of.asker.cloned();
        let ended = Ended { id, context, began, at: now, asker, period, provider, evaluated, finished: said, values, notes };
        let past = Past {
            id: ended.id.clone(),
            context: ended.context.clone(),
            finished: announce::finished_id(&self.next, of.id),
            content: ended.content(),
            at: now,
            result: finished.result,
            invalidated: self.void,
            evaluated,
            told,
        };
        self.next.past.insert(0, past);
        self.next.past.truncate(KEPT);
        self.ended.push(ended);
    }

    /// What time brings: sources are asked when that is due, and whoever does not answer is given up.
    fn advance(&mut self) {
        let now = self.facts.now;
        let mut silent = vec![];
        for open in &mut self.next.open {
            let (attempt, late) = match &open.phase {
                Phase::Due { at, attempt, late, .. } if *at <= now => (*attempt, *late),
                Phase::Measuring { until, attempt, .. } if *until <= now && *attempt >= TRIES => {
                    let provider = &open.provider;
                    let why = format!(
                        "{provider} did not answer {attempt} times: check that it answers the queries within the time of a function"
                    );
                    silent.push((open.id.clone(), why));
                    continue;
                }
                Phase::Measuring { until, attempt, late } if *until <= now => (*attempt + 1, *late),
                Phase::Asked { until, started, .. } if *until <= now => {
                    let (provider, within) = (&open.provider, self.facts.rules.answer_within);
                    let done = if *started { "has begun, but did not finish" } else { "did not answer" };
                    let why = format!("{provider} {done} get-sli.triggered within {within}: check that it runs and is subscribed");
                    silent.push((open.id.clone(), why));
                    continue;
                }
                _ => continue,
            };
            open.phase = Phase::Measuring { until: now + LEASE, attempt, late };
            self.record.sends.push(Order::Measure { id: open.id.clone(), attempt });
        }
        // All of them end with this commit: nothing that is overdue waits for another wake-up. The objectives at hand may be those
        // of another one, and are not looked at.
        for (id, why) in silent {
            self.file = "";
            self.judge(&id, &failed(&why));
        }
        self.next.wake = self.next.open.iter().map(|open| open.phase.at()).min();
    }

    fn commit(self) -> Decision {
        let Self { mut next, record, ended, .. } = self;
        let says = !record.events.is_empty() || !record.sends.is_empty();
        if says {
            next.record = Some(record.id(next.id(), record.number_going_round()));
        }
        Decision::Commit(Box::new(next), says.then(|| Box::new(record)), ended)
    }
}

/// What a source that Keelway asks itself has provided, as Keptn's Prometheus service would say it. That some values are missing
/// shows in their objectives.
fn provided(values: &[Measured]) -> Provided {
    let result = if values.iter().any(|value| value.success) { TaskResult::Pass } else { TaskResult::Fail };
    Provided { status: Status::Succeeded, result, message: String::new(), values: values.to_vec() }
}

fn nothing_provided() -> Provided {
    provided(&[])
}

fn failed(why: &str) -> Provided {
    Provided { status: Status::Errored, result: TaskResult::Fail, message: why.to_owned(), values: vec![] }
}

fn without(status: Status, result: TaskResult, message: String) -> Judged {
    Judged { finished: Finished::without(status, result, message, result), compared: 0, notes: vec![] }
}

fn errored(why: &str) -> Judged {
    without(Status::Errored, TaskResult::Fail, why.to_owned())
}
