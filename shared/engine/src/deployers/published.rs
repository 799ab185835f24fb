//! What a rollback goes back to was published when it was deployed: the aliases are pointed to that version, and none is made of
//! the same code again.

use super::aliases::targets;
use super::step::Step;
use crate::aliases::{Aliases, Readiness};
use crate::deployments::Deployments;
use crate::ports::{PortError, Ports};
use keelway_domain::deployments::checkpoint::Checkpoint;
use keelway_domain::deployments::definition::Target;

/// Finds the versions that the version to go back to has deployed, if they are of the same image, at the same targets, and still
/// there.
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
            // It was deleted meanwhile: the code is published once more.
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
