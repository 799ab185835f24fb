//! The latency from an observation to its attempt, on the deployed stack.

use crate::bed::{Bed, PROJECT};
use crate::latency::tell;
use crate::report::Report;
use keelway_cloud_tests::Problem;
use keelway_cloud_tests::cloud::now_millis;
use serde_json::json;
use std::collections::HashSet;

/// The awaited events, with their meanings.
const EVENTS: [(&str, &str); 2] = [
    ("dev.keelway.promotion.started", "observation posted to the attempt's `started`"),
    ("dev.keelway.promotion.needed", "observation posted to the notification on the bus"),
];

fn pipeline(name: &str) -> String {
    format!(
        "apiVersion: pipelines.weave.works/v1alpha1\nkind: Pipeline\nmetadata: {{name: {name}, namespace: {PROJECT}}}\nspec:\n  appRef: \
         {{apiVersion: helm.toolkit.fluxcd.io/v2, kind: HelmRelease, name: {name}}}\n  environments:\n  - {{name: dev, targets: \
         [{{namespace: dev}}]}}\n  - {{name: prod, targets: [{{namespace: prod}}]}}\n  promotion: {{strategy: {{notification: {{}}}}}}\n"
    )
}

fn observe(bed: &Bed, name: &str, environment: &str, revision: &str) -> Result<(), Problem> {
    let fact = json!({
        "apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease", "name": name, "namespace": environment,
        "revision": revision, "ready": true,
    });
    bed.stack.wait(bed.stack.api().post("/v1/observations", &fact))?.fine("an observation").map(drop)
}

/// Measures this many pipelines, each with this many revisions, which are posted to the API one after the other.
pub fn attempts(bed: &Bed, (pipelines, revisions): (usize, usize), report: &mut Report) -> Result<(), Problem> {
    let names: Vec<String> = (0..pipelines).map(|n| format!("bench-{n}")).collect();
    for name in &names {
        bed.stack.wait(bed.stack.api().apply(None, &pipeline(name)))?.fine("a pipeline")?;
        for environment in ["prod", "dev"] {
            observe(bed, name, environment, "v0")?;
        }
    }
    let keys = HashSet::from([PROJECT.to_owned()]);
    let mut samples = EVENTS.map(|_| vec![]);
    for revision in (1..=revisions).map(|n| format!("v{n}")) {
        for name in &names {
            let posted = now_millis();
            observe(bed, name, "dev", &revision)?;
            for ((ty, _), samples) in EVENTS.iter().zip(&mut samples) {
                let seen = bed.wait(&format!("{ty} of {name} {revision}"), || {
                    let mut events = bed.observer.events(&keys).into_iter();
                    Ok(events.find(|seen| {
                        let (event, data) = (&seen.event, &seen.event["data"]);
                        event["type"] == *ty && data["pipeline"] == *name && data["revision"] == *revision
                    }))
                })?;
                samples.push(seen.sent - posted);
            }
        }
    }
    for ((_, what), samples) in EVENTS.iter().zip(samples) {
        tell(report, what, samples);
    }
    Ok(())
}
