//! The transition table: every phase meets every input, and the answers are kept as a reviewed snapshot.

use super::*;
use crate::cause::Cause;
use crate::event::{CloudEvent, Kind, Object, Status, TaskResult};
use crate::ids::{RecordHash, RecordId, SubjectId};
use crate::names::{Context, ProjectName, SequenceName, ServiceName, StageName, TaskName};
use crate::shipyard::{Match, Sequence, Shipyard, Stage, Task, Trigger};
use crate::time::{Span, Timestamp};
use serde_json::json;

mod edges;
mod freeze;
mod shown;

const NOW: Timestamp = Timestamp(1_800_000_000_000);

fn task(name: &str) -> Task {
    Task {
        name: TaskName::new(name).unwrap(),
        triggered_after: None,
        properties: Object::new(),
        start_deadline: None,
        timeout: None,
    }
}

fn sequence(name: &str, tasks: &[&str], on: &[(&str, Option<TaskResult>)]) -> Sequence {
    let trigger = |(event, result): &(&str, Option<TaskResult>)| Trigger {
        event: (*event).into(),
        selector: result.map(|result| vec![Match { task: None, result }]),
    };
    Sequence {
        name: SequenceName::new(name).unwrap(),
        triggered_on: on.iter().map(trigger).collect(),
        tasks: tasks.iter().map(|name| task(name)).collect(),
        timeout: None,
        supersede: false,
        ignore_windows: None,
    }
}

/// `delivery` deploys, asks, releases; its failure is rolled back on the same lane, its success goes on in `prod`.
fn shipyard() -> Shipyard {
    let mut delivery = sequence("delivery", &["deploy", "approval", "release"], &[]);
    delivery.tasks[1].properties = json!({"pass": "manual"}).as_object().unwrap().clone();
    let rollback = sequence("rollback", &["rollback"], &[("dev.delivery.finished", Some(TaskResult::Fail))]);
    let next = sequence("delivery", &["deploy"], &[("dev.delivery.finished", None)]);
    let stage = |name: &str, sequences| Stage { name: StageName::new(name).unwrap(), windows: vec![], sequences };
    Shipyard { stages: vec![stage("dev", vec![delivery, rollback]), stage("prod", vec![next])] }
}

struct Stand {
    shipyard: Shipyard,
    sequence: Sequence,
    flags: Flags,
    base: Object,
    policy: Policy,
    now: Timestamp,
}

impl Stand {
    fn new() -> Self {
        let shipyard = shipyard();
        let sequence = shipyard.stages[0].sequences[0].clone();
        let base = json!({"project": "p", "stage": "dev", "service": "svc"}).as_object().unwrap().clone();
        Self { shipyard, sequence, flags: Flags::default(), base, policy: POLICY, now: NOW }
    }

    fn decide(&self, x: &Execution, input: Input<'_>) -> Decision {
        decide(
            x,
            input,
            &Facts {
                now: self.now,
                cause: CAUSE,
                flags: &self.flags,
                sequence: &self.sequence,
                current: ("rev", &self.shipyard),
                base: &self.base,
                events: &[],
                remediation: None,
                policy: self.policy,
            },
        )
    }

    fn entrance(&self) -> Entrance<'_> {
        Entrance { sequence: &self.sequence, shipyard: &self.shipyard, flags: &self.flags, now: self.now }
    }

    fn commit(&self, x: &Execution, input: Input<'_>) -> Transition {
        match self.decide(x, input) {
            Decision::Commit(transition) => *transition,
            other => panic!("no commit but {other:?}"),
        }
    }
}

const CAUSE: Cause = Cause { id: 77, sent: NOW, again: false, any_copy: false, copied: false, unqueued: false };
const POLICY: Policy = Policy {
    start_deadline: Span::minutes(10),
    task_timeout: Span::minutes(60),
    max_event_bytes: 240 * 1024,
    max_record_bytes: 390 * 1024,
    polled: true,
};

fn birth() -> Birth {
    Birth {
        id: SubjectId(7),
        project: ProjectName::new("p").unwrap(),
        context: Context::new("c1").unwrap(),
        stage: "dev".into(),
        service: ServiceName::new("svc").unwrap(),
        sequence: "delivery".into(),
        revision: "rev".into(),
        git_commit_id: None,
        authors: vec![],
        trigger_id: "t-1".into(),
        accepted: NOW,
        caused: NOW,
        class: Class::Outside,
        place: 0,
        parent: None,
        epoch: 0,
        payload: "E#1#2".into(),
        data: Object::new(),
        done: Done::default(),
        cause: CAUSE,
    }
}

fn event(task: &str, kind: Kind, source: &str, result: &str) -> CloudEvent {
    let data = json!({"project": "p", "stage": "dev", "service": "svc", "result": result, "status": "succeeded"});
    CloudEvent {
        id: format!("{source}-{task}-{}", kind.as_str()),
        source: source.into(),
        ty: crate::event::EventType::task(task, kind),
        time: NOW,
        context: Context::new("c1").unwrap(),
        authors: vec![],
        triggered_id: None,
        git_commit_id: None,
        data: data.as_object().unwrap().clone(),
    }
}

/// One execution in every phase, reached by the engine's own steps.
fn phases() -> Vec<(Phase, Execution)> {
    let stand = Stand::new();
    let queued = born(&birth(), &stand.entrance()).next;
    let running = stand.commit(&queued, Input::Granted(0)).next;
    let started = event("deploy", Kind::Started, "a", "pass");
    let with_started = stand.commit(&running, Input::Reaction(running.record.unwrap(), ReactionKind::Started, &started, NOW)).next;
    let finished = event("deploy", Kind::Finished, "a", "pass");
    let asked = stand.commit(&with_started, Input::Reaction(running.record.unwrap(), ReactionKind::Finished, &finished, NOW)).next;
    let approved_event = event("approval", Kind::Finished, "person", "pass");
    let approved = stand.commit(&asked, Input::Decision(asked.record.unwrap(), &approved_event, NOW)).next;
    let mut paused_stand = Stand::new();
    paused_stand.flags.paused = true;
    let pause = |x: &Execution| paused_stand.commit(x, Input::Obey).next;
    let resume = |x: &Execution| stand.commit(x, Input::Obey).next;
    let mut late = Stand::new();
    late.now = NOW + Span::minutes(11);
    let ended = late.commit(&running, Input::Wake(running.wake.unwrap())).next;
    let mut delayed_stand = Stand::new();
    delayed_stand.sequence.tasks[0].triggered_after = Some(Span::minutes(2));
    let delayed = delayed_stand.commit(&queued, Input::Granted(0)).next;
    let running_queued = resume(&pause(&with_started));
    let all = vec![
        queued.clone(),
        born(&birth(), &freeze::frozen().entrance()).next,
        delayed,
        with_started.clone(),
        running_queued,
        asked.clone(),
        approved.clone(),
        pause(&queued),
        pause(&with_started),
        pause(&asked),
        ended,
    ];
    all.into_iter().map(|x| (x.phase(), x)).collect()
}

fn describe(old: &Execution, decision: &Decision) -> String {
    match decision {
        Decision::Commit(transition) => {
            let next = &transition.next;
            let events: Vec<String> =
                transition.record.iter().flat_map(|record| &record.events).map(|draft| draft.ty.clone()).collect();
            let events = events.join(" ").replace(crate::event::PREFIX, "");
            let outcome =
                next.outcome.map(|o| format!(" {:?}/{}/{}", o.end, o.result.as_str(), o.status.as_str())).unwrap_or_default();
            let mut effects: Vec<String> = Vec::new();
            if next.wake.is_some() && next.outcome.is_none() && next.wake != old.wake {
                effects.push("Wake".into());
            }
            if transition.record.as_ref().is_some_and(|record| !record.events.is_empty()) {
                effects.push("Publish".into());
            }
            let sends = transition.record.as_ref().map_or(0, |record| record.sends.len());
            effects.extend((0..sends).map(|n| format!("Follow({n})")));
            effects.extend(fresh(Some(old), next).iter().map(|duty| format!("{duty:?}")));
            format!("{:?}{outcome} task {} [{events}] owes {}", next.phase(), next.task, effects.join(", "))
        }
        Decision::Invalid(reason) => format!("invalid: {}", reason.split(':').next().unwrap_or_default()),
        other => format!("{other:?}"),
    }
}

#[test]
fn the_transition_table() {
    let mut table = String::new();
    for (phase, x) in phases() {
        table.push_str(&format!("{phase:?}\n"));
        let open = x.record.unwrap_or(RecordId { subject: x.id, number: 0, hash: RecordHash::of(b"") });
        let before = RecordId { number: 0, hash: RecordHash::of(b"before"), ..open };
        let task = if x.task == 1 { "approval" } else { "deploy" };
        let (started, finished) = (event(task, Kind::Started, "b", "pass"), event(task, Kind::Finished, "a", "pass"));
        let (failed, decided) = (event(task, Kind::Finished, "a", "fail"), event("approval", Kind::Finished, "person", "fail"));
        let mut stand = Stand::new();
        let wake = x.wake.unwrap_or(NOW);
        let mut paused = Stand::new();
        paused.flags.paused = true;
        let mut aborted = Stand::new();
        aborted.flags = Flags { epoch: 1, aborted: 1, ..Flags::default() };
        let mut late = Stand::new();
        late.now = wake.max(NOW) + Span::minutes(120);
        stand.now = NOW + Span(1);
        let rows: Vec<(&str, Decision)> = vec![
            ("granted, this request", stand.decide(&x, Input::Granted(x.ask))),
            ("granted, another request", stand.decide(&x, Input::Granted(x.ask + 1))),
            ("granted, context paused", paused.decide(&x, Input::Granted(x.ask))),
            ("granted, context aborted", aborted.decide(&x, Input::Granted(x.ask))),
            ("started", stand.decide(&x, Input::Reaction(open, ReactionKind::Started, &started, NOW))),
            ("finished pass", stand.decide(&x, Input::Reaction(open, ReactionKind::Finished, &finished, NOW))),
            ("finished fail", stand.decide(&x, Input::Reaction(open, ReactionKind::Finished, &failed, NOW))),
            ("finished, other trigger", stand.decide(&x, Input::Reaction(before, ReactionKind::Finished, &finished, NOW))),
            ("declined", stand.decide(&x, Input::Decision(open, &decided, NOW))),
            ("wake, early", stand.decide(&x, Input::Wake(wake))),
            ("wake, due", late.decide(&x, Input::Wake(wake))),
            ("wake, replaced", late.decide(&x, Input::Wake(NOW - Span(5)))),
            ("obey, nothing desired", stand.decide(&x, Input::Obey)),
            ("obey, paused", paused.decide(&x, Input::Obey)),
            ("obey, aborted", aborted.decide(&x, Input::Obey)),
            ("abort", stand.decide(&x, Input::Abort)),
            ("superseded", stand.decide(&replaceable(&x), Input::Superseded(&Context::new("c2").unwrap()))),
            ("settle", stand.decide(&x, Input::Settle)),
        ];
        for (name, decision) in rows {
            table.push_str(&format!("  {name:26}{}\n", describe(&x, &decision)));
        }
    }
    insta::assert_snapshot!(table);
}

fn replaceable(x: &Execution) -> Execution {
    Execution { supersede: true, ..x.clone() }
}

#[test]
fn an_ended_execution_never_changes() {
    let (_, ended) = phases().into_iter().find(|(phase, _)| *phase == Phase::Ended).unwrap();
    let stand = Stand::new();
    let finished = event("deploy", Kind::Finished, "late", "pass");
    for input in [
        Input::Granted(ended.ask),
        Input::Reaction(ended.record.unwrap(), ReactionKind::Finished, &finished, NOW),
        Input::Decision(ended.record.unwrap(), &finished, NOW),
        Input::Wake(ended.wake.unwrap_or(NOW)),
        Input::Obey,
        Input::Abort,
        Input::Settle,
    ] {
        assert!(!matches!(stand.decide(&ended, input), Decision::Commit(_)), "{input:?}");
    }
}

#[test]
fn aggregation_takes_the_worst() {
    for (a, b, expected) in [
        (("pass", "succeeded"), ("pass", "succeeded"), (TaskResult::Pass, Status::Succeeded)),
        (("pass", "succeeded"), ("fail", "succeeded"), (TaskResult::Fail, Status::Succeeded)),
        (("pass", "succeeded"), ("warning", "succeeded"), (TaskResult::Warning, Status::Succeeded)),
        (("pass", "succeeded"), ("unknown result", "succeeded"), (TaskResult::Fail, Status::Succeeded)),
        (("pass", "succeeded"), ("fail", "errored"), (TaskResult::Fail, Status::Errored)),
        (("pass", "errored"), ("pass", "succeeded"), (TaskResult::Pass, Status::Errored)),
        (("pass", "aborted"), ("pass", "succeeded"), (TaskResult::Pass, Status::Aborted)),
        (("pass", "aborted"), ("pass", "errored"), (TaskResult::Pass, Status::Errored)),
        (("pass", "random"), ("pass", "succeeded"), (TaskResult::Fail, Status::Unknown)),
        (("", "succeeded"), ("pass", "succeeded"), (TaskResult::Fail, Status::Succeeded)),
    ] {
        let mut single = Stand::new();
        single.sequence.tasks.truncate(1);
        let queued = born(&birth(), &single.entrance()).next;
        let mut x = single.commit(&queued, Input::Granted(0)).next;
        let mut events = Vec::new();
        for (source, (result, status)) in [("a", a), ("b", b)] {
            let started = event("deploy", Kind::Started, source, "");
            x = single.commit(&x, Input::Reaction(x.record.unwrap(), ReactionKind::Started, &started, NOW)).next;
            let mut finished = event("deploy", Kind::Finished, source, result);
            finished.data.insert("status".into(), json!(status));
            events.push(finished);
        }
        for finished in &events {
            x = single.commit(&x, Input::Reaction(x.record.unwrap(), ReactionKind::Finished, finished, NOW)).next;
            if x.outcome.is_some() {
                break;
            }
            // The second `.started` came before the first `.finished`, so both count.
        }
        let outcome = x.outcome.expect("ended");
        assert_eq!((outcome.result, outcome.status), expected, "{a:?} {b:?}");
    }
}

#[test]
fn a_record_survives_its_stored_form() {
    let stand = Stand::new();
    let queued = born(&birth(), &stand.entrance()).next;
    let transition = stand.commit(&queued, Input::Granted(0));
    let record = transition.record.unwrap();
    let read: Record = serde_json::from_str(&record.to_bytes()).unwrap();
    assert_eq!(read, record);
    let id = transition.next.record.unwrap();
    assert_eq!(record.id(queued.id, id.number), id);
    let trigger = record.trigger(&id, &queued.context).unwrap();
    assert_eq!(RecordId::from_uuid(&trigger.id), Some(id));
    assert_eq!(trigger.data["deploy"], json!({}));
}

#[test]
fn a_first_started_that_is_written_unseen_is_what_the_decision_comes_to() {
    let stand = Stand::new();
    let queued = born(&birth(), &stand.entrance()).next;
    let running = stand.commit(&queued, Input::Granted(0)).next;
    assert!(running.quick, "the start deadline is earlier than any that a `.started` brings");
    let event = event("deploy", Kind::Started, "a", "pass");
    let first = First::of(&event, running.open.as_ref().unwrap(), NOW).expect("short, and nothing to merge");
    let decided = stand.commit(&running, Input::Reaction(running.record.unwrap(), ReactionKind::Started, &event, NOW));
    let mut written = running.clone();
    written.reactions.push(first.reaction);
    written.bare.push(first.bare.clone());
    written.view.latest = Some(first.latest);
    written.quick = false;
    assert_eq!((decided.next, decided.record), (written, None));
    assert_eq!(content(&first.bare.event(&running, "deploy", &running.record.unwrap())), content(&event), "kept as it was");
}

#[test]
fn a_started_that_decides_more_is_not_written_unseen() {
    let mut stand = Stand::new();
    let queued = born(&birth(), &stand.entrance()).next;
    let task = TaskName::new("deploy").unwrap();
    let mut merges = event("deploy", Kind::Started, "a", "pass");
    merges.data.insert("deploy".into(), json!({"url": "x"}));
    let mut long = event("deploy", Kind::Started, "a", "pass");
    long.data.insert("message".into(), json!("x".repeat(200)));
    assert!(First::of(&merges, &task, NOW).is_none() && First::of(&long, &task, NOW).is_none());
    // A task that may run for less time than it may wait: its first `.started` needs a wake-up of its own.
    stand.sequence.tasks[0].timeout = Some(Span::minutes(1));
    assert!(!stand.commit(&queued, Input::Granted(0)).next.quick);
}
