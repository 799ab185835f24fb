//! `examples/together`, as `docs/together.md` tells it: a sequence deploys by a config, a pipeline promotes what is complete, and
//! the promotion is a sequence that deploys by the next config.

use crate::bed::Bed;
use crate::shell::Shell;
use keelway_cloud_tests::patience::until;
use keelway_cloud_tests::problem::{ensure, same};
use keelway_cloud_tests::runner::Test;
use keelway_cloud_tests::{Outcome, Problem, Stack};
use serde_json::{Value, json};

pub fn tests() -> Vec<Test<Bed>> {
    vec![Test::new("examples::together, as its page says", together)]
}

const IMAGE: &str = "registry.example.com/bookshop/cart";

fn good(n: u64) -> String {
    format!("sha256:{n:064}")
}

/// It does not start in production.
fn bad(n: u64) -> String {
    format!("sha256:{n:061}bad")
}

struct Bookshop<'a> {
    shell: Shell<'a>,
    stack: &'a Stack,
}

impl Bookshop<'_> {
    /// Delivers to `dev`; the context.
    fn deliver(&self, digest: &str) -> Result<String, Problem> {
        let image = format!("{IMAGE}@{digest}");
        let answer = self.shell.json(&["trigger", "delivery", "--project", "bookshop", "--service", "cart", "--image", &image])?;
        Ok(answer["keptnContext"].as_str().unwrap_or_default().to_owned())
    }

    fn read(&self, path: &str) -> Result<Value, Problem> {
        self.stack.wait(self.stack.api().get(path))?.fine(path)
    }

    /// Waits until what is read is as wanted.
    fn until(&self, what: &str, path: &str, wanted: impl Fn(&Value) -> bool) -> Result<Value, Problem> {
        let found = || Ok(Some(self.read(path)?).filter(|value| wanted(value)));
        until(what, found, || self.read(path).map_or_else(|error| error.0, |value| value.to_string()))
    }

    /// Waits for the end of a version in a stage.
    fn ends(&self, stage: &str, n: u64, status: &str) -> Result<Value, Problem> {
        let path = format!("/v1/deployments/bookshop-{stage}:cart-{n}");
        until(
            &format!("cart-{n} {status} in {stage}"),
            || {
                let answer = self.stack.wait(self.stack.api().get(&path))?;
                Ok((answer.status == 200 && answer.body["status"] == status).then_some(answer.body))
            },
            || self.stack.wait(self.stack.api().get(&path)).map_or_else(|error| error.0, |answer| answer.body.to_string()),
        )
    }

    /// Waits until the promotion of a revision into `prod` is in this phase.
    fn promotion(&self, digest: &str, phase: &str) -> Result<Value, Problem> {
        let prod = |state: &Value| state["environments"][1]["promotion"].clone();
        let wanted = |state: &Value| {
            let promotion = prod(state);
            promotion["revision"] == digest && promotion["phase"] == phase
        };
        self.until(&format!("{digest} {phase}"), "/v1/pipelines/bookshop/cart", wanted).map(|state| prod(&state))
    }

    /// Waits for the end of the sequence of a context.
    fn sequence(&self, context: &str, result: &str) -> Result<Value, Problem> {
        let wanted = |page: &Value| page["states"][0]["state"] == "finished";
        let page = self.until("the sequence", &format!("/v1/sequence/bookshop?keptnContext={context}"), wanted)?;
        let execution = page["states"][0]["executions"][0].clone();
        same("the sequence's result", &execution["result"], &json!(result))?;
        Ok(execution)
    }

    /// A revision goes through `dev`, the pipeline, and `prod`.
    fn goes_through(&self, digest: &str, dev: u64, prod: u64) -> Outcome {
        let context = self.deliver(digest)?;
        let version = self.ends("dev", dev, "Complete")?;
        same("the task's sequence", &version["context"], &json!(context))?;
        same("how far dev is", &version["progress"]["targets"]["cart"]["status"], &json!("Complete"))?;
        self.sequence(&context, "pass")?;
        let version = self.ends("prod", prod, "Complete")?;
        same("the image in prod", &version["images"]["cart"], &json!(format!("{IMAGE}@{digest}")))?;
        let promotion = self.promotion(digest, "succeeded")?;
        // The sequence that the promotion has started is the one whose task the version carries out.
        let context = version["context"].as_str().unwrap_or_default();
        ensure(promotion.to_string().contains(context) && !context.is_empty(), || format!("{promotion} of {context}"))?;
        self.sequence(context, "pass").map(drop)
    }
}

fn together(bed: &Bed) -> Outcome {
    let bookshop = Bookshop { shell: Shell(bed), stack: &bed.stack };
    bookshop.shell.fine(&["apply", "-f", "examples/together"])?;
    let configs = ["--config", "bookshop-dev/cart", "--config", "bookshop-prod/cart"];
    let deployer = bookshop.shell.deployer("bookshop", &configs, &["examples/together/deploy.sh"])?;
    bookshop.goes_through(&good(1), 1, 1)?;

    let (revision, context) = (bad(2), bookshop.deliver(&bad(2))?);
    bookshop.ends("dev", 2, "Complete")?;
    bookshop.sequence(&context, "pass")?;
    let failed = bookshop.ends("prod", 2, "Failed")?;
    same("why it failed", &failed["reason"], &json!("DeployerFailed"))?;
    let execution = bookshop.sequence(failed["context"].as_str().unwrap_or_default(), "fail")?;
    let told = "the deployer exited with 1: it does not answer its health check; the application is rolled back to cart-1";
    same("the task's message", &execution["message"], &json!(told))?;
    let back = bookshop.ends("prod", 3, "Complete")?;
    same("what is rolled back to", &back["rollbackOf"], &json!(1))?;
    same("the image that came back", &back["images"]["cart"], &json!(format!("{IMAGE}@{}", good(1))))?;
    bookshop.promotion(&revision, "failed")?;

    bookshop.goes_through(&good(3), 3, 4)?;
    let wanted = |state: &Value| state["reason"] == "" && state["latestRevision"] == good(3);
    bookshop.until("the end of the run", "/v1/pipelines/bookshop/cart", wanted)?;
    deployer.end()
}
