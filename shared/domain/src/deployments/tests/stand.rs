//! A config with everything around it, driven by hand.

use crate::cause::Cause;
use crate::deployments::definition::{Custom, Definition, ImageChange, ImageTag, Strategy, StrategyKind, Target, Trigger};
use crate::deployments::registry::{Head, Heads};
use crate::deployments::{
    Answer, Applied, Back, Call, Command, Config, Decision, Facts, Input, LEASE, Latest, Obeyed, Order, Part, Past, Progress,
    Refused, Reply, SOURCE, Snapshot, Transition, answer, decide, target,
};
use crate::note::Note;
use crate::time::{Span, Timestamp};
use serde_json::json;

pub fn tag(name: &str) -> ImageTag {
    ImageTag { namespace: "default".into(), name: "shop".into(), tag: name.into() }
}

pub fn on_image(automatic: bool) -> Trigger {
    Trigger::ImageChange(ImageChange { automatic, from: tag("latest"), containers: vec!["web".into()] })
}

/// A deployer of one's own around a strategy on Lambda aliases.
pub fn wrapped(mut definition: Definition) -> Definition {
    definition.strategy.custom = Some(Custom::default());
    definition.targets =
        vec![Target { name: "main".into(), kind: "lambda-alias".into(), id: "shop:live".into(), region: None, account: None }];
    definition
}

pub fn definition(triggers: Vec<Trigger>) -> Definition {
    let strategy = Strategy {
        kind: StrategyKind::Rolling,
        timeout: Span::seconds(600),
        deadline: Span::seconds(21600),
        custom: None,
        params: Default::default(),
        steps: vec![],
        analysis: None,
        hooks: Default::default(),
        labels: Default::default(),
        annotations: Default::default(),
        resources: Default::default(),
    };
    Definition {
        labels: Default::default(),
        annotations: Default::default(),
        template: json!({"spec": {"containers": [{"name": "web", "image": "shop:latest", "env": "a"}, {"name": "log", "image": "log:1"}]}}),
        replicas: Some(2),
        selector: Default::default(),
        targets: vec![],
        strategy,
        triggers,
        paused: false,
        history: None,
        concurrency: Default::default(),
        resume: Default::default(),
        on_drift: Default::default(),
        auto_rollback: None,
        deployer: None,
        other: Default::default(),
        vouched: false,
    }
}

/// Everything that a table would keep.
pub struct Stand {
    pub x: Config,
    pub applied: Option<Applied>,
    pub heads: Heads,
    pub now: Timestamp,
    pub past: Vec<Past>,
    pub snapshots: Vec<Snapshot>,
    /// The types of what was published, without their common prefix.
    pub told: Vec<String>,
    /// The versions of the facts that pipelines were told.
    pub facts: Vec<u64>,
    /// What tasks of sequences were answered, in words.
    pub answers: Vec<String>,
    /// The commands that were obeyed.
    pub obeyed: Vec<Obeyed>,
    /// What was ordered.
    pub orders: Vec<Order>,
    /// What was kept in the audit about drift.
    pub drifted: Vec<String>,
    /// Versions to go back to cannot be read, because of this.
    pub damaged: Option<String>,
    messages: u64,
}

impl Stand {
    pub fn new(definition: Definition) -> Self {
        let applied = Applied { definition, version: 1, by: "ann".into(), request: None, asked: 0 };
        let now = Timestamp(1_700_000_000_000);
        let mut stand = Self {
            x: Config::new("default", "cart", now),
            applied: Some(applied),
            heads: Heads::new(),
            now,
            past: vec![],
            snapshots: vec![],
            told: vec![],
            facts: vec![],
            answers: vec![],
            obeyed: vec![],
            orders: vec![],
            drifted: vec![],
            damaged: None,
            messages: 0,
        };
        stand.evaluate();
        stand
    }

    pub fn give(&mut self, input: Input<'_>) -> Decision {
        self.messages += 1;
        let found = target(&self.x, input, self.applied.as_ref()).and_then(|n| {
            let past = self.past.iter().rev().find(|past| past.deployment.n == n && n >= self.x.oldest)?.clone();
            let snapshot = self.snapshots.iter().find(|snapshot| snapshot.hash() == past.deployment.snapshot)?.clone();
            Some((past, snapshot))
        });
        let cause = Cause { id: self.messages, sent: self.now, ..Cause::default() };
        let (target, damaged) = (found.as_ref().filter(|_| self.damaged.is_none()), self.damaged.as_deref());
        let facts = Facts { now: self.now, cause, applied: self.applied.as_ref(), heads: &self.heads, target, damaged };
        let decision = decide(&self.x, input, &facts);
        if let Decision::Commit(transition) = &decision {
            self.keep((**transition).clone());
        }
        decision
    }

    fn keep(&mut self, transition: Transition) {
        self.x = transition.next;
        self.past.extend(transition.with.past);
        self.snapshots.extend(transition.with.snapshots);
        self.drifted.extend(transition.with.drifted);
        self.obeyed.extend(transition.with.obeyed);
        if let (Some(applied), Some(definition)) = (&mut self.applied, transition.with.rewritten) {
            applied.definition = definition;
            applied.version += 1;
        }
        self.orders.extend(transition.record.iter().flat_map(|record| record.sends.clone()));
        let events: Vec<_> = transition.record.into_iter().flat_map(|record| record.events).collect();
        let fact = |data: &crate::event::Object| data.get("facts")?.get(0)?.get("version")?.as_u64();
        let answers = events.iter().filter(|event| event.ty.starts_with("sh.keptn."));
        self.answers.extend(answers.filter_map(|event| event.data.get("message")?.as_str().map(str::to_owned)));
        self.facts.extend(events.iter().filter_map(|event| fact(&event.data)));
        self.told.extend(events.into_iter().map(|event| event.ty.trim_start_matches("dev.keelway.").to_owned()));
    }

    pub fn evaluate(&mut self) {
        self.give(Input::Evaluate);
    }

    /// Lets time pass, and delivers the wake-ups on the way.
    pub fn pass(&mut self, time: Span) {
        let end = self.now + time;
        let mut steps = 0;
        while let Some(at) = self.x.wake.filter(|at| *at <= end) {
            self.now = self.now.max(at);
            self.give(Input::Wake(at));
            steps += 1;
            assert!(steps < 10_000, "wake-ups never end: {:?}", self.x);
        }
        self.now = end;
    }

    pub fn settle(&mut self) {
        self.pass(Span::seconds(3));
    }

    pub fn push(&mut self, image: &str) {
        self.now = self.now + Span(1);
        self.heads.insert(tag("latest"), Head { image: image.into(), at: self.now, by: String::new() });
        self.evaluate();
    }

    pub fn apply(&mut self, change: impl FnOnce(&mut Definition)) {
        if let Some(applied) = &mut self.applied {
            change(&mut applied.definition);
            applied.version += 1;
        }
        self.evaluate();
    }

    pub fn set_env(&mut self, value: &str) {
        self.apply(|definition| definition.template["spec"]["containers"][0]["env"] = value.into());
    }

    pub fn command(&mut self, command: Command) -> Result<(), Refused> {
        self.messages += 1;
        let note = Note { by: "bob".into(), at: self.now, id: self.messages, ..Note::default() };
        match self.give(Input::Command(&command, &note)) {
            Decision::Refused(refused) => Err(refused),
            _ => Ok(()),
        }
    }

    pub fn latest(&mut self) -> Result<(), Refused> {
        self.command(Command::Latest(Latest::default()))
    }

    pub fn back(&mut self, release: Option<u64>) -> Result<(), Refused> {
        let back = Back {
            release,
            config: true,
            application: true,
            parts: None,
            allow_failed: false,
            by_steps: false,
            again: false,
            group: String::new(),
            task: None,
        };
        self.command(Command::Rollback(back))
    }

    pub fn call(&mut self, call: Call) -> Reply {
        let n = self.x.latest;
        let Answer { reply, next } = answer(&self.x, n, &call, self.now);
        if let Some(next) = next {
            self.x = *next;
        }
        self.evaluate();
        reply
    }

    pub fn claim(&mut self) -> Reply {
        self.claim_as("ci")
    }

    pub fn claim_as(&mut self, by: &str) -> Reply {
        let n = self.x.last.as_ref().map_or(0, |last| u64::from(last.attempt) + 100 * last.n);
        self.call(Call::Claim { by: by.into(), id: n, token: format!("token {n}"), lease: LEASE })
    }

    pub fn token(&self) -> String {
        self.x.last.as_ref().and_then(|last| last.claim.as_ref()).map(|claim| claim.token.clone()).unwrap_or_default()
    }

    pub fn beat(&mut self) -> Reply {
        let token = self.token();
        self.call(Call::Heartbeat { token, running: true, lease: LEASE, progress: Progress::default() })
    }

    pub fn end(&mut self, exit: i64) -> Reply {
        let token = self.token();
        self.call(Call::End { token, exit: Some(exit), message: String::new(), progress: Progress::default() })
    }

    /// The deployer has Keelway carry out a part of the strategy.
    pub fn carry(&mut self, until: u8) -> Reply {
        let token = self.token();
        self.call(Call::Carry { token, until })
    }

    /// Keelway's own deployer takes a step of it.
    pub fn part_claim(&mut self) -> Reply {
        let n = self.x.last.as_ref().map_or(0, |last| u64::from(last.attempt) + 100 * last.n);
        self.messages += 1;
        let token = format!("part {n} {}", self.messages);
        self.call(Call::Claim { by: SOURCE.into(), id: n + 1_000_000, token, lease: LEASE })
    }

    pub fn part(&self) -> Option<&Part> {
        self.x.last.as_ref().and_then(|last| last.part.as_ref())
    }

    fn part_token(&self) -> String {
        self.part().and_then(|part| part.claim.as_ref()).map(|claim| claim.token.clone()).unwrap_or_default()
    }

    pub fn part_beat(&mut self) -> Reply {
        let progress = Progress { checkpoint: "at it".into(), message: "at it".into(), ..Progress::default() };
        self.call(Call::Heartbeat { token: self.part_token(), running: true, lease: LEASE, progress })
    }

    pub fn part_end(&mut self, exit: i64) -> Reply {
        let message = if exit == 0 { "as far as asked" } else { "the hook failed" };
        let progress = Progress::default();
        self.call(Call::End { token: self.part_token(), exit: Some(exit), message: message.into(), progress })
    }

    /// Carries out the latest version.
    pub fn deploy(&mut self, exit: i64) {
        self.settle();
        self.claim();
        self.beat();
        self.end(exit);
    }

    pub fn image(&self) -> &str {
        self.x.last.as_ref().map_or("", |last| &last.content.images["web"])
    }
}

/// Why a command was refused.
pub fn refused(result: Result<(), Refused>) -> String {
    match result {
        Err(Refused::Unknown(why) | Refused::Conflict(why) | Refused::Nothing(why)) => why,
        Ok(()) => "not refused".into(),
    }
}
