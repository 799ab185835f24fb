//! Where a cluster's token does not go.

use crate::api::Server;
use crate::stand::{PROD, Stand, in_prod, runs};
use keelway_outgoing::{Guard, Hosts, Lookup, NOT_PUBLIC};
use serde_json::json;
use std::future::Future;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

/// Every name has the address that is set.
#[derive(Clone)]
struct At(Arc<Mutex<IpAddr>>);

impl At {
    fn here() -> Self {
        Self(Arc::new(Mutex::new([127, 0, 0, 1].into())))
    }
}

impl Lookup for At {
    fn lookup(&self, _: &str) -> Pin<Box<dyn Future<Output = std::io::Result<Vec<IpAddr>>> + Send>> {
        let address = *self.0.lock().unwrap();
        Box::pin(async move { Ok(vec![address]) })
    }
}

/// What is told about a cluster at this address.
async fn told(stand: &mut Stand, server: &str) -> String {
    stand.register(PROD, |cluster| cluster.server = server.into()).await;
    stand.minute().await;
    stand.error("cart", "dev").await
}

#[tokio::test]
async fn no_cluster_gets_a_token_at_an_address_that_is_not_public() {
    let at = At::here();
    let mut stand = Stand::behind(Guard::new(Hosts::default()).with_lookup(at.clone())).await;
    stand.apply("cart", &in_prod(&["dev"])).await;
    for address in NOT_PUBLIC {
        *at.0.lock().unwrap() = address.parse().unwrap();
        let literal = if address.contains(':') { format!("[{address}]") } else { (*address).to_owned() };
        for server in [format!("https://{literal}:6443"), format!("https://k8s.test/{}", address.replace(':', "-"))] {
            let error = told(&mut stand, &server).await;
            assert!(error.contains("nothing was sent") && error.contains("the parameter AllowedHosts"), "{server}: {error}");
        }
    }
}

#[tokio::test]
async fn a_cluster_on_this_machine_is_read_only_by_a_local_cloud() {
    for allowed in ["", "127.0.0.1"] {
        let mut stand = Stand::behind(Guard::new(Hosts::parse(allowed))).await;
        stand.apply("cart", &in_prod(&["dev"])).await;
        let url = stand.server.url.clone();
        let error = told(&mut stand, &url).await;
        assert!(error.contains("for a local cloud only"), "{error}");
        assert_eq!(stand.server.kube().asked.len(), 0);
    }
}

#[tokio::test]
async fn a_cluster_that_the_operator_lists_is_asked_wherever_it_is() {
    for allowed in ["k8s.test", "127.0.0.0/8"] {
        let mut stand = Stand::behind(Guard::new(Hosts::parse(allowed)).with_lookup(At::here())).await;
        stand.apply("cart", &in_prod(&["dev"])).await;
        // The server has no TLS: it is found, and nothing more.
        let url = stand.server.url.replace("http://127.0.0.1", "https://k8s.test");
        let error = told(&mut stand, &url).await;
        assert!(!error.is_empty() && !error.contains("AllowedHosts"), "{error}");
    }
}

#[tokio::test]
async fn a_redirect_of_an_api_server_is_not_followed() {
    let mut stand = Stand::new().await;
    let other = Server::start().await;
    other.kube().runs("dev", "cart", Some("9.9.9"), "True");
    stand.apply("cart", &in_prod(&["dev"])).await;
    for code in [301, 302, 303, 307, 308] {
        stand.server.kube().always = Some((code, other.url.clone()));
        stand.minute().await;
        let error = stand.error("cart", "dev").await;
        assert!(error.contains(&format!("redirects ({code})")), "{error}");
    }
    assert_eq!(other.kube().asked.len(), 0);
}

/// More than are read at the same time, each of a size that waits for the others.
#[tokio::test]
async fn many_large_objects_are_all_read() {
    let mut stand = Stand::new().await;
    let names: Vec<String> = (0..12).map(|n| format!("n{n}")).collect();
    for name in &names {
        stand.server.kube().runs(name, "cart", Some("1.0.0"), "True");
        let path = crate::api::path(name, "cart");
        stand.server.kube().objects.get_mut(&path).unwrap()["spec"] = json!({"padding": "x".repeat(2 << 20)});
    }
    stand.apply("cart", &in_prod(&names.iter().map(String::as_str).collect::<Vec<_>>())).await;
    stand.minute().await;
    for name in &names {
        assert!(runs("1.0.0", true, stand.known("cart", name).await), "{name}: {:?}", stand.known("cart", name).await);
    }
}
