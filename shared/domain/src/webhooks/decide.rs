//! The decisions about a delivery: pure, without clock and ports.

use super::delivery::{Delivery, End, Exchange, Health, Record};
use crate::cause::Cause;
use crate::event::TaskResult;
use crate::ids::{RecordId, hash64};
use crate::time::{Span, Timestamp};

/// The pauses before the attempts, as the Standard Webhooks specification recommends.
const SCHEDULE: [Span; 10] = [
    Span(0),
    Span::seconds(5),
    Span::minutes(5),
    Span::minutes(30),
    Span::minutes(2 * 60),
    Span::minutes(5 * 60),
    Span::minutes(10 * 60),
    Span::minutes(14 * 60),
    Span::minutes(20 * 60),
    Span::minutes(24 * 60),
];
/// The most attempts of a delivery.
pub const MAX_ATTEMPTS: u32 = SCHEDULE.len() as u32;
/// The longest pause that a receiver can ask for with `Retry-After`.
pub const LONGEST_PAUSE: Span = Span::minutes(24 * 60);
/// A subscription that has failed for this long is disabled when the next delivery fails.
pub const FAILING: Span = Span::minutes(3 * 24 * 60);

/// The shortest and the longest delay of an attempt that is put back because its receiver is slow.
const PUT_BACK: (Span, Span) = (Span::seconds(30), Span::minutes(60));

/// The inputs of a decision besides the delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Facts {
    /// The time of the decision.
    pub now: Timestamp,
    /// The message at hand.
    pub cause: Cause,
    /// The most attempts of the subscription's deliveries.
    pub limit: u32,
    /// Since when no request has reached the receiver, if an attempt has failed since the last success.
    pub failing: Option<Timestamp>,
    /// Since when the subscription has taken events: its creation, or the last time it was resumed.
    pub since: Option<Timestamp>,
}

/// An input to a delivery.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Input<'a> {
    /// The attempt after this number of others was made.
    Attempted(usize, &'a Exchange),
    /// A person asks for the attempt after this number of others now.
    Now(usize),
    /// The attempt after this number of others was not made: its receiver is slow, and has used its share of the places.
    PutBack(usize),
    /// The delivery has nothing left to do.
    Stop(End),
    /// A wake-up that finds no attempt to make.
    Wake,
}

/// The decision about an input.
#[derive(Debug, Clone, PartialEq)]
pub enum Decision {
    /// The next state, and its record if there is one.
    Commit(Box<Delivery>, Option<Box<Record>>),
    /// No change: complete what an earlier delivery of the same message began.
    Settle,
}

/// The pause before the attempt after `made` others: that of the schedule and up to a tenth more, so that deliveries that failed
/// together are not repeated together. The addition is derived from the delivery, not random: every worker computes the same time.
pub fn delay(x: &Delivery, made: usize) -> Span {
    spread(x, made, SCHEDULE[made.min(SCHEDULE.len() - 1)])
}

fn spread(x: &Delivery, made: usize, pause: Span) -> Span {
    let spread = pause.0.unsigned_abs() / 10;
    let jitter = if spread == 0 { 0 } else { hash64(&[&x.id.0.to_be_bytes(), &made.to_be_bytes()]) % spread };
    Span(pause.0 + i64::try_from(jitter).unwrap_or_default())
}

/// When an attempt that was put back is due again. The longer the delivery has waited, the longer it waits, so that many of them
/// cost little.
fn put_back(x: &Delivery, now: Timestamp) -> Timestamp {
    let (least, most) = PUT_BACK;
    now + spread(x, x.attempts.len(), (now - x.began).clamp(least, most))
}

impl Delivery {
    /// The record of the beginning, with the `.started` event if Keelway answers for the receiver.
    pub fn begun(mut self, cause: Cause) -> (Self, Option<Record>) {
        let events = self.answer(None, self.began).filter(|_| self.executor.started).into_iter().collect::<Vec<_>>();
        let record = (!events.is_empty()).then(|| Record { events, made_by: cause.id, at: self.began, ..Record::default() });
        self.record = record.as_ref().map(|record| record.id(self.id, 0));
        (self, record)
    }
}

/// Decides an input of a delivery. Pure and total.
pub fn decide(x: &Delivery, input: Input<'_>, facts: &Facts) -> Decision {
    if x.end.is_some() {
        return Decision::Settle;
    }
    match input {
        Input::Attempted(n, attempt) if n == x.attempts.len() => attempted(x, attempt, facts),
        Input::Now(n) if n == x.attempts.len() && x.due.is_some_and(|due| due > facts.now) => {
            Decision::Commit(Box::new(Delivery { due: Some(facts.now), ..x.clone() }), None)
        }
        Input::PutBack(n) if n == x.attempts.len() && x.due.is_some_and(|due| due <= facts.now) => {
            Decision::Commit(Box::new(Delivery { due: Some(put_back(x, facts.now)), ..x.clone() }), None)
        }
        Input::Stop(end) => ended(Delivery { health: None, ..x.clone() }, end, facts),
        // A copy of an input that was absorbed before.
        Input::Attempted(..) | Input::Now(_) | Input::PutBack(_) | Input::Wake => Decision::Settle,
    }
}

fn attempted(x: &Delivery, attempt: &Exchange, facts: &Facts) -> Decision {
    let mut next = x.clone();
    next.attempts.push(attempt.clone());
    let made = next.attempts.len();
    if attempt.succeeded() {
        next.health = facts.failing.map(Health::Working);
        return ended(next, End::Delivered, facts);
    }
    if attempt.status == Some(410) {
        next.health = Some(Health::Gone(facts.now));
        next.since = facts.since;
        return ended(next, End::Gone, facts);
    }
    next.health = facts.failing.is_none().then_some(Health::Failing(facts.now));
    if made >= facts.limit.clamp(1, MAX_ATTEMPTS) as usize {
        let dead = facts.failing.filter(|since| facts.now - *since >= FAILING);
        next.health = dead.map(|since| Health::Dead(since, facts.now)).or(next.health);
        next.since = facts.since.filter(|_| dead.is_some());
        return ended(next, End::GivenUp, facts);
    }
    let asked = attempt.retry_after.unwrap_or_default().min(LONGEST_PAUSE);
    next.due = Some(facts.now + delay(x, made).max(asked));
    Decision::Commit(Box::new(next), None)
}

/// The end has a record even if it publishes nothing: the record tells a redelivery that the health of the subscription may still
/// have to be noted.
fn ended(x: Delivery, end: End, facts: &Facts) -> Decision {
    let mut next = Delivery { end: Some(end), due: None, ..x };
    let result = if end == End::Delivered { TaskResult::Pass } else { TaskResult::Fail };
    // Nobody waits for the answer to a task that is over.
    let answers = next.executor.finished && end != End::TaskOver;
    let answer = answers.then(|| next.answer(Some(result), facts.now)).flatten();
    let record = Record {
        events: answer.into_iter().collect(),
        made_by: facts.cause.id,
        at: facts.now,
        previous: next.record.map(|before| (before.number, before.hash.to_string())),
        ..Record::default()
    };
    if record.events.is_empty() && next.health.is_none() {
        return Decision::Commit(Box::new(next), None);
    }
    next.record = Some(record.id(next.id, RecordId::END));
    Decision::Commit(Box::new(next), Some(Box::new(record)))
}

#[cfg(test)]
mod tests {
    use super::super::delivery::Executor;
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    const START: Timestamp = Timestamp(1_795_222_266_686);

    fn delivery(executor: Executor) -> Delivery {
        let event = json!({
            "id": "e-1", "source": "shipyard-controller", "type": "sh.keptn.event.test.triggered", "shkeptncontext": "c-1",
            "data": {"project": "shop", "stage": "dev", "service": "cart", "secret": "no"},
        });
        Delivery::begin(("shop", "hook"), &event, None, executor, START)
    }

    fn status(status: u16) -> Exchange {
        Exchange { status: Some(status), ..Exchange::default() }
    }

    fn facts(now: Timestamp, failing: Option<Timestamp>) -> Facts {
        Facts { now, cause: Cause::default(), limit: MAX_ATTEMPTS, failing, since: None }
    }

    fn committed(decision: Decision) -> (Delivery, Option<Record>) {
        match decision {
            Decision::Commit(next, record) => (*next, record.map(|record| *record)),
            Decision::Settle => panic!("nothing was decided"),
        }
    }

    #[test]
    fn a_delivery_is_tried_ten_times_in_about_three_days() {
        let mut x = delivery(Executor::default());
        let (mut now, mut pauses) = (START, vec![]);
        while x.end.is_none() {
            let failing = x.attempts.first().map(|_| START);
            x = committed(decide(&x, Input::Attempted(x.attempts.len(), &status(500)), &facts(now, failing))).0;
            pauses.extend(x.due.map(|due| (due - now).0 / 1000));
            now = x.due.unwrap_or(now);
        }
        assert_eq!((x.attempts.len(), x.end), (10, Some(End::GivenUp)));
        for (pause, least) in pauses.iter().zip([5, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400]) {
            assert!((least..=least + least / 10).contains(pause), "{pauses:?}");
        }
        assert_eq!(x.health, Some(Health::Dead(START, now)), "nothing has reached the receiver for more than three days");
    }

    #[test]
    fn what_an_attempt_says_about_the_subscription() {
        let x = delivery(Executor::default());
        let health =
            |attempt: &Exchange, failing| committed(decide(&x, Input::Attempted(0, attempt), &facts(START, failing))).0.health;
        assert_eq!(health(&status(200), None), None);
        assert_eq!(health(&status(204), Some(START)), Some(Health::Working(START)));
        assert_eq!(health(&status(500), None), Some(Health::Failing(START)));
        assert_eq!(health(&status(302), Some(START)), None, "that is known, and redirects are not followed");
        assert_eq!(health(&status(410), None), Some(Health::Gone(START)));
    }

    #[test]
    fn a_receiver_that_asks_for_time_gets_it_for_a_day_at_most() {
        let x = delivery(Executor::default());
        let due = |seconds| {
            let attempt = Exchange { retry_after: Some(Span::seconds(seconds)), ..status(429) };
            committed(decide(&x, Input::Attempted(0, &attempt), &facts(START, None))).0.due.map(|due| (due - START).0 / 1000)
        };
        assert_eq!((due(3600), due(10_000_000)), (Some(3600), Some(86_400)));
        assert!((5..=6).contains(&due(1).unwrap()), "the schedule is longer");
    }

    #[test]
    fn a_delivery_that_is_put_back_waits_longer_each_time_and_keeps_its_attempts() {
        let mut x = delivery(Executor::default());
        let (mut now, mut pauses) = (START, vec![]);
        for _ in 0..12 {
            x = committed(decide(&x, Input::PutBack(0), &facts(now, None))).0;
            let due = x.due.unwrap();
            pauses.push((due - now).0 / 1000);
            now = due;
        }
        assert_eq!((x.attempts.len(), x.end), (0, None));
        assert_eq!(decide(&x, Input::Now(0), &facts(x.due.unwrap(), None)), Decision::Settle, "it is due");
        assert!(pauses.is_sorted() && pauses[0] >= 30 && pauses[11] <= 3960, "{pauses:?}");
        assert_eq!(decide(&x, Input::PutBack(0), &facts(START, None)), Decision::Settle, "a copy that comes before it is due");
    }

    #[test]
    fn a_copy_of_what_was_done_does_nothing() {
        let x = delivery(Executor::default());
        let x = committed(decide(&x, Input::Attempted(0, &status(500)), &facts(START, None))).0;
        for n in [0, 2] {
            for input in [Input::Attempted(n, &status(500)), Input::Now(n), Input::PutBack(n)] {
                assert_eq!(decide(&x, input, &facts(START, None)), Decision::Settle, "{input:?}");
            }
        }
        let now = committed(decide(&x, Input::Now(1), &facts(START, None))).0;
        assert_eq!(now.due, Some(START), "a person wants the next attempt at once");
    }

    #[test]
    fn the_last_pause_of_the_schedule_is_the_longest() {
        let x = delivery(Executor::default());
        assert!((LONGEST_PAUSE.0..2 * LONGEST_PAUSE.0).contains(&delay(&x, 1000).0));
    }

    #[test]
    fn a_delivery_that_was_given_up_tells_why_its_last_attempt_failed() {
        let attempt = Exchange { error: "it redirects elsewhere".into(), ..status(302) };
        let one = Facts { limit: 1, ..facts(START, None) };
        let x = committed(decide(&delivery(Executor::default()), Input::Attempted(0, &attempt), &one)).0;
        assert_eq!(x.outcome(), "webhook hook was given up after 1 attempt: it redirects elsewhere");
    }

    #[test]
    fn a_task_that_is_over_is_not_answered() {
        let (x, record) = delivery(Executor { started: true, finished: true }).begun(Cause::default());
        assert!(record.is_some());
        let (x, record) = committed(decide(&x, Input::Stop(End::TaskOver), &facts(START, None)));
        assert_eq!((x.end, record), (Some(End::TaskOver), None));
    }

    #[test]
    fn a_task_is_answered_when_it_is_said_so() {
        let (x, record) = delivery(Executor { started: true, finished: true }).begun(Cause::default());
        let started = &record.unwrap().events[0];
        assert_eq!(
            (started.ty.as_str(), &started.answers),
            ("sh.keptn.event.test.started", &crate::record::Answers::Event("e-1".into()))
        );
        let answered = Exchange { answer: "done".into(), ..status(200) };
        let (x, record) = committed(decide(&x, Input::Attempted(0, &answered), &facts(START, None)));
        let record = record.unwrap();
        assert_eq!(record.previous.as_ref().map(|(number, _)| *number), Some(0));
        let data = serde_json::Value::Object(record.events[0].data.clone());
        assert_eq!(
            (&data["status"], &data["result"], &data["test"]["responses"]),
            (&"succeeded".into(), &"pass".into(), &json!(["done"]))
        );
        assert_eq!(data["secret"], serde_json::Value::Null);
        assert_eq!(x.end, Some(End::Delivered));
        let silent = delivery(Executor::default()).begun(Cause::default());
        assert_eq!(silent.1, None);
        let one = Facts { limit: 1, ..facts(START, None) };
        let failed =
            committed(decide(&delivery(Executor { started: false, finished: true }), Input::Attempted(0, &status(500)), &one)).1;
        let data = serde_json::Value::Object(failed.unwrap().events[0].data.clone());
        assert_eq!((&data["status"], &data["result"]), (&"errored".into(), &"fail".into()));
        assert_eq!(data["message"], "webhook hook was given up after 1 attempt: it answered 500");
    }

    #[test]
    fn a_delivery_that_is_asked_for_again_answers_no_task() {
        let x = delivery(Executor::default());
        let again = Delivery::begin(("shop", "hook"), &x.event, Some("a"), Executor { started: true, finished: true }, START);
        assert_ne!(again.id, x.id);
        assert_eq!(again.begun(Cause::default()).1, None);
    }

    #[derive(Debug, Clone)]
    enum Any {
        Attempt(u16),
        Now,
        Wake,
        Copy,
        Stop,
    }

    fn any() -> impl Strategy<Value = Any> {
        let status = prop_oneof![Just(200u16), Just(410), Just(429), Just(500), Just(302)];
        prop_oneof![8 => status.prop_map(Any::Attempt), 1 => Just(Any::Now), 1 => Just(Any::Wake), 2 => Just(Any::Copy), 1 => Just(Any::Stop)]
    }

    proptest! {
        #[test]
        fn whatever_comes_a_delivery_ends_once_and_its_attempts_stay(inputs in proptest::collection::vec(any(), 0..40), limit in 1u32..12) {
            let mut x = delivery(Executor { started: true, finished: true });
            let mut now = START;
            let mut ends = 0;
            for input in &inputs {
                now = now + Span::seconds(1);
                let facts = Facts { limit, ..facts(now, None) };
                let n = x.attempts.len();
                let attempt = match input { Any::Attempt(code) => status(*code), _ => status(500) };
                let input = match input {
                    Any::Attempt(_) => Input::Attempted(n, &attempt),
                    Any::Now => Input::Now(n),
                    Any::Wake => Input::Wake,
                    // The number of the attempt before.
                    Any::Copy => Input::Attempted(n.wrapping_sub(1), &attempt),
                    Any::Stop => Input::Stop(End::Deleted),
                };
                let Decision::Commit(next, record) = decide(&x, input, &facts) else { continue };
                prop_assert_eq!(&next.attempts[..n], &x.attempts[..]);
                prop_assert!(next.attempts.len() <= limit.min(MAX_ATTEMPTS) as usize);
                prop_assert_eq!(next.end.is_some(), next.due.is_none());
                prop_assert_eq!(next.end.is_some(), record.is_some_and(|record| record.events.len() == 1));
                ends += usize::from(next.end.is_some());
                x = *next;
            }
            prop_assert!(ends <= 1);
        }
    }
}
