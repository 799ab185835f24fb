//! Evaluations through template and binaries: a pipeline's gate, as the example's page says; CloudWatch, as the local cloud has it;
//! a Prometheus that wants a token.

use crate::bed::Bed;
use crate::shell::{Shell, repository};
use crate::trouble::cloudwatch;
use keelway_cloud_tests::cloud::now_millis;
use keelway_cloud_tests::events::fresh;
use keelway_cloud_tests::patience::until;
use keelway_cloud_tests::problem::{ensure, same};
use keelway_cloud_tests::runner::Test;
use keelway_cloud_tests::{Outcome, Problem};
use keelway_domain::time::Timestamp;
use serde_json::{Value, json};

pub fn tests() -> Vec<Test<Bed>> {
    vec![
        Test::new("examples::promotions/measured, as its page says: a gate closed by numbers opens when they are good", measured),
        Test::new("evaluations::CloudWatch is asked", by_cloudwatch),
        Test::new("evaluations::a Prometheus is asked with the token of a secret", with_a_secret),
    ]
}

const MEASURED: &str = "examples/promotions/measured";

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The soak time is the shortest that can be evaluated.
fn measured(bed: &Bed) -> Outcome {
    let shell = Shell(bed);
    let of = |file: &str| format!("{MEASURED}/{file}");
    let figures =
        std::fs::read_to_string(repository().join(of("figures.txt"))).map_err(|error| Problem::of("figures.txt", error))?;
    let directory = tempfile::tempdir().map_err(|error| Problem::of("a directory", error))?;
    let path = directory.path().join("figures.txt");
    let know = |figures: &str| std::fs::write(&path, figures).map_err(|error| Problem::of("figures.txt", error));
    know(&figures)?;
    shell.fine(&["apply", "-f", MEASURED])?;
    let _metrics = shell.store(&path.to_string_lossy(), &of("evaluation/metrics.yaml"))?;
    shell.fine(&["create", "service", "podinfo", "-p", "measured"])?;
    shell.fine(&["resource", "add", &of("evaluation/sli.yaml"), "-p", "measured"])?;
    let place = ["-p", "measured", "--stage", "staging", "--service", "podinfo"];
    shell.fine(&[&["resource", "add", &of("evaluation/slo.yaml")], &place[..]].concat())?;
    shell.fine(&["observe", "-f", &of("observed/facts.json")])?;

    let pipeline = || bed.stack.wait(bed.stack.api().get("/v1/pipelines/measured/podinfo"))?.fine("the pipeline");
    let prod = |status: &Value| {
        let all = status["environments"].as_array().into_iter().flatten();
        all.filter(|state| state["name"] == "prod").map(|state| state["promotion"].clone()).next().unwrap_or_default()
    };
    let becomes = |member: &str, wanted: &str| {
        let found = || Ok(Some(pipeline()?).filter(|status| prod(status)[member] == wanted));
        until(&format!("prod's {member} {wanted}"), found, || format!("{:?}", pipeline()))
    };
    becomes("reason", "Soaking")?;
    let closed = becomes("reason", "EvaluationFailed")?;
    let why = "the evaluation of 6.6.0 in staging failed with a score of 50: error_rate is 2.5, not <=1";
    same("why it is closed", &prod(&closed)["message"], &json!(why))?;
    let explained = shell.run(&["pipeline", "explain", "podinfo", "-p", "measured"])?;
    let explained = String::from_utf8_lossy(&explained.stdout).into_owned();
    ensure(explained.contains("error_rate is 2.5"), || format!("explain does not say it:\n{explained}"))?;

    know(&figures.replace(" 2.5", " 0.2"))?;
    shell.fine(&["pipeline", "retry", "podinfo", "prod", "-p", "measured"])?;
    let open = becomes("phase", "succeeded")?;
    same("what is promoted", text(&prod(&open)["revision"]), "6.6.0")?;
    let all = shell.json(&["get", "evaluations", "-p", "measured"])?;
    let results: Vec<&str> = all["items"].as_array().into_iter().flatten().map(|one| text(&one["result"])).collect();
    same("its evaluations, newest first", results, vec!["pass", "fail"])
}

/// A project of its own, whose service `cart` in the stage `live` is evaluated by one indicator.
struct Judged<'a> {
    shell: Shell<'a>,
    project: String,
}

impl<'a> Judged<'a> {
    fn new(bed: &'a Bed, source: &Value, query: &str) -> Result<Self, Problem> {
        let project = format!("evaluations-{}", &fresh()[24..]);
        let judged = Self { shell: Shell(bed), project };
        let project = &judged.project;
        let stages = json!({"stages": [{"name": "live", "sequences": []}]});
        let source = json!({"apiVersion": "keelway.dev/v1", "kind": "MetricsSource",
            "metadata": {"name": "numbers", "namespace": project}, "spec": source});
        for manifest in [
            json!({"apiVersion": "keelway.dev/v1", "kind": "Project", "metadata": {"name": project}}),
            json!({"apiVersion": "spec.keptn.sh/0.2.3", "kind": "Shipyard", "metadata": {"name": project}, "spec": stages}),
            source,
        ] {
            bed.stack.wait(bed.stack.api().apply(None, &manifest.to_string()))?.fine("apply")?;
        }
        judged.shell.fine(&["create", "service", "cart", "-p", project])?;
        judged.file("sli.yaml", &json!({"spec_version": "1.0", "indicators": {"errors": query}}), &[])?;
        let slo = json!({"spec_version": "1.0", "total_score": {"pass": "90%"},
            "objectives": [{"sli": "errors", "pass": [{"criteria": ["<=5"]}]}]});
        judged.file("slo.yaml", &slo, &["--as", "cart/slo.yaml", "--stage", "live"])?;
        Ok(judged)
    }

    fn file(&self, name: &str, content: &Value, place: &[&str]) -> Outcome {
        let directory = tempfile::tempdir().map_err(|error| Problem::of("a directory", error))?;
        let path = directory.path().join(name);
        std::fs::write(&path, content.to_string()).map_err(|error| Problem::of(name, error))?;
        self.shell.fine(&[&["resource", "add", &path.to_string_lossy(), "-p", &self.project], place].concat()).map(drop)
    }

    /// Evaluates a window that is over; the exit code, and the evaluation.
    fn evaluate(&self, (start, end): (i64, i64)) -> Result<(Option<i32>, Value), Problem> {
        let [start, end] = [start, end].map(|at| Timestamp(at).rfc3339());
        let words = ["evaluate", "cart", "-p", &self.project, "--stage", "live", "--start", &start, "--end", &end, "--watch"];
        let watched = self.shell.run(&words)?;
        let all = self.shell.json(&["get", "evaluations", "-p", &self.project])?;
        let id = text(&all["items"][0]["id"]).to_owned();
        let shown = self.shell.json(&["evaluation", "show", &id, "-p", &self.project])?;
        Ok((watched.status.code(), shown))
    }
}

const MINUTE: i64 = 60_000;

/// The local cloud's CloudWatch answers `GetMetricData` for metrics, and checks each request by AWS's service model.
fn by_cloudwatch(bed: &Bed) -> Outcome {
    let service = format!("cart-{}", &fresh()[24..]);
    let query = format!("Shop/Errors{{Service={service}}}:Sum:60");
    let judged = Judged::new(bed, &json!({"cloudwatch": {}}), &query)?;
    // Whole minutes, so that the minute of the value is within the window.
    let now = now_millis() / MINUTE * MINUTE;
    let put = |ago: i64, value: f64| {
        let datum = json!({"MetricName": "Errors", "Value": value, "Timestamp": (now - ago * MINUTE) / 1000 + 5,
            "Dimensions": [{"Name": "Service", "Value": service}]});
        cloudwatch(bed, "PutMetricData", &json!({"Namespace": "Shop", "MetricData": [datum]})).map(drop)
    };
    put(20, 3.0)?;
    put(20, 1.0)?;
    put(10, 7.0)?;
    let (code, good) = judged.evaluate((now - 25 * MINUTE, now - 15 * MINUTE))?;
    ensure(code == Some(0) && value(&good) == Some(4.0), || format!("{code:?}: {good:#}"))?;
    let (code, bad) = judged.evaluate((now - 15 * MINUTE, now - 5 * MINUTE))?;
    ensure(code == Some(1) && value(&bad) == Some(7.0), || format!("{code:?}: {bad:#}"))?;
    // Nothing was measured then, and nothing is no zero.
    let (code, none) = judged.evaluate((now - 60 * MINUTE, now - 50 * MINUTE))?;
    ensure(code == Some(1) && none.to_string().contains("query did not return any values"), || format!("{code:?}: {none:#}"))
}

/// What was measured of the only objective.
fn value(shown: &Value) -> Option<f64> {
    shown["indicators"][0]["value"]["value"].as_f64()
}

/// The secret is the project's, and the function reads it.
fn with_a_secret(bed: &Bed) -> Outcome {
    let shell = Shell(bed);
    let directory = tempfile::tempdir().map_err(|error| Problem::of("a directory", error))?;
    let path = directory.path().join("figures.txt");
    std::fs::write(&path, "errors 4\n").map_err(|error| Problem::of("figures.txt", error))?;
    let token = fresh();
    let (_metrics, url) = shell.figures_for(&path.to_string_lossy(), &["--token", &token])?;
    let judged = Judged::new(bed, &json!({"prometheus": {"url": url, "secret": "metrics"}}), "errors")?;
    let now = now_millis();
    // Nobody has made the secret yet.
    let (code, none) = judged.evaluate((now - 10 * MINUTE, now - 5 * MINUTE))?;
    ensure(code == Some(1) && none.to_string().contains("metrics"), || format!("{code:?}: {none:#}"))?;
    bed.secret(&judged.project, "metrics", &json!({"token": token}).to_string())?;
    let found = || Ok(Some(judged.evaluate((now - 10 * MINUTE, now - 5 * MINUTE))?).filter(|(code, _)| *code == Some(0)));
    let (_, good) =
        until("an evaluation with the token", found, || format!("{:?}", judged.evaluate((now - 10 * MINUTE, now - 5 * MINUTE))))?;
    ensure(value(&good) == Some(4.0), || format!("{good:#}"))?;
    ensure(!good.to_string().contains(&token), || "the token is told".into())
}
