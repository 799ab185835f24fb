//! Finds configs that have something to do because a message was lost, for the sweep.

use super::message::Message;
use super::{Deployments, Loaded, configs, images, keys, tasks};
use crate::item::Key;
use crate::ports::{PortError, Ports};
use crate::protocol::Letter;
use crate::protocol::sweep::Tick;
use crate::table;
use keelway_domain::cause::Cause;
use keelway_domain::deployments::registry::Heads;
use keelway_domain::deployments::{Decision, Facts, Input, decide};
use keelway_domain::level::Level as _;

/// Evaluates open configs without committing: those that would change get a message. An idle config costs its share of one read of
/// all definitions, and a read of the tags that it watches.
pub(super) async fn look<P: Ports>(engine: &Deployments<P>, open: &[Loaded], tick: &mut Tick) -> Result<Vec<Letter>, PortError> {
    let wanted: Vec<Key> = open.iter().map(|loaded| keys::definition(&loaded.x.address())).collect();
    let items = table::read(&engine.ports, &wanted).await?;
    let mut letters = given_up(engine, open).await?;
    for loaded in open {
        let to = loaded.x.address();
        let applied = match items.get(&keys::definition(&to)).map(configs::read).transpose() {
            Ok(applied) => applied.flatten().map(|(applied, _)| applied),
            // A definition that this code cannot read does not delay the others.
            Err(error) => {
                tracing::error!(config = %to, %error, "the sweep passes over a deployment config");
                continue;
            }
        };
        let heads = match &applied {
            Some(applied) => match images::of(&engine.ports, &to, &applied.definition).await {
                Ok(heads) => heads,
                Err(error) if error.is_of_an_item() => {
                    tracing::error!(config = %to, %error, "the sweep passes over a deployment config");
                    continue;
                }
                Err(error) => return Err(error),
            },
            None => Heads::new(),
        };
        let facts =
            Facts { now: tick.now, cause: Cause::default(), applied: applied.as_ref(), heads: &heads, target: None, damaged: None };
        let changes = match decide(&loaded.x, Input::Evaluate, &facts) {
            // Only the time of the wake-up depends on the clock.
            Decision::Commit(transition) => {
                let mut next = transition.next.clone();
                (next.wake, next.armed_by) = (loaded.x.wake, loaded.x.armed_by);
                next != loaded.x || transition.record.is_some()
            }
            _ => false,
        };
        if changes || tick.overdue(loaded.x.wake) {
            letters.push(Message::Evaluate { to, because: format!("sweep {}", tick.now.0) }.letter());
        }
    }
    Ok(letters)
}

/// Finds tasks of configs for which no sequence waits any more: the message about this may have been lost.
async fn given_up<P: Ports>(engine: &Deployments<P>, open: &[Loaded]) -> Result<Vec<Letter>, PortError> {
    let all = open.iter().flat_map(|loaded| tasks::all(&loaded.x).map(move |task| (&loaded.x, task)));
    let all: Vec<_> = all.filter_map(|(x, task)| Some((x, task, tasks::awaited(task)?))).collect();
    if all.is_empty() {
        return Ok(vec![]);
    }
    let wanted: Vec<Key> = all.iter().map(|(.., awaited)| awaited.key()).collect();
    let executions = table::read(&engine.ports, &wanted).await?;
    let mut letters = vec![];
    for (x, task, awaited) in all {
        match awaited.is_open(executions.get(&awaited.key())) {
            Ok(true) => {}
            Ok(false) => letters.push(Message::Over { to: x.address(), triggered: task.triggered.clone() }.letter()),
            // An execution that this code cannot read does not delay the others.
            Err(error) => tracing::error!(config = %x.address(), %error, "the sweep passes over the task of a deployment config"),
        }
    }
    Ok(letters)
}
