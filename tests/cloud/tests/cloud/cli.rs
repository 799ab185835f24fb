//! The command as a person types it, against the deployed stack.

use crate::bed::Bed;
use keelway_cloud_tests::cloud::binaries;
use keelway_cloud_tests::events::fresh;
use keelway_cloud_tests::problem::ensure;
use keelway_cloud_tests::runner::Test;
use keelway_cloud_tests::{Outcome, Problem};
use serde_json::Value;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

pub fn tests() -> Vec<Test<Bed>> {
    vec![
        Test::new("cli::hello, as its page says", hello),
        Test::new("cli::a delivery waits for its approval", approval),
        Test::new("cli::a shipyard that breaks a rule is refused and nothing is stored", refused),
    ]
}

struct Shell<'a>(&'a Bed);

impl Shell<'_> {
    fn command(&self, words: &[&str]) -> Result<Command, Problem> {
        let mut command = Command::new(binaries()?.join("keelway"));
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let api = self.0.stack.api();
        command.args(words).current_dir(root).env("KEELWAY_API", &api.url).env("KEELWAY_TOKEN", &api.token);
        // Loopback, whatever proxy the shell has.
        command.env("NO_PROXY", "127.0.0.1,localhost").stdin(Stdio::null());
        Ok(command)
    }

    fn run(&self, words: &[&str]) -> Result<Output, Problem> {
        let mut command = self.command(words)?;
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().map_err(|error| Problem::of("keelway", error))?;
        wait(child, Duration::from_secs(60), &words.join(" "))
    }

    /// Standard output of what must end with 0.
    fn fine(&self, words: &[&str]) -> Result<String, Problem> {
        let output = self.run(words)?;
        let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        ensure(output.status.success(), || format!("keelway {}: {}\n{stdout}{stderr}", words.join(" "), output.status))?;
        Ok(stdout.into_owned())
    }

    fn executor(&self, name: &str, task: &str, project: &str, script: &str) -> Result<Running, Problem> {
        let words = ["executor", "--name", name, "--on", task, "--project", project, "--", "sh", "-c", script];
        let mut command = self.command(&words)?;
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        Ok(Running(Some(command.spawn().map_err(|error| Problem::of("keelway executor", error))?)))
    }
}

fn wait(mut child: Child, patience: Duration, what: &str) -> Result<Output, Problem> {
    let start = Instant::now();
    while start.elapsed() < patience {
        if child.try_wait().map_err(|error| Problem::of(what, error))?.is_some() {
            return child.wait_with_output().map_err(|error| Problem::of(what, error));
        }
        std::thread::sleep(Duration::from_millis(30));
    }
    terminate(&mut child);
    let output = child.wait_with_output().map_err(|error| Problem::of(what, error))?;
    let said = [String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr)].concat();
    Err(format!("keelway {what} did not end within {patience:?}:\n{said}").into())
}

fn terminate(child: &mut Child) {
    let asked = Command::new("kill").arg(child.id().to_string()).status();
    if !asked.is_ok_and(|status| status.success()) {
        drop(child.kill());
    }
}

/// A process that ends with the test.
struct Running(Option<Child>);

impl Running {
    /// Asks it to end, as a service manager does.
    fn end(mut self) -> Result<Output, Problem> {
        let mut child = self.0.take().ok_or("it has ended")?;
        terminate(&mut child);
        wait(child, Duration::from_secs(20), "executor after SIGTERM")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            drop(child.kill());
            drop(child.wait());
        }
    }
}

fn hello(bed: &Bed) -> Outcome {
    let shell = Shell(bed);
    shell.fine(&["apply", "-f", "examples/hello"])?;
    let project = "my-first-keptn-project";
    let executor =
        shell.executor("greeter", "sayhello", project, "echo \"{\\\"greeting\\\": \\\"hello, $KEELWAY_SERVICE\\\"}\"")?;
    let words = ["trigger", "sequence", "sequence1", "--project", project, "--stage", "dev", "--service", "service1", "--watch"];
    let timeline = shell.fine(&words)?;
    for word in ["sequence1", "sayhello", "pass"] {
        ensure(timeline.contains(word), || format!("the timeline does not speak of {word}:\n{timeline}"))?;
    }
    let sequences = shell.fine(&["get", "sequences", "--project", project, "--output", "json"])?;
    let sequences: Value = serde_json::from_str(&sequences).map_err(|error| Problem::of("get sequences", error))?;
    let state = &sequences["states"][0];
    ensure(state["state"] == "finished", || format!("it is not finished: {state}"))?;
    let context = state["shkeptncontext"].as_str().unwrap_or_default();
    let events = shell.fine(&["get", "events", "--context", context, "--project", project, "--output", "json"])?;
    ensure(events.contains("hello, service1"), || format!("what the command printed is not among the events:\n{events}"))?;
    let end = executor.end()?;
    let said = String::from_utf8_lossy(&end.stderr).into_owned();
    ensure(end.status.success(), || format!("the executor ended with {}: {said}", end.status))
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
    let executor = shell.executor("releaser", "release", &project, "cat >/dev/null")?;
    let words =
        ["trigger", "delivery", "--project", &project, "--service", "cart", "--image", "cart:1.0", "--watch", "--for-approval"];
    shell.fine(&words)?;
    let sequences = shell.fine(&["get", "sequences", "--project", &project, "--output", "json"])?;
    let sequences: Value = serde_json::from_str(&sequences).map_err(|error| Problem::of("get sequences", error))?;
    let state = &sequences["states"][0];
    ensure(state["state"] == "waitingForApproval", || format!("it does not wait: {state}"))?;
    let context = state["shkeptncontext"].as_str().unwrap_or_default().to_owned();
    shell.fine(&["approve", &context, "--project", &project])?;
    shell.fine(&["watch", &context, "--project", &project, "--exit-code"])?;
    let other = shell.run(&["decline", &context, "--project", &project])?;
    ensure(other.status.code() == Some(1), || format!("declining what was approved ends with {}", other.status))?;
    executor.end().map(drop)
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
