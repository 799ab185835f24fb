//! The credentials for a pull request at its git host: the pipeline's own, or the installation's for projects that may use them.

use super::Promotions;
use super::attempts::Task;
use crate::border::Border;
use crate::ports::{PortError, Ports};
use crate::secrets::{INSTALLATION, name};
use keelway_domain::border::{Home, Permitted, Resource};
use keelway_domain::condition::Condition;
use keelway_domain::promotions::definition::PullRequest;
use keelway_domain::promotions::registry::GitHost;
use keelway_domain::promotions::{Failure, Retry};

/// The repository of a pull request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repository<'a> {
    /// The name of its host, with the port if it has one.
    pub host: &'a str,
    /// The repository, as policies list it.
    pub resource: Resource,
}

impl From<PortError> for Failure {
    fn from(error: PortError) -> Self {
        Self { why: Condition::new("Unavailable", error.to_string()), retry: Retry::Backoff }
    }
}

impl<P: Ports> Promotions<P> {
    /// The registered host of a pull request. `None`: it is not registered.
    ///
    /// # Errors
    /// It is registered as another form of host, or a port fails.
    pub async fn registered(&self, wanted: &PullRequest, host: &str) -> Result<Option<GitHost>, Failure> {
        let Some((name, known)) = self.git_host_of(host).await? else { return Ok(None) };
        if known.spec.form == wanted.host {
            return Ok(Some(known.spec));
        }
        let message = format!(
            "the pipeline says type {}, but {host} is registered as {} (GitHost {name}): correct one of them",
            wanted.host, known.spec.form
        );
        Err(Failure { why: Condition::new("UnusableUrl", message), retry: Retry::Patience })
    }

    /// The name of the secret with the credentials for a pull request. Without a secret of the pipeline's own, it is that of the
    /// registered host, for repositories that the pipeline's project may use.
    ///
    /// # Errors
    /// There is none that the pipeline may use, or a port fails.
    pub async fn credentials(
        &self,
        task: &Task,
        wanted: &PullRequest,
        registered: Option<&GitHost>,
        repository: Repository<'_>,
    ) -> Result<String, Failure> {
        if !wanted.secret.is_empty() {
            return Ok(name(&task.of.namespace, &wanted.secret));
        }
        let Some(shared) = registered.and_then(|host| host.secret.as_deref()) else {
            let message = format!("neither the promotion nor a GitHost for {} names a secret", repository.host);
            return Err(Failure { why: Condition::new("SecretMissing", message), retry: Retry::Backoff });
        };
        let permitted = self.permitted(task, repository.resource).await?;
        tracing::debug!(pipeline = %task.of, repository = permitted.resource().name, "the host's credentials are used");
        Ok(name(INSTALLATION, shared))
    }

    async fn permitted(&self, task: &Task, repository: Resource) -> Result<Permitted, Failure> {
        let border = Border::of(&self.ports, &task.of.namespace).await?;
        let vouched = border.policy().is_none() && self.vouched(task).await?;
        border.permit(repository, vouched, &Home::NOWHERE).map_err(|denied| {
            let message = format!(
                "the credentials of the git host are not there for this pipeline: {denied}, or whoever administers the pipeline names a \
                 secret of its own in secretRef"
            );
            Failure { why: Condition::new("SecretMissing", message), retry: Retry::Patience }
        })
    }

    /// Whether an administrator of the installation has applied the definition of this attempt.
    async fn vouched(&self, task: &Task) -> Result<bool, PortError> {
        let Some(applied) = self.definition(&task.of).await? else { return Ok(false) };
        let definition = &applied.spec;
        let found = definition.environment(&task.attempt.environment);
        let promotion = found.and_then(|(_, environment)| definition.promotion(environment));
        Ok(definition.vouched && promotion.is_some_and(|promotion| promotion.strategy == task.strategy))
    }
}
