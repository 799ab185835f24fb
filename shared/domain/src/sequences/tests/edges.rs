//! Moments and orders in which a decision could go either way.

use super::*;

/// Holds the lane, and its first task has been triggered.
fn running(stand: &Stand) -> Execution {
    let queued = born(&birth(), &stand.entrance()).next;
    stand.commit(&queued, Input::Granted(0)).next
}

/// The open task is answered by one executor.
fn answered(stand: &Stand, x: &Execution, result: &str) -> Transition {
    let (task, trigger) = (x.open.clone().unwrap(), x.record.unwrap());
    let started = event(task.as_str(), Kind::Started, "a", "pass");
    let x = stand.commit(x, Input::Reaction(trigger, ReactionKind::Started, &started, stand.now)).next;
    let finished = event(task.as_str(), Kind::Finished, "a", result);
    stand.commit(&x, Input::Reaction(trigger, ReactionKind::Finished, &finished, stand.now))
}

fn plain(tasks: &[&str]) -> Stand {
    let mut stand = Stand::new();
    stand.sequence = sequence("delivery", tasks, &[]);
    stand.shipyard.stages.truncate(1);
    stand.shipyard.stages[0].sequences = vec![stand.sequence.clone()];
    stand
}

#[test]
fn a_delay_before_the_first_task_is_no_part_of_the_timeout_and_one_before_another_is() {
    let mut stand = plain(&["deploy", "test"]);
    stand.sequence.timeout = Some(Span::minutes(30));
    for task in &mut stand.sequence.tasks {
        task.triggered_after = Some(Span::minutes(5));
    }
    let delayed = running(&stand);
    stand.now = NOW + Span::minutes(5);
    let x = stand.commit(&delayed, Input::Wake(delayed.wake.unwrap())).next;
    assert_eq!(x.began, Some(stand.now));
    let delayed = answered(&stand, &x, "pass").next;
    stand.now = NOW + Span::minutes(10);
    let x = stand.commit(&delayed, Input::Wake(delayed.wake.unwrap())).next;
    assert_eq!((x.began, x.open.is_some()), (Some(NOW + Span::minutes(5)), true));
}

#[test]
fn an_event_of_exactly_the_allowed_size_is_sent() {
    let mut stand = plain(&["deploy"]);
    stand.base.insert("note".into(), json!("x".repeat(5000)));
    let mut ends = |limit: usize| {
        stand.policy.max_event_bytes = limit;
        let next = running(&stand);
        next.outcome.and(next.view.message)
    };
    let told = ends(100).unwrap();
    let size: usize = told.split("would have ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
    assert_eq!(ends(size), None);
    assert!(ends(size - 1).is_some());
}

#[test]
fn a_record_that_is_too_large_for_an_item_ends_the_sequence_and_nobody_is_left_at_its_task() {
    let mut stand = plain(&["deploy", "test"]);
    stand.policy.max_event_bytes = usize::MAX;
    let x = running(&stand);
    let mut with = |bytes: usize| {
        stand.base.insert("note".into(), json!("x".repeat(bytes)));
        answered(&stand, &x, "pass")
    };
    let size = |transition: &Transition| transition.record.as_ref().unwrap().to_bytes().len();
    let most = 390 * 1024;
    let note = most - size(&with(0));
    let fits = with(note);
    assert_eq!((size(&fits), fits.next.outcome, fits.next.task), (most, None, 1));
    let ended = with(note + 1);
    assert_eq!(ended.next.outcome.map(|outcome| (outcome.result, outcome.status)), Some((TaskResult::Fail, Status::Errored)));
    let message = ended.next.view.message.as_deref().unwrap();
    assert!(message.contains(&format!("has {} bytes, {most} are allowed", most + 1)), "{message}");
    assert!(size(&ended) < 4096, "without the payload: {}", size(&ended));
    assert_eq!(ended.next.view.left, 0);
}

#[test]
fn a_task_named_like_a_sequence_of_its_stage_or_like_its_own_is_followed_by_nothing() {
    let follows = |name: &str, declared: Option<&str>| {
        let mut stand = plain(&["deploy", "last"]);
        stand.shipyard.stages[0].sequences.push(sequence("after", &["x"], &[("dev.deploy.finished", None)]));
        stand.shipyard.stages[0].sequences.extend(declared.map(|name| sequence(name, &["x"], &[])));
        let mut x = running(&stand);
        x.sequence = name.into();
        !answered(&stand, &x, "pass").record.unwrap().sends.is_empty()
    };
    assert!(follows("delivery", None));
    assert!(!follows("delivery", Some("deploy")), "the stage has such a sequence");
    assert!(!follows("deploy", None), "it is this one");
}

#[test]
fn the_views_show_an_end_that_failed_and_no_other() {
    let stand = plain(&["deploy"]);
    let x = running(&stand);
    let passed = answered(&stand, &x, "pass").next;
    assert_eq!((passed.outcome.map(|outcome| outcome.end), passed.view.latest_failed), (Some(End::Normal), None));
    let aborted = stand.commit(&x, Input::Abort).next;
    assert_eq!(aborted.view.latest_failed.map(|event| event.ty), Some("dev.delivery.finished".into()));
}

#[test]
fn the_payload_stays_in_the_last_record_only_if_somebody_needs_it() {
    let mut stand = plain(&["deploy"]);
    let base = |stand: &Stand| answered(stand, &running(stand), "pass").record.unwrap().base;
    assert_eq!(base(&stand), Object::new());
    stand.base.insert("promotion".into(), json!({"name": "app"}));
    assert_eq!(base(&stand)["promotion"], json!({"name": "app"}), "whoever promotes by this sequence is told");
}

#[test]
fn an_approval_without_a_time_limit_waits_for_ever() {
    for (timeout, deadline) in [(None, None), (Some(Span(0)), None), (Some(Span::minutes(5)), Some(NOW + Span::minutes(5)))] {
        let mut stand = plain(&["approval"]);
        stand.sequence.tasks[0].properties = json!({"pass": "manual"}).as_object().unwrap().clone();
        stand.sequence.tasks[0].timeout = timeout;
        let asked = running(&stand);
        assert!(asked.waits_for_approval());
        assert_eq!(super::super::deadline(&asked, &stand.sequence, &POLICY), deadline, "{timeout:?}");
    }
}

#[test]
fn a_started_with_a_long_source_or_id_is_not_kept_in_short() {
    let task = TaskName::new("deploy").unwrap();
    let of = |source: usize, id: usize| {
        let mut event = event("deploy", Kind::Started, "a", "pass");
        (event.source, event.id) = ("s".repeat(source), "i".repeat(id));
        Bare::of(&event, &task, NOW).is_some()
    };
    assert!(of(60, 36) && of(30, 30) && !of(1, 2000) && !of(2000, 1));
}

/// The record of the commit that this `.finished` of the open task makes.
fn record_of(stand: &Stand, x: &Execution, finished: &CloudEvent) -> Record {
    let trigger = x.record.unwrap();
    let started = event("deploy", Kind::Started, "a", "pass");
    let x = stand.commit(x, Input::Reaction(trigger, ReactionKind::Started, &started, NOW)).next;
    let transition = stand.commit(&x, Input::Reaction(trigger, ReactionKind::Finished, finished, NOW));
    let (record, id) = (transition.record.unwrap(), transition.next.record.unwrap());
    assert_eq!(record.id(id.subject, id.number), id, "the id is the hash of all that is in the record");
    record
}

#[test]
fn a_record_has_the_answer_that_it_follows_if_nothing_of_it_gets_lost() {
    let mut stand = plain(&["deploy", "test"]);
    let x = running(&stand);
    let finished = |note: usize| {
        let mut finished = event("deploy", Kind::Finished, "a", "pass");
        finished.data.insert("note".into(), json!("x".repeat(note)));
        CloudEvent { triggered_id: x.record.map(|id| id.uuid().to_string()), git_commit_id: Some("4711".into()), ..finished }
    };
    let kept = |stand: &Stand, finished: &CloudEvent| {
        let answers = Bare::all(&record_of(stand, &x, finished));
        let events = answers.iter().map(|answer| answer.event(&x, "deploy", &x.record.unwrap()));
        events.filter(|event| event == finished).count()
    };
    assert_eq!(kept(&stand, &finished(1000)), 1);
    assert_eq!(kept(&stand, &finished(20_000)), 0, "too large");
    let unlike = |change: fn(&mut CloudEvent)| {
        let mut event = finished(10);
        change(&mut event);
        event
    };
    for other in [unlike(|event| event.triggered_id = None), unlike(|event| event.authors = vec!["token:ann".into()])] {
        assert_eq!(Bare::all(&record_of(&stand, &x, &other)).len(), 1, "the `.started` only: {other:?}");
    }
    let whole = record_of(&stand, &x, &finished(1000));
    stand.policy.max_record_bytes = whole.to_bytes().len() - 100;
    let (record, finished) = (record_of(&stand, &x, &finished(1000)), finished(1000));
    assert_eq!(kept(&stand, &finished), 0, "the record has no room for it");
    assert!(record.events.iter().any(|draft| draft.id.is_none()), "and goes on");
    let least = record.to_bytes().len() + whole.inputs.last().unwrap().to_string().len();
    for (bytes, expected) in [(least, 0), (least + 1, 1)] {
        stand.policy.max_record_bytes = bytes;
        assert_eq!(kept(&stand, &finished), expected, "{bytes}");
    }
}

#[test]
fn answers_in_records_of_older_versions_are_read() {
    let older = r#"{"i":["{\"a\":3,\"i\":\"e-1\",\"s\":\"ann\",\"t\":2}"],"m":1,"t":5}"#;
    let record: Record = serde_json::from_str(older).unwrap();
    assert_eq!(record.to_bytes(), older, "and keep their ids");
    let answers = Bare::all(&record);
    let [answer] = &answers[..] else { panic!("{answers:?}") };
    assert_eq!((answer.id.as_str(), answer.source.as_str(), answer.at, answer.finished), ("e-1", "ann", Timestamp(3), false));
}

#[test]
fn a_task_is_listed_if_somebody_asks_and_an_approval_in_any_case() {
    let mut stand = plain(&["deploy"]);
    assert!(running(&stand).listed);
    stand.policy.polled = false;
    let x = running(&stand);
    assert!(!x.listed);
    assert_eq!(stand.decide(&x, Input::Settle), Decision::Settle);
    let mut approval = plain(&["approval"]);
    approval.policy.polled = false;
    approval.sequence.tasks[0].properties = json!({"pass": "manual"}).as_object().unwrap().clone();
    assert!(running(&approval).listed);
    stand.policy.polled = true;
    let listed = stand.commit(&x, Input::Settle).next;
    assert_eq!((listed.listed, listed.repeated), (true, None));
    assert_eq!(fresh(Some(&x), &listed), [], "it is not published again");
}

#[test]
fn a_time_limit_of_zero_is_none() {
    let mut stand = plain(&["deploy"]);
    stand.sequence.timeout = Some(Span(0));
    stand.sequence.tasks[0].timeout = Some(Span(0));
    let x = running(&stand);
    let trigger = x.record.unwrap();
    let started = event("deploy", Kind::Started, "a", "pass");
    let started = stand.commit(&x, Input::Reaction(trigger, ReactionKind::Started, &started, NOW)).next;
    assert_eq!(super::super::deadline(&started, &stand.sequence, &POLICY), None);
    assert_eq!(super::super::deadline(&x, &stand.sequence, &POLICY), Some(NOW + POLICY.start_deadline));
}

/// Why an execution ended whose deadline passed at this time.
fn timed_out(stand: &mut Stand, x: &Execution, after: Span) -> String {
    stand.now = NOW + after;
    let x = Execution { wake: Some(stand.now), ..x.clone() };
    let ended = stand.commit(&x, Input::Wake(stand.now)).next;
    assert_eq!(ended.outcome.map(|outcome| outcome.end), Some(End::TimedOut));
    ended.view.message.unwrap_or_default()
}

#[test]
fn a_timeout_says_what_it_waited_for() {
    let started = |stand: &Stand, x: &Execution| {
        let started = event("deploy", Kind::Started, "a", "pass");
        stand.commit(x, Input::Reaction(x.record.unwrap(), ReactionKind::Started, &started, NOW)).next
    };
    for timeout in [None, Some(Span(0)), Some(Span::minutes(300))] {
        let mut stand = plain(&["deploy"]);
        stand.sequence.timeout = timeout;
        let x = running(&stand);
        assert!(timed_out(&mut stand, &x, Span::minutes(10)).contains("while waiting for task"), "{timeout:?}");
        stand.now = NOW;
        let x = started(&stand, &x);
        assert!(timed_out(&mut stand, &x, Span::minutes(60)).contains("was started but not finished"), "{timeout:?}");
    }
    let mut stand = plain(&["deploy"]);
    stand.sequence.timeout = Some(Span::minutes(5));
    let x = running(&stand);
    assert!(timed_out(&mut stand, &x, Span::minutes(5)).contains("it was not done within"));
}

#[test]
fn a_wake_up_serves_a_later_deadline_only_if_it_is_far_enough_ahead() {
    let stand = plain(&["deploy", "test"]);
    let deadline = NOW + POLICY.start_deadline;
    for (pending, kept) in [(30, false), (60, false), (61, true)] {
        let pending = NOW + Span::seconds(pending);
        let x = Execution { wake: Some(pending), ..running(&stand) };
        let next = answered(&stand, &x, "pass").next;
        assert_eq!(next.wake, Some(if kept { pending } else { deadline }));
    }
}

#[test]
fn a_started_brings_a_wake_up_only_if_the_pending_one_does_not_serve() {
    let stand = plain(&["deploy"]);
    let timeout = NOW + POLICY.task_timeout;
    for (pending, wake, own) in
        [(NOW, NOW, true), (NOW + Span::minutes(-1), timeout, false), (timeout, timeout, true), (timeout + Span(1), timeout, false)]
    {
        let x = Execution { wake: Some(pending), armed_by: Some(7), ..running(&stand) };
        let started = event("deploy", Kind::Started, "a", "pass");
        let next = stand.commit(&x, Input::Reaction(x.record.unwrap(), ReactionKind::Started, &started, NOW)).next;
        assert_eq!((next.wake, next.armed_by), (Some(wake), own.then_some(7)), "{pending:?}");
    }
}

#[test]
fn a_trigger_that_nobody_answers_is_repeated_once_after_two_minutes() {
    let mut stand = plain(&["deploy"]);
    let x = running(&stand);
    let queued = born(&birth(), &stand.entrance()).next;
    let started = event("deploy", Kind::Started, "a", "pass");
    let started = stand.commit(&x, Input::Reaction(x.record.unwrap(), ReactionKind::Started, &started, NOW)).next;
    stand.now = NOW + UNANSWERED;
    assert_eq!(stand.decide(&x, Input::Settle), Decision::Settle);
    stand.now = NOW + UNANSWERED + Span(1);
    let repeated = stand.commit(&x, Input::Settle).next;
    assert_eq!(repeated.repeated, Some(CAUSE.id));
    for x in [&repeated, &queued, &started] {
        assert_eq!(stand.decide(x, Input::Settle), Decision::Settle);
    }
    assert_eq!(owed(&repeated, CAUSE), [Duty::Repeat]);
    assert_eq!(owed(&repeated, Cause { id: 78, ..CAUSE }), [], "another message has had it repeated");
    assert_eq!(fresh(Some(&x), &repeated), [Duty::Repeat]);
}

#[test]
fn what_is_owed_follows_from_the_state() {
    let stand = plain(&["deploy"]);
    let x = running(&stand);
    let queued = born(&birth(), &stand.entrance()).next;
    let mut paused = Stand::new();
    paused.flags.paused = true;
    let held = born(&birth(), &super::freeze::frozen().entrance()).next;
    let other = Execution { held: held.held.clone().map(|held| Held { by: "another window".into(), ..held }), ..held.clone() };
    let paused = paused.commit(&x, Input::Obey).next;
    let ended = answered(&stand, &x, "pass").next;
    let aborted = Stand { flags: Flags { epoch: 1, aborted: 1, ..Flags::default() }, ..plain(&["deploy"]) };
    let aborted = born(&birth(), &aborted.entrance()).next;
    let never = never_started(&birth(), "no such stage", NOW).next;
    for (x, duties) in [
        (&x, vec![]),
        (&queued, vec![Duty::Ask]),
        (&held, vec![Duty::Ask, Duty::Recheck]),
        (&paused, vec![Duty::Drive, Duty::Recheck]),
        (&ended, vec![Duty::Drive]),
        (&aborted, vec![Duty::Bury, Duty::Drive]),
        (&never, vec![Duty::Bury]),
    ] {
        assert_eq!(owed(x, CAUSE), duties, "{:?}", x.phase());
    }
    assert_eq!(fresh(Some(&held), &held), []);
    assert_eq!(fresh(Some(&held), &other), [Duty::Recheck], "something else holds it back");
}

#[test]
fn what_an_end_keeps_from_being_reached_is_named_once_and_in_order() {
    let pass = Some(TaskResult::Pass);
    let mut stand = plain(&["deploy"]);
    let stage = |name: &str, sequences| Stage { name: StageName::new(name).unwrap(), windows: vec![], sequences };
    let dev = vec![
        stand.sequence.clone(),
        sequence("rollback", &["x"], &[("dev.delivery.finished", Some(TaskResult::Fail))]),
        sequence("other", &["x"], &[("dev.other-event.finished", None)]),
    ];
    let staging = vec![
        sequence("delivery", &["x"], &[("dev.delivery.finished", None)]),
        sequence("check", &["x"], &[("dev.delivery.finished", pass), ("staging.delivery.finished", None)]),
        sequence("always", &["x"], &[("dev.delivery.finished", pass), ("dev.delivery.finished", Some(TaskResult::Fail))]),
    ];
    let prod = vec![sequence("delivery", &["x"], &[("staging.delivery.finished", None), ("staging.check.finished", None)])];
    stand.shipyard.stages = vec![stage("dev", dev), stage("staging", staging), stage("prod", prod)];
    let x = running(&stand);
    let names = |x: &Execution| {
        let found = unreached(x, &stand.sequence.tasks, &stand.shipyard);
        found.iter().map(|(stage, sequence)| format!("{}.{}", stage.name, sequence.name)).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(names(&x), "", "it goes on");
    assert_eq!(names(&answered(&stand, &x, "pass").next), "", "all of it follows");
    assert_eq!(names(&answered(&stand, &x, "fail").next), "staging.delivery staging.check prod.delivery");
    let aborted = stand.commit(&x, Input::Abort).next;
    assert_eq!(names(&aborted), "staging.delivery staging.check staging.always prod.delivery");
}
