//! The steps that read and change aliases. Each reads first, so that it may be repeated. Each change names the revision that was
//! read, and the read comes before the step claims the attempt. So of two concurrent steps, the one that claimed later prevails:
//! either it has seen the changes of the other one, or one of the two changes is refused.

use super::step::{Done, Step};
use crate::aliases::{Alias, Aliases, Readiness, Route};
use crate::ports::PortError;
use keelway_domain::deployments::Status;
use keelway_domain::deployments::checkpoint::Place;
use keelway_domain::deployments::definition::{Definition, Target};
use keelway_domain::deployments::plan::{self, Function, Image};
use keelway_domain::deployments::rights::Rights;
use std::collections::BTreeMap;

/// The pseudo-version that cannot have a weight.
const LATEST: &str = "$LATEST";

/// The aliases of a config's targets, by their names.
pub type Seen = BTreeMap<String, Result<Option<Alias>, PortError>>;

/// Reads every alias.
pub async fn see(cloud: &impl Aliases, definition: &Definition, rights: &Rights) -> Seen {
    let mut seen = Seen::new();
    for target in &definition.targets {
        // The first step reports targets that name no alias.
        if let (Ok((_, alias)), Some(function)) = (plan::place(target), rights.function(&target.name)) {
            seen.insert(target.name.clone(), cloud.find(&function, alias).await);
        }
    }
    seen
}

/// Records the present version of every alias, and the version that the image means there.
pub fn look(step: &mut Step) -> Result<Done, PortError> {
    let image = match plan::image(&step.definition) {
        Ok(image) => image,
        Err(why) => return Ok(Done::Fail(why)),
    };
    let mut places = BTreeMap::new();
    for target in step.definition.targets.clone() {
        let version = match plan::place(&target).and_then(|_| plan::version(&image, &target)) {
            Ok(version) => version,
            Err(why) => return Ok(Done::Fail(why)),
        };
        let found = step.seen(&target)?.map(|found| found.route);
        let shared = found.as_ref().is_some_and(|route| route.canary.is_some());
        let from = found.map(|route| route.version);
        let now = from.as_ref().map_or_else(|| "there is no such alias yet".to_owned(), |from| format!("at Lambda version {from}"));
        step.tell_target(&target, Status::Pending, now);
        places.insert(target.name.clone(), Place { from, to: version.unwrap_or_default(), shared });
    }
    step.point.aliases = places;
    Ok(Done::Go)
}

/// Publishes the code as a version of each function that does not have it yet, and records the version.
pub async fn publish(cloud: &impl Aliases, step: &mut Step) -> Result<Done, PortError> {
    let (Ok(Image::Code(code)), Some(_)) = (plan::image(&step.definition), &step.rights.code) else { return Ok(Done::Go) };
    let mut made: BTreeMap<Function, String> = BTreeMap::new();
    for (target, function, _) in targets(step) {
        if !step.place(&target).to.is_empty() {
            continue;
        }
        let version = match made.get(&function) {
            Some(version) => version.clone(),
            None => cloud.publish(&function, &code).await?,
        };
        if let Some(place) = step.point.aliases.get_mut(&target.name) {
            place.to.clone_from(&version);
        }
        made.insert(function, version);
    }
    let versions: Vec<String> = made.iter().map(|(function, version)| format!("{}:{version}", function.name)).collect();
    if !versions.is_empty() {
        step.tell(format!("published {}", versions.join(", ")));
    }
    Ok(Done::Go)
}

/// Waits until the versions can be invoked.
pub async fn ready(cloud: &impl Aliases, step: &mut Step) -> Result<Done, PortError> {
    let mut seen = vec![];
    for (target, function, _) in targets(step) {
        let to = step.place(&target).to;
        if seen.contains(&(function.clone(), to.clone())) {
            continue;
        }
        match cloud.readiness(&function, &to).await? {
            Readiness::Ready => seen.push((function, to)),
            Readiness::Pending => return Ok(Done::Again(format!("Lambda version {to} of {} is not ready yet", function.name))),
            Readiness::Failed(why) => {
                return Ok(Done::Fail(format!("Lambda version {to} of {} cannot be called: {why}", function.name)));
            }
        }
    }
    Ok(Done::Go)
}

/// Sets the weight of the new version at each alias.
pub async fn shift(cloud: &impl Aliases, step: &mut Step, weight: u8) -> Result<Done, PortError> {
    for (target, function, alias) in targets(step) {
        let place = step.place(&target);
        let wanted = route(&place, weight);
        match (step.seen(&target)?, &place.from) {
            (None, None) => cloud.create(&function, &alias, &place.to).await?,
            (None, Some(_)) => return Ok(Done::Fail(format!("alias {} was deleted", target.id))),
            (Some(found), _) if found.route == wanted => {}
            (Some(found), _) if !is_ours(&place, &found.route) => {
                let at = found.route.version;
                return Ok(Done::Fail(format!("alias {} was pointed to Lambda version {at} by somebody else", target.id)));
            }
            (Some(found), _) => cloud.shift(&function, &alias, &wanted, &found.revision).await?,
        }
        let share = wanted.canary.map_or(100, |(_, share)| share);
        step.tell_target(&target, Status::Running, format!("{share} % of the requests go to Lambda version {}", place.to));
    }
    step.tell(format!("{weight} % of the requests go to the new version"));
    step.point.share = Some(weight);
    Ok(Done::Go)
}

/// Reverts every alias to its version at the beginning. A failure with one alias does not prevent the others.
pub async fn back(cloud: &impl Aliases, step: &mut Step, status: Status) -> Result<Done, PortError> {
    let (mut later, mut refused) = (None, None);
    for (target, function, alias) in targets(step) {
        let place = step.place(&target);
        let taken = match step.seen(&target) {
            Ok(found) => take_back(cloud, (&function, &alias), &place, found).await,
            Err(error) => Err(error),
        };
        match taken {
            Ok(told) => step.tell_target(&target, status, told),
            Err(error) if error.passes() => later = Some(Done::from(error)),
            Err(error) => {
                step.tell_target(&target, Status::Failed, format!("could not be taken back: {error}"));
                refused = Some(Done::Fail(format!("alias {} could not be taken back: {error}", target.id)));
            }
        }
    }
    let done = later.or(refused).unwrap_or(Done::Go);
    if done == Done::Go {
        step.point.share = step.point.share.map(|_| 0);
    }
    Ok(done)
}

async fn take_back(
    cloud: &impl Aliases,
    (function, alias): (&Function, &str),
    place: &Place,
    found: Option<Alias>,
) -> Result<String, PortError> {
    let Some(from) = &place.from else {
        return Ok("there was no such alias before: what was made stays".into());
    };
    let wanted = Route::to(from);
    match found {
        None => Ok("the alias was deleted".into()),
        Some(found) if found.route == wanted => Ok(format!("at Lambda version {from}, as before")),
        Some(found) if !is_ours(place, &found.route) => {
            Ok(format!("somebody else pointed it to Lambda version {}: it stays there", found.route.version))
        }
        Some(found) => {
            cloud.shift(function, alias, &wanted, &found.revision).await?;
            Ok(format!("taken back to Lambda version {from}"))
        }
    }
}

/// The route of an alias at a weight.
fn route(place: &Place, weight: u8) -> Route {
    match &place.from {
        Some(from) if weight < 100 && shares(place) => Route { version: from.clone(), canary: Some((place.to.clone(), weight)) },
        _ => Route::to(&place.to),
    }
}

/// Whether there is another version to share the requests with.
pub fn shares(place: &Place) -> bool {
    place.from.as_ref().is_some_and(|from| *from != place.to && from != LATEST)
}

/// Whether the route of an alias was found or set by this deployment.
fn is_ours(place: &Place, route: &Route) -> bool {
    route.version == place.to || place.from.as_ref() == Some(&route.version)
}

/// The targets, with their permitted functions and their aliases.
pub fn targets(step: &Step) -> Vec<(Target, Function, String)> {
    let named = |target: &Target| {
        let (_, alias) = plan::place(target).ok()?;
        Some((target.clone(), step.rights.function(&target.name)?, alias.to_owned()))
    };
    step.definition.targets.iter().filter_map(named).collect()
}

impl Step {
    /// The alias of a target, as read before the step claimed the attempt.
    fn seen(&mut self, target: &Target) -> Result<Option<Alias>, PortError> {
        let another = || PortError::Contended { request: "step", reason: "another step was taken meanwhile".into() };
        self.seen.remove(&target.name).unwrap_or_else(|| Err(another()))
    }

    fn place(&self, target: &Target) -> Place {
        self.point.aliases.get(&target.name).cloned().unwrap_or_default()
    }
}
