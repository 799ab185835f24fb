//! What is left behind: facts of clusters that are taken out, and entries of targets that are named no more.

use crate::stand::{PROD, Stand, in_prod, runs, target, to};
use keelway_domain::address::Address;
use keelway_domain::promotions::definition::{Definition, Target};
use keelway_domain::time::Span;
use keelway_engine::item::Key;
use keelway_engine::keys::MAIN;
use keelway_engine::ports::PortError;
use keelway_engine::promotions::keys;
use keelway_world::core::Fault;
use std::collections::BTreeSet;
use std::future::Future;

/// When a fact expires, in seconds since 1970.
fn expires(stand: &Stand, definition: &Definition, namespace: &str) -> Option<i64> {
    let key = keys::observation(&definition.app, &target(Some(PROD), namespace));
    stand.world.core().table.peek(&key).and_then(|item| item.number("ttl"))
}

#[tokio::test]
async fn what_is_known_of_a_cluster_that_is_taken_out_expires() {
    let mut stand = Stand::new().await;
    let (cart, elsewhere) = (in_prod(&["dev"]), crate::stand::definition(&[target(None, "dev")]));
    stand.server.kube().runs("dev", "cart", Some("1.0.0"), "True");
    stand.apply("cart", &cart).await;
    stand.apply("elsewhere", &elsewhere).await;
    stand.minute().await;
    assert_eq!((runs("1.0.0", true, stand.known("cart", "dev").await), expires(&stand, &cart, "dev")), (true, None));

    assert!(stand.pipelines.deregister_cluster(&Address::parse(PROD)).await.unwrap());
    let day = stand.world.now() + Span::minutes(24 * 60);
    assert_eq!(expires(&stand, &cart, "dev"), Some(day.0 / 1000));
    // Again, for one that stopped in between: it does not begin anew.
    stand.pass(Span::minutes(1));
    assert!(!stand.pipelines.deregister_cluster(&Address::parse(PROD)).await.unwrap());
    assert_eq!(expires(&stand, &cart, "dev"), Some(day.0 / 1000));

    // Nor does applying the pipeline again keep it: that reports nothing.
    stand.apply("cart", &cart).await;
    assert_eq!(expires(&stand, &cart, "dev"), Some(day.0 / 1000));

    // Registered again, it is read, and what has not changed is kept.
    stand.register(PROD, |_| {}).await;
    stand.minute().await;
    assert_eq!((runs("1.0.0", true, stand.known("cart", "dev").await), expires(&stand, &cart, "dev")), (true, None));
    stand.woken();
    stand.minute().await;
    assert_eq!(stand.woken(), Vec::<String>::new(), "a steady cluster wakes nobody");
}

/// The entries of pipelines with targets and of targets with clusters, by the part that says whose they are.
fn entries(stand: &Stand) -> BTreeSet<Key> {
    let is_entry = |key: &Key| (key.pk.starts_with("O#") || key.pk.starts_with("OC#")) && key.sk != MAIN;
    stand.world.core().table.items().map(|item| item.key.clone()).filter(is_entry).collect()
}

/// What there is for a pipeline that names these namespaces.
fn wanted(namespaces: &[&str]) -> BTreeSet<Key> {
    let definition = in_prod(namespaces);
    let of = |target: &Target| {
        [keys::depends(&definition.app, target, &to("cart")), keys::named(&definition.app, target, &to("cart")).unwrap()]
    };
    definition.targets().flat_map(of).collect()
}

/// From the n-th request on, every request fails; `false`: there were fewer.
async fn stopped(stand: &Stand, n: usize, what: impl Future<Output = Result<(), PortError>>) -> bool {
    let mut count = 0;
    stand.world.core().faults = Some(Box::new(move |_, _| {
        count += 1;
        if count > n { Fault::Throttled } else { Fault::None }
    }));
    let stopped = what.await.is_err();
    stand.world.core().faults = None;
    stopped
}

#[tokio::test]
async fn entries_of_targets_that_are_named_no_more_go_also_after_a_crash() {
    for n in 0.. {
        let mut stand = Stand::new().await;
        stand.apply("cart", &in_prod(&["dev", "prod"])).await;
        assert_eq!(entries(&stand), wanted(&["dev", "prod"]));
        let change = async |namespaces: &[&str]| stand.pipelines.apply(&to("cart"), &in_prod(namespaces), "").await.map(drop);
        let whole = !stopped(&stand, n, change(&["qa"])).await;
        // The next definition, which is another one, takes away what the one before had to; and the same again does.
        change(&["qa"]).await.unwrap();
        assert_eq!(entries(&stand), wanted(&["qa"]), "after {n} requests");
        stopped(&stand, n, change(&["dev"])).await;
        if stand.pipelines.definition(&to("cart")).await.unwrap().is_some_and(|applied| applied.spec == in_prod(&["dev"])) {
            change(&["test"]).await.unwrap();
            assert_eq!(entries(&stand), wanted(&["test"]), "after {n} requests");
        }
        let delete = async || stand.pipelines.delete(&to("cart")).await.map(drop);
        let deleted = !stopped(&stand, n, delete()).await;
        delete().await.unwrap();
        let left: BTreeSet<Key> = entries(&stand).into_iter().collect();
        // Only those of a definition that never came into force.
        assert!(left.is_subset(&wanted(&["dev"])), "after {n} requests: {left:?}");
        if whole && deleted {
            assert!(n > 5, "{n} requests were hit");
            assert_eq!(left, BTreeSet::new());
            return;
        }
    }
}

#[tokio::test]
async fn entries_that_are_still_to_be_deleted_are_noted_once() {
    let mut stand = Stand::new().await;
    stand.apply("cart", &in_prod(&["dev", "prod"])).await;
    stand.apply("cart", &in_prod(&["qa"])).await;
    let before = stand.world.core().request_count();
    stand.apply("cart", &in_prod(&["qa"])).await;
    let unchanged = stand.world.core().request_count() - before;
    let mut fresh = Stand::new().await;
    fresh.apply("cart", &in_prod(&["qa"])).await;
    let before = fresh.world.core().request_count();
    fresh.apply("cart", &in_prod(&["qa"])).await;
    assert_eq!(unchanged, fresh.world.core().request_count() - before, "nothing is deleted again");
}
