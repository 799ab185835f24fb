//! The command as a person types it, against the deployed stack.

use crate::bed::Bed;
use crate::shell::Shell;
use keelway_cloud_tests::cloud::variables;
use keelway_cloud_tests::events::fresh;
use keelway_cloud_tests::problem::ensure;
use keelway_cloud_tests::runner::Test;
use keelway_cloud_tests::{Outcome, Problem};
use serde_json::json;

pub fn tests() -> Vec<Test<Bed>> {
    vec![
        Test::new("cli::a delivery waits for its approval", approval),
        Test::new("cli::a shipyard that breaks a rule is refused and nothing is stored", refused),
        Test::new("cli::doctor finds the rules enabled, and its event arrives", doctor),
        Test::new("cli::the variables of a stack that is down are not told", down).needs(&[]),
        Test::new("cli::revisions of a shipyard are listed, compared and brought back", revisions),
    ]
}

fn approval(bed: &Bed) -> Outcome {
    let shell = Shell(bed);
    let project = format!("cli-{}", &fresh()[24..]);
    let directory = tempfile::tempdir().map_err(|error| Problem::of("a directory", error))?;
    let manifests = format!(
        "apiVersion: keelway.dev/v1\nkind: Project\nmetadata: {{name: {project}}}\n---\napiVersion: spec.keptn.sh/0.2.3\nkind: Shipyard\n\
         metadata: {{name: shipyard-{project}}}\nspec: {{stages: [{{name: dev, sequences: [{{name: delivery, tasks: [\n  {{name: approval, \
         properties: {{pass: manual, warning: manual}}}}, {{name: release}}]}}]}}]}}\n"
    );
    let file = directory.path().join("all.yaml");
    std::fs::write(&file, manifests).map_err(|error| Problem::of("the manifests", error))?;
    shell.fine(&["apply", "-f", &file.to_string_lossy()])?;
    let executor = shell.executor("releaser", &["release"], &project, &["sh", "-c", "cat >/dev/null"])?;
    let words =
        ["trigger", "delivery", "--project", &project, "--service", "cart", "--image", "cart:1.0", "--watch", "--for-approval"];
    shell.fine(&words)?;
    let sequences = shell.json(&["get", "sequences", "--project", &project])?;
    let state = &sequences["items"][0];
    ensure(state["phase"] == "waitingForApproval", || format!("it does not wait: {state}"))?;
    let context = state["shkeptncontext"].as_str().unwrap_or_default().to_owned();
    shell.fine(&["approve", &context, "--project", &project])?;
    shell.fine(&["watch", &context, "--project", &project, "--exit-code"])?;
    let other = shell.run(&["decline", &context, "--project", &project])?;
    ensure(other.status.code() == Some(1), || format!("declining what was approved ends with {}", other.status))?;
    executor.end()
}

fn doctor(bed: &Bed) -> Outcome {
    let output = Shell(bed).run(&["doctor"])?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    ensure(output.status.success(), || format!("it ended with {}:\n{said}", output.status))?;
    let told = ["ok     rules: 10 enabled", "ok     clock: ", "ok     limits: ", "ok     bus: an event went around in "];
    ensure(told.iter().all(|told| said.contains(told)), || format!("something is not told:\n{said}"))
}

fn refused(bed: &Bed) -> Outcome {
    let shell = Shell(bed);
    let project = format!("refused-{}", &fresh()[24..]);
    let directory = tempfile::tempdir().map_err(|error| Problem::of("a directory", error))?;
    let file = directory.path().join("all.yaml");
    let manifests = format!(
        "apiVersion: keelway.dev/v1\nkind: Project\nmetadata: {{name: {project}}}\n---\napiVersion: spec.keptn.sh/0.2.3\nkind: Shipyard\n\
         metadata: {{name: shipyard-{project}}}\nspec:\n  stages:\n    - name: dev\n      sequences:\n        - name: delivery\n    - name: dev\n"
    );
    std::fs::write(&file, manifests).map_err(|error| Problem::of("the manifests", error))?;
    let output = shell.run(&["apply", "-f", &file.to_string_lossy()])?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure(output.status.code() == Some(1), || format!("it ended with {}: {said}", output.status))?;
    ensure(said.contains("tasks") && said.contains("dev"), || format!("not every finding is told:\n{said}"))?;
    let reply = bed.stack.wait(bed.stack.api().get(&format!("/v1/project/{project}")))?;
    ensure(reply.status == 404, || format!("the project is there: {}", reply.body))
}

fn revisions(bed: &Bed) -> Outcome {
    let shell = Shell(bed);
    let project = format!("revisions-{}", &fresh()[24..]);
    let directory = tempfile::tempdir().map_err(|error| Problem::of("a directory", error))?;
    let file = directory.path().join("all.yaml");
    let apply = |stages: &str, words: &[&str]| {
        let manifests = format!(
            "apiVersion: keelway.dev/v1\nkind: Project\nmetadata: {{name: {project}}}\n---\napiVersion: spec.keptn.sh/0.2.3\nkind: Shipyard\n\
             metadata: {{name: shipyard-{project}}}\nspec: {{stages: [{stages}]}}\n"
        );
        std::fs::write(&file, manifests).map_err(|error| Problem::of("the manifests", error))?;
        shell.fine(&[&["apply", "-f", &file.to_string_lossy()], words].concat())
    };
    apply("{name: dev}", &[])?;
    apply("{name: dev}, {name: prod}", &[])?;
    apply("{name: test}", &["--dry-run"])?;
    let list = shell.json(&["get", "shipyard", &project, "--revisions"])?;
    let known = list["items"].as_array().cloned().unwrap_or_default();
    ensure(known.len() == 2 && known[0]["inForce"] == true, || format!("not two revisions: {list}"))?;
    let diff = shell.json(&["diff", "shipyard", &project, "1", "2"])?;
    ensure(diff["changes"][0]["field"] == "spec.stages[prod]", || format!("another difference: {diff}"))?;
    shell.fine(&["rollback", "shipyard", &project, "--to", "1"])?;
    let list = shell.json(&["get", "shipyard", &project, "--revisions"])?;
    let (newest, oldest) = (&list["items"][0], &list["items"][2]);
    ensure(newest["number"] == 3 && newest["revision"] == oldest["revision"], || format!("it is not back: {list}"))?;
    let text = shell.json(&["get", "shipyard", &project])?;
    ensure(text["spec"]["stages"][1].is_null(), || format!("another shipyard is in force: {text}"))
}

/// The state of a stack outlives the cloud: a shell with its address would ask nobody.
fn down(_: &Bed) -> Outcome {
    let state = tempfile::tempdir().map_err(|error| Problem::of("a directory", error))?;
    let outputs = json!({"keelway": {"StackName": "keelway", "Endpoint": "http://127.0.0.1:1", "ApiUrl": "http://127.0.0.1:1/"}});
    std::fs::write(state.path().join("outputs.json"), outputs.to_string()).map_err(|error| Problem::of("the outputs", error))?;
    let refused = variables(state.path()).err().map(|problem| problem.to_string()).unwrap_or_default();
    ensure(refused.contains("the stack keelway is down") && refused.contains("start it with `make up`"), || refused.clone())
}
