//! The web page in a real browser, on the deployed stack: its fifteen criteria ([`docs/web.md`] tells what a reader sees of them).
//! What is asserted are counts, sizes and what is shown, never how long something takes.

mod acts;
mod delivery;
mod evaluations;
mod fields;
mod histories;
mod live;
mod operations;
mod pictures;
mod provider;
mod readers;
mod safe;
mod screens;
mod shipyard;
mod sign_in;
mod size;
mod trouble;

use crate::bed::Bed;
use keelway_cloud_tests::browser::Browser;
use keelway_cloud_tests::events::{Scope, answer, fresh};
use keelway_cloud_tests::problem::{ensure, same};
use keelway_cloud_tests::runner::Test;
use keelway_cloud_tests::{Ability, Outcome, Problem};
use serde_json::{Map, Value, json};
use std::sync::OnceLock;

pub fn tests() -> Vec<Test<Bed>> {
    let groups = [
        screens::tests(),
        safe::tests(),
        live::tests(),
        size::tests(),
        readers::tests(),
        acts::tests(),
        delivery::tests(),
        trouble::tests(),
        histories::tests(),
        evaluations::tests(),
        fields::tests(),
        operations::tests(),
        shipyard::tests(),
        sign_in::tests(),
        pictures::tests(),
    ];
    let needs: &[Ability] = &[Ability::Functions, Ability::Browser];
    groups.into_iter().flatten().map(|test| test.needs(needs)).collect()
}

/// Deliveries of one project: `web` failed in `dev`, `cart` waits for an approval in `staging`, `mail` is at work in `dev`.
struct Scene {
    project: String,
    /// May do everything in the project.
    token: String,
    /// What waits for a person.
    context: String,
}

const SHIPYARD: &str = "apiVersion: spec.keptn.sh/0.2.3
kind: Shipyard
metadata: {name: shipyard-page}
spec:
  stages:
    - {name: dev, sequences: [{name: delivery, tasks: [{name: deployment}]}]}
    - name: staging
      sequences:
        - name: delivery
          triggeredOn: [{event: dev.delivery.finished}]
          tasks: [{name: approval, properties: {pass: manual, warning: manual}}, {name: deployment}]
    - {name: prod, sequences: [{name: delivery, triggeredOn: [{event: staging.delivery.finished}], tasks: [{name: deployment}]}]}
";
/// What a message may contain.
const HOSTILE: &str = "<img src=x onerror=alert(1)> \u{202e}txet";

impl Scene {
    fn make(bed: &Bed) -> Result<Self, Problem> {
        let project = format!("page-{}", &fresh()[24..]);
        bed.stack.wait(bed.stack.api().apply_project(&project, SHIPYARD))?;
        let token = token(bed, &project, &["administer"])?;
        let trigger = |service: &str, version: &str| -> Result<String, Problem> {
            let context = fresh();
            let image = json!({"values": {"image": format!("registry.example/{service}:{version}")}});
            let data = Map::from_iter([("configurationChange".to_owned(), image)]);
            let event = Scope::new(&project, "dev", service).trigger("delivery", &context, data);
            bed.stack.wait(bed.stack.api().post("/v1/event", &event))?.fine("a trigger")?;
            Ok(context)
        };
        let (web, context) = (trigger("web", "7.1")?, trigger("cart", "1.5.0")?);
        let mail = trigger("mail", "3.0")?;
        let deploy = "sh.keptn.event.deployment.triggered";
        for (context, result, message) in [(&web, "fail", HOSTILE), (&context, "pass", "")] {
            let task = bed.observer.event(context, deploy, 0)?;
            bed.stack.put_event(&answer(&task.event, "started", "deployer", Map::new()))?;
            let data = json!({"result": result, "message": message}).as_object().cloned().unwrap_or_default();
            bed.stack.put_event(&answer(&task.event, "finished", "deployer", data))?;
        }
        // It is at work for the rest of the tests.
        let task = bed.observer.event(&mail, deploy, 0)?;
        bed.stack.put_event(&answer(&task.event, "started", "deployer", Map::new()))?;
        bed.observer.event(&mail, "sh.keptn.event.deployment.started", 0)?;
        bed.observer.event(&context, "sh.keptn.event.approval.triggered", 0)?;
        bed.observer.event(&web, "sh.keptn.event.dev.delivery.finished", 0)?;
        Ok(Self { project, token, context })
    }

    /// The one that tests look at and change nothing in.
    fn shared(bed: &Bed) -> Result<&'static Self, Problem> {
        static SHARED: OnceLock<Result<Scene, Problem>> = OnceLock::new();
        SHARED.get_or_init(|| Self::make(bed)).as_ref().map_err(Clone::clone)
    }

    fn environments(&self) -> String {
        format!("#/environments?project={}", self.project)
    }
    fn delivery(&self) -> String {
        format!("#/delivery/{}/{}", self.project, self.context)
    }
}

/// A token with these scopes in one project.
fn token(bed: &Bed, project: &str, scopes: &[&str]) -> Result<String, Problem> {
    token_for(bed, &[project], scopes)
}

/// A token with these scopes in these projects.
fn token_for(bed: &Bed, projects: &[&str], scopes: &[&str]) -> Result<String, Problem> {
    let body = json!({"name": format!("page-{}", &fresh()[24..]), "scopes": scopes, "projects": projects});
    bed.stack.wait(bed.stack.api().make_token(&body))
}

/// Every screen, of a project and a context; what is of something else is of `NAME`.
fn addresses(project: &str, context: &str) -> Vec<String> {
    let screens = "environments deliveries waits pipelines pipelines/P/NAME deployments deployments/P/NAME calendar shipyard shipyard/P \
                   evaluations evaluations/P/dev/NAME operations/dead-letters operations/invalid operations/webhooks operations/tokens operations/audit operations/limits";
    let of = |screen: &str| format!("#/{}", screen.replace("/P", &format!("/{project}")));
    screens.split_whitespace().map(of).chain([format!("#/delivery/{project}/{context}")]).collect()
}

/// The page in a browser.
struct Page<'a> {
    browser: Browser<'a>,
    /// Its address.
    ui: String,
}

impl<'a> Page<'a> {
    fn new(bed: &'a Bed) -> Result<Self, Problem> {
        Ok(Self { browser: bed.browsers()?.take()?, ui: format!("{}/ui/", bed.stack.api().url) })
    }

    /// With a token for each document of this window.
    fn signed_in(bed: &'a Bed, token: &str) -> Result<Self, Problem> {
        let page = Self::new(bed)?;
        page.sign_in(token)?;
        Ok(page)
    }

    fn sign_in(&self, token: &str) -> Outcome {
        self.browser.before(&format!("if (window.keelwayTest) sessionStorage.setItem('keelway.token', {});", json!(token)))
    }

    /// Opens a screen and waits until it is there, or says why it is not.
    fn open(&self, address: &str) -> Outcome {
        self.browser.go(&format!("{}{address}", self.ui))?;
        self.shown()
    }

    /// Waits until the screen of the present address is there.
    fn shown(&self) -> Outcome {
        self.browser.run("return keelwayTest.settled();", &[])?;
        let there = "document.querySelector('main h1, main .failed, main .empty')";
        self.browser
            .until(&format!("Boolean({there}) && ![...document.querySelectorAll('.loading')].some((e) => e.checkVisibility())"))
    }

    /// Answers in place of the API, as its own document describes them.
    fn world(&self, bed: &Bed, texts: &[&str], most: usize) -> Outcome {
        let api = bed.stack.wait(bed.stack.api().get("/v1/openapi.json"))?.fine("the API's document")?;
        self.browser.before(&format!("window.keelwayTest?.world({api}, {});", json!({"texts": texts, "most": most})))
    }

    /// How many requests the page has sent to the API.
    fn requests(&self) -> Result<u64, Problem> {
        Ok(self.browser.value("keelwayTest.requests.length")?.as_u64().unwrap_or_default())
    }

    /// Nothing was refused by the policy, nothing threw, nothing asked.
    fn calm(&self, what: &str) -> Outcome {
        let seen = self.browser.value("[keelwayTest.violations, keelwayTest.errors, keelwayTest.dialogs]")?;
        same(what, seen, json!([[], [], 0]))?;
        // That the API refuses something is not the page's fault.
        let bad = |line: &String| !line.starts_with("INFO") && !line.contains("Failed to load resource");
        let log: Vec<String> = self.browser.log()?.into_iter().filter(bad).collect();
        ensure(log.is_empty(), || format!("{what}: {log:?}"))
    }
}

/// Texts that mean nothing.
const TAME: [&str; 6] = ["cart", "payments", "web", "dev", "prod", "1.5.0"];

fn strings(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().map(|one| one.as_str().unwrap_or_default().to_owned()).collect()
}
