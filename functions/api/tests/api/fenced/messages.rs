//! What comes over the queues and the bus and names the other project: each kind of message, and each type of event.
//!
//! Only Keelway's own functions may send to its queues. So what is tried here is what is left of the border behind that: messages
//! with facts that are not the other project's, as a mistaken or a replayed one has them. Those that are believed say who asks
//! before.

use super::furnished::{Furnished, OTHER, OWN, furnish};
use super::{Border, key};
use keelway_domain::event::{CloudEvent, EventType, Kind};
use keelway_domain::stored::Stored;
use keelway_engine::item::Item;
use keelway_engine::{deployments, evaluations, promotions, sequences, webhooks};
use keelway_wire::cloudevent::{Origin, parse};
use keelway_world::queue::Parcel;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What a message about the other project does.
enum Does {
    /// Nothing there: this is one that the own project's facts could cause.
    Nothing(Value),
    /// What it says. Who asks whether it may, before it is sent.
    AsItSays(&'static str),
}
use Does::{AsItSays, Nothing};

/// The names of an enum's variants, from what is said about one that is unknown.
fn variants<M: Stored>() -> BTreeSet<String> {
    let Err(error) = M::from_value(&json!({"keelway": "?"})) else { panic!("a message of no kind") };
    let text = error.to_string();
    let (_, expected) = text.split_once("expected ").unwrap();
    expected.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// An execution of the other project that is open.
fn execution(f: &Furnished) -> String {
    let core = f.stand.world.core();
    let found = core.table.partition("C#quux#quux-open").find_map(|item| key(item).sk.strip_prefix("X#").map(str::to_owned));
    found.unwrap()
}

fn of_sequences(f: &Furnished) -> Vec<(&'static str, Does)> {
    let to = json!({"p": OTHER, "c": "quux-open", "x": execution(f)});
    let now = f.stand.world.now().0;
    vec![
        ("granted", Nothing(json!({"to": to, "ask": 900}))),
        ("follow", Nothing(json!({"to": to, "record": f.ids[&(OWN, "open")], "n": 0}))),
        (
            "start",
            Nothing(
                json!({"to": to, "event": "E#0001795172266#2222222222222", "stage": "quuxdev", "sequence": "delivery", "accepted": now}),
            ),
        ),
        ("wake", Nothing(json!({"to": to, "at": now + 1}))),
        ("conform", Nothing(json!({"project": OTHER, "context": "quux-open"}))),
        ("planned", Nothing(json!({"project": OTHER, "schedule": "alfanightly"}))),
        ("due", Nothing(json!({"project": OTHER, "schedule": "quuxnightly", "at": now}))),
        ("fire", AsItSays("the schedule's own commit sends it")),
        ("windows", Nothing(json!({"project": OTHER}))),
        ("obey", Nothing(json!({"to": to}))),
        ("abort", AsItSays("the engine sends it where the flags of the context say so, which take trigger in its project")),
        ("supersede", AsItSays("the engine sends it when a sequence of the same lane is accepted")),
        ("decide", AsItSays("the API sends it, after it has asked for approve:<stage>")),
        ("retry", AsItSays("the API sends it, after it has asked for trigger")),
        ("settle", Nothing(json!({"to": to}))),
    ]
}

fn of_promotions(f: &Furnished) -> Vec<(&'static str, Does)> {
    let to = json!({"p": OTHER, "n": "quuxline"});
    let attempt = json!({"environment": "quuxtwo", "run": 900, "revision": "alfav2", "attempt": 1});
    vec![
        ("evaluate", Nothing(json!({"to": to, "because": "alfa"}))),
        ("wake", Nothing(json!({"to": to, "at": f.stand.world.now().0 + 1}))),
        (
            "ended",
            Nothing(
                json!({"to": to, "attempt": attempt, "outcome": {"failed": {"why": {"r": "Alfa", "m": "alfa"}, "retry": "never"}}}),
            ),
        ),
        ("seen", Nothing(json!({"to": to, "attempt": attempt, "seen": {"succeeded": "alfa"}}))),
        ("closed", Nothing(json!({"to": to, "attempt": attempt, "how": "closed"}))),
        (
            "evaluated",
            Nothing(json!({"to": to, "environment": "quuxtwo", "id": "alfa", "time": 1,
                "answer": {"status": "succeeded", "result": "pass", "evaluated": true, "score": 100.0}})),
        ),
        ("command", AsItSays("the API sends it, after it has asked for trigger or approve:<environment>")),
    ]
}

fn of_attempts(f: &Furnished) -> Vec<(&'static str, Does)> {
    let (of, now) = (json!({"p": OTHER, "n": "quuxflow"}), f.stand.world.now().0);
    let attempt = json!({"environment": "quuxprod", "run": 900, "revision": "alfav2", "attempt": 1});
    vec![
        ("attempt", Nothing(json!({"of": of, "attempt": attempt}))),
        ("close", Nothing(json!({"of": of, "attempt": attempt, "due": now}))),
        ("follow", Nothing(json!({"of": {"p": OTHER, "n": "quuxnone"}, "environment": "quuxprod", "because": "alfa"}))),
        ("look", Nothing(json!({"repository": "https://git.test/quux/config", "at": now + 1}))),
    ]
}

fn of_deployments(f: &Furnished) -> Vec<(&'static str, Does)> {
    let (to, now) = (json!({"p": OTHER, "n": "quuxcart"}), f.stand.world.now().0);
    vec![
        ("evaluate", Nothing(json!({"to": to, "because": "alfa"}))),
        ("wake", Nothing(json!({"to": to, "at": now + 1}))),
        ("alarm", Nothing(json!({"to": to, "alarm": "alfaalarm", "on": true, "at": now}))),
        (
            "command",
            AsItSays("the API sends it, after it has asked for trigger, and the engine for tasks whose project was let in"),
        ),
        ("over", Nothing(json!({"to": to, "triggered": "alfatask"}))),
        ("saw", Nothing(json!({"to": to, "sight": {"n": 1, "t": now, "p": {"eu": {"e": "alfa", "s": "alfa"}}}}))),
        ("notice", AsItSays("functions/deployments makes it from an event of a service of AWS, which nobody else can send")),
    ]
}

fn of_evaluations(f: &Furnished) -> Vec<(&'static str, Does)> {
    let (to, now) = (json!([OTHER, "quuxdev", "quuxsvc"]), f.stand.world.now().0);
    let asker = json!({"pipeline": {"p": OWN, "n": "alfaline"}, "environment": "alfaone", "revision": "alfav2", "time": 1});
    vec![
        ("measure", Nothing(json!({"to": to, "id": "alfa", "attempt": 1}))),
        ("evaluate", Nothing(json!({"to": to, "id": "alfa", "period": {"start": now - 600_000, "end": now}, "asker": asker}))),
        ("wake", Nothing(json!({"to": to, "at": now + 1}))),
        ("over", Nothing(json!({"to": to, "id": "alfa"}))),
    ]
}

/// Those that other functions get, with where it is shown that they reach nothing.
const ELSEWHERE: [(&str, &str); 6] = [
    ("observe", "reads a cluster for its own project: functions/observer asks for consent of each pipeline"),
    ("start", "carries out a version of its own config: functions/deployers asks for its policy before each stage"),
    ("look", "looks at the targets of its own config: functions/deployers asks for its policy before"),
    ("deliver", "the engine of webhooks sends it for subscriptions of the event's project"),
    ("wake", "of a delivery: one at another time is late"),
    ("now", "of a delivery: the API sends it, after it has asked for trigger"),
];

/// What is state of the other project, without what is kept of events and messages.
fn state(f: &super::Stand, border: &Border) -> BTreeMap<String, Arc<Item>> {
    let core = f.world.core();
    let kept = core
        .table
        .items()
        .filter(|item| border.owns(&item.key) && !item.key.sk.starts_with("E#") && !item.key.pk.starts_with("Y#"));
    kept.map(|item| (format!("{} {}", item.key.pk, item.key.sk), item.clone())).collect()
}

fn changed(before: &BTreeMap<String, Arc<Item>>, after: &BTreeMap<String, Arc<Item>>) -> Vec<String> {
    let of = |map: &BTreeMap<String, Arc<Item>>| map.keys().cloned().collect::<BTreeSet<_>>();
    let all = of(before).union(&of(after)).cloned().collect::<Vec<_>>();
    all.into_iter().filter(|key| before.get(key) != after.get(key)).collect()
}

/// Messages are JSON with a member that says which one it is, so the samples are complete if they have each of its values.
fn complete<M: Stored>(samples: &[(&'static str, Does)]) {
    let listed: BTreeSet<String> = samples.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(listed, variants::<M>(), "say in fenced/messages.rs what a message of this kind does to another project");
    for (name, does) in samples {
        if let Nothing(body) = does {
            let mut body = body.clone();
            body["keelway"] = json!(name);
            let read = M::from_value(&body);
            assert!(read.is_ok(), "{body}: {:?}", read.err());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn no_message_with_facts_of_its_own_changes_another_project() {
    let f = furnish().await;
    let border = Border::of(&f);
    let all = [
        (sequences::NAME, of_sequences(&f)),
        (promotions::NAME, of_promotions(&f)),
        (promotions::ATTEMPTS, of_attempts(&f)),
        (deployments::NAME, of_deployments(&f)),
        (evaluations::NAME, of_evaluations(&f)),
    ];
    complete::<sequences::Message>(&all[0].1);
    complete::<promotions::Message>(&all[1].1);
    complete::<promotions::Job>(&all[2].1);
    complete::<deployments::Message>(&all[3].1);
    complete::<evaluations::Message>(&all[4].1);
    let mut others = variants::<promotions::Observe>();
    others.extend(variants::<deployments::Job>());
    others.extend(variants::<webhooks::Message>());
    assert_eq!(others, ELSEWHERE.iter().map(|(name, _)| (*name).to_owned()).collect());
    let mut failures = vec![];
    for (engine, samples) in all {
        for (name, does) in samples {
            match does {
                AsItSays(who) => assert!(who.len() > 10),
                Nothing(mut body) => {
                    body["keelway"] = json!(name);
                    let mut stand = f.stand.fork(f.secrets.clone());
                    let before = state(&stand, &border);
                    stand.world.enqueue(engine, Parcel::Own(body.to_string()));
                    stand.work().await;
                    let changed = changed(&before, &state(&stand, &border));
                    if !changed.is_empty() {
                        failures.push(format!("{engine} {body}: {changed:?}"));
                    }
                }
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Everything that an event's type may say.
fn types() -> Vec<String> {
    let kinds = [Kind::Triggered, Kind::Started, Kind::StatusChanged, Kind::Finished];
    let mut all = vec![];
    for kind in kinds {
        // A kind that is new has no word here.
        let word = match kind {
            Kind::Triggered => "triggered",
            Kind::Started => "started",
            Kind::StatusChanged => "status.changed",
            Kind::Finished => "finished",
        };
        for of in ["deployment", "rollback", "test", "approval", "alfadev.delivery", "quuxdev.delivery", "quuxprod.release"] {
            all.push(format!("sh.keptn.event.{of}.{word}"));
        }
    }
    all.extend(
        ["sh.keptn.event.quux.happened", "dev.keelway.target.observed", "dev.keelway.audit", "ECR Image Action"].map(str::to_owned),
    );
    for ty in &all {
        match EventType::parse(ty) {
            EventType::Sequence(..) | EventType::Task(..) | EventType::Other(..) => {}
        }
    }
    all
}

/// Events of the own project, and of nobody, that name the other one wherever something may be named.
fn events(f: &Furnished, ty: &str) -> Vec<CloudEvent> {
    let mut all = vec![];
    for (source, project) in
        [("alfaci", OWN), ("shipyard-controller", OWN), ("keelway-deployments", OWN), ("aws.ecr", OWN), ("alfaci", "nobody")]
    {
        let data = json!({
            "project": project, "stage": "quuxdev", "service": "quuxweb", "result": "pass", "status": "succeeded",
            "deployment": {"deploymentConfig": "quux:quuxcart"}, "rollback": {"deploymentConfig": "quux:quuxcart"},
            "configurationChange": {"values": {"image": "registry.test/quux/cart:2"}},
            "promotion": {"namespace": OTHER, "pipeline": "quuxline", "environment": "quuxtwo"},
            "keelway": {"project": OTHER}, "repository-name": "quux/app", "image-tag": "quuxlatest",
        });
        for (id, triggered) in [("open", "open"), ("approval", "approval")] {
            let mut event = json!({
                "specversion": "1.0", "id": format!("alfa-{id}"), "source": source, "type": ty, "time": f.stand.world.now().rfc3339(),
                "shkeptncontext": if id == "open" { "quux-open" } else { "quux-asks" }, "triggeredid": f.ids[&(OTHER, triggered)], "data": data,
            });
            if source.starts_with("aws.") {
                event["source"] = json!("alfaci");
            }
            let Ok(mut event) = parse(&event, Origin::Bus, f.stand.world.now()) else { continue };
            source.clone_into(&mut event.source);
            all.push(event);
        }
    }
    all
}

#[tokio::test(start_paused = true)]
async fn no_event_of_one_project_changes_another() {
    let f = furnish().await;
    let border = Border::of(&f);
    let (mut failures, mut tried) = (vec![], 0);
    for ty in types() {
        for event in events(&f, &ty) {
            for engine in [sequences::NAME, promotions::NAME, deployments::NAME] {
                // The rule of the sequences' queue keeps the engine's own events out, and so do the permissions of the bus.
                if engine == sequences::NAME && event.source == "shipyard-controller" {
                    continue;
                }
                tried += 1;
                let mut stand = f.stand.fork(f.secrets.clone());
                let before = state(&stand, &border);
                stand.world.enqueue(engine, Parcel::Event(event.clone()));
                stand.work().await;
                let changed = changed(&before, &state(&stand, &border));
                if !changed.is_empty() {
                    failures.push(format!("{engine} {} of {}: {changed:?}", event.ty, event.source));
                }
            }
        }
    }
    assert!(tried > 500, "{tried}");
    assert!(failures.is_empty(), "{} events:\n{}", failures.len(), failures.join("\n"));
}

/// Nobody but the engine deploys by an event, not even in one's own project.
#[tokio::test(start_paused = true)]
async fn a_task_of_another_source_deploys_nothing() {
    let f = furnish().await;
    let border = Border::of(&f);
    for source in ["alfaci", "keelway-sequences", "Shipyard-controller", "approval-service"] {
        let data = json!({"project": OTHER, "stage": "quuxdev", "service": "quuxweb", "deployment": {"deploymentConfig": "quuxcart"},
            "configurationChange": {"values": {"image": "registry.test/evil:1"}}});
        let event = json!({"specversion": "1.0", "id": "forged", "source": "alfaci", "type": "sh.keptn.event.deployment.triggered", "shkeptncontext": "quux-open",
            "time": f.stand.world.now().rfc3339(), "data": data});
        let mut event = parse(&event, Origin::Bus, f.stand.world.now()).unwrap();
        source.clone_into(&mut event.source);
        let mut stand = f.stand.fork(f.secrets.clone());
        let before = state(&stand, &border);
        stand.world.enqueue(deployments::NAME, Parcel::Event(event));
        stand.work().await;
        assert_eq!(changed(&before, &state(&stand, &border)), [""; 0], "{source}");
        let told = stand.get("/v1/invalid").await.text;
        assert!(told.contains("forged: only the sequences engine triggers tasks"), "{source}: {told}");
    }
}
