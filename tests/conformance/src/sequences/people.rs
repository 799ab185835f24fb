//! What people and their tools do besides triggering: through the commands that the API calls.

use super::Shipyards;
use super::actors::{Action, context};
use super::check::project;
use super::freeze::{apply, override_windows};
use super::plan::Order;
use crate::sim::{Outcome, Sim};
use keelway_domain::names::Context;
use keelway_engine::refusal::Refusal;
use keelway_engine::sequences::Sequences;
use keelway_engine::sequences::commands::Control;
use keelway_engine::sequences::retry::Wanted;
use keelway_world::worker::Worker;
use std::sync::PoisonError;

impl Shipyards {
    /// Puts on the agenda what this seed has besides.
    pub(super) fn schedule_extras(&self, sim: &mut Sim<Self>) {
        let (now, extras) = (sim.world.now(), self.plan.extras.clone());
        let at = |sim: &mut Sim<Self>, requests, action| {
            let at = now + sim.a_while(requests);
            sim.plan(at, action);
        };
        (1..extras.windows.len()).for_each(|n| at(sim, 300, Action::Apply(n)));
        (0..extras.schedules.len()).for_each(|n| at(sim, 200, Action::Schedule(n)));
        extras.deleted.iter().for_each(|name| at(sim, 400, Action::Unschedule(name)));
        for (n, stage) in extras.overrides {
            at(sim, 200, Action::Override(context(n), stage.map(str::to_owned)));
        }
        extras.retries.iter().for_each(|(n, from)| at(sim, 600, Action::Retry(*n, *from)));
    }

    /// Does what is no part of every seed.
    pub(super) fn do_besides(&self, sim: &mut Sim<Self>, action: Action) {
        match action.clone() {
            Action::Apply(n) => {
                let windows = self.plan.extras.windows[n].clone();
                sim.work(self, action, move |engine| Box::pin(async move { done(apply(&**engine, n, &windows).await) }));
            }
            Action::Override(context, stage) => {
                sim.work(self, action, move |engine| {
                    Box::pin(async move { done(override_windows(&**engine, &context, stage.as_deref()).await) })
                });
            }
            Action::Schedule(n) => {
                let (name, spec) = self.plan.extras.schedules[n].clone();
                sim.work(self, action, move |engine| {
                    Box::pin(async move { done(engine.schedules().apply((&project(), name), &spec, "").await) })
                });
            }
            Action::Unschedule(name) => {
                sim.work(self, action, move |engine| {
                    Box::pin(async move { engine.schedules().delete(&project(), name).await.map(|_| None) })
                });
            }
            Action::Retry(n, from) => {
                let seen = self.seen.clone();
                sim.work(self, action, move |engine| {
                    Box::pin(async move {
                        let retried = engine.retry(&project(), &context(n), Wanted { from, ..Wanted::default() }).await;
                        if let Ok(retried) = &retried {
                            seen.lock().unwrap_or_else(PoisonError::into_inner).promised.push(retried.to.clone());
                        }
                        done(retried)
                    })
                });
            }
            Action::Emit(..) | Action::Post(..) | Action::Decide(..) | Action::Order(..) => {}
        }
    }
}

/// What is refused is not done: a context in which nothing has happened yet, or a stage that is open.
fn done<T>(answer: Result<T, Refusal>) -> Outcome {
    match answer {
        Err(Refusal::Port(e)) => Err(e),
        Ok(_) | Err(_) => Ok(None),
    }
}

/// Tells a context something.
pub(super) async fn tell(engine: &Sequences<Worker>, context: &Context, order: Order, stage: Option<&'static str>) -> Outcome {
    let what = match order {
        Order::Pause => Control::Pause,
        Order::Resume => Control::Resume,
        Order::Abort => Control::Abort,
    };
    done(engine.control(&project(), context, stage, what).await)
}
