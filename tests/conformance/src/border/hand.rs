//! A worker's engines: all of them, and what carries their work out. What a message is for, its queue says.

use super::planted::{Plant, Planted};
use super::yard::{Kube, Move, lock};
use crate::engines::{BySequence, Engines};
use crate::sim::{Hands, Outcome};
use keelway_domain::border::ResourceKind;
use keelway_domain::deployments::definition::{Action, Definition, Tagged};
use keelway_domain::deployments::{Call, Desired, LEASE, Progress, Reply, SOURCE, template};
use keelway_domain::stored::Stored;
use keelway_engine::border::Border;
use keelway_engine::deployments::{self, Job};
use keelway_engine::ports::PortError;
use keelway_engine::promotions::observer::Observer;
use keelway_engine::promotions::{self, Promotions};
use keelway_engine::protocol::{Handled, dead_letter};
use keelway_world::exec;
use keelway_world::queue::{Parcel, Received};
use keelway_world::story::play;
use keelway_world::worker::Worker;
use std::sync::Arc;

/// A worker's engines.
pub struct Hand {
    /// All of them.
    pub engines: Engines<BySequence>,
    /// Their ports.
    pub ports: Planted,
    observer: Observer<Worker, Kube>,
}

impl Hand {
    /// On these ports.
    pub fn new(ports: Planted) -> Self {
        let pipelines = Promotions::new(ports.ports().clone(), promotions::Limits::default());
        Self {
            engines: Engines::new(|_| ports.ports().clone(), BySequence),
            observer: Observer::new(pipelines, Kube(ports.clone())),
            ports,
        }
    }

    /// Keelway's own deployer: moves the aliases, and then tags, in one step here. It asks for each function, as the deployers'
    /// function does.
    async fn deploy(&self, job: &Job) -> Result<Handled, PortError> {
        // Nobody else moves aliases here.
        let Job::Start { of, n, attempt, .. } = job else { return Ok(Handled::Stale) };
        let token = format!("token {}", self.ports.began());
        let claim = Call::Claim { by: SOURCE.into(), id: n << 32 | u64::from(*attempt), token: token.clone(), lease: LEASE };
        let told = self.engines.configs.say(of, *n, &claim).await?;
        let (Reply::Desired(desired), Some(x)) = (told.reply, told.config) else { return Ok(Handled::Stale) };
        let Some(d) = x.last.as_ref().filter(|d| (d.n, d.attempt) == (*n, *attempt)) else { return Ok(Handled::Stale) };
        let Some(snapshot) = self.engines.configs.snapshot(of, *n, d.snapshot).await? else { return Ok(Handled::Stale) };
        let failed = match desired {
            Desired::Cancel => Some("cancelled".to_owned()),
            _ => self.carry(&of.namespace, &snapshot.definition, d.since).await?,
        };
        if failed.is_some() && of.namespace == super::THEIRS {
            lock(&self.ports.yard).refused += 1;
        }
        let exit = Some(i64::from(failed.is_some()));
        let end = Call::End { token, exit, message: failed.unwrap_or_default(), progress: Progress::default() };
        Ok(match self.engines.configs.say(of, *n, &end).await?.reply {
            Reply::Desired(_) => Handled::Committed,
            Reply::Refused(_) => Handled::Stale,
        })
    }

    /// Carries a version out; why it failed, if it did.
    async fn carry(
        &self,
        namespace: &str,
        definition: &Definition,
        at: keelway_domain::time::Timestamp,
    ) -> Result<Option<String>, PortError> {
        let border = Border::of(self.ports.ports(), namespace).await?;
        for (_, resource) in definition.resources() {
            let permitted = match resource.map(|resource| border.permit(resource, definition.vouched, &self.engines.configs.home()))
            {
                Ok(Ok(permitted)) => permitted,
                Ok(Err(denied)) => return Ok(Some(denied.to_string())),
                Err(unreadable) => return Ok(Some(unreadable.to_string())),
            };
            if permitted.resource().kind != ResourceKind::Functions {
                continue;
            }
            let function = permitted.resource().name.clone();
            let moves = |_| {
                let (project, function, since) = (namespace.to_owned(), function.clone(), self.ports.began());
                lock(&self.ports.yard).moves.push(Move { project, function, since });
            };
            self.ports.inner.outside(|| format!("move the alias of {function}"), moves).await?;
        }
        let images = template::images(&definition.template);
        let Some(Action::TagImages(tags)) = definition.strategy.hooks.post.as_ref().map(|hook| &hook.action) else {
            return Ok(None);
        };
        for Tagged { container, to } in tags {
            let Some(image) = images.get(container) else { continue };
            if let Err(no) = self.engines.configs.tagged(namespace, to, image, at).await? {
                return Ok(Some(no.to_string()));
            }
        }
        Ok(None)
    }

    /// What arrived, as engines take it that do not look at sources.
    fn taken(&self, mut received: Received) -> Received {
        let (engine, plant) = (received.engine.clone(), self.ports.plant);
        if let Parcel::Event(event) = &mut received.parcel {
            match plant {
                Some(Plant::TaskOfAnySource) if engine == deployments::NAME => event.source = keelway_domain::event::SOURCE.into(),
                Some(Plant::FactOfAnySource) if engine == promotions::NAME => event.source = SOURCE.into(),
                _ => {}
            }
        }
        received
    }
}

impl Hands for Hand {
    fn handle(self: Arc<Self>, received: Received) -> exec::Task<Outcome> {
        let received = self.taken(received);
        Box::pin(async move {
            let handled = match received.engine.as_str() {
                promotions::OBSERVER => play(&self.observer, &received).await,
                deployments::DEPLOYERS => {
                    let job = match &received.parcel {
                        Parcel::Own(text) => Job::from_json(text).ok(),
                        Parcel::Event(_) | Parcel::Invalid { .. } => None,
                    };
                    let Some(job) = job else { return Ok(Some(Handled::Invalid)) };
                    let done = self.deploy(&job).await?;
                    if let Some(letter) = &received.letter {
                        dead_letter::handled(self.ports.ports(), letter).await?;
                    }
                    Ok(done)
                }
                _ => self.engines.handle(&received).await,
            };
            handled.map(Some)
        })
    }
    /// Clusters are read when somebody asks: where requests take seconds, one would be due again after each sweep.
    fn sweep(self: Arc<Self>) -> exec::Task<Outcome> {
        Box::pin(async move { self.engines.sweep(self.ports.ports()).await })
    }
}
