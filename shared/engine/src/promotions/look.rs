//! What the sweep finds: pipelines that have something to do, because a message was lost.

use super::message::{Address, Job, Message};
use super::subject::open_requests;
use super::{Loaded, Promotions, definitions, keys, observations, watch};
use crate::item::Key;
use crate::ports::{PortError, Ports};
use crate::protocol::Letter;
use crate::protocol::sweep::Tick;
use crate::table;
use keelway_domain::cause::Cause;
use keelway_domain::promotions::definition::Definition;
use keelway_domain::promotions::observe::Observations;
use keelway_domain::promotions::{Decision, Facts, Input, decide};
use keelway_domain::time::Timestamp;
use std::collections::{BTreeMap, BTreeSet};

/// Evaluates open pipelines without committing anything: those that would change get a message. A pipeline at rest costs nothing but its
/// share of two reads.
pub(super) async fn look<P: Ports>(engine: &Promotions<P>, open: &[Loaded], tick: &mut Tick) -> Result<Vec<Letter>, PortError> {
    let wanted: Vec<Key> = open.iter().map(|loaded| keys::definition(&Address::of(&loaded.x))).collect();
    let items = table::read(&engine.ports, &wanted).await?;
    let mut letters = vec![];
    let mut repositories: BTreeSet<String> = BTreeSet::new();
    for loaded in open {
        let to = Address::of(&loaded.x);
        repositories.extend(open_requests(&loaded.x).into_iter().map(|(repository, _)| repository));
        let applied = match items.get(&keys::definition(&to)).map(definitions::read).transpose() {
            Ok(applied) => applied.flatten(),
            // A definition that this code cannot read does not delay the others.
            Err(error) => {
                tracing::error!(pipeline = %to, %error, "the sweep passes over a pipeline");
                continue;
            }
        };
        let definition = applied.as_ref().map(|applied| &applied.definition);
        let observations = match definition {
            Some(definition) => observations::of(&engine.ports, definition).await?,
            None => Observations::new(),
        };
        if changes(loaded, definition, &observations, tick.now) {
            letters.push(Message::Evaluate { to, because: format!("sweep {}", tick.now.0) }.letter());
        }
    }
    letters.extend(overdue(engine, repositories, tick).await?);
    Ok(letters)
}

fn changes(loaded: &Loaded, definition: Option<&Definition>, observations: &Observations, now: Timestamp) -> bool {
    let facts = Facts { now, cause: Cause::default(), definition, observations };
    matches!(decide(&loaded.x, Input::Evaluate, &facts), Decision::Commit(_))
}

/// Looks at repositories that should have happened.
async fn overdue<P: Ports>(
    engine: &Promotions<P>,
    repositories: BTreeSet<String>,
    tick: &mut Tick,
) -> Result<Vec<Letter>, PortError> {
    let keys: BTreeMap<Key, String> =
        repositories.into_iter().filter(|url| tick.once.insert(url.clone())).map(|url| (keys::repository(&url), url)).collect();
    let items = table::read(&engine.ports, &keys.keys().cloned().collect::<Vec<_>>()).await?;
    let mut letters = vec![];
    for (key, repository) in keys {
        match watch::next(items.get(&key)) {
            Some(at) if tick.overdue(Some(at)) => letters.push(Job::Look { repository, at }.letter()),
            Some(_) => {}
            // Whoever opened the pull request stopped before this was planned.
            None => watch::plan(&engine.ports, &repository).await?,
        }
    }
    Ok(letters)
}
