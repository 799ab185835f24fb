//! The git host of a pull request, with the address of its API and the credentials.

use keelway_domain::border::{Home, Permitted};
use keelway_domain::condition::Condition;
use keelway_domain::promotions::Retry;
use keelway_domain::promotions::definition::{PullRequest, Strategy};
use keelway_engine::border::Border;
use keelway_engine::ports::{PortError, Ports};
use keelway_engine::promotions::Promotions;
use keelway_engine::promotions::attempts::Task;
use keelway_engine::protocol::Inbox;
use keelway_engine::remembered::Remembered;
use keelway_engine::secrets::{self, SecretText, Secrets};
use keelway_githosts::{AddressError, Api, Credentials, Form, Host, Patience, Repository};
use keelway_outgoing::Guard;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// The most hosts that are cached with their connections. When there are more, the cache is emptied.
const KEPT: usize = 64;

/// Why no request can be sent to a host.
#[derive(Debug)]
pub struct Refusal {
    /// The reason, for machines and for people.
    pub why: Condition,
    /// When another try makes sense.
    pub retry: Retry,
}

impl Refusal {
    fn new(reason: &str, message: impl Into<String>) -> Self {
        Self { why: Condition::new(reason, message), retry: Retry::Backoff }
    }
}

impl From<AddressError> for Refusal {
    fn from(error: AddressError) -> Self {
        Self { why: Condition::new("UnusableUrl", error.to_string()), retry: Retry::Patience }
    }
}

impl From<PortError> for Refusal {
    fn from(error: PortError) -> Self {
        Self::new("Unavailable", error.to_string())
    }
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
    pub async fn of(&self, task: &Task, wanted: &PullRequest) -> Result<(Arc<Host>, Repository), Refusal> {
        let form: Form = wanted.host.parse()?;
        let repository = Repository::parse(form, &wanted.url)?;
        let registered = self.pipelines.git_host_of(repository.host()).await?;
        let api = match &registered {
            Some((name, known)) if known.spec.form != wanted.host => {
                let message = format!(
                    "the pipeline says type {}, but {} is registered as {} (GitHost {name}): correct one of them",
                    wanted.host,
                    repository.host(),
                    known.spec.form
                );
                return Err(Refusal { why: Condition::new("UnusableUrl", message), retry: Retry::Patience });
            }
            Some((_, known)) => Api::at(form, &known.spec.api)?,
            None => Api::of(&repository),
        };
        let fallback = registered.and_then(|(_, known)| known.spec.secret);
        let name = match (wanted.secret.as_str(), fallback) {
            ("", Some(fallback)) => {
                let permitted = self.permitted(task, &repository).await?;
                tracing::debug!(pipeline = %task.of, repository = permitted.resource().name, "the host's credentials are used");
                secrets::name(secrets::INSTALLATION, &fallback)
            }
            ("", None) => {
                let message = format!("neither the promotion nor a GitHost for {} names a secret", repository.host());
                return Err(Refusal::new("SecretMissing", message));
            }
            (own, _) => secrets::name(&task.of.namespace, own),
        };
        let Some(text) = self.secrets.secret(&name).await? else {
            return Err(Refusal::new("SecretMissing", format!("there is no secret {name:?}: create it")));
        };
        Ok((self.host((&api, repository.host()), &name, text)?, repository))
    }

    /// Permits the credentials of the installation for repositories that the pipeline's project may use.
    async fn permitted(&self, task: &Task, repository: &Repository) -> Result<Permitted, Refusal> {
        let border = Border::of(self.pipelines.ports(), &task.of.namespace).await?;
        let vouched = border.policy().is_none() && self.vouched(task).await?;
        border.permit(repository.resource(), vouched, &Home::NOWHERE).map_err(|denied| {
            let message = format!(
                "the credentials of the git host are not there for this pipeline: {denied}, or whoever administers the pipeline names a \
                 secret of its own in secretRef"
            );
            Refusal { why: Condition::new("SecretMissing", message), retry: Retry::Patience }
        })
    }

    /// Whether an administrator of the installation has applied the definition of this attempt.
    async fn vouched(&self, task: &Task) -> Result<bool, PortError> {
        let Some(applied) = self.pipelines.definition(&task.of).await? else { return Ok(false) };
        let definition = &applied.spec;
        let found = definition.environment(&task.attempt.environment);
        let promotion = found.and_then(|(_, environment)| definition.promotion(environment));
        Ok(definition.vouched && promotion.is_some_and(|promotion| promotion.strategy == task.strategy))
    }

    /// The host of this name and API with this secret, from the cache if the secret is the same.
    fn host(&self, (api, called): (&Api, &str), name: &str, text: SecretText) -> Result<Arc<Host>, Refusal> {
        let key = (format!("{called} {}", api.base()), name.to_owned());
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, host)) = made.get(&key).filter(|(known, _)| *known == text) {
            return Ok(host.clone());
        }
        let credentials = Credentials::parse(text.expose()).map_err(|error| {
            let message = format!("secret {name:?}: {}", error.message);
            Refusal::new(error.kind.reason(), message)
        })?;
        let host = Arc::new(Host::new(api, &credentials, &self.guard)?.patient(self.patience).called(called));
        if made.len() >= KEPT {
            made.clear();
        }
        made.insert(key, (text, host.clone()));
        Ok(host)
    }
}
