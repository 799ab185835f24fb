//! What the views show of an execution.

use super::*;

fn single(task: &str) -> (Stand, Execution) {
    let mut stand = Stand::new();
    stand.sequence = sequence("delivery", &[task, "last"], &[]);
    stand.shipyard.stages.truncate(1);
    stand.shipyard.stages[0].sequences = vec![stand.sequence.clone()];
    let data = json!({"configurationChange": {"values": {"image": "shop:1"}}});
    let queued = born(&Birth { data: data.as_object().unwrap().clone(), ..birth() }, &stand.entrance()).next;
    let running = stand.commit(&queued, Input::Granted(0)).next;
    (stand, running)
}

fn answer(stand: &Stand, x: &Execution, kind: Kind, change: serde_json::Value) -> Execution {
    let mut event = event(x.open.as_ref().unwrap().as_str(), kind, "a", "pass");
    event.data.extend(change.as_object().unwrap().clone());
    let kind = if kind == Kind::Started { ReactionKind::Started } else { ReactionKind::Finished };
    stand.commit(x, Input::Reaction(x.record.unwrap(), kind, &event, stand.now)).next
}

#[test]
fn the_times_of_a_task_are_those_of_its_events() {
    let (mut stand, x) = single("test");
    stand.now = NOW + Span::seconds(5);
    let x = answer(&stand, &x, Kind::Started, json!({}));
    stand.now = NOW + Span::seconds(9);
    let x = answer(&stand, &x, Kind::Finished, json!({}));
    assert_eq!(x.view.times, [TaskTimes { sent: NOW, started: NOW + Span::seconds(5), done: stand.now }]);
}

#[test]
fn why_something_did_not_pass_is_shown_and_nothing_of_what_did() {
    let ends = |result: &str, message: &str| {
        let (stand, x) = single("test");
        let x = answer(&stand, &x, Kind::Started, json!({}));
        answer(&stand, &x, Kind::Finished, json!({"result": result, "message": message})).view
    };
    assert_eq!(ends("pass", "fine").message, None);
    assert_eq!(ends("warning", "slow").message.as_deref(), Some("slow"));
    assert_eq!(ends("fail", "broken").message.as_deref(), Some("broken"));
    assert_eq!(ends("fail", "").message, None);
    assert_eq!(ends("fail", "").latest_failed.map(|event| event.ty), Some("test.finished".into()));
    assert_eq!(ends("pass", "").latest_failed, None);
    let (stand, x) = single("test");
    let x = answer(&stand, &x, Kind::Started, json!({}));
    assert!(answer(&stand, &x, Kind::Finished, json!({"status": "errored"})).view.latest_failed.is_some());
    assert_eq!(stand.commit(&x, Input::Abort).next.view.message.as_deref(), Some("the sequence was aborted"));
}

#[test]
fn who_answered_before_anybody_began_is_shown_until_somebody_does() {
    let (stand, x) = single("test");
    let answered = answer(&stand, &x, Kind::Finished, json!({}));
    assert_eq!(answered.view.answered.as_deref(), Some("a"));
    assert_eq!(answer(&stand, &x, Kind::Started, json!({})).view.answered, None);
}

#[test]
fn whoever_may_still_work_on_a_task_that_is_over_is_counted() {
    let (mut stand, x) = single("test");
    let started = answer(&stand, &x, Kind::Started, json!({}));
    assert_eq!((stand.commit(&started, Input::Abort).next.view.left, stand.commit(&x, Input::Abort).next.view.left), (1, 0));
    stand.now = NOW + POLICY.task_timeout;
    let late = Execution { wake: Some(stand.now), ..started.clone() };
    assert_eq!(stand.commit(&late, Input::Wake(stand.now)).next.view.left, 1);
    stand.now = NOW;
    let failed = answer(&stand, &started, Kind::Finished, json!({"result": "fail"}));
    assert_eq!((failed.outcome.map(|outcome| outcome.end), failed.view.left), (Some(End::Normal), 0));
}

#[test]
fn what_runs_in_a_stage_follows_from_deployments_and_rollbacks_that_did_not_fail() {
    let runs = |task: &str, change: serde_json::Value| {
        let (stand, x) = single(task);
        let x = answer(&stand, &x, Kind::Started, json!({}));
        answer(&stand, &x, Kind::Finished, change).view.deployed.map(|deployed| deployed.image)
    };
    assert_eq!(runs("deployment", json!({})), Some(Some("shop:1".into())));
    assert_eq!(runs("deployment", json!({"configurationChange": {"values": {"image": "shop:2"}}})), Some(Some("shop:2".into())));
    assert_eq!(runs("deployment", json!({"result": "fail"})), None);
    assert_eq!(runs("rollback", json!({"rollback": {"image": "shop:0"}})), Some(Some("shop:0".into())));
    assert_eq!(runs("rollback", json!({"rollback": {"image": ""}})), Some(None), "nobody said what");
    assert_eq!(runs("test", json!({})), None);
}

#[test]
fn who_decided_an_approval_is_shown_with_its_task() {
    let stand = Stand::new();
    let (_, asked) = phases().into_iter().find(|(phase, _)| *phase == Phase::WaitingForApproval).unwrap();
    let mut event = event("approval", Kind::Finished, "person", "pass");
    event.data.insert("approval".into(), json!({"by": "token:ann"}));
    let decided = stand.commit(&asked, Input::Decision(asked.record.unwrap(), &event, NOW)).next;
    assert_eq!(decided.view.decided, Some((1, "token:ann".into())));
}

#[test]
fn what_is_held_back_begins_when_its_window_opens() {
    let held = |until: Option<Timestamp>| Held { since: NOW, until, by: "the window".into() };
    let opens = NOW + Span::minutes(1);
    let all = [(held(None), NOW), (held(Some(opens)), NOW), (held(Some(opens)), opens)];
    assert_eq!(all.map(|(held, now)| held.holds(now)), [true, true, false]);
}

#[test]
fn whoever_triggered_something_may_decline_it_and_not_approve_it_where_somebody_else_has_to() {
    for (result, taken) in [("pass", false), ("fail", true)] {
        let (mut stand, _) = single("approval");
        stand.sequence.tasks[0].properties = json!({"pass": "manual", "separate": true}).as_object().unwrap().clone();
        let queued = born(&Birth { authors: vec!["token:ann".into()], ..birth() }, &stand.entrance()).next;
        let asked = stand.commit(&queued, Input::Granted(0)).next;
        let mut event = event("approval", Kind::Finished, "person", result);
        event.data.insert("approval".into(), json!({"by": "token:ann"}));
        let decided = stand.decide(&asked, Input::Decision(asked.record.unwrap(), &event, NOW));
        assert_eq!(matches!(decided, Decision::Commit(_)), taken, "{decided:?}");
    }
}

#[test]
fn the_timeout_of_a_sequence_counts_between_its_tasks_too() {
    let (mut stand, x) = single("test");
    stand.sequence.timeout = Some(Span::minutes(30));
    let delayed = Execution { open: None, due: Some(NOW + Span::minutes(60)), ..x };
    let after = Execution { results: vec![TaskResult::Pass], ..delayed.clone() };
    let deadline = |x| super::super::deadline(x, &stand.sequence, &POLICY);
    assert_eq!((deadline(&delayed), deadline(&after)), (Some(NOW + Span::minutes(60)), Some(NOW + Span::minutes(30))));
}

#[test]
fn an_event_that_answers_nothing_is_stored_without_that() {
    let draft = |answers| serde_json::to_string(&crate::record::Draft { answers, ..Default::default() }).unwrap();
    assert!(!draft(crate::record::Answers::Nothing).contains("\"r\":"));
    assert!(draft(crate::record::Answers::Own).contains("\"r\":"));
}

#[test]
fn an_answer_that_is_too_large_to_be_kept_ends_the_sequence_and_says_so() {
    let (stand, x) = single("test");
    let x = answer(&stand, &x, Kind::Started, json!({}));
    let x = answer(&stand, &x, Kind::Finished, json!({"test": {"log": "x".repeat(400 * 1024)}}));
    assert_eq!(x.outcome.map(|outcome| (outcome.result, outcome.status)), Some((TaskResult::Fail, Status::Errored)));
}
