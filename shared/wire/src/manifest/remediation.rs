//! `kind: Remediation`, as Keptn's `remediation.yaml` (version 0.1.4): which actions to try against which problem.

use super::finding::Report;
use super::levels::{self, remediations, shipyards};
use super::named::entry;
use super::shipyard::PROJECT_ANNOTATION;
use super::tree::Node;
use super::values::{mapping, text};
use keelway_domain::names::{ServiceName, StageName};
use keelway_domain::sequences::{Action, ProblemType, Remediation};
use serde_json::Value;
use std::collections::BTreeSet;

/// The annotations that name the stage and the service that remediations are for.
const STAGE_ANNOTATION: &str = "keelway.dev/stage";
const SERVICE_ANNOTATION: &str = "keelway.dev/service";
const VERSION: &str = "spec.keptn.sh/0.1.4";

/// Remediations and the other contents of their document.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "named as the fields of the manifest are")]
pub struct RemediationManifest {
    /// `metadata.name`, any text.
    pub metadata_name: Option<String>,
    /// `metadata.annotations["keelway.dev/project"]`: the project they are for.
    pub project_annotation: Option<String>,
    /// `metadata.annotations["keelway.dev/stage"]`; absent: every stage.
    pub stage: Option<StageName>,
    /// `metadata.annotations["keelway.dev/service"]`; absent: every service.
    pub service: Option<ServiceName>,
    pub remediation: Remediation,
    /// The text of the document.
    pub source: String,
}

pub fn read(root: &Node, source: &str, report: &mut Report) -> Option<RemediationManifest> {
    levels::check(root, &remediations::REMEDIATION, "", report);
    version(root, report);
    let (mut metadata_name, mut project_annotation) = (None, None);
    let (mut stage, mut service) = (None, None);
    if let Some((metadata, _)) = levels::mapping(root, "metadata", &shipyards::METADATA, "", report) {
        metadata_name = text(metadata, "name", "metadata", report);
        if let Some(annotations) = mapping(metadata, "annotations", "metadata.annotations", report) {
            project_annotation = text(annotations, PROJECT_ANNOTATION, "metadata.annotations", report);
            stage = annotation(annotations, STAGE_ANNOTATION, StageName::new, report);
            service = annotation(annotations, SERVICE_ANNOTATION, ServiceName::new, report);
            if let Some(at) = annotations.get(SERVICE_ANNOTATION).filter(|_| annotations.get(STAGE_ANNOTATION).is_none()) {
                let message = format!("names a service, but no stage: annotate it with {STAGE_ANNOTATION}, too");
                report.error(at, format!("metadata.annotations.{SERVICE_ANNOTATION}"), message);
            }
        }
    }
    let Some((spec, _)) = levels::mapping(root, "spec", &remediations::SPEC, "", report) else {
        levels::missing(root, &remediations::SPEC, "remediations", "spec", report);
        return None;
    };
    let list = spec.get("remediations").filter(|list| !list.is_null())?;
    let read = levels::items(list, "spec.remediations", &remediations::PROBLEM_TYPE, report)?;
    let mut named: BTreeSet<&str> = BTreeSet::new();
    for (i, item) in read.iter().enumerate() {
        let Some((at, name)) = item.get("problemType").and_then(|at| Some((at, at.scalar()?))) else { continue };
        if !named.insert(name) {
            let message = format!("{name:?} is there twice: the second one would never be used");
            report.error(at, format!("spec.remediations[{i}].problemType"), message);
        }
    }
    let read = read.into_iter().enumerate().map(|(i, item)| problem_type(item, &format!("spec.remediations[{i}]"), report));
    let remediations: Vec<ProblemType> = read.collect::<Vec<_>>().into_iter().collect::<Option<_>>()?;
    let remediation = Remediation { remediations };
    Some(RemediationManifest { metadata_name, project_annotation, stage, service, remediation, source: source.to_owned() })
}

fn version(root: &Node, report: &mut Report) {
    let given = ["apiVersion", "version"].into_iter().find_map(|field| root.get(field).map(|node| (field, node)));
    let Some((field, node)) = given.filter(|(_, node)| !node.is_null()) else {
        report.error(root, "apiVersion", format!("is missing: write `apiVersion: {VERSION}`"));
        return;
    };
    let text = node.scalar().unwrap_or_default();
    if !text.trim().trim_start_matches("spec.keptn.sh/").starts_with("0.1.4") {
        report.warning(node, field, format!("{text:?} is not known here and is read like 0.1.4: write `{field}: {VERSION}`"));
    }
}

fn annotation<T, E: std::fmt::Display>(
    annotations: &Node,
    name: &'static str,
    read: impl Fn(String) -> Result<T, E>,
    report: &mut Report,
) -> Option<T> {
    let written = text(annotations, name, "metadata.annotations", report)?;
    let at = annotations.get(name).unwrap_or(annotations);
    read(written).map_err(|error| report.error(at, format!("metadata.annotations.{name}"), error.to_string())).ok()
}

fn problem_type(node: &Node, path: &str, report: &mut Report) -> Option<ProblemType> {
    entry(node, &remediations::PROBLEM_TYPE, path, report)?;
    levels::check(node, &remediations::PROBLEM_TYPE, path, report);
    let problem_type = text(node, "problemType", path, report);
    let at = format!("{path}.actionsOnOpen");
    let list = node.get("actionsOnOpen").filter(|list| !list.is_null())?;
    let read = levels::items(list, &at, &remediations::ACTION, report)?;
    let read = read.into_iter().enumerate().map(|(i, item)| action(item, &format!("{at}[{i}]"), report));
    let actions = read.collect::<Vec<_>>().into_iter().collect::<Option<Vec<Action>>>()?;
    Some(ProblemType { problem_type: problem_type?, actions })
}

fn action(node: &Node, path: &str, report: &mut Report) -> Option<Action> {
    entry(node, &remediations::ACTION, path, report)?;
    levels::check(node, &remediations::ACTION, path, report);
    let action = text(node, "action", path, report)?;
    Some(Action {
        name: text(node, "name", path, report).unwrap_or_else(|| action.clone()),
        description: text(node, "description", path, report).unwrap_or_default(),
        value: node.get("value").map_or(Value::Null, Node::to_json),
        action,
    })
}

#[cfg(test)]
mod tests {
    use super::super::{Document, parse};

    const MANIFEST: &str = "\
apiVersion: spec.keptn.sh/0.1.4
kind: Remediation
metadata:
  name: carts-remediation
  annotations: {keelway.dev/project: shop, keelway.dev/stage: production, keelway.dev/service: carts}
spec:
  remediations:
    - problemType: Response time degradation
      actionsOnOpen:
        - action: toggle-feature
          name: Toggle the cache
          description: Puts the cache on
          value: {EnableItemCache: \"on\"}
        - {action: scale, value: 3}
    - problemType: default
      actionsOnOpen:
        - action: page
";

    #[test]
    fn a_manifest_of_keptn_is_read() {
        let parsed = parse(MANIFEST, "-");
        assert_eq!(parsed.findings, vec![]);
        let [Document::Remediation(manifest)] = &parsed.documents[..] else { panic!("{parsed:?}") };
        assert_eq!(manifest.project_annotation.as_deref(), Some("shop"));
        assert_eq!(manifest.stage.as_ref().map(ToString::to_string).as_deref(), Some("production"));
        assert_eq!(manifest.service.as_ref().map(ToString::to_string).as_deref(), Some("carts"));
        let [first, second] = &manifest.remediation.remediations[..] else { panic!("{manifest:?}") };
        assert_eq!((first.problem_type.as_str(), first.actions.len()), ("Response time degradation", 2));
        assert_eq!(first.actions[0].value, serde_json::json!({"EnableItemCache": "on"}));
        assert_eq!((first.actions[1].name.as_str(), &first.actions[1].value), ("scale", &serde_json::json!(3)));
        assert_eq!(second.actions[0].action, "page");
    }

    #[test]
    fn what_is_missing_or_misspelt_is_told() {
        for (from, to, field) in [
            ("apiVersion: spec.keptn.sh/0.1.4\n", "", "apiVersion"),
            ("  remediations:\n", "  remediation:\n", "spec.remediation"),
            ("problemType: default", "problem: default", "spec.remediations[1].problem"),
            ("problemType: default", "problemType: Response time degradation", "spec.remediations[1].problemType"),
            ("- action: page", "- name: page", "spec.remediations[1].actionsOnOpen[0].action"),
            ("keelway.dev/stage: production", "keelway.dev/stage: Production", "metadata.annotations.keelway.dev/stage"),
        ] {
            assert!(MANIFEST.contains(from));
            let parsed = parse(&MANIFEST.replace(from, to), "-");
            let fields: Vec<&str> = parsed.findings.iter().map(|finding| finding.path.as_str()).collect();
            assert!(parsed.refused() && fields.contains(&field), "{field}: {fields:?}");
        }
    }
}
