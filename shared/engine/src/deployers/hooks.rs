//! Hooks before, during and after a deployment. A hook that has succeeded is not run again.

use super::step::{Done, Step};
use crate::aliases::Aliases;
use crate::deployments::Deployments;
use crate::ports::{PortError, Ports};
use keelway_domain::border::Permitted;
use keelway_domain::deployments::checkpoint::Ended;
use keelway_domain::deployments::definition::{Action, FailurePolicy, Hook, Tagged};
use keelway_domain::deployments::plan::Function;
use keelway_domain::deployments::template;
use keelway_domain::ids::{SubjectId, hash64};
use serde_json::{Value, json};

/// The most characters of a function's answer that are repeated.
const SAID: usize = 300;

/// Runs a hook; `which`: `pre`, `mid` or `post`.
pub async fn run<P: Ports>(
    engine: &Deployments<P>,
    cloud: &impl Aliases,
    step: &mut Step,
    which: &str,
    hook: &Hook,
) -> Result<Done, PortError> {
    let failed = match &hook.action {
        Action::Invoke(function) => match &step.rights.hook {
            Some(permitted) => invoke(cloud, step, which, (function, permitted)).await?,
            None => Some(format!("{function} was not asked for")),
        },
        Action::TagImages(tags) => tag(engine, step, tags).await?,
        Action::ExecNewPod(_) => Some("execNewPod runs a container, and a Lambda alias has none: use invoke".to_owned()),
    };
    let Some(why) = failed else {
        step.tell(format!("hook {which}: done"));
        step.point.hooks.insert(which.to_owned(), Ended::Done);
        return Ok(Done::Go);
    };
    let why = format!("hook {which} failed: {why}");
    Ok(match (hook.failure_policy, &hook.action) {
        (FailurePolicy::Ignore, _) => {
            step.tell(format!("{why}; it is ignored"));
            step.point.hooks.insert(which.to_owned(), Ended::Ignored);
            Done::Go
        }
        // A repetition would fail in the same way.
        (FailurePolicy::Abort, _) | (FailurePolicy::Retry, Action::ExecNewPod(_)) => {
            step.point.hooks.insert(which.to_owned(), Ended::Failed);
            Done::Fail(why)
        }
        (FailurePolicy::Retry, _) => Done::Patiently(why),
    })
}

/// Invokes a function with the deployment. Returns the reason of a failure.
async fn invoke(
    cloud: &impl Aliases,
    step: &Step,
    which: &str,
    (function, _): (&str, &Permitted),
) -> Result<Option<String>, PortError> {
    // The id is the same for every invocation of this hook in this attempt, which may be repeated after a crash or a failure.
    let id = hash64(&[
        b"hook",
        step.of.to_string().as_bytes(),
        &step.deployment.n.to_be_bytes(),
        &step.deployment.attempt.to_be_bytes(),
        which.as_bytes(),
    ]);
    let payload = json!({
        "id": SubjectId(id).to_string(),
        "namespace": step.of.namespace,
        "name": step.name,
        "config": step.of.name,
        "version": step.deployment.n,
        "attempt": step.deployment.attempt,
        "hook": which,
    });
    let region = function.starts_with("arn:").then(|| function.split(':').nth(3).map(str::to_owned)).flatten();
    let of = Function { name: function.to_owned(), region };
    let called = match cloud.call(&of, &payload.to_string()).await {
        Ok(called) => called,
        Err(error) if error.passes() => return Err(error),
        Err(error) => return Ok(Some(error.to_string())),
    };
    let said: String = called.body.chars().take(SAID).collect();
    // A function that serves HTTP reports the status in its answer.
    let answer: Value = serde_json::from_str(&called.body).unwrap_or_default();
    let status = answer.get("statusCode").and_then(Value::as_u64).unwrap_or(200);
    Ok(match (called.status, called.error) {
        (200, None) if (200..300).contains(&status) => None,
        (200, None) => Some(format!("{function} answered {status}: {said}")),
        (200, Some(error)) => Some(format!("{function} ended with an error ({error}): {said}")),
        (status, _) => Some(format!("{function} answered {status}: {said}")),
    })
}

/// Moves tags of artifact sources to the deployed images. Returns the reason of a failure.
async fn tag<P: Ports>(engine: &Deployments<P>, step: &Step, tags: &[Tagged]) -> Result<Option<String>, PortError> {
    let images = template::images(&step.definition.template);
    // A repetition must use the same time.
    let at = step.deployment.claim.as_ref().map_or(step.deployment.since, |claim| claim.at);
    for Tagged { container, to } in tags {
        let Some(image) = images.get(container) else {
            return Ok(Some(format!("the template has no container {container:?}")));
        };
        match engine.tagged(&step.of.namespace, to, image, at).await? {
            Ok(true) => {}
            Ok(false) => return Ok(Some(format!("there is no ArtifactSource {}/{}: create it", to.namespace, to.name))),
            Err(no) => return Ok(Some(no.to_string())),
        }
    }
    Ok(None)
}
