//! The same border for manifests: each field that may hold a name, and what it names. The fields are those of the JSON Schemas, so
//! a new one is missing in the table of `fields.rs` until somebody says what it names.

use super::configs::CONFIGS;
use super::fields::{
    FIELDS, HEAD,
    Names::{Nothing, Outside, Within},
    Row,
};
use super::furnished::{Furnished, OTHER, OWN, furnish};
use super::{Border, ask};
use crate::fenced::requests::Sent;
use crate::stand::Stand;
use keelway_wire::manifest::{schema, schema_kinds};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Every row of the table.
fn rows() -> impl Iterator<Item = &'static Row> {
    FIELDS.iter().chain(CONFIGS)
}

/// The documents in full.
fn document(short: &str, name: &str) -> String {
    const STAGES: &str = "{name: alfadev, sequences: [{name: delivery, tasks: [{name: deployment}, {name: test}]}, {name: evaluation, tasks: [{name: evaluation}]}]}, {name: alfaprod, sequences: [{name: release, tasks: \
                          [{name: approval}, {name: deployment}]}]}, {name: alfalate, sequences: [{name: delivery, tasks: [{name: deployment}]}]}";
    const PROPOSED: &str = "template: {strategy: {type: Recreate}, controllerTemplate: {replicas: 1, replicaSelector: {a: b}, podTemplate: {metadata: {labels: {a: b}}, spec: \
                            {containers: [{name: web, image: 'r.test/w:1'}]}}}}";
    let digest = format!("sha256:{:064x}", 7);
    // The stage of a schedule has to exist where it is looked for.
    short
        .replace("HEAD", HEAD)
        .replace("CONTAINERS", "template: {containers: [{name: web, image: 'r.test/w:1'}]}")
        .replace("PROPOSED", PROPOSED)
        .replace("STAGES", STAGES)
        .replace("DIGEST", &digest)
        .replace('~', name)
}

/// The fields of all schemas that take a text or anything at all, as level and name.
fn fields() -> BTreeSet<(String, String)> {
    let mut all = BTreeSet::new();
    for kind in schema_kinds() {
        let schema = schema(kind).unwrap();
        let levels = schema["$defs"].as_object().into_iter().flatten();
        for (level, shape) in levels.map(|(level, shape)| (level.as_str(), shape)).chain([(*kind, &schema)]) {
            let properties = shape["properties"].as_object().into_iter().flatten();
            let free = properties.filter(|(_, shape)| is_free(shape));
            all.extend(free.map(|(field, _)| (level.to_owned(), field.clone())));
        }
    }
    all
}

/// Whether a text that somebody chooses may stand there; levels of their own, words, flags, numbers and lengths of time are none.
fn is_free(shape: &Value) -> bool {
    let is = |ty: &str| shape["type"] == ty || shape["type"].as_array().is_some_and(|all| all.iter().any(|one| one == ty));
    let counts = ["^(0|", "^[0-9]+$", "^[0-9]+%"];
    match () {
        () if ["$ref", "const", "enum"].iter().any(|member| shape.get(member).is_some()) => false,
        () if shape["anyOf"].is_array() => shape["anyOf"].as_array().unwrap().iter().any(is_free),
        () if is("array") => is_free(&shape["items"]),
        () if is("object") => shape.get("properties").is_none() && shape.get("patternProperties").is_none(),
        () if is("string") => !shape["pattern"].as_str().is_some_and(|text| counts.iter().any(|start| text.starts_with(start))),
        () => shape.get("type").is_none(),
    }
}

#[test]
fn every_field_of_every_manifest_is_in_the_table() {
    let fields = fields();
    assert!(fields.len() > 130, "{}", fields.len());
    let listed: Vec<(String, String)> =
        rows().flat_map(|(level, names, _)| names.iter().map(|name| ((*level).to_owned(), (*name).to_owned()))).collect();
    let known: BTreeSet<&(String, String)> = listed.iter().collect();
    assert_eq!(known.len(), listed.len(), "a field stands there twice");
    let missing: Vec<_> = fields.iter().filter(|field| !known.contains(field)).collect();
    assert!(missing.is_empty(), "say in fenced/fields.rs what these fields name: {missing:?}");
    let gone: Vec<_> = known.iter().filter(|field| !fields.contains(field)).collect();
    assert!(gone.is_empty(), "no manifest has these fields: {gone:?}");
    for (level, names, what) in rows() {
        if let Nothing(why) = what {
            assert!(why.len() > 5, "{level} {names:?} says nothing");
        }
    }
}

/// What the own project may use of the installation: whatever bears its name.
const POLICY: &str = "{apiVersion: keelway.dev/v1, kind: Project, metadata: {name: alfa}, spec: {policy: {allows: {functions: ['alfa-*'], hookFunctions: ['alfa-*'], packages: \
                      ['alfa/*'], images: ['registry.test/alfa/*', '111111111111.dkr.ecr.eu-central-1.amazonaws.com/alfa/*'], tasks: ['alfa/deploy', 'alfa/alfa'], builds: ['alfa-*'], repositories: \
                      ['https://git.test/alfa/*'], servers: ['https://alfa.k8s.test'], \
                      metrics: [{name: cloudwatch/alfa, account: '111122223333'}]}}}}";

async fn apply(f: &Furnished, border: &Border, who: &str, text: String, query: &str) -> (u16, String, Option<String>) {
    let mut stand: Stand = f.stand.fork(f.secrets.clone());
    let uri = format!("/v1/apply{query}");
    let sent = Sent { method: "POST".into(), uri, kind: "application/yaml".into(), body: text, coded: String::new() };
    let secret = f.stand.secret_of(who);
    let (answer, happened) = ask(&mut stand, border, &sent, ("x-token", &secret)).await;
    let written =
        stand.world.core().table.journal.iter().map(|change| format!("{} {}", change.key.pk, change.key.sk)).collect::<Vec<_>>();
    let beside = |key: &String| ["I#", "N#", "RC#", "TOKENS"].iter().any(|start| key.starts_with(start));
    let wrote = answer.status == 403 && !written.iter().all(beside);
    (answer.status, answer.text, happened.or(wrote.then(|| format!("it was refused, and wrote {written:?}"))))
}

/// A name in a manifest reaches nothing of another project, and nothing of the installation's that the project may not use.
#[tokio::test(start_paused = true)]
async fn no_field_of_a_manifest_reaches_outside() {
    let mut f = furnish().await;
    f.stand.manifests(POLICY).await;
    let border = Border::of(&f);
    let (mut failures, mut tried) = (vec![], BTreeMap::<&str, usize>::new());
    for (level, names, what) in rows() {
        let (documents, others) = match what {
            Nothing(_) => continue,
            Outside(documents) => (documents, 403),
            Within(documents) => (documents, 200),
        };
        for short in *documents {
            *tried.entry(level).or_default() += 1;
            for (name, expected) in [(OWN, 200), (OTHER, others)] {
                let text = document(short, name);
                let (status, told, happened) = apply(&f, &border, "alfa-administer", text.clone(), "").await;
                if status != expected || happened.is_some() {
                    failures.push(format!("{level} {names:?}: {status} instead of {expected}, {happened:?}\n{text}\n{told}"));
                }
            }
        }
    }
    assert!(tried.values().sum::<usize>() > 30, "{tried:?}");
    assert!(failures.is_empty(), "{} holes:\n{}", failures.len(), failures.join("\n\n"));
}

/// No manifest of a project says what it may use of the installation, and none that it is vouched for.
#[tokio::test(start_paused = true)]
async fn no_manifest_writes_a_policy() {
    let f = furnish().await;
    let border = Border::of(&f);
    for policy in [
        POLICY.to_owned(),
        POLICY.replace("allows: {", "quotas: {webhooks: 100}, allows: {"),
        "{apiVersion: keelway.dev/v1, kind: Project, metadata: {name: alfa}, \
         spec: {policy: null}}"
            .to_owned(),
    ] {
        let (status, told, happened) = apply(&f, &border, "alfa-administer", policy, "").await;
        assert_eq!((status, happened), (403, None), "{told}");
    }
    let vouched = "{apiVersion: keelway.dev/v1, kind: Cluster, metadata: {name: alfanew, namespace: alfa}, spec: {server: 'https://x.test', vouched: true, secretRef: {name: t}}}";
    for text in [vouched.to_owned(), vouched.replace("spec: {", "vouched: true, spec: {")] {
        let (status, told, happened) = apply(&f, &border, "alfa-administer", text, "").await;
        assert!(status >= 400 && happened.is_none(), "{status} {told}");
    }
}

/// The project of a document may stand in the query: it is asked for like the one in the text.
#[tokio::test(start_paused = true)]
async fn the_project_of_the_query_is_no_way_in() {
    let f = furnish().await;
    let border = Border::of(&f);
    let shipyard = document(
        "{apiVersion: spec.keptn.sh/0.2.3, kind: Shipyard, metadata: {name: shipyard-alfa}, spec: {stages: [STAGES]}}",
        OWN,
    );
    for dry in ["", "&dryRun=true"] {
        let (status, told, happened) =
            apply(&f, &border, "alfa-administer", shipyard.clone(), &format!("?project={OTHER}{dry}")).await;
        assert_eq!((status, happened), (403, None), "{told}");
    }
}
