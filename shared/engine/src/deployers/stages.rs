//! The stages of a deployment: the changes of each, and the next one.

use super::step::{Done, Step};
use super::{Deployers, FAILED, SUCCEEDED, aliases, hooks, published};
use crate::aliases::Aliases;
use crate::metrics::Metrics;
use crate::ports::{PortError, Ports};
use crate::runners::Runners;
use keelway_domain::deployments::checkpoint::Stage;
use keelway_domain::deployments::{Desired, MAX_CHECKPOINT, Status, plan, rights};
use keelway_domain::time::Span;

const TOO_MANY: &str = "it has too many targets to remember where each one was: split it into several configs";

impl<P: Ports, C: Aliases + Runners, M: Metrics> Deployers<P, C, M> {
    /// Takes the next step, unless it is denied. Returns the exit code at the end.
    pub(super) async fn take(&self, step: &mut Step, desired: Desired, denied: Option<String>) -> Option<i64> {
        let now = step.now;
        if desired == Desired::Cancel && step.point.stage != Stage::Back {
            let back = step.deployment.part.as_ref().and_then(|part| part.back.as_ref());
            let cancel = step.deployment.cancel.as_ref().or(back);
            let why = cancel.map_or_else(|| "it was cancelled".to_owned(), |cancel| cancel.message.clone());
            return give_up(step, &why);
        }
        let back = step.point.stage == Stage::Back;
        step.point.paused = desired == Desired::Pause && !back;
        if step.point.paused {
            step.point.tries = 0;
            step.tell("paused: it goes on when it is resumed");
            return None;
        }
        let held = step.point.hold;
        let holds = held.is_some_and(|told| step.deployment.proceeds <= told);
        // A version that holds is judged nevertheless; one that is told to proceed is not judged any more.
        let judges = matches!(step.point.stage, Stage::Judge(_));
        let told = held.is_some() && !holds;
        if (holds && !judges) || (now < step.point.due && !(judges && told)) {
            return None;
        }
        step.point.hold = None;
        let done = match denied {
            Some(why) => Done::Fail(why),
            None => self.act(step, held).await.unwrap_or_else(Done::from),
        };
        let patience = step.definition.strategy.timeout;
        match done {
            Done::Go if back => Some(FAILED),
            Done::Go => advance(step),
            Done::Wait => {
                step.point.tries = 0;
                None
            }
            Done::Fail(why) if back => {
                step.tell(why);
                Some(FAILED)
            }
            Done::Fail(why) => give_up(step, &why),
            Done::Patiently(why) => {
                step.tell(why);
                step.point.in_vain(now);
                None
            }
            Done::Again(why) => {
                let long = step.point.in_vain(now) > patience;
                if long && patience > Span(0) && !back {
                    return give_up(step, &format!("it took longer than {patience}: {why}"));
                }
                step.tell(why);
                None
            }
        }
    }

    /// The step itself. `held`: the hold in which the deployment was.
    async fn act(&self, step: &mut Step, held: Option<u32>) -> Result<Done, PortError> {
        let which = match step.point.stage {
            Stage::Look => return aliases::look(step),
            Stage::Publish => {
                published::find(&self.engine, &self.cloud, step).await?;
                return aliases::publish(&self.cloud, step).await;
            }
            Stage::Ready => return aliases::ready(&self.cloud, step).await,
            Stage::Shift(n) => {
                let weights = plan::weights(&step.definition.strategy, step.at_once());
                let weight = weights.get(n).map_or(100, |weight| weight.weight);
                return aliases::shift(&self.cloud, step, weight).await;
            }
            // In a box: with what sources await, the type of a whole delivery would be too deep for the compiler.
            Stage::Judge(n) => return Box::pin(self.judge(step, n, held)).await,
            Stage::End => return Ok(Done::Go),
            Stage::Back => return aliases::back(&self.cloud, step, Status::Failed).await,
            Stage::Restore => return aliases::back(&self.cloud, step, Status::Complete).await,
            Stage::Pre | Stage::Mid | Stage::Post => step.point.stage.hook().unwrap_or_default(),
        };
        match rights::hook(&step.definition, step.point.stage).cloned() {
            Some(hook) => hooks::run(&self.engine, &self.cloud, step, which, &hook).await,
            None => Ok(Done::Go),
        }
    }
}

/// Enters the stage after a complete one.
fn advance(step: &mut Step) -> Option<i64> {
    let stages = plan::stages(&step.definition, &step.point, step.at_once());
    let place = stages.iter().position(|stage| *stage == step.point.stage);
    let next = place.and_then(|place| stages.get(place + 1)).copied().unwrap_or(Stage::End);
    let so_far = step.goes_so_far(next);
    let mut due = step.now;
    let mut hold = None;
    if let (Stage::Shift(_), Stage::Judge(n)) = (step.point.stage, next) {
        return judged(step, n);
    }
    if let Stage::Shift(n) = step.point.stage {
        let weights = plan::weights(&step.definition.strategy, step.at_once());
        match weights.get(n).and_then(|weight| weight.bake) {
            Some(bake) => due = due + bake,
            // The other deployer proceeds by asking for more, so there is no hold.
            None if so_far => {}
            None => {
                hold = Some(step.deployment.proceeds);
                step.tell(format!("{}; it holds until it is told to proceed", step.progress.message.clone()));
            }
        }
        if n + 1 == weights.len() && !step.goes_back() {
            due = due.max(step.now + plan::least_bake(&step.definition));
        }
    }
    if next == Stage::End && due <= step.now {
        return succeed(step);
    }
    if step.point.stage == Stage::End {
        return succeed(step);
    }
    step.point.enter(next, due);
    step.point.hold = hold;
    if step.point.text().len() > MAX_CHECKPOINT {
        return give_up(step, TOO_MANY);
    }
    so_far.then_some(SUCCEEDED)
}

/// Enters the stage in which the weight with this index is judged.
fn judged(step: &mut Step, n: usize) -> Option<i64> {
    let weights = plan::weights(&step.definition.strategy, step.at_once());
    let (Some(weight), Some(analysis)) = (weights.get(n), step.definition.strategy.analysis.clone()) else { return None };
    let mut judging = step.point.judging.take().unwrap_or_default();
    judging.begin(step.now, &analysis, weight.bake);
    step.point.enter(Stage::Judge(n), judging.until);
    step.point.judging = Some(judging);
    if weight.bake.is_none() && step.deployment.part.is_none() {
        step.point.hold = Some(step.deployment.proceeds);
        step.tell(format!("{}; it is judged while it holds until it is told to proceed", step.progress.message.clone()));
    }
    if step.point.text().len() > MAX_CHECKPOINT { give_up(step, TOO_MANY) } else { None }
}

fn succeed(step: &mut Step) -> Option<i64> {
    if step.point.stage == Stage::Restore {
        step.tell("the test is over: every alias points to where it did before");
        return Some(SUCCEEDED);
    }
    for target in step.definition.targets.clone() {
        let to = step.point.aliases.get(&target.name).map(|place| place.to.clone()).unwrap_or_default();
        step.tell_target(&target, Status::Complete, format!("at Lambda version {to}"));
    }
    step.tell("every alias points to the new version");
    Some(SUCCEEDED)
}

/// Fails the deployment: at once if nothing was changed, otherwise after the aliases are reverted.
fn give_up(step: &mut Step, why: &str) -> Option<i64> {
    step.tell(why);
    step.point.why = why.chars().take(500).collect();
    if !step.point.stage.has_begun() {
        return Some(FAILED);
    }
    step.point.enter(Stage::Back, step.now);
    None
}
