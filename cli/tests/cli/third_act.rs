//! The third act of `make run`: somebody calls the service and says what it answers, while a command is followed on the same
//! terminal.

use crate::support::screen::Screen;
use crate::support::{Api, NOW, TOKEN};
use serde_json::json;
use std::path::Path;
use std::process::Command;

/// Plays the end of the act, with a service that answers what stands in a file.
const ACT: &str = r#"
import http.server, os, pathlib, sys, threading
import greet

answer, programs = map(pathlib.Path, sys.argv[1:])

class Service(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(answer.read_bytes())

    def log_message(self, *_):
        pass

class Registry:
    def push(self, package):
        pass

service = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Service)
threading.Thread(target=service.serve_forever, daemon=True).start()
story = greet.Story(os.environ, {greet.MENDED: {"image": "s3://mended"}}, Registry(), None, None)
story.measure = lambda release: None
with greet.Caller(f"http://127.0.0.1:{service.server_port}/") as caller:
    story.until(lambda: caller.last, "an answer")
    greet.by_a_sequence(story, caller, programs)
"#;

const CONTEXT: &str = "139a703f-1f7e-5abc-8123-5d2a5ef11ecf";

/// The API says so of the sequence.
fn say(api: &Api, state: &str, execution: &serde_json::Value) {
    let state = json!({
        "name": "delivery", "service": "greeter", "project": "greetings", "time": NOW, "shkeptncontext": CONTEXT, "state": state,
        "executions": [execution]
    });
    api.can("GET /v1/sequence/greetings", json!({"states": [state], "now": NOW}));
}

#[test]
fn nothing_that_is_said_beside_a_watched_sequence_is_lost() {
    let (api, directory) = (Api::start(), tempfile::tempdir().unwrap());
    let answers = |text: &str| {
        // A new file in place of the old one: nobody reads half of it.
        let new = directory.path().join("new");
        std::fs::write(&new, text).unwrap();
        std::fs::rename(new, directory.path().join("answer")).unwrap();
    };
    answers("hello from 1.1.0");
    let running = json!({
        "id": "x", "stage": "production", "sequence": "delivery", "state": "started", "acceptedAt": NOW, "deliveryAcceptedAt": NOW,
        "startedAt": NOW, "tasks": [{"name": "deployment", "state": "started"}]
    });
    say(&api, "started", &running);
    api.can("POST /v1/event", json!({"keptnContext": CONTEXT}));
    api.can("POST /v1/deploymentConfigs/greetings:greeter/triggers/resume", json!({}));
    let local = Path::new(env!("CARGO_MANIFEST_DIR")).join("../infra/local");
    let programs = Path::new(env!("CARGO_BIN_EXE_keelway")).parent().unwrap();
    let mut command = Command::new(std::env::var_os("PYTHON").unwrap_or("python3".into()));
    command.args(["-c", ACT]).arg(directory.path().join("answer")).arg(programs).env("PYTHONPATH", local);
    command.env("PYTHONDONTWRITEBYTECODE", "1").env("KEELWAY_API", &api.url).env("KEELWAY_TOKEN", TOKEN);
    let screen = Screen::start(&mut command, 200, 40);
    screen.wait_for("production ▸");
    answers("hello from 1.2.1");
    // Written, wherever it stands by now.
    api.wait("the answer is said", |_| screen.raw().contains("hello from 1.2.1"));
    let mut passed = running;
    passed["tasks"] = json!([{"name": "deployment", "state": "finished", "result": "pass"}]);
    (passed["state"], passed["result"]) = (json!("finished"), json!("pass"));
    say(&api, "finished", &passed);
    let (code, seen) = screen.ended();
    assert_eq!(code, 0, "{seen}");
    for said in ["hello from 1.1.0", "$ keelway trigger", "production ▸", "hello from 1.2.1", "production ✓"] {
        assert_eq!(seen.lines().filter(|line| line.contains(said)).count(), 1, "{said:?} stands there once:\n{seen}");
    }
}
