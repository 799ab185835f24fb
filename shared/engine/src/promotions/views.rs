//! The reads and commands of the API about pipelines. Reads are strongly consistent.

use super::definitions;
use super::message::{Address, Message};
use super::watch::{self, Look};
use super::{Loaded, Promotions, keys, observations};
use crate::item::{Item, Key};
use crate::ports::{Condition, Cursor, PortError, Ports, Query, Write, Written};
use crate::protocol::declare::Declared;
use crate::protocol::open::{self, Open};
use crate::table;
use keelway_domain::cause::Cause;
use keelway_domain::names::ProjectName;
use keelway_domain::note::Note;
use keelway_domain::promotions::definition::{Definition, Strategy};
use keelway_domain::promotions::observe::Observations;
use keelway_domain::promotions::{Command, Decision, Facts, Input, Obeyed, Past, Pipeline, Promotion, Refused, decide};
use keelway_domain::time::{Span, Timestamp};
use std::collections::{BTreeMap, BTreeSet};

/// The present state of a pipeline, with everything that a decision reads.
#[derive(Debug, Clone)]
pub struct View {
    /// Its state.
    pub state: Pipeline,
    /// What it is to do.
    pub applied: Declared<Definition>,
    /// What is known about its targets.
    pub observations: Observations,
    /// The last look at each repository with an open pull request, by URL and credentials.
    pub looks: BTreeMap<(String, String), Look>,
    /// The time of the read.
    pub now: Timestamp,
}

/// The last look at the repository of a promotion, if there is one.
pub fn looked_at<'v>(view: &'v View, promotion: &Promotion) -> Option<&'v Look> {
    view.looks.get(&place(&view.state.namespace, promotion)?)
}

/// The repository of a promotion's pull request, and the credentials for looks at it.
fn place(namespace: &str, promotion: &Promotion) -> Option<(String, String)> {
    match &promotion.strategy {
        Some(Strategy::PullRequest(request)) if promotion.is_watched() => {
            Some((request.url.clone(), watch::of(namespace, &request.secret)))
        }
        _ => None,
    }
}

/// The decision about a command at this moment, without effects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Forecast {
    /// The command would change something.
    Changes,
    /// The command was obeyed already.
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

    /// The state after an evaluation at this moment.
    pub fn evaluated(&self) -> Pipeline {
        match decide(&self.state, Input::Evaluate, &self.facts()) {
            Decision::Commit(transition) => transition.next,
            _ => self.state.clone(),
        }
    }

    /// The decision about a command at this moment, without effects.
    pub fn forecast(&self, command: &Command, note: &Note) -> Forecast {
        // Without its id, the command changes nothing in the state except its effect.
        let note = Note { id: 0, ..note.clone() };
        match decide(&self.state, Input::Command(command, &note), &self.facts()) {
            Decision::Refused(refused) => Forecast::Refused(refused),
            Decision::Commit(transition) if transition.next != self.evaluated() => Forecast::Changes,
            _ => Forecast::AlreadySo,
        }
    }
}

impl<P: Ports> Promotions<P> {
    /// The present time.
    pub fn now(&self) -> Timestamp {
        self.ports.now()
    }

    /// The present state of a pipeline. `None`: no definition of this name is in force.
    ///
    /// # Errors
    /// A port fails.
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

    /// The last looks at the repositories of a pipeline's open pull requests. Without open ones, nothing is read.
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

    /// The states of pipelines, in the requested order. `None`: it has no state yet.
    ///
    /// # Errors
    /// A port fails.
    pub async fn states(&self, of: &[Address]) -> Result<Vec<Option<Pipeline>>, PortError> {
        let wanted: Vec<Key> = of.iter().map(keys::pipeline).collect();
        let items = table::read(&self.ports, &wanted).await?;
        let read = |key: &Key| items.get(key).map(Loaded::read).transpose().map(|loaded| loaded.map(|loaded| loaded.x));
        wanted.iter().map(read).collect()
    }

    /// The states of all pipelines `among` some projects, or of all, the oldest `most`.
    ///
    /// # Errors
    /// A port fails.
    pub async fn there(&self, among: Option<&[ProjectName]>, most: usize) -> Result<Open<Pipeline>, PortError> {
        open::open(&self.ports, among, most).await
    }

    /// A page of a pipeline's history, newest first. `after`: where the page before ended.
    ///
    /// # Errors
    /// A port fails.
    pub async fn history(&self, of: &Address, after: Option<&str>, limit: u32) -> Result<History, PortError> {
        let partition = keys::pipeline_partition(of);
        let place = |sort: &str| Key::new(partition.clone(), format!("{}{sort}", keys::HISTORY));
        let cursor = after.map(|sort| Cursor { key: place(sort), index_sort: None });
        let query = Query::table(partition.clone(), limit).prefix(keys::HISTORY).newest_first().after(cursor);
        let page = self.ports.query(&query).await?;
        let next = page.next.map(|next| next.key.sk.trim_start_matches(keys::HISTORY).to_owned());
        let mut history = History { next, ..History::default() };
        for item in &page.items {
            history.promotions.extend(crate::json::stored::<Past>(item, "j")?);
            history.commands.extend(crate::json::stored::<Obeyed>(item, "c")?);
        }
        Ok(history)
    }

    /// Sends a command to the engine, which decides it like any other message. [`Pipeline::obeyed`] shows when it was obeyed.
    ///
    /// # Errors
    /// The queue fails.
    pub async fn hand_in(&self, to: &Address, command: &Command, note: &Note) -> Result<(), PortError> {
        let message = Message::Command { to: to.clone(), command: command.clone(), note: note.clone() };
        table::send_all(&self.ports, &[message.letter()]).await
    }

    /// Stores a nonce for at least this time. `false`: it was stored before.
    ///
    /// # Errors
    /// The store fails.
    pub async fn remember_nonce(&self, scope: &str, nonce: &str, keep: Span) -> Result<bool, PortError> {
        let expires = self.ports.now() + keep;
        let item = Item::new(keys::nonce(scope, nonce)).with("ttl", expires.0 / 1000 + 1);
        Ok(self.ports.write(&Write::Put(item, Condition::Absent)).await? == Written::Done)
    }

    /// Orders a look at a repository, if Keelway has an open pull request there. It has no other effect: the state of the pull
    /// request is read from the host.
    ///
    /// # Errors
    /// A port fails.
    pub async fn look_at(&self, repository: &str) -> Result<bool, PortError> {
        watch::now(&self.ports, repository).await
    }
}
