//! One pipeline, driven by hand.

mod asked;
mod bounded;
mod closings;
mod edges;
mod evaluated;
mod examples;
mod properties;
mod pull_requests;
mod report;

use super::definition::*;
use super::observe::{Observations, Observed};
use super::*;
use crate::cause::Cause;
use crate::condition::Condition;
use crate::note::Note;
use crate::time::{Span, Timestamp};

const BEGIN: Timestamp = Timestamp(1_795_000_000_000);

/// A pipeline with what is known about its targets, and everything it has ordered.
struct Stand {
    definition: Option<Definition>,
    observations: Observations,
    x: Pipeline,
    now: Timestamp,
    orders: Vec<Order>,
    told: Vec<String>,
    past: Vec<Past>,
}

fn target(environment: &str) -> Target {
    Target { cluster: None, namespace: environment.into() }
}

fn environment(name: &str) -> EnvironmentSpec {
    EnvironmentSpec { name: name.into(), targets: vec![target(name)], promotion: None, soak: None, evaluation: None }
}

fn settings(manual: bool) -> PromotionSpec {
    let pull_request = PullRequest {
        host: "gitea".into(),
        url: "https://git.test/o/r".into(),
        base_branch: "main".into(),
        secret: "git".into(),
        merge: false,
    };
    PromotionSpec { manual, strategy: Strategy::PullRequest(pull_request), approval: Approval::default(), windows: vec![] }
}

fn definition(names: &[&str]) -> Definition {
    Definition {
        app: App { api_version: "v2".into(), kind: "HelmRelease".into(), name: "app".into() },
        environments: names.iter().map(|name| environment(name)).collect(),
        promotion: Some(settings(false)),
        in_flight: InFlight::Restart,
        compare: Compare::Exact,
        vouched: false,
    }
}

impl Stand {
    fn new(definition: Definition) -> Self {
        let mut stand = Self {
            x: Pipeline::new("ns", "app", BEGIN),
            observations: Observations::new(),
            definition: Some(definition),
            now: BEGIN,
            orders: vec![],
            told: vec![],
            past: vec![],
        };
        for name in ["dev", "staging", "prod"] {
            stand.fact(name, "v1/R");
        }
        stand.evaluate();
        stand
    }

    /// `v2/R`, `v2/N`, `?`.
    fn fact(&mut self, name: &str, what: &str) {
        let observed = match what.split_once('/') {
            Some((revision, ready)) => {
                Observed { revision: Some(revision.into()), ready: ready == "R", error: None, at: self.now, by: vec![] }
            }
            None => Observed { revision: None, ready: false, error: Some("cluster not found".into()), at: self.now, by: vec![] },
        };
        self.observations.insert(target(name), observed);
    }

    fn give(&mut self, input: Input<'_>) -> Option<Refused> {
        let cause = Cause { id: self.orders.len() as u64, sent: self.now, ..Cause::default() };
        let facts = Facts { now: self.now, cause, definition: self.definition.as_ref(), observations: &self.observations };
        match decide(&self.x, input, &facts) {
            Decision::Commit(transition) => {
                self.x = transition.next;
                self.past.extend(transition.with.past);
                let record = transition.record.unwrap_or_default();
                self.orders.extend(record.sends);
                self.told.extend(record.events.iter().map(|event| {
                    let word = event.ty.trim_start_matches("dev.keelway.promotion.");
                    format!("{} {word} {}", event.data["environment"].as_str().unwrap(), event.data["revision"].as_str().unwrap())
                }));
                // Deciding again changes nothing.
                let facts = Facts { now: self.now, cause, definition: self.definition.as_ref(), observations: &self.observations };
                if let Decision::Commit(more) = decide(&self.x, Input::Evaluate, &facts) {
                    panic!("not a fixed point:\n{:?}\n{:?}", self.x, more.next);
                }
                None
            }
            Decision::Refused(refused) => Some(refused),
            Decision::Settle | Decision::Late => None,
        }
    }

    fn evaluate(&mut self) {
        self.give(Input::Evaluate);
    }

    fn observe(&mut self, name: &str, what: &str) {
        self.fact(name, what);
        self.evaluate();
    }

    fn pass(&mut self, span: Span) {
        let end = self.now + span;
        while let Some(wake) = self.x.wake.filter(|wake| *wake <= end) {
            self.now = wake;
            self.give(Input::Wake(wake));
        }
        self.now = end;
    }

    fn attempts(&self) -> Vec<String> {
        let all = self.orders.iter().filter_map(|order| match order {
            Order::Attempt(attempt) => Some(format!("{} {}", attempt.environment, attempt.revision)),
            Order::Close(_) | Order::Evaluate(_) => None,
        });
        all.collect()
    }

    fn closings(&self) -> Vec<String> {
        let all = self.orders.iter().filter_map(|order| match order {
            Order::Close(attempt) => Some(format!("{} {}", attempt.environment, attempt.revision)),
            Order::Attempt(_) | Order::Evaluate(_) => None,
        });
        all.collect()
    }

    fn promotion(&self, name: &str) -> &Promotion {
        self.x.environments[name].promotion.as_ref().expect("a promotion")
    }

    fn attempt(&self, name: &str) -> Attempt {
        Attempt::of(name, self.promotion(name))
    }

    fn end(&mut self, name: &str, outcome: &AttemptResult) {
        let attempt = self.attempt(name);
        self.give(Input::Begin(&attempt));
        self.give(Input::Ended(&attempt, outcome));
    }

    fn create(&mut self, name: &str, number: u64) {
        let url = format!("https://git.test/o/r/pulls/{number}");
        let made = Made::PullRequest { number, url, branch: format!("b{number}"), head: "h".into(), mergeable: None };
        self.end(name, &AttemptResult::Created(made));
    }

    fn command(&mut self, command: Command, by: &str) -> Option<Refused> {
        let note = Note { by: by.into(), at: self.now, ..Note::default() };
        self.give(Input::Command(&command, &note))
    }
}

fn at(environment: &str, revision: &str) -> At {
    At { environment: environment.into(), revision: revision.into() }
}

fn failed() -> AttemptResult {
    AttemptResult::Failed { why: Condition::new("Broken", "the host answered 500"), retry: Retry::Backoff }
}
