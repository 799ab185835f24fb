//! Rollbacks reuse published versions: the aliases point to the version that was published at that time, and the code is not
//! published again.

use super::aliases::targets;
use super::step::Step;
use crate::aliases::{Aliases, Readiness};
use crate::deployments::Deployments;
use crate::ports::{PortError, Ports};
use keelway_domain::deployments::checkpoint::Checkpoint;
use keelway_domain::deployments::definition::Target;

/// Finds the Lambda versions that the version to go back to has deployed, if image and targets are the same and the versions still
/// exist.
pub async fn find<P: Ports>(engine: &Deployments<P>, cloud: &impl Aliases, step: &mut Step) -> Result<(), PortError> {
    let Some(release) = step.deployment.rollback.as_ref().map(|rollback| rollback.release) else { return Ok(()) };
    let Ok(Some((past, snapshot))) = engine.ended(&step.of, release).await? else { return Ok(()) };
    if snapshot.definition.main_image() != step.definition.main_image() {
        return Ok(());
    }
    let before = Checkpoint::of(&past.deployment).aliases;
    let same = |target: &Target| snapshot.definition.targets.contains(target);
    let mut found = vec![];
    for (target, function, _) in targets(step).into_iter().filter(|(target, ..)| same(target)) {
        let Some(version) = before.get(&target.name).map(|place| place.to.clone()).filter(|to| !to.is_empty()) else { continue };
        match cloud.readiness(&function, &version).await {
            Ok(Readiness::Ready | Readiness::Pending) => {}
            Err(error) if error.passes() => return Err(error),
            // The version was deleted meanwhile, so the code is published again.
            Ok(Readiness::Failed(_)) | Err(_) => continue,
        }
        if let Some(place) = step.point.aliases.get_mut(&target.name) {
            found.push(format!("{}:{version}", function.name));
            place.to = version;
        }
    }
    if !found.is_empty() {
        step.tell(format!("goes back to {}, which was published before", found.join(", ")));
    }
    Ok(())
}
