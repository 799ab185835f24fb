//! `keelway deployer`: claims deployments, runs a command for each, and tells how it went.

use crate::support::deployments::version;
use crate::support::pipelines::with;
use crate::support::{Api, Gate, NOW, Ran, Running};
use serde_json::{Value, json};
use std::process::Command;

const CLAIM: &str = "POST /v1/deployments/shop:carts-2/claim";
const BEAT: &str = "POST /v1/deployments/shop:carts-2/heartbeat";
const FINISH: &str = "POST /v1/deployments/shop:carts-2/finish";
const SECRET: &str = "0123456789abcdef0123456789abcdef";

/// An API with carts-2 to deploy.
fn api() -> Api {
    let api = Api::start();
    open(&api, &[version(2, "New", json!({"desired": "run"}))]);
    let environment = json!([
        {"name": "REGION", "value": "eu"}, {"name": "BASH_ENV", "value": "/tmp/evil"}, {"name": "DEPLOYMENT_CONFIG", "value": "other"}
    ]);
    let snapshot = json!({"snapshot": {"spec": {"strategy": {"customParams": {"environment": environment}}}}, "deadline": NOW});
    let deployment = with(version(2, "Pending", json!({"desired": "run"})), snapshot);
    let from = version(1, "Complete", json!({}));
    api.can(CLAIM, json!({"token": SECRET, "deployment": deployment, "from": from, "desired": "run", "leaseUntil": NOW}));
    api.can(BEAT, json!({"desired": "run", "proceeds": 0}));
    api.can(FINISH, json!({"desired": "run", "proceeds": 0}));
    api
}

fn open(api: &Api, versions: &[Value]) {
    api.can("GET /v1/deployments", json!({"items": versions, "nextPageKey": "0", "now": NOW}));
}

fn words<'w>(more: &[&'w str], script: &'w str) -> Vec<&'w str> {
    let first = ["deployer", "--poll", "10ms", "--name", "eu"];
    first.into_iter().chain(more.iter().copied()).chain(["--", "sh", "-c", script]).collect()
}

fn once(api: &Api, script: &str) -> Ran {
    api.run(&words(&["-p", "shop", "--once", "1"], script))
}

/// The bodies of requests of one kind.
fn bodies(api: &Api, line: &str) -> Vec<Value> {
    let world = api.world();
    let asked = world.asked.iter().filter(|asked| asked.line == line);
    asked.map(|asked| serde_json::from_str(&asked.body).unwrap()).collect()
}

#[test]
fn the_command_gets_the_deployment_and_its_exit_code_is_the_result() {
    let api = api();
    let script = "cat >/dev/null; echo $DEPLOYMENT_NAMESPACE $DEPLOYMENT_NAME $DEPLOYMENT_CONFIG $DEPLOYMENT_VERSION $DEPLOYMENT_ATTEMPT $DEPLOYMENT_FROM \
                  $OPENSHIFT_DEPLOYMENT_NAME $PARAM_REGION \"[$REGION$BASH_ENV][$KEELWAY_TOKEN]\" $DEPLOYMENT_TOKEN; echo done >&2";
    let ran = once(&api, script);
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    let claim = &bodies(&api, CLAIM)[0];
    assert_eq!((&claim["by"], &claim["lease"]), (&json!("eu"), &json!("60000ms")));
    let finish = &bodies(&api, FINISH)[0];
    assert_eq!(finish["exitCode"], 0, "{finish}");
    let tail = finish["tail"].as_str().unwrap();
    assert!(tail.contains("shop carts-2 carts 2 1 carts-1 carts-2 eu [][] ***\n") && tail.contains("done\n"), "{tail}");
    let world = api.world();
    let reports = world.asked.iter().filter(|asked| asked.line == BEAT || asked.line == FINISH);
    assert!(reports.clone().count() >= 1 && reports.clone().all(|asked| asked.bearer.as_deref() == Some(SECRET)));
    assert!(!ran.out.contains(SECRET) && !ran.err.contains(SECRET));
}

#[test]
fn failures_say_why() {
    for (script, code, message) in
        [("echo one >&2; echo no route >&2; exit 7", json!(7), "no route"), ("kill -9 $$", json!(137), "ended by signal 9")]
    {
        let api = api();
        let ran = once(&api, script);
        assert_eq!(ran.code, 1, "{}", ran.out);
        let finish = &bodies(&api, FINISH)[0];
        assert_eq!((&finish["exitCode"], &finish["message"]), (&code, &json!(message)), "{script}");
    }
    let api = api();
    let ran = api.run(&["deployer", "-p", "shop", "--once", "1", "--", "/nowhere/at-all"]);
    assert_eq!(ran.code, 1);
    let finish = &bodies(&api, FINISH)[0];
    assert_eq!(finish.get("exitCode"), None);
    assert!(finish["message"].as_str().unwrap().contains("\"/nowhere/at-all\" does not start"), "{finish}");
}

#[test]
fn a_cancelled_deployment_gets_sigterm_and_then_sigkill() {
    for (script, grace, code) in [
        ("trap 'echo stopped; exit 3' TERM; echo begun; while :; do sleep 0.05; done", "300s", 3),
        ("trap '' TERM; echo begun; while :; do sleep 0.05; done", "100ms", 137),
    ] {
        let api = api();
        let words = words(&["-p", "shop", "--once", "1", "--lease", "5s", "--grace", grace], script);
        let mut running = Running::start(&mut api.keelway(&words));
        // The log travels with heartbeats: the command has set its trap.
        api.wait("the log", |world| world.asked.iter().any(|asked| asked.line == BEAT && asked.body.contains("begun")));
        api.can(BEAT, json!({"desired": "cancel", "proceeds": 0}));
        assert_eq!(running.ended(), 1);
        assert_eq!(bodies(&api, FINISH)[0]["exitCode"], code);
        running.wait_for("is cancelled: SIGTERM");
    }
}

#[test]
fn a_command_ends_with_the_deployer_that_was_killed() {
    // It heeds SIGTERM, or does not; what it started ends with it.
    for trap in ["exit 0", ""] {
        let api = api();
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().display();
        let script = format!(
            "trap '{trap}' TERM; sh -c 'trap \"{trap}\" TERM; echo $$ > {place}/below; while :; do sleep 0.05; done' & \
             echo $$ > {place}/command; while :; do sleep 0.05; done"
        );
        let words = words(&["-p", "shop", "--once", "1", "--grace", "100ms"], &script);
        let mut running = Running::start(&mut api.keelway(&words));
        let number = |name: &str| std::fs::read_to_string(dir.path().join(name)).ok().filter(|text| text.ends_with('\n'));
        api.wait("both run", |_| number("command").is_some() && number("below").is_some());
        running.kill();
        for name in ["command", "below"] {
            let pid = number(name).unwrap();
            let state = || Command::new("ps").args(["-o", "stat=", "-p", pid.trim()]).output().unwrap().stdout;
            // One that ended may still be waited for by whoever inherited it.
            api.wait(&format!("{name} ends"), |_| matches!(state().first(), None | Some(b'Z')));
        }
        assert!(bodies(&api, FINISH).is_empty(), "nobody tells how it ended");
    }
}

/// A script that says `begun`, which travels with the heartbeats, and then waits until the file holds a word.
fn wait_for_word(word: &str) -> String {
    format!("echo begun; until [ \"$(cat \"$KEELWAY_DESIRED_FILE\")\" = {word} ]; do sleep 0.05; done; echo is to {word}")
}

fn said(api: &Api, text: &str) {
    api.wait(text, |world| world.asked.iter().any(|asked| asked.line == BEAT && asked.body.contains(text)));
}

#[test]
fn a_command_reads_in_a_file_that_it_is_to_pause_and_to_go_on() {
    let api = api();
    let script = format!("cat \"$KEELWAY_DESIRED_FILE\"; {}; {}", wait_for_word("pause"), wait_for_word("run"));
    let mut running = Running::start(&mut api.keelway(&words(&["-p", "shop", "--once", "1", "--lease", "5s"], &script)));
    said(&api, "begun");
    api.can(BEAT, json!({"desired": "pause", "proceeds": 0}));
    said(&api, "is to pause");
    api.can(BEAT, json!({"desired": "run", "proceeds": 0}));
    assert_eq!(running.ended(), 0);
    let tail = bodies(&api, FINISH)[0]["tail"].clone();
    assert_eq!(tail, "run\nbegun\nis to pause\nbegun\nis to run\n");
    let printed = running.printed();
    assert!(printed.contains("carts-2 attempt 1 is to pause") && printed.contains("carts-2 attempt 1 goes on"), "{printed}");
}

#[test]
fn the_file_says_cancel_when_sigterm_comes() {
    let api = api();
    let script = "trap 'cat \"$KEELWAY_DESIRED_FILE\"; exit 3' TERM; echo begun; while :; do sleep 0.05; done";
    let mut running = Running::start(&mut api.keelway(&words(&["-p", "shop", "--once", "1", "--lease", "5s"], script)));
    said(&api, "begun");
    api.can(BEAT, json!({"desired": "cancel", "proceeds": 0}));
    assert_eq!(running.ended(), 1);
    let finish = &bodies(&api, FINISH)[0];
    assert_eq!(finish["exitCode"], 3);
    let tail = finish["tail"].as_str().unwrap();
    assert!(tail.ends_with("\ncancel\n"), "{tail}");
}

#[test]
fn lines_in_a_file_tell_how_far_each_target_is() {
    let api = api();
    let gate = Gate::closed();
    let script = format!(
        "cd \"$(dirname \"$KEELWAY_PROGRESS_FILE\")\"; pwd; echo eu Running 1 of 2 >> \"$KEELWAY_PROGRESS_FILE\"; {}; \
         printf 'eu Complete\\neu is done\\nus Complete all of it' >> \"$KEELWAY_PROGRESS_FILE\"",
        gate.script()
    );
    let mut running = Running::start(&mut api.keelway(&words(&["-p", "shop", "--once", "1", "--lease", "5s"], &script)));
    api.wait("progress", |world| world.asked.iter().any(|asked| asked.line == BEAT && asked.body.contains("1 of 2")));
    let beat = bodies(&api, BEAT).pop().unwrap();
    assert_eq!(beat["targets"], json!({"eu": {"status": "Running", "message": "1 of 2"}}));
    gate.open();
    assert_eq!(running.ended(), 0);
    let finish = &bodies(&api, FINISH)[0];
    let targets = json!({"eu": {"status": "Complete"}, "us": {"status": "Complete", "message": "all of it"}});
    assert_eq!(finish["targets"], targets);
    running.wait_for("\"eu is done\" tells no progress: write `<target> <status> [<message>]`");
    let directory = finish["tail"].as_str().unwrap().trim().to_owned();
    assert!(directory.contains("keelway-deployer-") && !std::path::Path::new(&directory).exists(), "{directory} is left behind");
}

#[test]
fn work_that_was_given_to_somebody_else_is_dropped_and_nothing_is_told() {
    let api = api();
    let mut running = Running::start(&mut api.keelway(&words(&["-p", "shop", "--once", "1", "--lease", "5s"], "sleep 600")));
    api.wait_for_more(BEAT, 1);
    let problem = json!({"title": "conflict", "status": 409, "detail": "this token is not the one of the present attempt"});
    api.world().canned.insert(BEAT.into(), (409, problem));
    assert_eq!(running.ended(), 1);
    assert!(running.printed().contains("lost after"), "{}", running.printed());
    assert_eq!(bodies(&api, FINISH), Vec::<Value>::new());
}

#[test]
fn what_is_not_meant_for_it_is_left_alone_and_lost_claims_are_no_failure() {
    let api = api();
    let other = json!({"namespace": "other"});
    let mine = |change: Value| with(version(2, "New", json!({"desired": "run"})), change);
    open(&api, &[mine(json!({"starts": true})), mine(json!({"desired": "pause"})), mine(other), mine(json!({"config": "web"}))]);
    let mut running = Running::start(&mut api.keelway(&words(&["--config", "shop/carts", "--once", "1"], "true")));
    api.wait_for_more("GET /v1/deployments", 3);
    assert_eq!(bodies(&api, CLAIM), Vec::<Value>::new());
    let problem = json!({"title": "conflict", "status": 409, "detail": "deployment carts-2 is already claimed by \"ci\""});
    let claimed = api.world().canned.insert(CLAIM.into(), (409, problem)).unwrap();
    open(&api, &[mine(json!({}))]);
    api.wait_for_more(CLAIM, 2);
    assert!(running.is_running(), "somebody else was faster");
    api.world().canned.insert(CLAIM.into(), claimed);
    assert_eq!(running.ended(), 0);
}

#[test]
fn the_end_is_told_until_somebody_takes_it_and_a_signal_lets_it_finish() {
    let api = api();
    let gate = Gate::closed();
    let finish =
        api.world().canned.insert(FINISH.into(), (503, json!({"title": "try again", "status": 503, "detail": "busy"}))).unwrap();
    let script = gate.script();
    let mut running = Running::start(&mut api.keelway(&words(&["-p", "shop"], &script)));
    api.wait_for_more(BEAT, 1);
    running.signal("TERM");
    running.wait_for("stopping: 1 still running");
    gate.open();
    api.wait_for_more(FINISH, 2);
    api.world().canned.insert(FINISH.into(), finish);
    assert_eq!(running.ended(), 0);
}

/// Whoever applies a manifest chooses the values; the command runs with the rights of whoever started the deployer.
#[test]
fn a_manifests_variables_have_their_own_names_only_if_the_operator_lists_them() {
    let api = api();
    let ran = api.run(&words(
        &["-p", "shop", "--once", "1", "--env", "REGION"],
        "echo $REGION $PARAM_REGION $DEPLOYMENT_CONFIG \"[$BASH_ENV]\"",
    ));
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    let finish = &bodies(&api, FINISH)[0];
    assert!(finish["tail"].as_str().unwrap().contains("eu eu carts []\n"), "{finish}");
    let refused = api.run(&words(&["-p", "shop", "--env", "LD_PRELOAD"], "true"));
    assert!(refused.code == 2 && refused.err.contains("changes how programs start"), "{}", refused.err);
}

#[test]
fn a_second_signal_kills_what_runs_and_tells_so() {
    let api = api();
    let mut running = Running::start(&mut api.keelway(&words(&["-p", "shop"], "sleep 600")));
    api.wait_for_more(BEAT, 1);
    running.signal("TERM");
    running.wait_for("stopping: 1 still running");
    running.signal("TERM");
    assert_eq!(running.ended(), 1);
    let finish = &bodies(&api, FINISH)[0];
    assert_eq!((&finish["exitCode"], &finish["message"]), (&json!(137), &json!("the deployer was told to stop at once")));
}

#[test]
fn a_wrong_lease_and_a_wrong_token_are_told_at_once() {
    let api = api();
    let ran = api.run(&["deployer", "--lease", "1s", "--", "true"]);
    assert_eq!((ran.code, ran.err.as_str()), (2, "error: --lease: must be from 5s to 1h\n"));
    let ran = Ran::of(api.keelway(&["deployer", "--", "true"]).env("KEELWAY_TOKEN", "wrong").output().unwrap());
    assert_eq!((ran.code, ran.err.contains("no known token")), (1, true), "{}", ran.err);
}

const STRATEGY: &str = "POST /v1/deployments/shop:carts-2/strategy";

/// `keelway deploy` in the command of a deployer.
fn deploys(more: &str) -> String {
    format!("{} deploy {more}", env!("CARGO_BIN_EXE_keelway"))
}

fn carried(state: &str, message: &str) -> Value {
    json!({"state": state, "until": 10, "message": message, "desired": "run"})
}

#[test]
fn a_command_has_keelway_carry_the_strategy_out_in_parts() {
    let api = api();
    api.can(STRATEGY, carried("running", "10 % of the requests"));
    let script = format!("set -e; {}; echo between; {}", deploys("--until 10%"), deploys(""));
    let mut running = Running::start(&mut api.keelway(&words(&["-p", "shop", "--once", "1", "--lease", "5s"], &script)));
    said(&api, "10 % of the requests");
    api.wait_for_more(STRATEGY, 1);
    api.can(STRATEGY, carried("done", "10 % of the requests"));
    assert_eq!(running.ended(), 0);
    let asked = bodies(&api, STRATEGY);
    let (first, last) = (asked.first().unwrap(), asked.last().unwrap());
    assert_eq!((first, last), (&json!({"until": 10}), &json!({"until": 100})));
    let tail = bodies(&api, FINISH)[0]["tail"].clone();
    assert_eq!(tail, "10 % of the requests\nbetween\n10 % of the requests\n", "each sentence is printed once");
    let world = api.world();
    let mut bearers = world.asked.iter().filter(|asked| asked.line == STRATEGY);
    assert!(bearers.all(|asked| asked.bearer.as_deref() == Some(SECRET)));
}

#[test]
fn a_strategy_that_was_not_carried_out_ends_the_command() {
    let api = api();
    api.can(STRATEGY, carried("failed", "the hook failed"));
    assert_eq!(once(&api, &deploys("-q --until 0")).code, 1);
    let finish = &bodies(&api, FINISH)[0];
    assert_eq!(
        (&finish["exitCode"], &finish["tail"]),
        (&json!(1), &json!("error: the strategy was not carried out: the hook failed\n"))
    );
}

#[test]
fn keelway_deploy_needs_a_deployer_around_it_and_a_share() {
    let ran = crate::support::Ran::of(crate::support::keelway(&["deploy"]).env_remove("DEPLOYMENT_TOKEN").output().unwrap());
    assert_eq!(ran.code, 2, "{}", ran.err);
    assert!(
        ran.err.contains("DEPLOYMENT_CALLBACK and DEPLOYMENT_TOKEN are not set: this is for the command of a keelway deployer")
    );
    for wrong in ["101%", "half", "-1", "%"] {
        let ran = crate::support::Ran::of(crate::support::keelway(&["deploy", &format!("--until={wrong}")]).output().unwrap());
        assert!(ran.code == 2 && ran.err.contains("is no share in percent: write 0% to 100%"), "{wrong}: {}", ran.err);
    }
}
