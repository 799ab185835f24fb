//! The latency from a push to the offer of its version, on the deployed stack.

use crate::bed::{Bed, PROJECT};
use crate::latency::tell;
use crate::report::Report;
use keelway_cloud_tests::Problem;
use keelway_cloud_tests::cloud::now_millis;
use keelway_domain::deployments::QUIET;
use serde_json::{Value, json};
use std::collections::HashSet;

fn config(name: &str) -> String {
    let from = format!("{{kind: ImageStreamTag, name: 'bench:{name}'}}");
    format!(
        "apiVersion: apps.openshift.io/v1\nkind: DeploymentConfig\nmetadata: {{name: {name}, namespace: {PROJECT}}}\nspec:\n  triggers:\n  - type: \
         ImageChange\n    imageChangeParams: {{automatic: true, containerNames: [web], from: {from}}}\n  template: {{containers: [{{name: web}}]}}\n"
    )
}

fn post(bed: &Bed, path: &str, body: &Value) -> Result<Value, Problem> {
    bed.stack.wait(bed.stack.api().post(path, body))?.fine(path)
}

/// Measures this many configs, and pushes to the tag of each. Each version is complete before the next push to its tag.
pub fn offers(bed: &Bed, (configs, pushes): (usize, usize), report: &mut Report) -> Result<(), Problem> {
    let names: Vec<String> = (0..configs).map(|n| format!("bench-{n}")).collect();
    let source = format!(
        "apiVersion: keelway.dev/v1\nkind: ArtifactSource\nmetadata: {{name: bench, namespace: {PROJECT}}}\nspec: {{webhook: {{secret: bench}}}}\n"
    );
    let manifests = names.iter().map(|name| config(name)).chain([source]).collect::<Vec<_>>().join("---\n");
    bed.stack.wait(bed.stack.api().apply(None, &manifests))?.fine("the configs")?;
    let keys = HashSet::from([PROJECT.to_owned()]);
    let mut samples = vec![];
    for version in 1..=pushes {
        let mut pushed = vec![];
        for name in &names {
            let digest = format!("sha256:{version:064x}");
            pushed.push(now_millis());
            post(
                bed,
                &format!("/v1/artifacts/{PROJECT}/bench"),
                &json!({"tag": name, "digest": digest, "image": "registry.test/web"}),
            )?;
        }
        for (name, pushed) in names.iter().zip(pushed) {
            let offered = bed.wait(&format!("the offer of {name}-{version}"), || {
                let mut events = bed.observer.events(&keys).into_iter();
                Ok(events.find(|seen| {
                    let (event, data) = (&seen.event, &seen.event["data"]);
                    event["type"] == "dev.keelway.deployment.requested" && data["config"] == *name && data["version"] == version
                }))
            })?;
            samples.push(offered.sent - pushed - QUIET.0);
            let path = format!("/v1/deployments/{PROJECT}:{name}-{version}");
            let claim = post(bed, &format!("{path}/claim"), &json!({"by": "bench"}))?;
            let token = claim["token"].as_str().unwrap_or_default();
            let end = json!({"exitCode": 0});
            bed.stack.wait(bed.stack.api().post_as(&format!("{path}/finish"), token, &end))?.fine("finish")?;
        }
    }
    let quiet = QUIET.0 / 1000;
    tell(
        report,
        &format!("push posted to the version's offer on the bus, besides the {quiet} s in which others may follow"),
        samples,
    );
    Ok(())
}
