//! Evaluations that pipelines ask for. No sequence waits for them: the pipeline gets a message, and asks again without one. An
//! evaluation begins only while its pipeline waits for it, so a message that comes again much later begins nothing.

use super::{Evaluations, Message, Turn};
use crate::metrics::Metrics;
use crate::ports::{PortError, Ports};
use crate::promotions;
use crate::protocol::{Handled, run};
use keelway_domain::cause::Cause;
use keelway_domain::evaluation::Period;
use keelway_domain::evaluations::{Asked, Asker, Found, Input};
use keelway_domain::event::Object;
use keelway_domain::ids::context_of;
use keelway_domain::names::{Context, ProjectName};

impl<P: Ports, M: Metrics> Evaluations<P, M> {
    /// Begins the evaluation that a pipeline asks for. The files of the last commit count, as they are when it begins.
    pub(super) async fn for_pipeline(
        &self,
        to: &[String; 3],
        (id, period, asker): (&str, Period, &Asker),
        cause: Cause,
    ) -> Result<Handled, PortError> {
        // A pipeline evaluates services of its own project.
        if asker.pipeline.namespace != to[0] {
            return Ok(Handled::Stale);
        }
        let began = self.service(to).await?.is_some_and(|x| x.knows(id));
        if !began && !self.is_awaited(id, asker).await? {
            return Ok(Handled::Stale);
        }
        let (mut found, mut revision) = (Found::Nothing, None);
        if let Some(project) = ProjectName::new(&*to[0]).ok().filter(|_| !began) {
            found = self.found(&to[0]).await?;
            revision = self.pinned(&project, None).await?.unwrap_or_default();
        }
        let asked = Asked {
            id: id.to_owned(),
            // That of the pipeline's events.
            context: Context::of(&context_of("pipeline", &asker.pipeline.to_string()).to_string()).to_string(),
            period: Ok(period),
            labels: Object::new(),
            deployment: String::new(),
            revision,
            asker: Some(asker.clone()),
        };
        run(self, cause, &Turn { to, input: Input::Triggered(&asked), found: &found, awaited: None, cause }).await
    }
}

impl<P: Ports, M: Metrics> Evaluations<P, M> {
    /// Whether the pipeline waits for this evaluation: it may have got its answer, or ask about something else by now.
    async fn is_awaited(&self, id: &str, asker: &Asker) -> Result<bool, PortError> {
        let item = self.ports.get(&promotions::keys::pipeline(&asker.pipeline)).await?;
        let found: Option<promotions::Loaded> = item.as_ref().map(promotions::Loaded::read).transpose()?;
        let environment = found.as_ref().and_then(|found| found.x.environments.get(&asker.environment));
        let evaluation = environment.and_then(|environment| environment.evaluation.as_ref());
        Ok(evaluation.is_some_and(|evaluation| evaluation.id == id && evaluation.answer.is_none()))
    }
}

impl Message {
    /// Project, stage and service.
    pub fn place(&self) -> &[String; 3] {
        match self {
            Self::Measure { to, .. } | Self::Evaluate { to, .. } | Self::Wake { to, .. } | Self::Over { to, .. } => to,
        }
    }
}
