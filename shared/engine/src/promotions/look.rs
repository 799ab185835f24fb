//! Finds pipelines that have something to do because a message was lost, for the sweep.

use super::attempts::runs_sequence;
use super::message::{Address, Job, Message};
use super::subject::{Watch, open_requests};
use super::{Loaded, Promotions, definitions, keys, observations, watch};
use crate::item::Key;
use crate::ports::{PortError, Ports};
use crate::protocol::Letter;
use crate::protocol::sweep::Tick;
use crate::table;
use keelway_domain::cause::Cause;
use keelway_domain::level::Level as _;
use keelway_domain::promotions::definition::Definition;
use keelway_domain::promotions::observe::Observations;
use keelway_domain::promotions::{Decision, Facts, Input, decide};
use keelway_domain::time::Timestamp;
use std::collections::BTreeSet;

/// Evaluates open pipelines without committing: those that would change get a message. An idle pipeline costs its share of two
/// reads for all: of the definitions, and of their targets.
pub(super) async fn look<P: Ports>(engine: &Promotions<P>, open: &[Loaded], tick: &mut Tick) -> Result<Vec<Letter>, PortError> {
    let wanted: Vec<Key> = open.iter().map(|loaded| keys::definition(&loaded.x.address())).collect();
    let items = table::read(&engine.ports, &wanted).await?;
    let mut readable = vec![];
    for loaded in open {
        let to = loaded.x.address();
        match items.get(&keys::definition(&to)).map(definitions::read).transpose() {
            Ok(applied) => readable.push((loaded, to, applied.flatten().map(|applied| applied.spec))),
            // A definition that this code cannot read does not delay the others.
            Err(error) => tracing::error!(pipeline = %to, %error, "the sweep passes over a pipeline"),
        }
    }
    // Pipelines may share targets.
    let targets: BTreeSet<Key> =
        readable.iter().filter_map(|(_, _, definition)| definition.as_ref()).flat_map(observations::wanted).collect();
    let observed = table::read(&engine.ports, &targets.into_iter().collect::<Vec<_>>()).await?;
    let mut letters = vec![];
    let mut watched: Vec<(Address, Watch)> = vec![];
    for (loaded, to, definition) in readable {
        watched.extend(open_requests(&loaded.x).into_iter().map(|watch| (to.clone(), watch)));
        let observations = match &definition {
            Some(definition) => match observations::among(&engine.ports, &observed, &to, definition).await {
                Ok(observations) => observations,
                Err(error) if error.is_of_an_item() => {
                    tracing::error!(pipeline = %to, %error, "the sweep passes over a pipeline");
                    continue;
                }
                Err(error) => return Err(error),
            },
            None => Observations::new(),
        };
        // The message about the end of a sequence may have been lost.
        let sequences = loaded.x.environments.iter().filter(|(_, state)| state.promotion.as_ref().is_some_and(runs_sequence));
        letters.extend(sequences.map(|(environment, _)| {
            let because = format!("sweep {}", tick.now.0);
            Job::Follow { of: to.clone(), environment: environment.clone(), because }.letter()
        }));
        if changes(loaded, definition.as_ref(), &observations, tick.now) {
            letters.push(Message::Evaluate { to, because: format!("sweep {}", tick.now.0) }.letter());
        }
    }
    letters.extend(overdue(engine, &watched, tick).await?);
    Ok(letters)
}

fn changes(loaded: &Loaded, definition: Option<&Definition>, observations: &Observations, now: Timestamp) -> bool {
    let facts = Facts { now, cause: Cause::default(), definition, observations };
    matches!(decide(&loaded.x, Input::Evaluate, &facts), Decision::Commit(_))
}

/// Orders overdue looks at repositories. The worker that opened a pull request may have stopped before it was entered into the
/// repository's list; this enters it.
async fn overdue<P: Ports>(
    engine: &Promotions<P>,
    watched: &[(Address, Watch)],
    tick: &mut Tick,
) -> Result<Vec<Letter>, PortError> {
    let of_request = |(of, watch): &(Address, Watch)| keys::open_request(&watch.repository, of, &watch.attempt);
    let repositories: BTreeSet<&String> = watched.iter().map(|(_, watch)| &watch.repository).collect();
    let wanted = watched.iter().map(of_request).chain(repositories.iter().map(|url| keys::repository(url))).collect::<Vec<_>>();
    let items = table::read(&engine.ports, &wanted).await?;
    for one in watched {
        let planned = watch::next(items.get(&keys::repository(&one.1.repository))).is_some();
        if !planned || !items.contains_key(&of_request(one)) {
            watch::begin(&engine.ports, &one.0, &one.1).await?;
        }
    }
    let look = |repository: &&String| {
        let at = watch::next(items.get(&keys::repository(repository))).filter(|at| tick.overdue(Some(*at)))?;
        tick.once.insert((*repository).clone()).then(|| Job::Look { repository: (*repository).clone(), at }.letter())
    };
    Ok(repositories.iter().filter_map(look).collect())
}
