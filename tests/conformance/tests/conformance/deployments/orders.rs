//! Triggers of several sources in every order that keeps the order of each source: what is deployed at last is the same.

use keelway_conformance::deployments::{DeploymentsWorld, Rider, definition, on_image};
use keelway_domain::deployments::definition::{Concurrency, Definition, Trigger};
use keelway_domain::deployments::registry::{ArtifactSource, Origin, Repository};
use keelway_domain::deployments::{Call, LEASE, Progress};
use keelway_domain::time::{Span, Timestamp};
use keelway_world::case::{Entrance, Stand};
use keelway_world::deployments::{DeploymentsStand, Happened, REPOSITORY, SOURCE};
use keelway_world::story::Mode;
use serde_json::Value;

/// What happens: a push to the tag of the first or the second container, or an edit of the config.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Event {
    Push(&'static str, &'static str),
    Edit(&'static str),
}

/// Every merge of these lists that keeps the order of each.
fn merges(sources: &[&[Event]]) -> Vec<Vec<Event>> {
    if sources.iter().all(|source| source.is_empty()) {
        return vec![vec![]];
    }
    let mut all = vec![];
    for place in 0..sources.len() {
        let Some((first, rest)) = sources[place].split_first() else { continue };
        let mut others = sources.to_vec();
        others[place] = rest;
        all.extend(merges(&others).into_iter().map(|merge| [&[*first], &merge[..]].concat()));
    }
    all
}

fn config(concurrency: Concurrency) -> Definition {
    let triggers = vec![Trigger::ConfigChange, on_image("main", &["web"], true), on_image("side", &["log"], true)];
    Definition { concurrency, ..definition(triggers) }
}

fn edited(concurrency: Concurrency, env: &str) -> Definition {
    let mut config = config(concurrency);
    config.template["spec"]["containers"][0]["env"] = env.into();
    config
}

fn deploy(world: &mut DeploymentsWorld) {
    let view = world.config("shop", "app").flatten().unwrap_or_default();
    let (Some(n), "New") = (view["version"].as_u64(), view["status"].as_str().unwrap_or_default()) else { return };
    let token = format!("token {n}");
    world.say("shop", "app", n, &Call::Claim { by: "ci".into(), id: n, token: token.clone(), lease: LEASE });
    world.say("shop", "app", n, &Call::End { token, exit: Some(0), message: String::new(), progress: Progress::default() });
}

/// What is deployed when the events come in this order, so long after each other.
fn end(order: &[Event], concurrency: Concurrency, between: Span) -> Value {
    let mut world = DeploymentsWorld::new(Mode::Clean, Rider::None, None);
    let repository = Repository { account: None, region: None, name: REPOSITORY.into() };
    world.bind(
        "shop",
        SOURCE,
        &ArtifactSource { from: Origin::Ecr(repository), tags: Default::default(), images: vec![], vouched: false },
    );
    world.apply("shop", "app", &config(concurrency), None);
    let begin = world.now();
    for event in order {
        world.step();
        match event {
            Event::Push(tag, digest) => {
                // The registry says when: the order of arrival does not matter.
                let at = begin + Span(digest.len() as i64);
                let what = Happened { tag: Some((*tag).into()), digest: (*digest).into(), at };
                world.image("shop", &what, Entrance::Bus);
            }
            Event::Edit(env) => drop(world.apply("shop", "app", &edited(concurrency, env), None)),
        }
        world.wait(between);
        deploy(&mut world);
    }
    for _ in 0..3 {
        world.wait(Span::seconds(5));
        deploy(&mut world);
    }
    let view = world.config("shop", "app").flatten().unwrap_or_default();
    let container = |n: usize| view["deployed"]["template"]["spec"]["containers"][n].clone();
    serde_json::json!([view["status"], view["condition"], container(0), container(1)])
}

#[test]
fn every_order_of_triggers_deploys_the_same() {
    use Event::{Edit, Push};
    let sources: [&[Event]; 3] = [
        &[Push("main", "a"), Push("main", "bb"), Push("main", "ccc")],
        &[Push("side", "x"), Push("side", "yy")],
        &[Edit("b"), Edit("c")],
    ];
    let orders = merges(&sources);
    assert_eq!(orders.len(), 210);
    for concurrency in [Concurrency::Supersede, Concurrency::Queue] {
        for between in [Span(0), Span(1500), Span::seconds(3)] {
            let expected = end(&sources.concat(), concurrency, between);
            assert_eq!(expected[0], "Complete", "{expected}");
            for order in &orders {
                assert_eq!(end(order, concurrency, between), expected, "{order:?}, {between:?} apart");
            }
        }
    }
    // Even pushes of one tag in the wrong order: the registry's time decides.
    let wrong =
        [Push("main", "ccc"), Edit("b"), Push("side", "yy"), Push("main", "a"), Edit("c"), Push("side", "x"), Push("main", "bb")];
    let (concurrency, between) = (Concurrency::Supersede, Span::seconds(3));
    assert_eq!(end(&wrong, concurrency, between), end(&sources.concat(), concurrency, between));
}

/// A moment between two events is one version, whatever they are.
#[test]
fn a_burst_in_any_order_is_one_version() {
    use Event::{Edit, Push};
    for order in merges(&[&[Push("main", "a"), Push("main", "bb")], &[Push("side", "x")], &[Edit("b")]]) {
        let mut world = DeploymentsWorld::new(Mode::Clean, Rider::None, None);
        let repository = Repository { account: None, region: None, name: REPOSITORY.into() };
        world.bind(
            "shop",
            SOURCE,
            &ArtifactSource { from: Origin::Ecr(repository), tags: Default::default(), images: vec![], vouched: false },
        );
        world.apply("shop", "app", &config(Concurrency::Supersede), None);
        let begin: Timestamp = world.now();
        for event in &order {
            match event {
                Event::Push(tag, digest) => {
                    let at = begin + Span(digest.len() as i64);
                    world.image("shop", &Happened { tag: Some((*tag).into()), digest: (*digest).into(), at }, Entrance::Bus);
                }
                Event::Edit(env) => drop(world.apply("shop", "app", &edited(Concurrency::Supersede, env), None)),
            }
            world.wait(Span(500));
        }
        world.wait(Span::seconds(3));
        let view = world.config("shop", "app").flatten().unwrap_or_default();
        assert_eq!((view["latest"].as_u64(), &view["images"]["web"]), (Some(1), &Value::from("bb")), "{order:?}");
    }
}
