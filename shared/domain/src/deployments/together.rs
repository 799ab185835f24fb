//! The effects of a rollback of one config on others of the same application. They are reported as warnings and refuse nothing:
//! people know whether an older frontend works with a newer backend.

use super::definition::{Definition, Target};
use super::template::{containers, environment, repository};
use std::collections::BTreeMap;

/// The label that the configs of one application share.
pub const APP: &str = "app";

/// A config before and after the rollback.
#[derive(Debug, Clone, Copy)]
pub struct Side<'a> {
    #[expect(missing_docs, reason = "the name says it")]
    pub name: &'a str,
    /// The definition that is deployed now.
    pub before: &'a Definition,
    /// The definition that is deployed afterwards. The same, if the config is not rolled back.
    pub after: &'a Definition,
}

/// What two configs share before, and only the first one changes: values of environment variables, images of a repository, and
/// targets to which both deploy.
pub fn one_sided(changes: Side<'_>, other: Side<'_>) -> Vec<String> {
    let mut told = vec![];
    let (was, becomes) = (shared(changes.before), shared(changes.after));
    let (known, stays) = (shared(other.before), shared(other.after));
    for (what, was) in &was {
        let (becomes, stays) = (becomes.get(what), stays.get(what));
        if known.get(what) != Some(was) || becomes == Some(was) || becomes == stays {
            continue;
        }
        let (becomes, stays) = (shown(becomes), shown(stays));
        told.push(format!(
            "{what}: {} goes from {} to {becomes}, and {} of the same app {} {stays}",
            changes.name,
            shown(Some(was)),
            other.name,
            if Some(was) == self::shared(other.after).get(what) { "keeps" } else { "has" }
        ));
    }
    let same = |target: &&Target| other.after.targets.iter().any(|there| (&there.kind, &there.id) == (&target.kind, &target.id));
    for target in changes.after.targets.iter().filter(same) {
        told.push(format!("target {} ({} {}): {} deploys to it as well", target.name, target.kind, target.id, other.name));
    }
    told
}

fn shown(value: Option<&String>) -> String {
    value.map_or_else(|| "nothing".into(), |value| format!("{value:?}"))
}

/// What a config may share with others: variables by name, images by repository.
fn shared(definition: &Definition) -> BTreeMap<String, String> {
    let variables = environment(&definition.template).map(|(name, value)| (format!("environment variable {name}"), value));
    let images = containers(&definition.template).filter(|(_, image)| !image.is_empty());
    let images = images.map(|(_, image)| (format!("image {}", repository(image)), image.to_owned()));
    variables.chain(images).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deployments::tests::stand::definition;
    use serde_json::json;

    fn config(url: &str, image: &str) -> Definition {
        let env = json!([{"name": "DB_URL", "value": url}, {"name": "OWN", "value": image}]);
        let template = json!({"spec": {"containers": [{"name": "c", "image": format!("r.test:5000/{image}"), "env": env}]}});
        Definition { template, ..definition(vec![]) }
    }

    fn told(before: &Definition, after: &Definition, other: (&Definition, &Definition)) -> Vec<String> {
        let changes = Side { name: "web", before, after };
        one_sided(changes, Side { name: "api", before: other.0, after: other.1 })
    }

    #[test]
    fn what_only_one_side_changes_is_told() {
        let (new, old) = (config("b", "web:2"), config("a", "web:1"));
        let (other, both) = (config("b", "api:2"), config("a", "api:1"));
        assert_eq!(
            told(&new, &old, (&other, &other)),
            ["environment variable DB_URL: web goes from \"b\" to \"a\", and api of the same app keeps \"b\""]
        );
        assert_eq!(told(&new, &old, (&other, &both)), Vec::<String>::new(), "both go back");
        assert_eq!(told(&new, &new, (&other, &other)), Vec::<String>::new());
        let elsewhere = config("c", "api:1");
        assert_eq!(told(&new, &old, (&elsewhere, &elsewhere)), Vec::<String>::new(), "they differed before");
    }

    #[test]
    fn images_of_one_repository_and_targets_are_shared_too() {
        let target =
            |id: &str| Target { name: "eu".into(), kind: "lambda-alias".into(), id: id.into(), region: None, account: None };
        let with = |image: &str, id: &str| Definition { targets: vec![target(id)], ..config("a", image) };
        let (new, old, other) = (with("web@sha256:2", "f:live"), with("web@sha256:1", "f:live"), with("web@sha256:2", "f:live"));
        let lines = told(&new, &old, (&other, &other));
        assert!(lines[1].starts_with("image r.test:5000/web: web goes from \"r.test:5000/web@sha256:2\""), "{lines:?}");
        assert_eq!(lines[2], "target eu (lambda-alias f:live): api deploys to it as well");
    }
}
