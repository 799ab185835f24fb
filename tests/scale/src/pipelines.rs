//! Loads of promotions.

use super::result::seconds;
use super::{BEGIN, LONGEST, Outcome, Place};
use keelway_domain::promotions::definition::{
    App, Approval, Compare, Definition, EnvironmentSpec, InFlight, Notification, PromotionSpec, Strategy, Target,
};
use keelway_domain::time::{Span, Timestamp};
use keelway_engine::promotions::observations::OBSERVED;
use keelway_engine::promotions::{Address, Limits, Promotions, keys};
use keelway_engine::protocol::Loaded;
use keelway_wire::cloudevent::{Origin, parse};
use keelway_world::World;
use keelway_world::account::{Account, Actor};
use keelway_world::exec::block_on;
use keelway_world::worker::Worker;
use serde_json::json;

const ON_A_PROJECT: usize = 50;
const ENVIRONMENTS: [&str; 2] = ["dev", "production"];

fn to(n: usize) -> Address {
    Address { namespace: format!("project-{}", n / ON_A_PROJECT), name: format!("app-{}", n % ON_A_PROJECT) }
}

fn app(n: usize) -> App {
    App { api_version: "helm.toolkit.fluxcd.io/v2".into(), kind: "HelmRelease".into(), name: format!("app-{n}") }
}

fn definition(n: usize) -> Definition {
    let environment = |name: &str| EnvironmentSpec {
        targets: vec![Target { cluster: None, namespace: name.to_owned() }],
        name: name.to_owned(),
        promotion: None,
        soak: None,
        evaluation: None,
    };
    Definition {
        app: app(n),
        environments: ENVIRONMENTS.into_iter().map(environment).collect(),
        promotion: Some(PromotionSpec {
            manual: false,
            strategy: Strategy::Notification(Notification::default()),
            approval: Approval::default(),
            windows: vec![],
        }),
        in_flight: InFlight::Restart,
        compare: Compare::Exact,
        vouched: false,
    }
}

/// Nobody is invoked by what pipelines publish.
fn nobody() -> Actor {
    Actor { takes: |_| false, told: Box::new(|_, _| vec![]) }
}

fn account(world: &World, place: &Place) -> Account<Promotions<Worker>> {
    let make = |worker| Promotions::new(worker, Limits::default());
    Account::new(world, (place.settings(), place.quotas()), make, nobody())
}

/// Somebody reports what the n-th app runs in an environment.
fn observe(account: &mut Account<Promotions<Worker>>, n: usize, (environment, version): (&str, i64), at: Timestamp) {
    let App { api_version, kind, name } = app(n);
    let fact = json!({
        "apiVersion": api_version, "kind": kind, "name": name, "namespace": environment, "revision": "v1", "ready": true,
        "version": version,
    });
    let event = json!({
        "specversion": "1.0", "id": format!("fact-{n}-{environment}-{version}"), "source": "flux", "type": OBSERVED,
        "datacontenttype": "application/json", "data": {"facts": [fact]},
    });
    account.put(at, parse(&event, Origin::Bus, at).expect("an observation"));
}

/// 50 pipelines in each of 1,000 projects are observed in one minute, without news.
pub fn observed(place: Place) -> Outcome {
    let count = place.share(1_000 * ON_A_PROJECT);
    // `PromotionsConcurrency` is 5.
    let place = Place { concurrency: 5, ..place };
    let world = World::new(BEGIN);
    let mut before = account(&world, &place.boundless());
    let api = Promotions::new(world.worker(0), Limits::default());
    for n in 0..count {
        block_on(api.apply(&to(n), &definition(n), "")).expect("a pipeline");
        ENVIRONMENTS.into_iter().for_each(|environment| observe(&mut before, n, (environment, 1), BEGIN));
    }
    before.run(BEGIN + LONGEST);
    drop(before);
    let version = |n: usize| {
        let core = world.core();
        let item = core.table.peek(&keys::pipeline(&to(n)));
        item.and_then(|item| Loaded::read(item).ok()).map(|loaded: Loaded<keelway_domain::promotions::Pipeline>| loaded.x)
    };
    let known = (0..count).filter(|n| version(*n).is_some()).count();
    let since = world.now();
    let published = world.outgoing().len();
    let mut account = account(&world, &place);
    for n in 0..count {
        let at = since + Span(60_000 * i64::try_from(n).unwrap_or(0) / i64::try_from(count).unwrap_or(1));
        observe(&mut account, n, ("dev", 2), at);
    }
    account.run(since + LONGEST);
    let mut wrong = world.core().bus.contradictions.clone();
    let more = world.outgoing().len() - published;
    wrong.extend((more > 0).then(|| format!("{more} events were published about nothing new")));
    let left = world.core().queue.messages.len();
    wrong.extend((left > 0).then(|| format!("{left} messages are left")));
    Outcome {
        what: "50,000 pipelines are observed in one minute".into(),
        place,
        begun: count,
        ended: known,
        took: seconds(world.now() - since),
        offered: 60.0,
        bounds: account.bounds(),
        slowest: 0.0,
        totals: account.totals(),
        wrong,
    }
}
