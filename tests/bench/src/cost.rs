//! Requests and units, from the log lines of the functions about each message.

use crate::bed::{Bed, PROJECT, STAGE};
use crate::history;
use crate::report::{Aim, Report};
use keelway_cloud_tests::Problem;
use keelway_cloud_tests::events::{Scope, fresh};
use keelway_cloud_tests::observer::Line;
use keelway_world::World;
use keelway_world::core::Method;
use serde_json::Value;
use std::ops::{Add, Mul, Sub};
use std::sync::Arc;

/// A count as a value of the report.
#[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
pub fn number(count: u64) -> f64 {
    count as f64
}

/// The cost of some messages.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Used {
    /// Requests to AWS by the function.
    pub requests: f64,
    /// DynamoDB write units.
    pub writes: f64,
    /// DynamoDB read units.
    pub reads: f64,
    /// Events published.
    pub events: f64,
    /// Messages handled.
    pub messages: f64,
    /// Those of these messages that came over the bus.
    pub outside: f64,
    /// Those of these requests that went to SQS.
    pub sends: f64,
    /// Bytes of the lines about these messages in the log. Nothing is logged in memory.
    pub logged: f64,
}

impl Used {
    /// The cost in an in-memory world so far, for these messages.
    pub fn in_world(world: &World, messages: f64, outside: f64) -> Self {
        let core = world.core();
        let of = |methods: &[Method]| methods.iter().map(|method| number(core.requests[*method as usize])).sum::<f64>();
        Self {
            requests: number(core.request_count()) - of(&[Method::Outside]),
            writes: core.table.units.write,
            reads: core.table.units.read,
            events: number(core.bus.log.len() as u64),
            messages,
            outside,
            sends: of(&[Method::Send, Method::SendAt]),
            logged: 0.0,
        }
    }

    fn combine(self, other: Self, f: impl Fn(f64, f64) -> f64) -> Self {
        Self {
            requests: f(self.requests, other.requests),
            writes: f(self.writes, other.writes),
            reads: f(self.reads, other.reads),
            events: f(self.events, other.events),
            messages: f(self.messages, other.messages),
            outside: f(self.outside, other.outside),
            sends: f(self.sends, other.sends),
            logged: f(self.logged, other.logged),
        }
    }

    /// The sum over these messages.
    pub fn of<'a>(lines: impl IntoIterator<Item = &'a Arc<Line>>) -> Self {
        lines.into_iter().map(|line| Self::one(line)).fold(Self::default(), Add::add)
    }

    fn one(line: &Line) -> Self {
        let requests: Value = serde_json::from_str(line.text("requests")).unwrap_or_default();
        let sends = ["sqs.SendMessage", "sqs.SendMessageBatch"].iter().filter_map(|name| requests[*name].as_f64()).sum();
        Self {
            requests: line.number("aws.requests"),
            writes: line.number("dynamodb.write_units"),
            reads: line.number("dynamodb.read_units"),
            events: line.number("events.published"),
            messages: 1.0,
            outside: f64::from(u8::from(line.is_outside())),
            sends,
            logged: number(line.json.to_string().len() as u64),
        }
    }
}

impl Add for Used {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        self.combine(other, |a, b| a + b)
    }
}

impl Sub for Used {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        self.combine(other, |a, b| a - b)
    }
}

impl Mul<f64> for Used {
    type Output = Self;
    fn mul(self, factor: f64) -> Self {
        self.combine(self, |a, _| a * factor)
    }
}

/// The cost of a sequence, from one with two tasks and one with six.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Costs {
    /// The cost of one more task.
    pub task: Used,
    /// The cost of a sequence without its tasks.
    pub fixed: Used,
}

impl Costs {
    fn from(two: Used, six: Used) -> Self {
        let task = (six - two) * 0.25;
        Self { task, fixed: two - task * 2.0 }
    }
}

/// Measures sequences on lanes that no other wants, this many times each.
pub fn free_lane(bed: &Bed, runs: usize) -> Result<Costs, Problem> {
    let run = |tasks: usize| {
        let scope = Scope::new(PROJECT, STAGE, &format!("free-{}", &fresh()[28..]));
        // The first sequence of a service registers the service, which is not counted.
        bed.sequence(&scope, 1)?;
        let mut all = vec![];
        for _ in 0..runs {
            all.push(Used::of(&bed.sequence(&scope, tasks)?));
        }
        // A function that has just started reads the shipyard once more; the median excludes this.
        all.sort_by(|a, b| a.requests.total_cmp(&b.requests));
        Ok::<_, Problem>(all[runs / 2])
    };
    Ok(Costs::from(run(2)?, run(6)?))
}

/// The cost on a lane on which others wait.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Queue {
    /// Of an execution that found the lane free and hands it over.
    pub holder: Costs,
    /// Of an execution that waited and hands the lane over, without its tasks.
    pub waited: Used,
    /// Of accepting an execution that must wait.
    pub wait: Used,
    /// Of starting it in its turn. The end of the one before is in `holder`.
    pub turn: Used,
}

/// Measures lanes on which `waiting` others wait.
pub fn busy_lane(bed: &Bed, waiting: usize) -> Result<Queue, Problem> {
    let two = lane(bed, waiting, 2)?;
    let six = lane(bed, waiting, 6)?;
    let holder = Costs::from(two.holder, six.holder);
    Ok(Queue { holder, waited: six.waited - holder.task, wait: six.wait, turn: six.turn })
}

/// The cost on one busy lane.
struct Lane {
    /// Of the first execution.
    holder: Used,
    /// Of the second execution, which has one task.
    waited: Used,
    wait: Used,
    turn: Used,
}

fn lane(bed: &Bed, waiting: usize, tasks: usize) -> Result<Lane, Problem> {
    let scope = Scope::new(PROJECT, STAGE, &format!("busy-{}", &fresh()[28..]));
    bed.sequence(&scope, 1)?;
    let first = bed.trigger(&scope, tasks)?;
    bed.event(&first, "sh.keptn.event.task1.triggered")?;
    let next = bed.trigger(&scope, 1)?;
    let accepted = Used::of(&bed.quiet(&next)?);
    history::waiting(bed, &scope, &next, waiting.saturating_sub(1))?;
    let last = bed.trigger(&scope, 1)?;
    let wait = if waiting > 1 { Used::of(&bed.quiet(&last)?) } else { accepted };
    bed.play(&scope, &first, tasks)?;
    let holder = Used::of(&bed.quiet(&first)?);
    bed.event(&next, "sh.keptn.event.task1.triggered")?;
    let turn = Used::of(&bed.quiet(&next)?) - accepted;
    // The last one waits behind it, so it hands the lane over, too.
    bed.play(&scope, &next, 1)?;
    let waited = Used::of(&bed.quiet(&next)?);
    Ok(Lane { holder, waited, wait, turn })
}

fn rows(report: &mut Report, group: &str, what: &str, used: &Used, aims: Option<(f64, f64)>) {
    let (requests, writes) = aims.map_or((Aim::None, Aim::None), |(requests, writes)| (Aim::AtMost(requests), Aim::AtMost(writes)));
    report.row(group, &format!("{what}: AWS requests"), used.requests, "", requests);
    report.row(group, &format!("{what}: write units"), used.writes, "WRU", writes);
    report.row(group, &format!("{what}: read units"), used.reads, "RRU", Aim::None);
}

/// Reports the cost on a free lane.
pub fn tell(report: &mut Report, when: &str, costs: &Costs, aims: bool) {
    let group = format!("cost, {when}");
    rows(report, &group, "one more task", &costs.task, aims.then_some((5.0, 5.0)));
    rows(report, &group, "a sequence without its tasks", &costs.fixed, aims.then_some((10.0, 16.0)));
}

/// Reports the cost on a busy lane.
pub fn tell_queue(report: &mut Report, when: &str, queue: &Queue) {
    let group = format!("cost, {when}");
    rows(report, &group, "one more task", &queue.holder.task, Some((5.0, 5.0)));
    rows(report, &group, "a sequence without its tasks, and the hand-over", &queue.holder.fixed, Some((10.0, 16.0)));
    rows(report, &group, "one that waited, without its tasks, and the hand-over", &queue.waited, Some((12.0, 16.0)));
    rows(report, &group, "of it, to accept one that waits", &queue.wait, None);
    rows(report, &group, "of it, to start it in its turn", &queue.turn, None);
}
