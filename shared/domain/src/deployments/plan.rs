//! The plan of a deployment to aliases: its stages, and the version of each alias.

use super::checkpoint::{Checkpoint, Place, Stage};
use super::definition::{Definition, Strategy, StrategyKind, Target, Weight};
use super::part::WHOLE;
use crate::time::Span;
use serde_json::{Map, Value};

/// A rolling deployment's step if its parameters name none, in percent.
const STEP: u8 = 25;
/// All requests.
const ALL: u8 = 100;

/// The stages of a deployment in their order. `at_once`: nothing is to be compared with the new version, so it gets all requests at
/// once.
pub fn stages(definition: &Definition, point: &Checkpoint, at_once: bool) -> Vec<Stage> {
    let hooks = &definition.strategy.hooks;
    let published = matches!(image(definition), Ok(Image::Code(_)));
    let moves = point.aliases.values().any(Place::moves);
    let shifts = if moves { weights(&definition.strategy, at_once) } else { vec![] };
    let mut stages = vec![Stage::Look];
    stages.extend(published.then_some(Stage::Publish));
    stages.push(Stage::Ready);
    stages.extend(hooks.pre.as_ref().map(|_| Stage::Pre));
    stages.extend(hooks.mid.as_ref().map(|_| Stage::Mid));
    for (n, shift) in shifts.iter().enumerate() {
        stages.push(Stage::Shift(n));
        stages.extend(definition.strategy.judged(shift.weight).map(|_| Stage::Judge(n)));
    }
    stages.extend(hooks.post.as_ref().map(|_| Stage::Post));
    stages.extend((is_test(definition) && moves).then_some(Stage::Restore));
    stages.push(Stage::End);
    stages
}

/// The weights of the new version; the last one is 100. `Recreate` switches at once. `Rolling` takes steps of `maxSurge` or
/// `maxUnavailable` (the first that is a percentage above zero) every `intervalSeconds`; a number of copies has no meaning for an
/// alias. `Canary` defines its weights.
pub fn weights(strategy: &Strategy, at_once: bool) -> Vec<Weight> {
    let mut weights = match strategy.kind {
        _ if at_once => vec![],
        StrategyKind::Recreate | StrategyKind::Custom => vec![],
        StrategyKind::Rolling => rolling(&strategy.params),
        StrategyKind::Canary => strategy.steps.clone(),
    };
    if weights.last().is_none_or(|last| last.weight < ALL) {
        weights.push(Weight { weight: ALL, bake: None });
    }
    // Nothing follows the last weight, so there is no hold.
    for all in weights.iter_mut().filter(|step| step.weight >= ALL) {
        all.bake = all.bake.or(Some(Span(0)));
    }
    weights
}

/// Whether the new version has the share of the requests that was asked for, `until`, when a stage is `done` and another one comes
/// `next`.
pub fn goes_so_far(weights: &[Weight], until: u8, done: Stage, next: Stage) -> bool {
    if until >= WHOLE {
        return false;
    }
    match (done, next) {
        // A share that is judged is reached when it has passed.
        (Stage::Shift(_), Stage::Judge(_)) => false,
        (Stage::Shift(n) | Stage::Judge(n), _) => weights.get(n).is_none_or(|step| step.weight >= until),
        (_, Stage::Shift(_)) => until == 0,
        // There is no other version to share the requests with.
        (_, next) => matches!(next, Stage::Post | Stage::Restore | Stage::End),
    }
}

fn rolling(params: &Map<String, Value>) -> Vec<Weight> {
    let percent = |name: &str| {
        let text = params.get(name)?.as_str()?;
        text.strip_suffix('%')?.trim().parse::<u8>().ok().filter(|percent| (1..=ALL).contains(percent))
    };
    let step = percent("maxSurge").or_else(|| percent("maxUnavailable")).unwrap_or(STEP);
    let interval = Span::seconds(params.get("intervalSeconds").and_then(Value::as_i64).unwrap_or(1).clamp(0, 24 * 3600));
    (step..ALL).step_by(usize::from(step)).map(|weight| Weight { weight, bake: Some(interval) }).collect()
}

/// Whether the version runs only while it is deployed (`test`).
pub fn is_test(definition: &Definition) -> bool {
    definition.other.get("test").and_then(Value::as_bool).unwrap_or_default()
}

/// How long everything runs on the new version before the deployment is complete, at least.
pub fn least_bake(definition: &Definition) -> Span {
    let seconds = definition.other.get("minReadySeconds").and_then(Value::as_i64).unwrap_or(0);
    Span::seconds(seconds.clamp(0, 24 * 3600))
}

/// A Lambda function.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Function {
    /// The name or the ARN, without a version.
    pub name: String,
    /// The region; `None`: that of the installation.
    pub region: Option<String>,
}

/// The code of a version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Code {
    /// A container image by its digest, in the function's region.
    Image(String),
    /// A package of code in S3, in the function's region.
    Package(Package),
}

/// A package of code in S3.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Package {
    /// The bucket.
    pub bucket: String,
    /// The key.
    pub key: String,
    /// The version of the object, in a versioned bucket. `None`: the newest.
    pub version: Option<String>,
    /// The SHA-256 of the content, in lower-case hexadecimal.
    pub sha256: String,
}

/// The meaning of a version's image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Image {
    /// A version of a function that exists.
    Version {
        /// The region of the function.
        region: String,
        /// The account of the function.
        account: String,
        /// The name of the function.
        function: String,
        /// The number of the version.
        version: String,
    },
    /// Code by its digest, which must be published as a version.
    Code(Code),
}

/// Reads the image of the container that stands for the whole version.
///
/// # Errors
/// The image has another form; the error names the accepted ones.
pub fn image(definition: &Definition) -> Result<Image, String> {
    let given = definition.main_image().unwrap_or_default();
    let refused = || {
        format!(
            "the image is {given:?}: a Lambda alias takes arn:aws:lambda:<region>:<account>:function:<name>:<version>, a container image by \
             its digest, <repository>@sha256:<digest>, or a package of code in S3, s3://<bucket>/<key>@sha256:<64 hexadecimal digits>"
        )
    };
    let parts: Vec<&str> = given.split(':').collect();
    if let ["arn", partition, "lambda", region, account, "function", function, version] = parts[..] {
        let is_version = !version.is_empty() && version.bytes().all(|b| b.is_ascii_digit());
        if !partition.starts_with("aws") || function.is_empty() || !is_version {
            return Err(refused());
        }
        let [region, account, function, version] = [region, account, function, version].map(str::to_owned);
        return Ok(Image::Version { region, account, function, version });
    }
    let Some((name, digest)) = given.split_once("@sha256:").filter(|(name, digest)| !name.is_empty() && !digest.is_empty()) else {
        return Err(refused());
    };
    let code = match name.strip_prefix("s3://") {
        Some(object) => package(object, digest).map(Code::Package),
        None => Some(Code::Image(given.to_owned())),
    };
    code.map(Image::Code).ok_or_else(refused)
}

/// A package of code: `<bucket>/<key>`, or `<bucket>/<key>?versionId=<version>`.
fn package(object: &str, sha256: &str) -> Option<Package> {
    let (object, version) = match object.rsplit_once("?versionId=") {
        Some((object, version)) => (object, Some(version.to_owned())),
        None => (object, None),
    };
    let (bucket, key) = object.split_once('/')?;
    let hexadecimal = sha256.len() == 64 && sha256.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    let named = !bucket.is_empty() && !key.is_empty() && version.as_ref().is_none_or(|version| !version.is_empty());
    let package = Package { bucket: bucket.to_owned(), key: key.to_owned(), version, sha256: sha256.to_owned() };
    (hexadecimal && named).then_some(package)
}

/// Returns the function and the alias of a target.
///
/// # Errors
/// The target lacks one of them.
pub fn place(target: &Target) -> Result<(Function, &str), String> {
    let named = target.id.rsplit_once(':').filter(|(function, alias)| !function.is_empty() && !alias.is_empty());
    let (function, alias) =
        named.ok_or_else(|| format!("target {}: its id is {:?}: write <function>:<alias>", target.name, target.id))?;
    let name = match &target.account {
        Some(account) if !function.contains(':') => format!("{account}:function:{function}"),
        _ => function.to_owned(),
    };
    Ok((Function { name, region: target.region.clone() }, alias))
}

/// The version of an image at a target. `None`: it must be published.
///
/// # Errors
/// It is a version of another function.
pub fn version(image: &Image, target: &Target) -> Result<Option<String>, String> {
    let Image::Version { region, account, function, version } = image else { return Ok(None) };
    let (at, _) = place(target)?;
    let same = at.name.rsplit(':').next() == Some(function)
        && target.region.as_ref().is_none_or(|wanted| wanted == region)
        && target.account.as_ref().is_none_or(|wanted| wanted == account);
    if same {
        return Ok(Some(version.clone()));
    }
    Err(format!(
        "target {}: the image is a version of {function} in {region} ({account}), and the target is {}: name a version of the same function",
        target.name, target.id
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn weights_of(kind: &str, more: Value) -> Vec<(u8, i64)> {
        let mut strategy = json!({"type": kind, "timeout": 0, "deadline": 0});
        strategy.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let strategy: Strategy = serde_json::from_value(strategy).unwrap();
        weights(&strategy, false).into_iter().map(|step| (step.weight, step.bake.map_or(-1, |bake| bake.0))).collect()
    }

    #[test]
    fn the_weights_of_each_strategy() {
        assert_eq!(weights_of("Recreate", json!({})), [(100, 0)]);
        assert_eq!(weights_of("Rolling", json!({})), [(25, 1000), (50, 1000), (75, 1000), (100, 0)]);
        let params = json!({"params": {"maxSurge": "0%", "maxUnavailable": "40%", "intervalSeconds": 7}});
        assert_eq!(weights_of("Rolling", params), [(40, 7000), (80, 7000), (100, 0)]);
        assert_eq!(weights_of("Rolling", json!({"params": {"maxSurge": 1, "maxUnavailable": "50%"}})), [(50, 1000), (100, 0)]);
        assert_eq!(weights_of("Rolling", json!({"params": {"maxSurge": "100%"}})), [(100, 0)]);
        let days = |seconds: i64| json!({"params": {"maxSurge": "50%", "intervalSeconds": seconds}});
        assert_eq!(weights_of("Rolling", days(86_400)), [(50, 86_400_000), (100, 0)], "a day at most");
        assert_eq!(weights_of("Rolling", days(86_401)), [(50, 86_400_000), (100, 0)], "a day at most");
        let steps = json!({"steps": [{"weight": 10, "bake": 5000}, {"weight": 50}]});
        assert_eq!(weights_of("Canary", steps), [(10, 5000), (50, -1), (100, 0)]);
        assert_eq!(weights_of("Canary", json!({"steps": [{"weight": 100}]})), [(100, 0)]);
    }

    #[test]
    fn everything_runs_for_as_long_as_the_definition_says_and_a_day_at_most() {
        for (seconds, bake) in [(json!(null), 0), (json!(60), 60), (json!(-1), 0), (json!(86_400), 86_400), (json!(86_401), 86_400)]
        {
            let definition = json!({"template": {}, "strategy": {"type": "Recreate", "timeout": 0, "deadline": 0}});
            let mut definition: Definition = serde_json::from_value(definition).unwrap();
            definition.other.insert("minReadySeconds".into(), seconds.clone());
            assert_eq!(least_bake(&definition), Span::seconds(bake), "{seconds}");
        }
    }

    fn image_of(reference: &str) -> Result<Image, String> {
        let definition = json!({"template": {"containers": [{"name": "app", "image": reference}]},
            "strategy": {"type": "Recreate", "timeout": 0, "deadline": 0}});
        image(&serde_json::from_value(definition).unwrap())
    }

    #[test]
    fn versions_container_images_and_packages_are_taken_and_nothing_else() {
        let version = image_of("arn:aws:lambda:eu-central-1:123456789012:function:shop:7").unwrap();
        assert!(matches!(&version, Image::Version { version, .. } if version == "7"));
        assert!(matches!(image_of("1.dkr.ecr.eu-central-1.amazonaws.com/shop@sha256:ab"), Ok(Image::Code(Code::Image(_)))));
        let sha256 = "0a".repeat(32);
        let package = |version: Option<&str>| {
            let (bucket, key) = ("releases".into(), "shop/1.zip".into());
            Ok(Image::Code(Code::Package(Package { bucket, key, version: version.map(Into::into), sha256: sha256.clone() })))
        };
        assert_eq!(image_of(&format!("s3://releases/shop/1.zip@sha256:{sha256}")), package(None));
        assert_eq!(image_of(&format!("s3://releases/shop/1.zip?versionId=v.1@sha256:{sha256}")), package(Some("v.1")));
        let packages =
            ["s3://releases@sha256:", "s3://releases/@sha256:", "s3:///shop.zip@sha256:", "s3://r/s.zip?versionId=@sha256:"];
        let packages = packages.map(|package| format!("{package}{sha256}"));
        let others = ["", "shop:latest", "arn:aws:lambda:r:1:function:shop", "arn:aws:lambda:r:1:function:shop:live", "@sha256:a"];
        let others = others.into_iter().chain(["arn:aws:lambda:r:1:function::7", "arn:gcp:lambda:r:1:function:shop:7"]);
        for other in others.chain(packages.iter().map(String::as_str)).chain(["s3://r/shop.zip@sha256:ab", "s3://r/s"]) {
            assert!(image_of(other).unwrap_err().contains("a Lambda alias takes"), "{other}");
        }
        let target =
            |id: &str| Target { name: "main".into(), kind: "lambda-alias".into(), id: id.into(), region: None, account: None };
        assert_eq!(super::version(&version, &target("shop:live")), Ok(Some("7".into())));
        assert!(
            super::version(&version, &target("cart:live")).unwrap_err().starts_with("target main: the image is a version of shop")
        );
        let place_of = |id: &str, region: Option<&str>, account: Option<&str>| Target {
            region: region.map(str::to_owned),
            account: account.map(str::to_owned),
            ..target(id)
        };
        for (region, account, same) in [
            (Some("eu-central-1"), Some("123456789012"), true),
            (Some("us-east-1"), None, false),
            (None, Some("210987654321"), false),
        ] {
            let at = place_of("shop:live", region, account);
            assert_eq!(super::version(&version, &at).is_ok(), same, "{at:?}");
        }
        let name = |at: Target| place(&at).unwrap().0.name;
        assert_eq!(name(place_of("shop:live", None, Some("1"))), "1:function:shop");
        assert_eq!(name(place_of("arn:aws:lambda:r:2:function:shop:live", None, Some("1"))), "arn:aws:lambda:r:2:function:shop");
        for id in ["shop", ":live", "shop:", ":"] {
            assert!(place(&target(id)).unwrap_err().contains("write <function>:<alias>"), "{id}");
        }
    }
}
