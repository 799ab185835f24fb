//! What every kind of definition is promised: applying or deleting may happen twice, stop after any request and meet others; what
//! is in force, what leads to it and who was told agree at the end. A kind of these tests alone is told all of it; what real kinds
//! add follows.

use keelway_conformance::stand::BEGIN;
use keelway_domain::address::Address;
use keelway_domain::border::Vouched;
use keelway_domain::deployments::registry::ArtifactSource;
use keelway_domain::promotions::registry::Cluster;
use keelway_domain::stored::Stored;
use keelway_domain::time::{Span, Timestamp};
use keelway_domain::webhooks::Subscription;
use keelway_engine::deployments::{self, Deployments};
use keelway_engine::item::{Attrs, Item, Key};
use keelway_engine::kinds::{ArtifactSources, Clusters, WebhookSubscriptions};
use keelway_engine::ports::{PortError, Ports, Write};
use keelway_engine::protocol::declare::{Declarations, Full, Kind, Outcome, Shelf, read};
use keelway_engine::table;
use keelway_world::World;
use keelway_world::exec::{Task, block_on, step};
use keelway_world::rng::Rng;
use keelway_world::worker::Worker;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::task::Poll;

const RETENTION: Span = Span::minutes(90 * 24 * 60);
/// More requests than one operation ever makes.
const MANY: usize = 60;

/// What a toy says: the names that lead to it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Toy {
    names: Vec<String>,
    #[serde(default)]
    vouched: bool,
}

impl Vouched for Toy {
    fn vouched(&self) -> bool {
        self.vouched
    }
    fn vouch(&mut self, vouched: bool) {
        self.vouched = vouched;
    }
}

keelway_domain::stored!(Toy);

fn toy(names: &[&str]) -> Toy {
    Toy { names: names.iter().map(|name| (*name).to_owned()).collect(), vouched: false }
}

#[derive(Debug, Clone, Copy)]
struct Toys;

const NAMED: &str = "toy-names";
const MADE: &str = "toy-made";
const TOLD: &str = "toy-told";
const COUNT: &str = "toy-count";

impl Kind for Toys {
    const KIND: &'static str = "Toy";
    type Spec = Toy;

    fn shelf(&self, namespace: &str) -> Shelf {
        Shelf { partition: format!("TOY#{namespace}"), prefix: "T#".into(), namespaces: Some("TOYS") }
    }
    fn entries(&self, at: &Address, spec: &Toy) -> Vec<Item> {
        spec.names.iter().map(|name| Item::new(Key::new(NAMED, format!("{name}#{at}")))).collect()
    }
    fn beside(&self, _: Timestamp) -> Attrs {
        Attrs::from([("beside".into(), 1i64.into())])
    }
    async fn before(&self, ports: &impl Ports, at: &Address, _: &Toy, _: Timestamp) -> Result<(), PortError> {
        table::record(ports, vec![Item::new(Key::new(MADE, at.to_string()))], vec![]).await
    }
    async fn along(&self, ports: &impl Ports, more: i64) -> Result<Result<Option<Write>, Full>, PortError> {
        let found = ports.get(&Key::new(COUNT, "n")).await?;
        let n = found.as_ref().and_then(|item| item.number("n")).unwrap_or_default();
        if n + more > 3 {
            return Ok(Err(Full));
        }
        let condition = keelway_engine::protocol::change::as_read(found.as_ref());
        let version = keelway_engine::protocol::change::next_version(found.as_ref());
        Ok(Ok(Some(Write::Put(Item::new(Key::new(COUNT, "n")).with("n", n + more).with("v", version), condition))))
    }
    async fn after(&self, ports: &impl Ports, at: &Address, version: i64) -> Result<(), PortError> {
        table::record(ports, vec![Item::new(Key::new(TOLD, format!("{at}#{version}")))], vec![]).await
    }
}

#[derive(Debug, Clone)]
enum Act {
    Apply(&'static str, Toy),
    Delete(&'static str),
}

fn declared(worker: &Worker) -> Declarations<'_, Worker, Toys> {
    Declarations { ports: worker, kind: Toys, retention: RETENTION }
}

fn at(name: &str) -> Address {
    Address::new("play", name)
}

/// An act of a worker of its own, a request at a time.
fn begin(world: &World, id: usize, act: Act) -> Task<Result<(), PortError>> {
    let worker = world.worker(id);
    Box::pin(async move {
        match act {
            Act::Apply(name, toy) => declared(&worker).apply(&at(name), &toy, &format!("{toy:?}")).await.map(drop),
            Act::Delete(name) => declared(&worker).delete(&at(name)).await.map(drop),
        }
    })
}

fn whole(world: &World, act: &Act) {
    block_on(begin(world, 0, act.clone())).expect("nobody else writes");
}

/// What is there, without the times.
fn everything(world: &World) -> BTreeMap<Key, Attrs> {
    let core = world.core();
    let timeless = |item: &Item| {
        let mut attrs = item.attrs.clone();
        attrs.retain(|name, _| !["at", "ttl"].contains(&name.as_ref()));
        attrs
    };
    core.table.items().map(|item| (item.key.clone(), timeless(item))).collect()
}

/// What is in force, what leads to it, and who was told agree.
fn check(world: &World, names: &[&str]) -> Result<(), String> {
    let items = everything(world);
    let within =
        |partition: &str| items.keys().filter(|key| key.pk == partition).map(|key| key.sk.clone()).collect::<BTreeSet<_>>();
    let mut leads = BTreeSet::new();
    let mut there = 0;
    for name in names {
        let core = world.core();
        let Some(item) = core.table.peek(&Toys.shelf("play").key(name)) else { continue };
        if let Some(one) = read::<Toys>(item).map_err(|error| error.to_string())? {
            there += 1;
            leads.extend(one.spec.names.iter().map(|of| format!("{of}#{}", at(name))));
            if !item.flag("beside") && item.number("beside") != Some(1) {
                return Err(format!("{name} has lost what stands beside it"));
            }
        }
        if item.text("go").is_some() {
            return Err(format!("{name} has entries left to delete"));
        }
        if !within(TOLD).contains(&format!("{}#{}", at(name), item.version())) {
            return Err(format!("nobody was told of version {} of {name}", item.version()));
        }
    }
    if within(NAMED) != leads {
        return Err(format!("{:?} lead somewhere, but {leads:?} are named", within(NAMED)));
    }
    let counted =
        items.get(&Key::new(COUNT, "n")).and_then(|attrs| Item { key: Key::new("", ""), attrs: attrs.clone() }.number("n"));
    if counted.unwrap_or_default() != there {
        return Err(format!("{counted:?} are counted, and {there} are there"));
    }
    Ok(())
}

fn story() -> Vec<Act> {
    vec![
        Act::Apply("a", toy(&["x", "y"])),
        Act::Apply("b", toy(&["x"])),
        Act::Apply("a", toy(&["y", "z"])),
        Act::Apply("a", toy(&["y", "z"])),
        Act::Delete("a"),
        Act::Delete("a"),
        Act::Apply("a", toy(&["x"])),
        Act::Delete("b"),
    ]
}

#[test]
fn everything_may_happen_twice() {
    let (once, twice) = (World::new(BEGIN), World::new(BEGIN));
    for act in story() {
        whole(&once, &act);
        check(&once, &["a", "b"]).unwrap();
        whole(&twice, &act);
        whole(&twice, &act);
    }
    assert_eq!(everything(&once), everything(&twice));
}

#[test]
fn whoever_stops_after_any_request_and_comes_again_completes_it() {
    let clean = World::new(BEGIN);
    story().iter().for_each(|act| whole(&clean, act));
    let mut stopped = 0;
    for place in 0..story().len() {
        for requests in 0..MANY {
            let world = World::new(BEGIN);
            let mut ended = false;
            for (n, act) in story().into_iter().enumerate() {
                if n == place {
                    let mut task = begin(&world, 1, act.clone());
                    ended = (0..=requests).any(|_| step(&mut task).is_ready());
                }
                whole(&world, &act);
            }
            assert_eq!(everything(&world), everything(&clean), "act {place} stopped after {requests} requests");
            if ended {
                break;
            }
            stopped += 1;
        }
    }
    assert!(stopped > 40, "{stopped} stops");
}

#[test]
fn others_at_the_same_time_leave_one_version_in_force_and_only_what_leads_to_it() {
    for seed in 0..3_000 {
        let mut rng = Rng::new(seed);
        let world = World::new(BEGIN);
        whole(&world, &Act::Apply("a", toy(&["x", "y"])));
        let mut waiting = vec![
            Act::Apply("a", toy(&["x", "z"])),
            Act::Delete("a"),
            Act::Apply("a", toy(&["y"])),
            Act::Apply("b", toy(&["x"])),
            Act::Delete("b"),
        ];
        let mut running: Vec<(Act, Task<Result<(), PortError>>)> = vec![];
        let mut version = 0;
        while !(waiting.is_empty() && running.is_empty()) {
            if !waiting.is_empty() && (running.is_empty() || rng.chance(30.0)) {
                let act = waiting.remove(rng.below(waiting.len()));
                running.push((act.clone(), begin(&world, running.len() + 1, act)));
            }
            let n = rng.below(running.len());
            match step(&mut running[n].1) {
                Poll::Pending if rng.chance(2.0) => {
                    // It stops, and comes again.
                    let (act, _) = running.swap_remove(n);
                    waiting.push(act);
                }
                Poll::Pending => {}
                Poll::Ready(Ok(())) => drop(running.swap_remove(n)),
                // Too many others: it comes again, as a client does.
                Poll::Ready(Err(PortError::Contended { .. })) => {
                    let (act, _) = running.swap_remove(n);
                    waiting.push(act);
                }
                Poll::Ready(Err(error)) => panic!("{error}"),
            }
            let now = world.core().table.peek(&Toys.shelf("play").key("a")).map(|item| item.version()).unwrap_or_default();
            assert!(now >= version, "seed {seed}: version {now} after {version}");
            version = now;
        }
        if let Err(wrong) = check(&world, &["a", "b"]) {
            panic!("seed {seed}: {wrong}");
        }
    }
}

#[test]
fn a_page_has_no_gaps_where_definitions_were_deleted() {
    let world = World::new(BEGIN);
    let worker = world.worker(0);
    let clusters = Declarations { ports: &worker, kind: Clusters, retention: RETENTION };
    let name = |n: usize| Address::new("shop", format!("c{n:02}"));
    for n in 0..40 {
        block_on(clusters.apply(&name(n), &cluster(false), "")).unwrap();
        if n % 8 != 7 {
            assert!(block_on(clusters.delete(&name(n))).unwrap());
        }
    }
    let (page, next) = block_on(clusters.page("shop", None, 3)).unwrap();
    let names: Vec<&str> = page.iter().map(|(of, _)| of.name.as_str()).collect();
    assert_eq!(names, ["c07", "c15", "c23"]);
    let (rest, end) = block_on(clusters.everywhere(None, Some(&format!("shop/{}", next.unwrap())), 3)).unwrap();
    assert_eq!(rest.iter().map(|(of, _)| of.to_string()).collect::<Vec<_>>(), ["shop/c31", "shop/c39"]);
    assert_eq!(end, None);
    assert_eq!(block_on(clusters.page("shop", None, 3)).unwrap().0[0].1.version, 1);
}

fn cluster(vouched: bool) -> Cluster {
    Cluster { server: "https://k8s.example.com".into(), ca_data: None, secret: "k8s".into(), interval: None, vouched }
}

/// Somebody reads what is in force, and is slow; it is deleted and applied anew meanwhile.
#[test]
fn whoever_was_slow_does_not_take_a_vouch_from_a_definition_that_was_deleted() {
    let world = World::new(BEGIN);
    let worker = world.worker(0);
    let clusters = Declarations { ports: &worker, kind: Clusters, retention: RETENTION };
    let of = Address::new("shop", "prod");
    block_on(clusters.apply(&of, &cluster(true), "by an administrator")).unwrap();
    let slow = world.worker(1);
    let theirs = of.clone();
    let mut task: Task<Result<Outcome, PortError>> = Box::pin(async move {
        let clusters = Declarations { ports: &slow, kind: Clusters, retention: RETENTION };
        clusters.apply(&theirs, &cluster(false), "by somebody").await
    });
    assert!(step(&mut task).is_pending());
    assert!(block_on(clusters.delete(&of)).unwrap());
    let other = Cluster { server: "https://other.example.com".into(), ..cluster(false) };
    assert_eq!(block_on(clusters.apply(&of, &other, "another one")).unwrap(), Outcome::Changed(3));
    assert_eq!(block_on(task).unwrap(), Outcome::Changed(4));
    assert!(!block_on(clusters.get(&of)).unwrap().unwrap().spec.vouched);
}

#[test]
fn an_artifact_source_that_is_applied_slowly_does_not_come_back_after_it_was_deleted() {
    let world = World::new(BEGIN);
    let engine = Deployments::new(world.worker(0), deployments::Limits::default());
    let of = Address::new("shop", "images");
    let source = |name: &str| ArtifactSource::from_value(&serde_json::json!({"from": {"ecr": {"name": name}}}));
    let [first, second] = ["cart", "basket"].map(|name| source(name).unwrap());
    block_on(engine.apply_source(&of, &first, "")).unwrap();
    let (slow, theirs) = (world.worker(1), of.clone());
    let mut task: Task<Result<Outcome, PortError>> = Box::pin(async move {
        let engine = Deployments::new(slow, deployments::Limits::default());
        engine.sources().apply(&theirs, &second, "").await
    });
    // It has read, and written what leads to the source.
    assert!((0..2).all(|_| step(&mut task).is_pending()));
    assert!(block_on(engine.sources().delete(&of)).unwrap());
    assert_eq!(block_on(engine.sources().get(&of)).unwrap(), None);
    assert_eq!(block_on(task).unwrap(), Outcome::Changed(3), "it is the newest one, and says so");
    let fed: Vec<Key> = world.core().table.items().map(|item| item.key.clone()).filter(|key| key.pk.starts_with("DR#")).collect();
    assert!(fed.len() <= 1, "{fed:?}");
}

#[test]
fn what_earlier_code_wrote_is_read_and_replaced() {
    let world = World::new(BEGIN);
    let worker = world.worker(0);
    let sources = Declarations {
        ports: &worker,
        kind: ArtifactSources(Deployments::new(worker.clone(), deployments::Limits::default()).home()),
        retention: RETENTION,
    };
    let of = Address::new("shop", "images");
    // Without a version or a format.
    let text = r#"{"from":{"webhook":{"secret":"hook"}}}"#;
    let old = Item::new(sources.kind.shelf("shop").key("images")).with("j", text).with("src", "text");
    block_on(table::record(&worker, vec![old.clone()], vec![])).unwrap();
    let known = block_on(sources.get(&of)).unwrap().unwrap();
    assert_eq!((known.version, known.source.as_str()), (0, "text"));
    assert_eq!(block_on(sources.apply(&of, &known.spec, "text")).unwrap(), Outcome::Unchanged(0));
    assert_eq!(block_on(sources.apply(&of, &known.spec, "another text")).unwrap(), Outcome::Changed(1));
    block_on(table::record(&worker, vec![old], vec![])).unwrap();
    assert!(block_on(sources.delete(&of)).unwrap());
    assert_eq!(block_on(sources.apply(&of, &known.spec, "text")).unwrap(), Outcome::Changed(2));
}

#[test]
fn a_deleted_subscription_takes_no_note_and_counts_no_more() {
    let world = World::new(BEGIN);
    let worker = world.worker(0);
    let hooks = Declarations { ports: &worker, kind: WebhookSubscriptions, retention: RETENTION };
    let of = Address::new("shop", "slack");
    let text =
        serde_json::json!({"url": "https://hooks.example.com", "events": ["sh.keptn.*"], "projects": ["shop"], "attempts": 3});
    let value = Subscription::from_value(&text).unwrap();
    assert_eq!(block_on(hooks.apply(&of, &value, "")).unwrap(), Outcome::Changed(1));
    assert!(block_on(hooks.delete(&of)).unwrap());
    let tombstone = world.core().table.peek(&hooks.kind.shelf("shop").key("slack")).cloned().unwrap();
    assert_eq!((tombstone.version(), tombstone.number("f"), tombstone.number("be")), (2, None, None));
    world.pass(Span::minutes(1));
    assert_eq!(block_on(hooks.apply(&of, &value, "")).unwrap(), Outcome::Changed(3));
    let again = world.core().table.peek(&hooks.kind.shelf("shop").key("slack")).cloned().unwrap();
    assert_eq!((again.number("be"), again.number("ttl")), (Some(world.now().0), None), "it takes events from now on");
}
