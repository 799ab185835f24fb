//! Everything under `examples/`, applied and run as its pages say. Projects have the examples' own names, which no other test uses.

use crate::bed::Bed;
use crate::shell::{Running, Shell, repository};
use keelway_cloud_tests::patience::until;
use keelway_cloud_tests::problem::ensure;
use keelway_cloud_tests::runner::Test;
use keelway_cloud_tests::{Outcome, Problem};
use keelway_domain::event::PREFIX;
use serde_json::Value;
use std::cell::RefCell;
use std::collections::{BTreeSet, HashSet};

/// A file of `examples/keptn`, whose project has the same name; the sequence to trigger; what must end with `pass`, in this order.
struct Shown {
    name: &'static str,
    stage: &'static str,
    sequence: &'static str,
    tasks: &'static [&'static str],
    passes: &'static [&'static str],
}

const KEPTN: [Shown; 3] = [
    Shown {
        name: "kep06-hardening",
        stage: "hardening",
        sequence: "artifact-delivery",
        tasks: &["deployment", "test", "evaluation", "release"],
        passes: &["deployment", "test", "evaluation", "test", "evaluation", "release", "hardening.artifact-delivery"],
    },
    Shown {
        name: "kep06-three-stages",
        stage: "dev",
        sequence: "artifact-delivery",
        tasks: &["deployment", "test", "evaluation", "release"],
        passes: &[
            "deployment",
            "test",
            "evaluation",
            "release",
            "dev.artifact-delivery",
            "deployment",
            "test",
            "evaluation",
            "release",
            "staging.artifact-delivery",
            "deployment",
            "release",
            "production.artifact-delivery",
        ],
    },
    Shown {
        name: "synopsis",
        stage: "dev",
        sequence: "delivery",
        tasks: &["deployment", "release", "delivery"],
        passes: &["deployment", "release", "dev.delivery", "delivery", "production.delivery"],
    },
];

pub fn tests() -> Vec<Test<Bed>> {
    let mut tests = vec![
        Test::new("examples::shop, as its page says", shop),
        Test::new("examples::hello, as its page says", hello),
        Test::new("examples::deployments, waiting for their images", deployments),
        Test::new("examples::evaluation, judged as its page says", evaluation).needs(&[]),
        Test::new("examples::none is left out", none_left_out).needs(&[]),
    ];
    tests.extend(KEPTN.iter().map(|shown| Test::new(format!("examples::keptn/{}", shown.name), |bed: &Bed| keptn(bed, shown))));
    tests
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Words of the lines of a list, without comments and empty ones.
fn list(path: &str) -> Result<Vec<Vec<String>>, Problem> {
    let text = std::fs::read_to_string(repository().join(path)).map_err(|error| Problem::of(path, error))?;
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    Ok(lines.map(|line| line.split_whitespace().map(str::to_owned).collect()).collect())
}

fn deployments(bed: &Bed) -> Outcome {
    Shell(bed).fine(&["apply", "-f", "examples/deployments"])?;
    for name in ["carts", "frontend"] {
        let state = || bed.stack.wait(bed.stack.api().get(&format!("/v1/deploymentConfigs/shop:{name}/status")))?.fine("status");
        let found = || Ok(Some(state()?).filter(|state| state["reason"] == "Unresolved"));
        until(name, found, || state().map_or_else(|error| error.0, |state| state.to_string()))?;
    }
    Ok(())
}

/// It needs no stack: the command judges what it is given.
fn evaluation(bed: &Bed) -> Outcome {
    let shell = Shell(bed);
    let file = |name: &str| format!("examples/evaluation/{name}");
    let (slo, sli, values, history) = (file("slo.yaml"), file("sli.yaml"), file("values.json"), file("history.json"));
    shell.fine(&["validate", &slo, &sli])?;
    let judged = shell.run(&["evaluate", "-f", &slo, "--values", &values, "--history", &history, "-o", "json"])?;
    let judged: Value = serde_json::from_slice(&judged.stdout).map_err(|error| Problem::of("the judgement", error))?;
    ensure(matches!(text(&judged["result"]), "pass" | "warning" | "fail"), || format!("it has no result: {judged}"))
}

fn hello(bed: &Bed) -> Outcome {
    let shell = Shell(bed);
    shell.fine(&["apply", "-f", "examples/hello"])?;
    let project = "my-first-keptn-project";
    let script = "echo \"{\\\"greeting\\\": \\\"hello, $KEELWAY_SERVICE\\\"}\"";
    let executor = shell.executor("greeter", &["sayhello"], project, &["sh", "-c", script])?;
    let words = ["trigger", "sequence", "sequence1", "--project", project, "--stage", "dev", "--service", "service1", "--watch"];
    let timeline = shell.fine(&words)?;
    // What the machine's locale can show.
    let passed = if timeline.contains('✓') { "dev ✓" } else { "dev ok" };
    // The task may have ended between two looks.
    for word in ["sequence1", passed] {
        ensure(timeline.contains(word), || format!("the timeline does not speak of {word}:\n{timeline}"))?;
    }
    let sequences = shell.json(&["get", "sequences", "--project", project])?;
    let state = &sequences["items"][0];
    ensure(state["state"] == "finished", || format!("it is not finished: {state}"))?;
    let greets = |event: &Value| {
        event["type"] == "sh.keptn.event.sayhello.finished" && event["data"]["sayhello"]["greeting"] == "hello, service1"
    };
    let said = |events: &[Value]| events.iter().any(greets);
    shell.events(project, text(&state["shkeptncontext"]), said)?;
    executor.end()
}

fn keptn(bed: &Bed, shown: &Shown) -> Outcome {
    let shell = Shell(bed);
    shell.fine(&["apply", "-f", &format!("examples/keptn/{}.yaml", shown.name)])?;
    let executor = shell.executor("trivial", shown.tasks, shown.name, &["true"])?;
    let trigger = ["trigger", "sequence", shown.sequence, "--project", shown.name, "--stage", shown.stage, "--service", "carts"];
    let context = shell.json(&trigger)?["keptnContext"].clone();
    // A watch gives up on what nothing is known of for a while.
    shell.events(shown.name, text(&context), |events| !events.is_empty())?;
    shell.fine(&["watch", text(&context), "--project", shown.name, "--exit-code"])?;
    // It ends when all is over for a moment, which may be between two stages.
    let events = shell.events(shown.name, text(&context), |events| ends(events).len() >= shown.passes.len())?;
    let wanted: Vec<(&str, &str)> = shown.passes.iter().map(|name| (*name, "pass")).collect();
    ensure(ends(&events) == wanted, || format!("ended: {:?}\nwanted: {wanted:?}", ends(&events)))?;
    let state = || shell.json(&["get", "sequences", "--project", shown.name, "--context", text(&context)]);
    let finished = || Ok((state()?["items"][0]["state"] == "finished").then_some(()));
    until("the end of the sequence", finished, || format!("{:?}", state()))?;
    executor.end()
}

/// What has ended, and how.
fn ends(events: &[Value]) -> Vec<(&str, &str)> {
    events.iter().filter_map(|event| Some((name(event, "finished")?, text(&event["data"]["result"])))).collect()
}

/// `deployment` or `dev.delivery`, if the event is of this kind.
fn name<'a>(event: &'a Value, kind: &str) -> Option<&'a str> {
    text(&event["type"]).strip_prefix(PREFIX)?.strip_suffix(kind)?.strip_suffix('.')
}

/// A delivery of the shop.
struct Delivery {
    what: &'static str,
    /// The sequence that ends it.
    last: &'static str,
    context: String,
    events: Vec<Value>,
}

impl Delivery {
    /// The one event of this type.
    fn the(&self, ty: &str) -> Result<&Value, Problem> {
        let full = format!("{PREFIX}{ty}");
        let mut found = self.events.iter().filter(|event| event["type"] == full);
        match (found.next(), found.next()) {
            (Some(event), None) => Ok(event),
            (None, _) => Err(format!("{}: there is no {full}", self.what).into()),
            _ => Err(format!("{}: there is more than one {full}", self.what).into()),
        }
    }

    fn time(&self, ty: &str) -> Result<&str, Problem> {
        self.the(ty).map(|event| text(&event["time"]))
    }

    /// How this sequence ended.
    fn ends(&self, sequence: &str, result: &str) -> Outcome {
        let end = self.the(&format!("{sequence}.finished"))?;
        ensure(end["data"]["result"] == result, || format!("{}: {sequence} does not end {result}: {end}", self.what))
    }
}

/// Approves what waits until every delivery has sent its last event; the contexts in the order they were approved.
fn approve_all(bed: &Bed, deliveries: &[Delivery]) -> Result<Vec<String>, Problem> {
    let (shell, mut approved, last) = (Shell(bed), vec![], RefCell::new(Value::Null));
    let is_over = |delivery: &Delivery| {
        let events = bed.observer.events(&HashSet::from([delivery.context.clone()]));
        events.iter().any(|seen| name(&seen.event, "finished") == Some(delivery.last))
    };
    let look = || {
        let page = shell.json(&["get", "sequences", "--project", "shop"])?;
        for state in page["items"].as_array().into_iter().flatten().filter(|state| state["phase"] == "waitingForApproval") {
            let context = text(&state["shkeptncontext"]).to_owned();
            if !approved.contains(&context) {
                shell.fine(&["approve", &context])?;
                approved.push(context);
            }
        }
        last.replace(page);
        Ok(deliveries.iter().all(is_over).then(|| approved.clone()))
    };
    until("the end of all deliveries", look, || last.borrow().to_string())
}

/// The deliveries, and the sequence that ends each.
const SHOP: [(&str, &str); 3] =
    [("carts 1.4.0", "production.delivery"), ("payments 2.0.0", "staging.rollback"), ("payments 2.0.1", "production.delivery")];

fn shop(bed: &Bed) -> Outcome {
    let shell = Shell(bed);
    shell.fine(&["apply", "-f", "examples/shop"])?;
    let _metrics = judged(&shell)?;
    let mut executors: Vec<Running> = vec![];
    for line in list("examples/shop/executors.txt")? {
        let words: Vec<&str> = line.iter().map(String::as_str).collect();
        let [name, task, command @ ..] = words.as_slice() else { return Err(format!("executors.txt: {line:?}").into()) };
        executors.push(shell.executor(name, &[task], "shop", command)?);
    }
    let mut deliveries = vec![];
    let lines = list("infra/local/deliveries.txt")?;
    ensure(lines.len() == SHOP.len(), || format!("other deliveries: {lines:?}"))?;
    for (line, (what, last)) in lines.iter().zip(SHOP) {
        let [service, image] = line.as_slice() else { return Err(format!("deliveries.txt: {line:?}").into()) };
        let named = format!("{service} {}", image.rsplit(':').next().unwrap_or_default());
        ensure(named == what, || format!("{named} is delivered instead of {what}"))?;
        let label = format!("version={}", image.rsplit(':').next().unwrap_or_default());
        let words = ["trigger", "delivery", "--project", "shop", "--service", service, "--image", image, "--labels", &label];
        let answer = shell.json(&words)?;
        deliveries.push(Delivery { what, last, context: text(&answer["keptnContext"]).to_owned(), events: vec![] });
    }
    let approved = approve_all(bed, &deliveries)?;
    for delivery in &mut deliveries {
        let whole = |events: &[Value]| ends(events).iter().any(|(sequence, _)| *sequence == delivery.last);
        delivery.events = shell.events("shop", &delivery.context, whole)?;
    }
    let [carts, bad, good] = deliveries.as_slice() else { return Err("not three deliveries".into()) };
    bad.ends("dev.delivery", "pass")?;
    bad.ends("staging.delivery", "fail")?;
    bad.ends("staging.rollback", "pass")?;
    ensure(bad.the("production.delivery.started").is_err(), || "payments 2.0.0 went on to production".into())?;
    // Times are in UTC with milliseconds, so they compare as texts do. The hand-over may take no time.
    let (begins, ends) = (bad.time("staging.rollback.started")?, bad.time("staging.rollback.finished")?);
    let next = good.time("staging.delivery.started")?;
    ensure(begins < ends && ends <= next, || {
        format!("the rollback took from {begins} to {ends}, and the next delivery started at {next}")
    })?;
    for delivery in [carts, good] {
        for stage in ["dev", "staging", "production"] {
            delivery.ends(&format!("{stage}.delivery"), "pass")?;
        }
        ensure(approved.contains(&delivery.context), || format!("{} waited for nobody", delivery.what))?;
    }
    ensure(approved.len() == 2, || format!("approved: {approved:?}"))?;
    judgements(&shell)?;
    executors.into_iter().try_for_each(Running::end)
}

/// The metric store of the shop, its queries, and the objectives of its services.
fn judged(shell: &Shell<'_>) -> Result<Running, Problem> {
    let folder = "examples/shop/evaluation";
    let metrics = shell.store("examples/shop/figures.txt", &format!("{folder}/metrics.yaml"))?;
    shell.fine(&["resource", "add", &format!("{folder}/sli.yaml"), "-p", "shop"])?;
    for service in ["carts", "payments"] {
        let (file, uri) = (format!("{folder}/slo.yaml"), format!("{service}/slo.yaml"));
        shell.fine(&["resource", "add", &file, "--as", &uri, "-p", "shop", "--stage", "staging"])?;
    }
    Ok(metrics)
}

/// The engine has judged each version by the figures, and the second one of payments by itself: the first one did not pass.
fn judgements(shell: &Shell<'_>) -> Outcome {
    let all = shell.json(&["get", "evaluations", "-p", "shop"])?;
    let of = |service: &str| -> Vec<(String, f64)> {
        let items = all["items"].as_array().into_iter().flatten().filter(|one| one["service"] == service);
        items.map(|one| (text(&one["result"]).to_owned(), one["score"].as_f64().unwrap_or(-1.0))).collect()
    };
    ensure(of("carts") == [("pass".to_owned(), 100.0)], || format!("carts: {all:#}"))?;
    ensure(of("payments") == [("pass".to_owned(), 100.0), ("fail".to_owned(), 50.0)], || format!("payments: {all:#}"))?;
    let failed = all["items"].as_array().into_iter().flatten().find(|one| one["result"] == "fail").map(|one| text(&one["id"]));
    let shown = shell.fine(&["evaluation", "show", failed.unwrap_or_default(), "-p", "shop"])?;
    ensure(shown.contains("431") && shown.contains("<=300 missed"), || format!("the reason is not told as numbers:\n{shown}"))
}

fn names(folder: &str) -> Result<BTreeSet<String>, Problem> {
    let entries = std::fs::read_dir(repository().join(folder)).map_err(|error| Problem::of(folder, error))?;
    Ok(entries.filter_map(|entry| Some(entry.ok()?.file_name().to_string_lossy().into_owned())).collect())
}

fn none_left_out(_: &Bed) -> Outcome {
    let folders = names("examples")?;
    let known = BTreeSet::from(
        ["deployments", "evaluation", "greeter", "hello", "keptn", "promotions", "shop", "together", "webhooks"].map(str::to_owned),
    );
    ensure(folders == known, || format!("examples holds {folders:?}, and the tests know {known:?}"))?;
    let files = names("examples/keptn")?;
    let known: BTreeSet<String> = KEPTN.iter().map(|shown| format!("{}.yaml", shown.name)).collect();
    ensure(files == known, || format!("examples/keptn holds {files:?}, and the tests know {known:?}"))
}
