//! A deployer of one's own around a strategy has Keelway carry it out, in parts.

use keelway_deployers_stand::stand::{Stand, definition, hook, to, version};
use keelway_domain::deployments::definition::{Custom, Definition, FailurePolicy, Weight};
use keelway_domain::deployments::{Call, Command, Desired, LEASE_MOST, Progress, Reply, Status, WHOLE};
use keelway_domain::time::Span;
use keelway_engine::aliases::Route;
use keelway_world::exec::block_on;

/// A canary with a step that holds, a hook at each end, and a deployer around it.
fn wrapped() -> Definition {
    let mut definition = definition("Canary", &version(2));
    let step = |weight, bake: Option<i64>| Weight { weight, bake: bake.map(Span::seconds) };
    definition.strategy.steps = vec![step(10, Some(60)), step(50, None)];
    definition.strategy.custom = Some(Custom::default());
    definition.strategy.hooks.pre = hook(FailurePolicy::Abort);
    definition.strategy.hooks.post = hook(FailurePolicy::Abort);
    definition
}

/// What the deployer around the strategy does.
trait Wrapping {
    fn say(&mut self, call: &Call) -> Reply;
    fn claim(&mut self);
    fn carry(&mut self, until: u8) -> Reply;
    fn end(&mut self, exit: i64);
    /// How the part ended: the exit code and the message.
    fn part(&self) -> Option<(i64, String)>;
}

impl Wrapping for Stand {
    fn say(&mut self, call: &Call) -> Reply {
        let n = self.x().latest;
        let told = block_on(self.engine.say(&to(), n, call)).unwrap();
        self.work();
        told.reply
    }

    fn claim(&mut self) {
        let claim = Call::Claim { by: "ci".into(), id: 7, token: "mine".into(), lease: LEASE_MOST };
        assert_eq!(self.say(&claim), Reply::Desired(Desired::Run));
    }

    fn carry(&mut self, until: u8) -> Reply {
        let reply = self.say(&Call::Carry { token: "mine".into(), until });
        // All steps that nothing holds up: each of their messages has a time of its own.
        self.pass(Span(50));
        reply
    }

    fn end(&mut self, exit: i64) {
        self.say(&Call::End { token: "mine".into(), exit: Some(exit), message: String::new(), progress: Progress::default() });
        self.pass(Span::seconds(30));
    }

    fn part(&self) -> Option<(i64, String)> {
        let report = self.last().part?.report?;
        Some((report.exit.unwrap(), report.message))
    }
}

/// Version 1 is deployed; version 2 is claimed.
fn claimed(definition: &Definition) -> Stand {
    let mut stock = definition.clone();
    stock.strategy.custom = None;
    let mut stand = Stand::deployed(&stock);
    stand.apply(definition);
    stand.pass(Span::minutes(1));
    assert_eq!((stand.x().latest, stand.alias("live").as_str()), (2, "1"), "nobody has claimed it yet");
    stand.claim();
    stand
}

fn hooks(stand: &Stand) -> Vec<String> {
    stand.lambda.state().calls.iter().map(|(payload, _)| payload["hook"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_deployer_does_its_own_work_between_the_parts() {
    let mut stand = claimed(&wrapped());
    stand.carry(0);
    assert_eq!((stand.alias("live").as_str(), hooks(&stand)), ("1", vec!["pre".to_owned()]));
    assert_eq!(stand.part(), Some((0, "hook pre: done".to_owned())));
    stand.carry(50);
    // The first step bakes for a minute.
    assert_eq!((stand.alias("live").as_str(), stand.part()), ("1 10%2", None));
    stand.pass(Span::seconds(61));
    assert_eq!(stand.alias("live"), "1 50%2");
    assert_eq!(stand.part(), Some((0, "50 % of the requests go to the new version".to_owned())));
    stand.pass(Span::minutes(30));
    assert_eq!((stand.alias("live").as_str(), stand.status()), ("1 50%2", Status::Running), "it is the deployer's turn");
    // The step would hold: asking for more proceeds.
    stand.carry(WHOLE);
    assert_eq!((stand.alias("live").as_str(), hooks(&stand).len()), ("2", 2));
    assert_eq!(stand.part(), Some((0, "every alias points to the new version".to_owned())));
    stand.end(0);
    stand.assert_ended(Status::Complete, "2");
    assert_eq!(stand.log(), ["shop:live 1 10%2", "shop:live 1 50%2", "shop:live 2"]);
    assert_eq!(stand.last().progress.targets["main"].message, "at Lambda version 2");
}

#[test]
fn one_that_ends_half_way_has_failed_and_the_aliases_go_back() {
    for (exit, why) in [(0, "not all targets are complete: main"), (1, "the deployer exited with 1")] {
        let mut stand = claimed(&wrapped());
        stand.carry(10);
        assert_eq!(stand.alias("live"), "1 10%2");
        stand.end(exit);
        stand.assert_ended(Status::Failed, "1");
        assert_eq!(stand.last().message, why);
        assert_eq!(stand.last().progress.targets["main"].message, "taken back to Lambda version 1");
    }
}

/// The end of the strategy is not the end of the deployment: what the deployer does afterwards counts.
#[test]
fn a_deployer_that_fails_after_the_whole_strategy_has_it_taken_back() {
    let mut stand = claimed(&wrapped());
    stand.carry(WHOLE);
    stand.pass(Span::minutes(2));
    stand.command(Command::Proceed);
    assert_eq!(stand.alias("live"), "2");
    stand.end(1);
    stand.assert_ended(Status::Failed, "1");
}

#[test]
fn a_hook_that_fails_fails_the_part() {
    let mut stand = claimed(&wrapped());
    stand.lambda.state().failing = 1;
    stand.carry(WHOLE);
    let (exit, why) = stand.part().unwrap();
    assert!(exit == 1 && why.starts_with("hook pre failed"), "{why}");
    stand.carry(WHOLE);
    assert_eq!(stand.part(), Some((exit, why)), "nothing more follows");
    stand.end(1);
    stand.assert_ended(Status::Failed, "1");
}

#[test]
fn people_cancel_and_pause_it() {
    let mut stand = claimed(&wrapped());
    stand.carry(50);
    stand.command(Command::Pause);
    stand.pass(Span::minutes(10));
    assert_eq!((stand.alias("live").as_str(), stand.part()), ("1 10%2", None));
    stand.command(Command::Resume);
    stand.pass(Span::seconds(2));
    assert_eq!(stand.alias("live"), "1 50%2");
    stand.command(Command::Cancel);
    stand.pass(Span::minutes(1));
    assert_eq!((stand.alias("live").as_str(), stand.status()), ("1 50%2", Status::Running), "the deployer ends first");
    stand.end(143);
    stand.assert_ended(Status::Failed, "1");
    assert_eq!(stand.last().reason, "Cancelled");

    let mut stand = claimed(&wrapped());
    stand.carry(50);
    stand.command(Command::Cancel);
    stand.pass(Span(50));
    assert_eq!(stand.alias("live"), "1", "Keelway takes its part back at once");
    stand.end(143);
    stand.assert_ended(Status::Failed, "1");
}

#[test]
fn a_deployer_that_is_gone_leaves_the_aliases_where_they_were() {
    let mut stand = claimed(&wrapped());
    stand.carry(10);
    stand.pass(Span::minutes(61));
    stand.assert_ended(Status::Failed, "1");
    assert_eq!(stand.last().reason, "DeployerLost");
}

#[test]
fn what_somebody_else_pointed_elsewhere_stays_there() {
    let mut stand = claimed(&wrapped());
    stand.carry(10);
    stand.point("shop", "live", Route::to("9"));
    stand.end(1);
    stand.assert_ended(Status::Failed, "9");
}

/// A part, a fault after each request of Keelway's deployer, another part, and a failure that takes everything back.
#[test]
fn whoever_stops_after_any_request_is_followed_by_another() {
    let play = |crash: Option<u64>, twice: bool| {
        let mut stand = claimed(&wrapped());
        (stand.crash_after, stand.twice) = (crash.map(|after| stand.requests + after), twice);
        let before = stand.requests;
        stand.carry(10);
        stand.pass(Span::minutes(5));
        assert_eq!(stand.alias("live"), "1 10%2", "{crash:?}");
        stand.carry(WHOLE);
        stand.pass(Span::minutes(5));
        stand.command(Command::Proceed);
        stand.pass(Span::minutes(5));
        assert_eq!(stand.alias("live"), "2", "{crash:?}");
        stand.end(1);
        stand.pass(Span::minutes(5));
        stand.assert_ended(Status::Failed, "1");
        let mut hooks = hooks(&stand);
        hooks.dedup();
        assert_eq!(hooks, ["pre", "post"], "{crash:?}");
        assert_eq!(stand.log(), ["shop:live 1 10%2", "shop:live 1 50%2", "shop:live 2", "shop:live 1"], "{crash:?}");
        (stand.crash_after, stand.requests - before)
    };
    let (_, requests) = play(None, false);
    play(None, true);
    for after in 1..=requests {
        assert_eq!(play(Some(after), false).0, None, "request {after} never happened");
    }
}
