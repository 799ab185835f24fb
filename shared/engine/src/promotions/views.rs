//! What the API reads of pipelines, and what it hands in. Reads are strongly consistent.

use super::definitions;
use super::message::{Address, Message};
use super::watch::{self, Look};
use super::{Loaded, Promotions, keys, observations};
use crate::item::{Item, Key};
use crate::ports::{Condition, Cursor, PortError, Ports, Query, Write, Written};
use crate::protocol::declare::Declared;
use crate::table;
use keelway_domain::cause::Cause;
use keelway_domain::note::Note;
use keelway_domain::promotions::definition::{Definition, Strategy};
use keelway_domain::promotions::observe::Observations;
use keelway_domain::promotions::{Command, Decision, Facts, Input, Obeyed, Past, Pipeline, Promotion, Refused, decide};
use keelway_domain::time::{Span, Timestamp};
use std::collections::{BTreeMap, BTreeSet};

/// A pipeline as it is now, with everything a decision about it reads.
#[derive(Debug, Clone)]
pub struct View {
    /// Its state.
    pub state: Pipeline,
    /// What it is to do.
    pub applied: Declared<Definition>,
    /// What is known about its targets.
    pub observations: Observations,
    /// When each repository with an open pull request was last looked at, and what came of it: by URL and by whose credentials it
    /// takes.
    pub looks: BTreeMap<(String, String), Look>,
    /// When this was read.
    pub now: Timestamp,
}

/// The last look at the repository of a promotion, if it has one that is looked at.
pub fn looked_at<'v>(view: &'v View, promotion: &Promotion) -> Option<&'v Look> {
    view.looks.get(&place(&view.state.namespace, promotion)?)
}

/// Where the pull request of a promotion is, and whose credentials a look at it takes.
fn place(namespace: &str, promotion: &Promotion) -> Option<(String, String)> {
    match &promotion.strategy {
        Some(Strategy::PullRequest(request)) if promotion.is_watched() => {
            Some((request.url.clone(), watch::of(namespace, &request.secret)))
        }
        _ => None,
    }
}

/// What would become of a command if it were decided now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Forecast {
    /// It would change something.
    Changes,
    /// What it asks for is so already.
    AlreadySo,
    /// It would be refused.
    Refused(Refused),
}

/// A page of a pipeline's history.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct History {
    /// Promotions that are over, newest first.
    pub promotions: Vec<Past>,
    /// Commands that were obeyed, newest first.
    pub commands: Vec<Obeyed>,
    /// Where the next page begins.
    pub next: Option<String>,
}

impl View {
    /// The facts of a decision made now.
    pub fn facts(&self) -> Facts<'_> {
        Facts { now: self.now, cause: Cause::default(), definition: Some(&self.applied.spec), observations: &self.observations }
    }

    /// The state after an evaluation made now: what it is on the way to.
    pub fn evaluated(&self) -> Pipeline {
        match decide(&self.state, Input::Evaluate, &self.facts()) {
            Decision::Commit(transition) => transition.next,
            _ => self.state.clone(),
        }
    }

    /// What would become of a command if it were decided now.
    pub fn forecast(&self, command: &Command, note: &Note) -> Forecast {
        // Without its id the command leaves no trace but its effect.
        let note = Note { id: 0, ..note.clone() };
        match decide(&self.state, Input::Command(command, &note), &self.facts()) {
            Decision::Refused(refused) => Forecast::Refused(refused),
            Decision::Commit(transition) if transition.next != self.evaluated() => Forecast::Changes,
            _ => Forecast::AlreadySo,
        }
    }
}

impl<P: Ports> Promotions<P> {
    /// Now.
    pub fn now(&self) -> Timestamp {
        self.ports.now()
    }

    /// A pipeline as it is now; `None`: none is applied under this name.
    ///
    /// # Errors
    /// Of the ports.
    pub async fn view(&self, of: &Address) -> Result<Option<View>, PortError> {
        let (definition, state) = (keys::definition(of), keys::pipeline(of));
        let items = table::read(&self.ports, &[definition.clone(), state.clone()]).await?;
        let Some(applied) = items.get(&definition).map(definitions::read).transpose()?.flatten() else { return Ok(None) };
        let now = self.ports.now();
        let loaded = items.get(&state).map(Loaded::read).transpose()?;
        let state = loaded.map_or_else(|| Pipeline::new(&of.namespace, &of.name, now), |loaded| loaded.x);
        let observations = observations::of(&self.ports, of, &applied.spec).await?;
        let looks = self.looks(&state).await?;
        Ok(Some(View { state, applied, observations, looks, now }))
    }

    /// The last looks at the repositories of a pipeline's open pull requests. Without one, nothing is read.
    async fn looks(&self, x: &Pipeline) -> Result<BTreeMap<(String, String), Look>, PortError> {
        let watched = x.environments.values().filter_map(|state| place(&x.namespace, state.promotion.as_ref()?));
        let wanted: BTreeSet<(String, String)> = watched.collect();
        let urls: BTreeSet<Key> = wanted.iter().map(|(url, _)| keys::repository(url)).collect();
        let items = table::read(&self.ports, &urls.into_iter().collect::<Vec<_>>()).await?;
        let last = |place: (String, String)| {
            let look = watch::last(items.get(&keys::repository(&place.0)), &place.1)?;
            Some((place, look))
        };
        Ok(wanted.into_iter().filter_map(last).collect())
    }

    /// The states of pipelines, in the order asked for; `None`: it has none yet.
    ///
    /// # Errors
    /// Of the ports.
    pub async fn states(&self, of: &[Address]) -> Result<Vec<Option<Pipeline>>, PortError> {
        let wanted: Vec<Key> = of.iter().map(keys::pipeline).collect();
        let items = table::read(&self.ports, &wanted).await?;
        let read = |key: &Key| items.get(key).map(Loaded::read).transpose().map(|loaded| loaded.map(|loaded| loaded.x));
        wanted.iter().map(read).collect()
    }

    /// A page of a pipeline's history, newest first. `after`: where the page before ended.
    ///
    /// # Errors
    /// Of the ports.
    pub async fn history(&self, of: &Address, after: Option<&str>, limit: u32) -> Result<History, PortError> {
        let partition = keys::pipeline_partition(of);
        let place = |sort: &str| Key::new(partition.clone(), format!("{}{sort}", keys::HISTORY));
        let cursor = after.map(|sort| Cursor { key: place(sort), index_sort: None });
        let query = Query::table(partition.clone(), limit).prefix(keys::HISTORY).newest_first().after(cursor);
        let page = self.ports.query(&query).await?;
        let next = page.next.map(|next| next.key.sk.trim_start_matches(keys::HISTORY).to_owned());
        let mut history = History { next, ..History::default() };
        for item in &page.items {
            history.promotions.extend(crate::json::member::<Option<Past>>(item, "j")?);
            history.commands.extend(crate::json::member::<Option<Obeyed>>(item, "c")?);
        }
        Ok(history)
    }

    /// Hands a command in. It is decided like any other message; [`Pipeline::obeyed`] shows when it was obeyed.
    ///
    /// # Errors
    /// Of the queue.
    pub async fn hand_in(&self, to: &Address, command: &Command, note: &Note) -> Result<(), PortError> {
        let message = Message::Command { to: to.clone(), command: command.clone(), note: note.clone() };
        table::send_all(&self.ports, &[message.letter()]).await
    }

    /// Remembers a nonce for at least this time. `false`: it was remembered before.
    ///
    /// # Errors
    /// Of the store.
    pub async fn remember_nonce(&self, scope: &str, nonce: &str, keep: Span) -> Result<bool, PortError> {
        let expires = self.ports.now() + keep;
        let item = Item::new(keys::nonce(scope, nonce)).with("ttl", expires.0 / 1000 + 1);
        Ok(self.ports.write(&Write::Put(item, Condition::Absent)).await? == Written::Done)
    }

    /// Has a repository looked at now, if a pull request of ours is open there. Nothing else follows from it: what became of the
    /// pull request is read from the host.
    ///
    /// # Errors
    /// Of the ports.
    pub async fn look_at(&self, repository: &str) -> Result<bool, PortError> {
        watch::now(&self.ports, repository).await
    }
}
