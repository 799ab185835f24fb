//! `docs/recipes.md`: what can be run here of it. The action of GitHub runs as a job would run it; what gives out the job's token
//! is a stand-in that gives out one of Keelway's.

use crate::bed::Bed;
use crate::shell::{Shell, repository};
use keelway_cloud_tests::events::fresh;
use keelway_cloud_tests::problem::ensure;
use keelway_cloud_tests::runner::Test;
use keelway_cloud_tests::{Outcome, Problem};

pub fn tests() -> Vec<Test<Bed>> {
    vec![Test::new("recipes::a job of GitHub Actions delivers, and fails when the delivery does", action)]
}

/// Answers every request with the token, if it shows the job's secret and asks for the audience.
const ISSUER: &str = r#"
import http.server, json, os, sys
class Issuer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        fine = self.headers["authorization"] == "bearer job-secret" and self.path.endswith("&audience=keelway")
        self.send_response(200 if fine else 403)
        self.end_headers()
        self.wfile.write(json.dumps({"value": os.environ["ISSUED"]} if fine else {}).encode())
    def log_message(self, *_):
        pass
server = http.server.HTTPServer(("127.0.0.1", 0), Issuer)
print(server.server_port, flush=True)
server.serve_forever()
"#;

/// Points every request to another server, which tells when a token follows.
const ELSEWHERE: &str = r#"
import http.server, sys, threading
class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if self.server is here:
            self.send_response(307)
            self.send_header("location", f"http://localhost:{there.server_port}/followed?secret=s3cret")
        else:
            print("FOLLOWED", self.headers["authorization"], file=sys.stderr, flush=True)
            self.send_response(200)
        self.end_headers()
    do_POST = do_GET
    def log_message(self, *_):
        pass
here, there = (http.server.HTTPServer(("127.0.0.1", 0), Answer) for _ in range(2))
threading.Thread(target=there.serve_forever, daemon=True).start()
print(here.server_port, flush=True)
here.serve_forever()
"#;

const JOB: &str = r#"
set -uo pipefail
trap 'kill $(jobs -p) 2>/dev/null || true' EXIT
keelway apply -f project.yaml -f shipyard.yaml || exit 90
keelway executor --name tester --on test --project "$PROJECT" -- sh -c 'case "$KEELWAY_IMAGE" in *broken) echo "the page is empty" >&2; exit 1;; esac' 2>/dev/null &
mkfifo port
ISSUED="$KEELWAY_TOKEN" python3 issuer.py > port &
read -r number < port
unset KEELWAY_TOKEN
export ACTIONS_ID_TOKEN_REQUEST_URL="http://127.0.0.1:$number/?job=1" ACTIONS_ID_TOKEN_REQUEST_TOKEN=job-secret
export KEELWAY_PROJECT="$PROJECT" KEELWAY_SERVICE=web KEELWAY_LOOK=1
export GITHUB_SERVER_URL=https://github.test GITHUB_REPOSITORY=acme/shop GITHUB_RUN_ID="$PROJECT" GITHUB_RUN_ATTEMPT=1 GITHUB_OUTPUT="$PWD/outputs" GITHUB_STEP_SUMMARY="$PWD/summary"
deliver() { python3 "$ACTION/deliver.py"; echo "$1 ended with $?"; }
KEELWAY_IMAGE=web:1 deliver good
GITHUB_RUN_ATTEMPT=2 KEELWAY_IMAGE=web:1 deliver "the same"
KEELWAY_IMAGE=web:2-broken KEELWAY_LABELS=$'team=web\n' deliver broken
KEELWAY_IMAGE=web:3 KEELWAY_WAIT=sometimes deliver wrong
KEELWAY_IMAGE=web:3 KEELWAY_PROJECT=nowhere deliver nowhere
mkfifo elsewhere
python3 elsewhere.py > elsewhere 2> followed &
read -r elsewhere < elsewhere
KEELWAY_IMAGE=web:3 KEELWAY_API="http://127.0.0.1:$elsewhere" deliver elsewhere
KEELWAY_IMAGE=web:3 KEELWAY_API="http://keelway.example" deliver plain
cat outputs summary followed
"#;

fn action(bed: &Bed) -> Outcome {
    let shell = Shell(bed);
    let project = format!("job-{}", &fresh()[24..]);
    let directory = tempfile::tempdir().map_err(|error| Problem::of("a directory", error))?;
    let write =
        |name: &str, text: &str| std::fs::write(directory.path().join(name), text).map_err(|error| Problem::of(name, error));
    write("project.yaml", &format!("apiVersion: keelway.dev/v1\nkind: Project\nmetadata: {{name: {project}}}\n"))?;
    let stage = "{name: dev, sequences: [{name: delivery, tasks: [{name: test}]}]}";
    let shipyard =
        format!("apiVersion: spec.keptn.sh/0.2.3\nkind: Shipyard\nmetadata: {{name: {project}}}\nspec: {{stages: [{stage}]}}\n");
    write("shipyard.yaml", &shipyard)?;
    write("issuer.py", ISSUER)?;
    write("elsewhere.py", ELSEWHERE)?;
    let action = repository().join(".github/actions/deliver");
    let script = format!("PROJECT={project} ACTION='{}'\n{JOB}", action.display());
    let output = shell.script(&script, directory.path())?;
    let (out, err) = (String::from_utf8_lossy(&output.stdout).into_owned(), String::from_utf8_lossy(&output.stderr).into_owned());
    for said in [
        "dev.delivery: pass",
        "good ended with 0",
        "the same ended with 0",
        "dev.delivery: fail: the page is empty",
        "::error title=dev.delivery::the page is empty",
        "broken ended with 1",
        "::error::wait is 'sometimes': write end, approval or nothing",
        "wrong ended with 2",
        "nowhere ended with 1",
        "307, which points to http://localhost:",
        "/followed: the token is sent to no other address",
        "elsewhere ended with 1",
        "::error::the input api is 'http://keelway.example': write an address that begins with https://",
        "plain ended with 2",
        "result=pass",
        "result=fail",
        "| dev | delivery | fail | the page is empty |",
        "`web:2-broken`",
    ] {
        ensure(out.contains(said), || format!("{said:?} is not said:\n{out}\n{err}"))?;
    }
    for hidden in ["FOLLOWED", "s3cret"] {
        ensure(!out.contains(hidden), || format!("{hidden:?} is there:\n{out}\n{err}"))?;
    }
    let sequences = shell.json(&["get", "sequences", "--project", &project])?;
    let count = sequences["items"].as_array().map(Vec::len);
    ensure(count == Some(2), || format!("the same step triggered again: {sequences}"))
}
