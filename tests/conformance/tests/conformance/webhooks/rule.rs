//! The rule that feeds the queue is enabled while there is a subscription, whoever comes between whose requests, and whoever stops.

use super::stand::{Stand, TYPE, address, subscription};
use keelway_domain::time::Span;
use keelway_engine::checks::Rules;
use keelway_engine::ports::PortError;
use keelway_engine::webhooks::{Limits, QUIET, RULE, Webhooks, feed};
use keelway_world::exec::{block_on, step};
use keelway_world::rng::Rng;
use keelway_world::webhooks::Engine;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::task::Poll;

/// Lets the other one come.
async fn give_way() {
    let mut given = false;
    poll_fn(|_| if std::mem::replace(&mut given, true) { Poll::Ready(()) } else { Poll::Pending }).await;
}

/// A rule that others may come to while a request is under way, and how often it was switched.
struct Rule(AtomicBool, AtomicU32);

impl Rule {
    fn new(on: bool) -> Self {
        Self(AtomicBool::new(on), AtomicU32::new(0))
    }
    fn is_on(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
    fn switched(&self) -> u32 {
        self.1.load(Ordering::Relaxed)
    }
}

impl Rules for Rule {
    async fn enabled(&self, name: &str, on_bus: bool) -> Result<Option<bool>, PortError> {
        assert_eq!((name, on_bus), (RULE, true));
        give_way().await;
        Ok(Some(self.is_on()))
    }
    async fn switch(&self, _: &str, on: bool) -> Result<(), PortError> {
        give_way().await;
        self.0.store(on, Ordering::Relaxed);
        self.1.fetch_add(1, Ordering::Relaxed);
        give_way().await;
        Ok(())
    }
}

/// As the API does it.
async fn apply(engine: &Engine, rule: &Rule) {
    engine.apply(&address(), &subscription(TYPE), "").await.unwrap();
    feed(rule).await.unwrap();
}

/// A world in which somebody subscribed a while ago, and nobody does any more.
fn left() -> Stand {
    let stand = Stand::new();
    stand.apply(TYPE);
    block_on(stand.people.remove(&address())).unwrap();
    stand.world.pass(QUIET);
    stand
}

fn is_there(stand: &Stand) -> bool {
    block_on(stand.people.subscription(&address())).unwrap().is_some()
}

type Task<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

/// Goes on until both are done, or have taken this many steps.
fn both(rng: &mut Rng, mut tasks: [(Task<'_>, usize); 2]) {
    let mut open = vec![0_usize, 1];
    while !open.is_empty() {
        let n = rng.below(open.len());
        let (task, left) = &mut tasks[open[n]];
        if *left == 0 || matches!(step(task), Poll::Ready(())) {
            open.remove(n);
        } else {
            *left -= 1;
        }
    }
}

#[test]
fn whoever_comes_between_an_apply_and_a_sweep_the_rule_is_enabled_in_the_end() {
    let mut disabled = 0;
    for seed in 0..2_000 {
        let (stand, rule, mut rng) = (left(), Rule::new(true), Rng::new(seed));
        let sweep = Box::pin(async {
            stand.warm.tend(&rule).await.unwrap();
        });
        let apply = Box::pin(apply(&stand.people, &rule));
        both(&mut rng, [(sweep, usize::MAX), (apply, usize::MAX)]);
        assert!(rule.is_on(), "in order {seed}");
        disabled += u32::from(rule.switched() > 0);
    }
    assert!(disabled > 100, "in {disabled} orders, the sweep disables the rule first");
}

#[test]
fn whoever_stops_the_next_sweep_enables_the_rule_of_a_subscription() {
    for seed in 0..2_000 {
        let (stand, rule, mut rng) = (left(), Rule::new(seed % 2 == 0), Rng::new(seed));
        let steps = [rng.below(12), rng.below(12)];
        let sweep = Box::pin(async {
            stand.warm.tend(&rule).await.unwrap();
        });
        let apply = Box::pin(apply(&stand.people, &rule));
        both(&mut rng, [(sweep, steps[0]), (apply, steps[1])]);
        block_on(stand.warm.tend(&rule)).unwrap();
        assert!(rule.is_on() || !is_there(&stand), "in order {seed}");
        stand.world.pass(QUIET);
        block_on(stand.warm.tend(&rule)).unwrap();
        assert_eq!(rule.is_on(), is_there(&stand), "in order {seed}, a while later");
    }
}

#[test]
fn the_rule_is_disabled_when_nobody_has_subscribed_for_a_while() {
    let (stand, rule) = (Stand::new(), Rule::new(true));
    let tend = || block_on(stand.warm.tend(&rule)).unwrap();
    assert_eq!((tend(), tend()), (Some(false), None), "nobody ever has");
    block_on(apply(&stand.people, &rule));
    assert!(rule.is_on());
    assert_eq!(tend(), None);
    block_on(stand.people.remove(&address())).unwrap();
    stand.world.pass(Span(QUIET.0 - 1));
    assert_eq!(tend(), None, "somebody may apply another one");
    stand.world.pass(Span(1));
    assert_eq!(tend(), Some(false));
    stand.apply(TYPE);
    assert_eq!(tend(), Some(true), "whoever applied it has stopped before it was answered, or was an older function");
}

#[test]
fn a_stack_that_delivers_nothing_leaves_the_rule_alone() {
    let (stand, rule) = (Stand::new(), Rule::new(false));
    stand.apply(TYPE);
    let limits = Limits { delivers: false, ..Limits::default() };
    let engine = Webhooks::new(stand.world.worker(3), limits);
    assert_eq!(block_on(engine.tend(&rule)).unwrap(), None);
    assert_eq!(rule.switched(), 0);
}
