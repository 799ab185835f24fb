//! Tasks of ECS and builds of CodeBuild carry deployments out. The events have the form of AWS's documentation.

use keelway_deployers_stand::stand::{Stand, definition, to, with_image};
use keelway_domain::deployments::definition::{Definition, Starter};
use keelway_domain::deployments::{Call, Command, LEASE, Reply, Status};
use keelway_domain::time::Span;
use keelway_world::exec::block_on;
use serde_json::{Value, json};

fn by(starter: Starter) -> Definition {
    Definition { targets: vec![], deployer: Some(starter), ..definition("Rolling", "shop@sha256:1") }
}

fn ecs(wait: bool) -> Definition {
    let mut parameters = json!({
        "cluster": "main", "taskDefinition": "deploy:3", "launchType": "FARGATE",
        "overrides": {"containerOverrides": [{"name": "deploy", "environment": [{"name": "STAGE", "value": "prod"}]}]},
    });
    if wait {
        parameters["waitFor"] = json!("exit");
    }
    by(Starter::Ecs(serde_json::from_value(parameters).unwrap()))
}

fn build() -> Definition {
    by(Starter::CodeBuild(serde_json::from_value(json!({"projectName": "deploy"})).unwrap()))
}

fn environment() -> Value {
    json!([
        {"name": "STAGE", "value": "prod"}, {"name": "DEPLOYMENT_NAMESPACE", "value": "shop"}, {"name": "DEPLOYMENT_NAME", "value": "cart-1"},
        {"name": "DEPLOYMENT_ATTEMPT", "value": "1"}, {"name": "DEPLOYMENT_CALLBACK", "value": "https://api.example.com"},
    ])
}

/// "ECS Task State Change".
fn task(status: &str, version: u32, exit: Option<i64>) -> Value {
    json!({
        "version": "0", "id": format!("3317b2af-{version}"), "detail-type": "ECS Task State Change", "source": "aws.ecs",
        "account": "111122223333", "time": "2023-11-14T23:13:20Z", "region": "eu-central-1",
        "resources": ["arn:aws:ecs:eu-central-1:1:task/main/1"],
        "detail": {
            "clusterArn": "arn:aws:ecs:eu-central-1:1:cluster/main", "taskArn": "arn:aws:ecs:eu-central-1:1:task/main/1",
            "containers": [{"containerArn": "c", "name": "deploy", "lastStatus": status, "exitCode": exit}],
            "desiredStatus": status, "lastStatus": status, "group": "family:deploy", "launchType": "FARGATE", "startedBy": "cart-1-1",
            "overrides": {"containerOverrides": [{"name": "deploy", "environment": environment()}]},
            "stoppedReason": "Essential container in task exited", "stopCode": "EssentialContainerExited", "version": version,
        },
    })
}

fn built(status: &str) -> Value {
    json!({
        "version": "0", "id": status, "detail-type": "CodeBuild Build State Change", "source": "aws.codebuild",
        "account": "111122223333", "time": "2023-11-14T23:13:20Z", "region": "eu-central-1",
        "detail": {
            "build-status": status, "project-name": "deploy", "build-id": "arn:aws:codebuild:eu-central-1:1:build/deploy:1",
            "additional-information": {
                "environment": {"image": "aws/codebuild/standard:7.0", "environment-variables": environment()},
                "logs": {"deep-link": "https://console.aws.amazon.com/cloudwatch/home#logEvent:group=deploy"},
            },
        },
    })
}

fn begun(definition: &Definition) -> Stand {
    let mut stand = Stand::new();
    stand.apply(definition);
    assert_eq!(stand.lambda.state().started.len(), 1, "{:?}", stand.x());
    stand
}

/// Byte for byte: what ECS gets.
#[test]
fn a_task_that_claims_itself() {
    let mut stand = begun(&ecs(false));
    let request = concat!(
        r#"{"clientToken":"cart-1-1-TOKEN","cluster":"main","launchType":"FARGATE","overrides":{"containerOverrides":[{"environment":["#,
        r#"{"name":"STAGE","value":"prod"},{"name":"DEPLOYMENT_NAMESPACE","value":"shop"},{"name":"DEPLOYMENT_NAME","value":"cart-1"},"#,
        r#"{"name":"DEPLOYMENT_ATTEMPT","value":"1"},{"name":"DEPLOYMENT_CALLBACK","value":"https://api.example.com"}],"name":"deploy"}]},"#,
        r#""startedBy":"cart-1-1","taskDefinition":"deploy:3"}"#
    );
    let token = keelway_domain::ids::hash64(&[b"shop", b"cart-1-1"]);
    assert_eq!(stand.lambda.state().started, [request.replace("TOKEN", &format!("{token:016x}"))]);
    // It is started again until somebody claims; that is the same task.
    stand.pass(Span::minutes(5));
    assert_eq!((stand.status(), stand.lambda.state().started.len()), (Status::New, 1));
    let claim = Call::Claim { by: "task".into(), id: 7, token: "t".into(), lease: LEASE };
    assert!(matches!(block_on(stand.engine.say(&to(), 1, &claim)).unwrap().reply, Reply::Desired(_)));
    // What becomes of the task is not what it says itself.
    stand.event(&task("STOPPED", 4, Some(0)));
    assert_eq!(stand.status(), Status::Pending);
}

/// Byte for byte: what CodeBuild gets.
#[test]
fn a_build_ends_the_deployment() {
    for (status, ended) in [
        ("SUCCEEDED", Status::Complete),
        ("FAILED", Status::Failed),
        ("FAULT", Status::Failed),
        ("TIMED_OUT", Status::Failed),
        ("STOPPED", Status::Failed),
    ] {
        let mut stand = begun(&build());
        let request = concat!(
            r#"{"environmentVariablesOverride":[{"name":"DEPLOYMENT_NAMESPACE","type":"PLAINTEXT","value":"shop"},"#,
            r#"{"name":"DEPLOYMENT_NAME","type":"PLAINTEXT","value":"cart-1"},{"name":"DEPLOYMENT_ATTEMPT","type":"PLAINTEXT","value":"1"},"#,
            r#"{"name":"DEPLOYMENT_CALLBACK","type":"PLAINTEXT","value":"https://api.example.com"}],"#,
            r#""idempotencyToken":"cart-1-1-TOKEN","projectName":"deploy"}"#
        );
        let token = keelway_domain::ids::hash64(&[b"shop", b"cart-1-1"]);
        assert_eq!(stand.lambda.state().started, [request.replace("TOKEN", &format!("{token:016x}"))]);
        assert_eq!(stand.status(), Status::Pending);
        stand.event(&built("IN_PROGRESS"));
        assert_eq!(stand.status(), Status::Running);
        stand.lambda.state().answer = described_build("IN_PROGRESS");
        stand.pass(Span::minutes(150));
        assert_eq!((stand.status(), stand.lambda.state().started.len()), (Status::Running, 1), "{:?}", stand.last());
        stand.event(&built(status));
        stand.event(&built("IN_PROGRESS"));
        assert_eq!(stand.status(), ended, "{status}");
        assert!(stand.last().progress.log.starts_with("https://console.aws.amazon.com/"));
    }
}

#[test]
fn a_task_whose_end_is_waited_for() {
    for (exit, ended, message) in [
        (Some(0), Status::Complete, "config change"),
        (Some(3), Status::Failed, "the deployer exited with 3: Essential container in task exited"),
        (None, Status::Failed, "the deployer did not run: Essential container in task exited"),
    ] {
        let mut stand = begun(&ecs(true));
        assert!(!stand.lambda.state().started[0].contains("waitFor"));
        stand.event(&task("PROVISIONING", 1, None));
        assert_eq!(stand.status(), Status::Pending);
        // It stops before it is said to have started.
        stand.event(&task("STOPPED", 5, exit));
        stand.event(&task("RUNNING", 3, None));
        assert_eq!((stand.status(), stand.last().message.as_str()), (ended, message));
    }
}

/// As `DescribeTasks` and `BatchGetBuilds` answer.
fn described(status: &str, exit: Option<i64>) -> Value {
    json!({"tasks": [task(status, 5, exit)["detail"]], "failures": []})
}

fn described_build(status: &str) -> Value {
    json!({"builds": [{"arn": "arn:aws:codebuild:eu-central-1:1:build/deploy:1", "buildStatus": status,
        "logs": {"deepLink": "https://console.aws.amazon.com/cloudwatch/home#logEvent:group=deploy"}}]})
}

/// Byte for byte: how its state is asked for. No event ever comes.
#[test]
fn the_end_is_found_without_an_event() {
    let task = r#"{"cluster":"main","tasks":["arn:aws:ecs:eu-central-1:1:task/main/1"]}"#;
    let build_request = r#"{"ids":["deploy:1"]}"#;
    for (definition, request, runs, ends, ended) in [
        (ecs(true), task, described("RUNNING", None), described("STOPPED", Some(0)), Status::Complete),
        (ecs(true), task, described("RUNNING", None), described("STOPPED", Some(3)), Status::Failed),
        (build(), build_request, described_build("IN_PROGRESS"), described_build("SUCCEEDED"), Status::Complete),
        (build(), build_request, described_build("IN_PROGRESS"), described_build("TIMED_OUT"), Status::Failed),
    ] {
        let mut stand = begun(&definition);
        assert_eq!((stand.status(), stand.lambda.state().looks.len()), (Status::Pending, 0));
        stand.lambda.state().answer = runs;
        stand.pass(Span::seconds(20));
        assert_eq!((stand.status(), stand.lambda.state().looks.clone()), (Status::Running, vec![request.to_owned()]));
        stand.lambda.state().answer = ends;
        stand.pass(Span::minutes(2));
        assert_eq!(stand.status(), ended, "{:?}", stand.last());
        let looks = stand.lambda.state().looks.len();
        stand.pass(Span::minutes(120));
        assert_eq!(stand.lambda.state().looks.len(), looks, "nobody asks for what has ended");
    }
}

#[test]
fn its_state_is_asked_for_now_and_then_however_often_messages_come() {
    for (twice, lost) in [(false, false), (true, false), (false, true)] {
        let mut stand = begun(&ecs(true));
        stand.twice = twice;
        stand.lambda.state().answer = described("RUNNING", None);
        stand.pass(Span::minutes(150));
        let looks = stand.lambda.state().looks.len();
        assert!((10..=18).contains(&looks), "{looks} looks in 150 minutes");
        if lost {
            stand.lose_jobs();
            stand.pass(Span::minutes(20));
            assert!(stand.lambda.state().looks.len() > looks, "a lost message is sent again when the lease ends");
        }
        assert_eq!((stand.status(), stand.lambda.state().started.len()), (Status::Running, 1));
    }
}

#[test]
fn what_is_not_known_any_more_has_ended() {
    let mut stand = begun(&ecs(true));
    stand.lambda.state().answer = json!({"tasks": [], "failures": [{"reason": "MISSING"}]});
    stand.pass(Span::minutes(20));
    assert_eq!(stand.status(), Status::Pending, "ECS may show a new task late");
    stand.pass(Span::minutes(30));
    let last = stand.last();
    assert_eq!((last.status, last.reason.as_str()), (Status::Failed, "DeployerFailed"), "{last:?}");
    assert!(last.message.contains("task/main/1 is not known any more"), "{last:?}");
}

/// Whoever stops it first asks what became of it.
#[test]
fn what_has_succeeded_before_it_is_stopped_is_complete() {
    let mut stand = begun(&ecs(true));
    stand.lambda.state().answer = described("STOPPED", Some(0));
    stand.command(Command::Cancel);
    assert_eq!((stand.status(), stand.lambda.state().stopped.len()), (Status::Complete, 0));
}

#[test]
fn a_task_of_somebody_else_is_ignored() {
    let mut stand = begun(&ecs(true));
    let mut other = task("STOPPED", 5, Some(0));
    other["detail"]["taskArn"] = json!("arn:aws:ecs:eu-central-1:1:task/main/77");
    stand.event(&other);
    let mut older = task("STOPPED", 5, Some(0));
    older["detail"]["overrides"]["containerOverrides"][0]["environment"][3]["value"] = json!("0");
    stand.event(&older);
    assert_eq!(stand.status(), Status::Pending);
}

#[test]
fn a_task_is_stopped_when_the_deployment_is_cancelled() {
    let mut stand = begun(&ecs(true));
    stand.command(Command::Cancel);
    let request = r#"{"cluster":"main","reason":"the deployment is to stop","task":"arn:aws:ecs:eu-central-1:1:task/main/1"}"#;
    assert_eq!(stand.lambda.state().stopped, [request]);
    assert_eq!(stand.status(), Status::Pending);
    stand.pass(Span::seconds(40));
    assert_eq!(stand.lambda.state().stopped.len(), 1, "it is told once");
    stand.event(&task("STOPPED", 5, Some(143)));
    assert_eq!((stand.status(), stand.last().reason.as_str()), (Status::Failed, "Cancelled"));
}

#[test]
fn what_cannot_be_started_fails_at_once() {
    for definition in [ecs(false), ecs(true), build()] {
        let mut stand = Stand::new();
        stand.lambda.state().unable = Some("ClientException: TaskDefinition is inactive".into());
        stand.apply(&definition);
        assert_eq!(stand.status(), Status::Failed);
        assert!(
            stand.last().message.contains("the deployer did not run: RunTask was refused: ClientException"),
            "{:?}",
            stand.last()
        );
    }
    let mut nameless = ecs(false);
    nameless.deployer = Some(Starter::Ecs(Default::default()));
    let mut stand = Stand::new();
    stand.apply(&nameless);
    assert!(stand.last().message.contains("name the container that deploys"), "{:?}", stand.last().message);
}

/// A crash after any request: it is started once.
#[test]
fn whoever_stops_while_starting_is_followed_by_another() {
    let requests = begun(&ecs(true)).requests;
    for after in 1..=requests {
        let mut stand = Stand::new();
        stand.crash_after = Some(after);
        stand.apply(&ecs(true));
        stand.pass(Span::seconds(10));
        assert_eq!((stand.crash_after, stand.lambda.state().started.len()), (None, 1), "after request {after}");
        stand.event(&task("STOPPED", 5, Some(0)));
        assert_eq!(stand.status(), Status::Complete, "after request {after}");
        stand.apply(&with_image(&ecs(true), "shop@sha256:2"));
        assert_eq!(stand.lambda.state().started.len(), 2);
    }
}
