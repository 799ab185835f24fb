//! The reads and commands of the API about configs. Reads are strongly consistent, except the list of all deployments of the
//! installation.

use super::message::{Address, Message};
use super::{Deployments, Kept, Loaded, configs, deployers, images, keys};
use crate::item::Key;
use crate::json::stored;
use crate::ports::{Cursor, PortError, Ports, Query};
use crate::protocol::open::{self, Open};
use crate::table;
use keelway_domain::cause::Cause;
use keelway_domain::deployments::definition::ImageTag;
use keelway_domain::deployments::registry::Heads;
use keelway_domain::deployments::template;
use keelway_domain::deployments::{Applied, Command, Config, Decision, Facts, Input, Obeyed, Past, Refused, Sight, decide, target};
use keelway_domain::names::ProjectName;
use keelway_domain::note::Note;
use keelway_domain::time::Timestamp;
use std::collections::BTreeSet;

/// The present state of a config, with everything that a decision reads.
#[derive(Debug, Clone)]
pub struct View {
    /// Its state.
    pub state: Config,
    /// What it says.
    pub applied: Applied,
    /// The text of the manifest. `None`: a rollback has changed the definition since.
    pub source: Option<String>,
    /// The images of the tags that it watches.
    pub heads: Heads,
    /// The time of the read.
    pub now: Timestamp,
}

/// An entry of a config's audit.
#[derive(Debug, Clone, PartialEq)]
pub enum Entry {
    /// A command that was obeyed.
    Command(Box<Obeyed>),
    /// A deployer's report that came too late or from another deployer; or a task for which its sequence no longer waited.
    Stray {
        /// When.
        at: Timestamp,
        /// What it said.
        said: String,
    },
    /// Drift: targets that serve something that was not deployed there.
    Drift {
        /// When it was seen.
        at: Timestamp,
        /// What they serve.
        said: String,
    },
}

impl<P: Ports> Deployments<P> {
    /// The present time.
    pub fn now(&self) -> Timestamp {
        self.ports.now()
    }

    /// The present state of a config. `None`: no definition of this name is in force.
    ///
    /// # Errors
    /// A port fails.
    pub async fn view(&self, of: &Address) -> Result<Option<View>, PortError> {
        let (definition, state) = (keys::definition(of), keys::config(of));
        let items = table::read(&self.ports, &[definition.clone(), state.clone()]).await?;
        let Some((applied, source)) = items.get(&definition).map(configs::read).transpose()?.flatten() else { return Ok(None) };
        let now = self.ports.now();
        let loaded = items.get(&state).map(Loaded::read).transpose()?;
        let state = loaded.map_or_else(|| Config::new(&of.namespace, &of.name, now), |loaded| loaded.x);
        let heads = images::of(&self.ports, of, &applied.definition).await?;
        Ok(Some(View { state, applied, source, heads, now }))
    }

    /// The states of configs, in the requested order. `None`: it has no state yet.
    ///
    /// # Errors
    /// A port fails.
    pub async fn states(&self, of: &[Address]) -> Result<Vec<Option<Config>>, PortError> {
        let wanted: Vec<Key> = of.iter().map(keys::config).collect();
        let items = table::read(&self.ports, &wanted).await?;
        let read = |key: &Key| items.get(key).map(Loaded::read).transpose().map(|loaded| loaded.map(|loaded| loaded.x));
        wanted.iter().map(read).collect()
    }

    /// The states of all configs `among` some projects, or of all, the oldest `most`.
    ///
    /// # Errors
    /// A port fails.
    pub async fn there(&self, among: Option<&[ProjectName]>, most: usize) -> Result<Open<Config>, PortError> {
        open::open(&self.ports, among, most).await
    }

    /// The decision about a command at this moment, without effects. `Ok`: it would be obeyed, or was obeyed already.
    ///
    /// # Errors
    /// A port fails.
    pub async fn forecast(
        &self,
        of: &Address,
        view: &View,
        command: &Command,
        note: &Note,
    ) -> Result<Result<Option<Config>, Refused>, PortError> {
        let input = Input::Command(command, note);
        let (target, damaged) = match target(&view.state, input, Some(&view.applied)) {
            Some(n) => super::parts(self.version(of, n).await?),
            None => (None, None),
        };
        let facts = Facts {
            now: view.now,
            cause: Cause::default(),
            applied: Some(&view.applied),
            heads: &view.heads,
            target: target.as_ref(),
            damaged: damaged.as_deref(),
        };
        Ok(match decide(&view.state, input, &facts) {
            Decision::Refused(refused) => Err(refused),
            Decision::Commit(transition) => Ok(Some(transition.next)),
            Decision::Settle | Decision::Late => Ok(None),
        })
    }

    /// A version that has ended: its last attempt and its snapshot. `None`: it does not exist, or not any more.
    ///
    /// # Errors
    /// A port fails.
    pub async fn ended(&self, of: &Address, n: u64) -> Result<Kept, PortError> {
        self.version(of, n).await
    }

    /// A page of the attempts of a config that have ended, newest first, and where the next one begins.
    ///
    /// # Errors
    /// A port fails.
    pub async fn history(&self, of: &Address, after: Option<&str>, limit: u32) -> Result<(Vec<Past>, Option<String>), PortError> {
        let partition = keys::partition(of);
        let cursor =
            after.map(|sort| Cursor { key: Key::new(partition.clone(), format!("{}{sort}", keys::PAST)), index_sort: None });
        let query = Query::table(partition.clone(), limit).prefix(keys::PAST).newest_first().after(cursor);
        let page = self.ports.query(&query).await?;
        let mut all = vec![];
        for item in &page.items {
            all.extend(stored::<Past>(item, "j")?);
        }
        Ok((all, page.next.map(|next| next.key.sk.trim_start_matches(keys::PAST).to_owned())))
    }

    /// A page of a config's audit, newest first, and where the next one begins.
    ///
    /// # Errors
    /// A port fails.
    pub async fn audit(&self, of: &Address, after: Option<&str>, limit: u32) -> Result<(Vec<Entry>, Option<String>), PortError> {
        let partition = keys::partition(of);
        let cursor =
            after.map(|sort| Cursor { key: Key::new(partition.clone(), format!("{}{sort}", keys::AUDIT)), index_sort: None });
        let query = Query::table(partition.clone(), limit).prefix(keys::AUDIT).newest_first().after(cursor);
        let page = self.ports.query(&query).await?;
        let mut all = vec![];
        for item in &page.items {
            all.extend(deployers::command(item)?.map(|obeyed| Entry::Command(Box::new(obeyed))));
            let at = item.key.sk.trim_start_matches(keys::AUDIT).split('#').next().and_then(|ms| ms.parse().ok()).map(Timestamp);
            all.extend(deployers::stray(item)?.zip(at).map(|(said, at)| Entry::Stray { at, said }));
            all.extend(deployers::drift(item)?.zip(at).map(|(said, at)| Entry::Drift { at, said }));
        }
        Ok((all, page.next.map(|next| next.key.sk.trim_start_matches(keys::AUDIT).to_owned())))
    }

    /// Which of these images were deleted at their source, as far as sources of this namespace tell.
    ///
    /// # Errors
    /// A port fails.
    pub async fn gone(&self, sources: &[(String, String)], digests: &[String]) -> Result<Vec<String>, PortError> {
        let key = |(namespace, name): &(String, String), digest: &String| keys::image(namespace, name, digest);
        let pairs: Vec<(Key, (&str, &str), &String)> = sources
            .iter()
            .flat_map(|of| digests.iter().map(move |digest| (key(of, digest), (of.0.as_str(), of.1.as_str()), digest)))
            .collect();
        if pairs.is_empty() {
            return Ok(vec![]);
        }
        let items = table::read(&self.ports, &pairs.iter().map(|(key, ..)| key.clone()).collect::<Vec<_>>()).await?;
        let mut told = vec![];
        for (key, of, digest) in pairs {
            let item = items.get(&key).filter(|item| images::is_of(item, of));
            told.extend(item.map(images::presence).transpose()?.map(|image| (image, of, digest)));
        }
        // A tag that it had may be another image's by now.
        let head =
            |of: (&str, &str), tag: &str| keys::head(&ImageTag { namespace: of.0.into(), name: of.1.into(), tag: tag.into() });
        let heads: BTreeSet<Key> = told.iter().flat_map(|(image, of, _)| image.remains().map(|(tag, _)| head(*of, tag))).collect();
        let heads = table::read(&self.ports, &heads.into_iter().collect::<Vec<_>>()).await?;
        let mut gone = vec![];
        for (image, of, digest) in told {
            let moved = |tag: &str, at: Timestamp| {
                let head = heads.get(&head(of, tag)).and_then(|item| images::read(item, of).ok()?);
                head.is_some_and(|head| head.at >= at && template::digest(&head.image) != digest)
            };
            gone.extend(image.is_gone(moved).then(|| digest.clone()));
        }
        gone.dedup();
        Ok(gone)
    }

    /// Sends a config the result of a check of its targets.
    ///
    /// # Errors
    /// The queue fails.
    pub async fn saw(&self, to: &Address, sight: Sight) -> Result<(), PortError> {
        table::send_all(&self.ports, &[Message::Saw { to: to.clone(), sight }.letter()]).await
    }

    /// Sends a command to the engine, which decides it like any other message. [`Config::obeyed`] shows when it was obeyed.
    ///
    /// # Errors
    /// The queue fails.
    pub async fn hand_in(&self, to: &Address, command: &Command, note: &Note) -> Result<(), PortError> {
        let message = Message::Command { to: to.clone(), command: command.clone(), note: note.clone() };
        table::send_all(&self.ports, &[message.letter()]).await
    }
}
