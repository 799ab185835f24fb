//! One look at a repository. Every pipeline with an open pull request there gets its state.

use super::{Attempts, Outside, Sight, Task, promotion, task};
use crate::item::{Item, Key};
use crate::ports::{PortError, Ports, Query};
use crate::promotions::keys;
use crate::promotions::message::{Address, Message};
use crate::promotions::watch::{self, Trouble, Troubles};
use crate::protocol::work::{Claim, Work};
use crate::protocol::{Handled, Letter, Loaded, fact};
use crate::table;
use keelway_domain::condition::Condition;
use keelway_domain::promotions::definition::{PullRequest, Strategy};
use keelway_domain::promotions::{Attempt, Made, Phase, Pipeline, Seen};
use keelway_domain::stored::Stored;
use keelway_domain::time::{Span, Timestamp};
use std::collections::BTreeSet;

/// The most open pull requests of one repository in one look.
const REQUESTS: usize = 1000;

pub(super) struct Look<'a, P, O> {
    pub on: &'a Attempts<P, O>,
    pub repository: &'a str,
    pub at: Timestamp,
    pub again: bool,
}

/// The pull requests that are looked at.
#[derive(Default)]
pub(super) struct Watched {
    tasks: Vec<Task>,
    /// Those that were reported as not seen for a while.
    unobserved: Vec<bool>,
    /// The time of the youngest attempt.
    youngest: Option<Timestamp>,
}

impl<P: Ports, O: Outside> Work for Look<'_, P, O> {
    /// The item of the repository.
    type Found = Option<Item>;
    /// The pull requests, and the item that stores the look.
    type Task = (Watched, Item);
    type Outcome = Sight;

    async fn find(&self) -> Result<Option<Self::Found>, PortError> {
        self.on.pipelines.ports.get(&keys::repository(self.repository)).await.map(Some)
    }

    async fn claim(&self, item: &Self::Found) -> Result<Claim<Self::Task>, PortError> {
        let (ports, item) = (&self.on.pipelines.ports, item.as_ref());
        // An earlier delivery may have begun this look, and then stopped.
        let begun = self.again && watch::is_held(item, self.at);
        if watch::next(item) != Some(self.at) && !begun {
            return Ok(Claim::Unwanted);
        }
        if ports.now() < self.at {
            watch::arm(ports, self.repository, self.at).await?;
            return Ok(Claim::Not(Handled::Settled));
        }
        let watched = self.watched().await?;
        if watched.tasks.is_empty() {
            let _ = watch::write(ports, self.repository, item, None, Default::default()).await?;
            return Ok(Claim::Not(Handled::Settled));
        }
        // The same look may be in progress, because a webhook or the sweep has sent its message again.
        let held = watch::take(ports, self.repository, item, self.at).await?;
        Ok(held.map_or(Claim::Not(Handled::Stale), |held| Claim::Mine((watched, held))))
    }

    async fn outside(&self, item: &Self::Found, (watched, _): &Self::Task) -> Result<Option<Sight>, PortError> {
        let mark = item.as_ref().and_then(|item| item.text("etag"));
        self.on.outside.look(self.repository, &watched.tasks, mark).await.map(Some)
    }

    async fn tell(&self, item: &Self::Found, (watched, held): Self::Task, sight: Sight) -> Result<Handled, PortError> {
        let ports = &self.on.pipelines.ports;
        let (troubles, news) = troubled(&sight, &watched, (item.as_ref(), ports.now()));
        let told = watched.tasks.iter().zip(news).filter_map(|(task, seen)| Some(self.letter(task, seen?)));
        table::send_all(ports, &told.collect::<Vec<_>>()).await?;
        let age = watched.youngest.map_or(Span(0), |youngest| ports.now() - youngest);
        let next = (ports.now() + watch::pause(age)).max(sight.not_before.unwrap_or_default());
        let remembered = (sight.mark.as_deref(), sight.not_before);
        watch::end(ports, self.repository, held, next, &watch::seen(remembered, ports.now(), &troubles)).await?;
        Ok(Handled::Committed)
    }

    /// An earlier delivery may have planned the next look, and then stopped before it scheduled it.
    async fn owed(&self, item: &Self::Found) -> Result<(), PortError> {
        match watch::next(item.as_ref()) {
            Some(planned) => watch::arm(&self.on.pipelines.ports, self.repository, planned).await,
            None => Ok(()),
        }
    }
}

impl<P: Ports, O: Outside> Look<'_, P, O> {
    /// The open pull requests of the repository that pipelines still await.
    async fn watched(&self) -> Result<Watched, PortError> {
        let ports = &self.on.pipelines.ports;
        let query = Query::table(keys::repository_partition(self.repository), 100).prefix(keys::OPEN);
        let (entries, _) = table::all(ports, query, REQUESTS).await?;
        let awaited: Vec<(Address, Attempt)> = entries.iter().filter_map(entry).collect();
        // A pipeline may have several of them.
        let wanted: BTreeSet<Key> = awaited.iter().map(|(of, _)| keys::pipeline(of)).collect();
        let states = table::read(ports, &wanted.into_iter().collect::<Vec<_>>()).await?;
        let mut watched = Watched::default();
        for (of, attempt) in awaited {
            let x = states.get(&keys::pipeline(&of)).map(Loaded::<Pipeline>::read).transpose()?.map(|loaded| loaded.x);
            let open = x.as_ref().and_then(|x| promotion(x, &attempt));
            let open = open.filter(|promotion| attempt.is_of(promotion) && promotion.is_watched());
            match open.and_then(|promotion| Some((promotion, task(&of, &attempt, promotion)?))) {
                Some((promotion, task)) => {
                    watched.youngest = watched.youngest.max(promotion.attempted);
                    watched.unobserved.push(promotion.is_unobserved());
                    watched.tasks.push(if promotion.phase == Phase::Created { task } else { only_looked_at(task) });
                }
                None => watch::forget(ports, self.repository, &of, &attempt).await?,
            }
        }
        Ok(watched)
    }

    fn letter(&self, task: &Task, seen: Seen) -> Letter {
        let repository = Some(self.repository.to_owned());
        Message::Seen { to: task.of.clone(), attempt: task.attempt.clone(), seen, repository }.letter()
    }
}

/// The troubles of a repository after this look, and the message about each pull request: its state, or that it has been unreadable
/// for a while.
fn troubled(sight: &Sight, watched: &Watched, (item, now): (Option<&Item>, Timestamp)) -> (Troubles, Vec<Option<Seen>>) {
    let Watched { tasks, unobserved, .. } = watched;
    let known = watch::troubles(item);
    let mut troubles = Troubles::new();
    let mut news = vec![];
    for (n, task) in tasks.iter().enumerate() {
        let seen = sight.requests.get(n).cloned().flatten();
        let Some(why) = sight.failed.get(n).and_then(Option::as_ref) else {
            // The host answers again.
            let back = task.made.clone().filter(|_| unobserved[n]).map(Seen::Open);
            news.push(seen.or(back));
            continue;
        };
        let whose = whose(task);
        let trouble = Trouble::after(known.get(&whose), why, now);
        let for_long = |since: Option<Timestamp>, most: Span| since.is_some_and(|since| now - since >= most);
        let url = match &task.made {
            Some(Made::PullRequest { url, .. }) => url.as_str(),
            _ => "its pull request",
        };
        let since = trouble.since.rfc3339();
        news.push(if for_long(trouble.missing, watch::GIVEN_UP) {
            Some(Seen::Missing(format!("the repository of {url} has not been there for a day: {}", why.message)))
        } else if for_long(Some(trouble.since), watch::TOLD)
            && known.get(&whose).is_none_or(|known| known.why.reason != why.reason || !unobserved[n])
        {
            let message = format!("{url} waits to be merged, but has not been seen since {since}: {}", why.message);
            Some(Seen::Unobserved(Condition::new(&why.reason, message)))
        } else {
            None
        });
        troubles.insert(whose, trouble);
    }
    (troubles, news)
}

/// The credentials of a look for a task.
fn whose(task: &Task) -> String {
    let secret = match &task.strategy {
        Strategy::PullRequest(request) => request.secret.as_str(),
        _ => "",
    };
    watch::of(&task.of.namespace, secret)
}

/// A failed pull request is not merged by Keelway any more; only a person may have merged it.
fn only_looked_at(task: Task) -> Task {
    match task.strategy {
        Strategy::PullRequest(request) => Task { strategy: Strategy::PullRequest(PullRequest { merge: false, ..request }), ..task },
        _ => task,
    }
}

/// The pipeline and the attempt of an entry in a repository's list.
fn entry(item: &Item) -> Option<(Address, Attempt)> {
    let of = fact::entered(item)?;
    Some((of, Attempt::from_json(item.text("j")?).ok()?))
}
