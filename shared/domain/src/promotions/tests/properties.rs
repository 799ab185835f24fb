//! What holds whatever happens.

use super::*;
use proptest::prelude::{Just, ProptestConfig, any, prop_assert, prop_oneof, proptest};
use proptest::strategy::Strategy as Generates;

#[derive(Debug, Clone)]
enum Move {
    Observe(usize, &'static str),
    Pass(i64),
    End(usize, bool),
    See(usize, usize),
    Close(usize, usize),
    Say(usize, usize),
}

fn moves() -> impl Generates<Value = Vec<Move>> {
    let one = prop_oneof![
        (0usize..3, prop_oneof![Just("v1/R"), Just("v2/R"), Just("v3/R"), Just("v2/N"), Just("?")])
            .prop_map(|(n, what)| Move::Observe(n, what)),
        (1i64..200).prop_map(Move::Pass),
        (1usize..3, any::<bool>()).prop_map(|(n, well)| Move::End(n, well)),
        (1usize..3, 0usize..4).prop_map(|(n, how)| Move::See(n, how)),
        (1usize..3, 0usize..3).prop_map(|(n, how)| Move::Close(n, how)),
        (0usize..9, 0usize..3).prop_map(|(what, n)| Move::Say(what, n)),
    ];
    proptest::collection::vec(one, 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]
    /// Whatever happens: a decision is a fixed point (see [`Stand::give`]), a promotion that is over is never attempted again in
    /// its run unless a person asks, and at most one is open in an environment.
    #[test]
    fn every_input_has_a_decision(manual: bool, finish: bool, moves in moves()) {
        let names = ["dev", "staging", "prod"];
        let mut definition = definition(&names);
        definition.promotion = Some(settings(manual));
        definition.environments[1].soak = Some(Span::minutes(30));
        definition.in_flight = if finish { InFlight::Finish } else { InFlight::Restart };
        let mut stand = Stand::new(definition);
        for one in moves {
            let before = stand.x.clone();
            let mut asked = false;
            match one {
                Move::Observe(n, what) => stand.observe(names[n], what),
                Move::Pass(minutes) => stand.pass(Span::minutes(minutes)),
                Move::End(n, well) if stand.x.environments[names[n]].promotion.is_some() => {
                    if well { stand.create(names[n], 1) } else { stand.end(names[n], &failed()) }
                }
                Move::See(n, how) if stand.x.environments[names[n]].promotion.is_some() => {
                    let seen = [Seen::Succeeded("m".into()), Seen::Closed("c".into()), Seen::Failed("f".into()), Seen::Open(Made::Notification { id: "x".into() })];
                    let attempt = stand.attempt(names[n]);
                    stand.give(Input::Seen(&attempt, &seen[how]));
                }
                Move::Close(n, how) => {
                    let hows = [Closed::Closed, Closed::Merged("m".into()), Closed::Failed(None)];
                    if let Some(closing) = stand.x.environments[names[n]].closing.first() {
                        let attempt = Attempt::of(names[n], &closing.promotion);
                        stand.give(Input::Closed(&attempt, &hows[how]));
                    }
                }
                Move::Say(what, n) => {
                    asked = true;
                    let (name, revision) = (names[n].to_owned(), ["v1", "v2", "v3"][n]);
                    let command = [
                        Command::Approve(at(&name, revision)), Command::Reject(at(&name, revision)), Command::Suspend, Command::Resume,
                        Command::Hold(at(&name, revision)), Command::Release(name.clone()), Command::Abandon(revision.into()),
                        Command::Retry(name.clone()), Command::Abort(name),
                    ][what].clone();
                    stand.command(command, "ann");
                }
                Move::End(..) | Move::See(..) => {}
            }
            for (name, state) in &before.environments {
                let (Some(old), Some(new)) = (&state.promotion, stand.x.environments.get(name).and_then(|state| state.promotion.as_ref())) else { continue };
                let reopened = old.phase.is_final() && !new.phase.is_final() && old.run == new.run;
                prop_assert!(!reopened || asked, "{name}: {old:?} became {new:?}");
            }
            if let Some(wake) = stand.x.wake {
                prop_assert!(wake > stand.now || stand.x.suspended.is_some(), "a wake-up in the past: {:?}", stand.x);
            }
        }
    }
}
