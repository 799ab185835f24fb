//! The screen of a delivery: what it has to do with in the other engines, and what happens now and then.

use super::{Page, token, token_for};
use crate::bed::Bed;
use crate::shell::{Shell, repository};
use keelway_cloud_tests::events::{Scope, fresh};
use keelway_cloud_tests::patience::until;
use keelway_cloud_tests::problem::{ensure, same};
use keelway_cloud_tests::runner::Test;
use keelway_cloud_tests::{Outcome, Problem};
use serde_json::{Map, Value, json};

pub fn tests() -> Vec<Test<Bed>> {
    vec![Test::new("page::delivery: its promotion, its deployment, and what follows", whole)]
}

/// As in `examples/together`; in production, more follows.
const STAGES: &str = "apiVersion: spec.keptn.sh/0.2.3
kind: Shipyard
metadata: {name: shipyard-page}
spec:
  stages:
    - name: dev
      sequences: [{name: delivery, tasks: [{name: deployment, properties: {deploymentConfig: 'bookshop-dev:cart'}}]}]
    - name: prod
      sequences: [{name: delivery, tasks: [{name: deployment, properties: {deploymentConfig: 'bookshop-prod:cart'}}, {name: test}]}]
    - name: fleet
      sequences:
        - {name: delivery, triggeredOn: [{event: prod.delivery.finished}], tasks: [{name: approval}, {name: deployment}]}
        - name: alarm
          triggeredOn: [{event: prod.delivery.finished, selector: {match: {result: fail}}}]
          tasks: [{name: notify}]
";

/// Brings a version to `dev`, from where a pipeline promotes it by a delivery into `prod`: the context of that.
fn promoted(bed: &Bed, project: &str) -> Result<String, Problem> {
    let api = bed.stack.api();
    let own = |text: &str| text.replace("bookshop", project);
    let example = |file: &str| {
        let path = repository().join(format!("examples/together/{file}.yaml"));
        std::fs::read_to_string(&path).map_err(|error| Problem::of(&path.display().to_string(), error))
    };
    bed.stack.wait(api.apply(None, &own(&example("project")?)))?.fine("the projects")?;
    bed.stack.wait(api.apply(Some(project), &own(STAGES)))?.fine("the shipyard")?;
    for file in ["deploymentconfigs", "pipeline"] {
        bed.stack.wait(api.apply(None, &own(&example(file)?)))?.fine(file)?;
    }
    let deployer = Shell(bed).deployer(project, &["--config", &format!("{project}-dev/cart")], &["examples/together/deploy.sh"])?;
    let image = json!({"values": {"image": format!("registry.example.com/{project}/cart@sha256:{:064}", 7)}});
    let data = Map::from_iter([("configurationChange".to_owned(), image)]);
    let event = Scope::new(project, "dev", "cart").trigger("delivery", &fresh(), data);
    bed.stack.wait(api.post("/v1/event", &event))?.fine("a trigger")?;

    let read = |path: &str| -> Result<Value, Problem> { bed.stack.wait(api.get(path))?.fine(path) };
    let pipeline = format!("/v1/pipelines/{project}/cart");
    let said = |path: &str| read(path).map_or_else(|error| error.0, |value| value.to_string());
    let context = until(
        "the promotion",
        || Ok(read(&pipeline)?["environments"][1]["promotion"]["keptnContext"].as_str().map(str::to_owned)),
        || said(&pipeline),
    )?;
    deployer.end()?;
    let delivery = format!("/v1/project/{project}/delivery/{context}");
    let deployed = || Ok(bed.stack.wait(api.get(&delivery))?.body["deployments"].get(0).map(drop));
    until("the version of the delivery", deployed, || said(&delivery))?;
    Ok(context)
}

fn whole(bed: &Bed) -> Outcome {
    let project = format!("page-{}", &fresh()[24..]);
    let context = promoted(bed, &project)?;
    let prod = format!("{project}-prod");
    let address = format!("#/delivery/{project}/{context}");
    let page = Page::signed_in(bed, &token_for(bed, &[&project, &prod], &["read"])?)?;
    let browser = &page.browser;
    page.open(&address)?;
    let (pipeline, config) = (format!("#/pipelines/{project}/cart"), format!("#/deployments/{prod}/cart"));
    for told in ["into prod", " created", "#1 waits for a deployer", "Now: prod runs deployment", "fleet begins with approval."] {
        browser.until_text("main", told)?;
    }
    browser.until_text("main", "Then: prod goes on with test; if prod passes, ")?;
    let text = browser.text("main")?;
    ensure(!text.contains("alarm"), || format!("what follows a failure is said to follow: {text}"))?;
    for scheme in ["light", "dark"] {
        browser.prefers("", &[("prefers-color-scheme", scheme)])?;
        same(scheme, browser.axe(&[])?, Vec::<String>::new())?;
    }
    for (link, title) in [(&pipeline, "cart"), (&config, &*format!("{prod}/cart"))] {
        browser.click(&format!("main a[href='{link}']"), "")?;
        browser.until_text("h1", title)?;
        page.shown()?;
        browser.previous()?;
        browser.until(&format!("location.hash === {}", json!(address)))?;
        page.shown()?;
    }
    page.calm(&address)?;
    // The config is in another project: who does not see that, does not see it here.
    browser.window()?;
    page.sign_in(&token(bed, &project, &["read"])?)?;
    page.open(&address)?;
    browser.until_text("main", "into prod")?;
    same("configs of other projects", browser.count("main a[href^='#/deployments/']")?, 0)?;

    // What is deployed appears by itself.
    browser.window()?;
    page.sign_in(&token_for(bed, &[&project, &prod], &["read"])?)?;
    page.open(&address)?;
    let deployer = Shell(bed).deployer(&project, &["--config", &format!("{prod}/cart")], &["examples/together/deploy.sh"])?;
    browser.until_text("main", &format!("#1 rolled out by {project}"))?;
    browser.until_text("main", "Now: prod waits: test")?;
    browser.until_text("main", "Then: if prod passes, fleet begins with approval.")?;
    deployer.end()?;
    bed.stack.wait(
        bed.stack.api().post(&format!("/v1/sequence/{project}/{context}/control"), &json!({"state": "abort", "stage": ""})),
    )?;
    browser.until_text("main", "Now: it is over: prod failed: the sequence was aborted")?;
    browser.until_text("main", "Then: nothing follows unless it is retried.")
}
