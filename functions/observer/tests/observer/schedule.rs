//! When clusters are observed.

use crate::api::Server;
use crate::stand::{PROD, Stand, definition, in_prod, runs, target};
use keelway_domain::time::Span;
use keelway_world::core::{Fault, Method};

#[tokio::test]
async fn of_two_ticks_at_once_one_observes() {
    let mut stand = Stand::new().await;
    stand.server.kube().runs("dev", "cart", Some("1.0.0"), "True");
    stand.apply("cart", &in_prod(&["dev"])).await;
    for _ in 0..3 {
        let (one, other) = tokio::join!(stand.observer.tick(), stand.observer.tick());
        assert_eq!(one.unwrap() + other.unwrap(), 1);
        stand.work().await;
        // A tick that comes a little early is the next one.
        stand.pass(Span::seconds(59));
    }
    assert_eq!(stand.observed, 3);
}

#[tokio::test]
async fn who_finds_a_cluster_claimed_sends_nothing() {
    let mut stand = Stand::new().await;
    stand.server.kube().runs("dev", "cart", Some("1.0.0"), "True");
    stand.apply("cart", &in_prod(&["dev"])).await;
    for _ in 0..2 {
        // Another tick wrote the same after this one had read: the first time there is no item yet, the second time there is one.
        let twice = |_: usize, method: Method| if method == Method::Write { Fault::Repeated } else { Fault::None };
        stand.world.core().faults = Some(Box::new(twice));
        assert_eq!(stand.observer.tick().await.unwrap(), 0);
        stand.world.core().faults = None;
        stand.pass(Span::seconds(60));
    }
    assert_eq!(stand.tick().await, 1);
}

#[tokio::test]
async fn each_cluster_has_its_interval_and_none_delays_another() {
    let mut stand = Stand::new().await;
    let slow = "shop/slow";
    stand.server.kube().runs("dev", "cart", Some("1.0.0"), "True");
    let mut dead = Server::start().await;
    let url = dead.url.clone();
    dead.down().await;
    stand.register(slow, |cluster| cluster.interval = Some(Span::minutes(5))).await;
    stand.register("shop/dead", |cluster| cluster.server = url).await;
    stand.apply("dead", &definition(&[target(Some("shop/dead"), "dev")])).await;
    stand.apply("cart", &definition(&[target(Some(PROD), "dev"), target(Some(slow), "dev")])).await;
    let due: Vec<usize> = {
        let mut due = vec![];
        for _ in 0..10 {
            due.push(stand.minute().await);
        }
        due
    };
    assert_eq!(due, [3, 2, 2, 2, 2, 3, 2, 2, 2, 2]);
    assert!(runs("1.0.0", true, stand.known("cart", "dev").await));
    assert!(stand.error("dead", "dev").await.contains("cannot be reached"));
    // A shorter interval counts at once.
    stand.register(slow, |cluster| cluster.interval = Some(Span::seconds(30))).await;
    stand.pass(Span::seconds(60));
    assert_eq!(stand.tick().await, 3);
}

#[tokio::test]
async fn more_clusters_than_one_page_has() {
    let mut stand = Stand::new().await;
    stand.server.kube().runs("dev", "cart", Some("1.0.0"), "True");
    let names: Vec<String> = (0..130).map(|n| format!("shop/c{n:03}")).collect();
    for name in &names {
        stand.register(name, |_| {}).await;
    }
    let targets: Vec<_> = names.iter().map(|name| target(Some(name), "dev")).collect();
    stand.apply("cart", &definition(&targets)).await;
    assert_eq!(stand.minute().await, 130);
    assert_eq!(stand.woken().len(), 130);
}
