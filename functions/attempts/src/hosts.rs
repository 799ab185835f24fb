//! The git host of a pull request, with the address of its API and the credentials.

use keelway_domain::condition::Condition;
use keelway_domain::promotions::definition::{PullRequest, Strategy};
use keelway_domain::promotions::{Failure, Retry};
use keelway_engine::ports::Ports;
use keelway_engine::promotions::attempts::Task;
use keelway_engine::promotions::{Promotions, credentials};
use keelway_engine::remembered::Remembered;
use keelway_engine::secrets::{SecretText, Secrets};
use keelway_githosts::{Api, Credentials, Form, Host, Patience, Repository};
use keelway_outgoing::Guard;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// The most hosts that are cached with their connections. When there are more, the cache is emptied.
const KEPT: usize = 64;

fn failure(reason: &str, message: String) -> Failure {
    Failure { why: Condition::new(reason, message), retry: Retry::Backoff }
}

/// The settings of a pull request.
pub fn place(task: &Task) -> Option<&PullRequest> {
    match &task.strategy {
        Strategy::PullRequest(request) => Some(request),
        _ => None,
    }
}

/// The cached hosts by name and base of the API, and by name of the secret; each with the secret that it uses.
type Made = HashMap<(String, String), (SecretText, Arc<Host>)>;

/// The git hosts with their credentials and connections.
pub struct Hosts<P> {
    pipelines: Promotions<P>,
    secrets: Remembered<P>,
    guard: Guard,
    patience: Patience,
    made: Mutex<Made>,
}

impl<P: Ports + Secrets> Hosts<P> {
    /// The registered hosts with these secrets, as far as the guard permits requests to them.
    pub fn new(pipelines: Promotions<P>, secrets: Remembered<P>, guard: Guard) -> Self {
        Self { pipelines, secrets, guard, patience: Patience::NONE, made: Mutex::default() }
    }

    /// Sets how often requests are repeated.
    pub fn patient(self, patience: Patience) -> Self {
        Self { patience, ..self }
    }

    /// The host and the repository of a pull request.
    pub async fn of(&self, task: &Task, wanted: &PullRequest) -> Result<(Arc<Host>, Repository), Failure> {
        let form: Form = wanted.host.parse()?;
        let repository = Repository::parse(form, &wanted.url)?;
        let registered = self.pipelines.registered(wanted, repository.host()).await?;
        let api = match &registered {
            Some(known) => Api::at(form, &known.api)?,
            None => Api::of(&repository),
        };
        let at = credentials::Repository { host: repository.host(), resource: repository.resource() };
        let name = self.pipelines.credentials(task, wanted, registered.as_ref(), at).await?;
        let Some(text) = self.secrets.secret(&name).await? else {
            return Err(failure("SecretMissing", format!("there is no secret {name:?}: create it")));
        };
        Ok((self.host((&api, repository.host()), &name, text)?, repository))
    }

    /// The host of this name and API with this secret, from the cache if the secret is the same.
    fn host(&self, (api, called): (&Api, &str), name: &str, text: SecretText) -> Result<Arc<Host>, Failure> {
        let key = (format!("{called} {}", api.base()), name.to_owned());
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, host)) = made.get(&key).filter(|(known, _)| *known == text) {
            return Ok(host.clone());
        }
        let credentials = Credentials::parse(text.expose()).map_err(|error| {
            let message = format!("secret {name:?}: {}", error.message);
            failure(error.kind.reason(), message)
        })?;
        let host = Arc::new(Host::new(api, &credentials, &self.guard)?.patient(self.patience).called(called));
        if made.len() >= KEPT {
            made.clear();
        }
        made.insert(key, (text, host.clone()));
        Ok(host)
    }
}
