//! Where credentials of git hosts do not go.

use super::double::*;
use crate::here;
use keelway_githosts::{Api, Credentials, Form, Host, HostError, Kind, Repository};
use keelway_outgoing::{Guard, Hosts, Lookup, NOT_PUBLIC};
use serde_json::json;
use std::future::Future;
use std::net::IpAddr;
use std::pin::Pin;

/// Every name has this address.
struct At(IpAddr);

impl Lookup for At {
    fn lookup(&self, _: &str) -> Pin<Box<dyn Future<Output = std::io::Result<Vec<IpAddr>>> + Send>> {
        let address = self.0;
        Box::pin(async move { Ok(vec![address]) })
    }
}

fn none() -> Guard {
    Guard::new(Hosts::default())
}

fn host(form: Form, base: &str, guard: &Guard) -> Result<Host, HostError> {
    let credentials = Credentials::parse(&json!({"token": TOKEN}).to_string()).unwrap();
    let path = if form == Form::BitbucketServer { "/rest/api/1.0" } else { "" };
    Host::new(&Api::at(form, &format!("{base}{path}")).unwrap(), &credentials, guard)
}

fn repository(form: Form) -> Repository {
    let path = if form == Form::BitbucketServer { "scm/acme/shop" } else { "acme/shop" };
    Repository::parse(form, &format!("https://git.test/{path}")).unwrap()
}

#[track_caller]
fn refused(error: HostError) {
    assert_eq!(error.kind, Kind::Address, "{error}");
    assert!(error.message.contains("nothing was sent") && error.message.contains("the parameter AllowedHosts"), "{error}");
    assert!(!error.message.contains(TOKEN), "{error}");
}

#[tokio::test]
async fn no_form_of_host_gets_credentials_at_an_address_that_is_not_public() {
    for form in Form::ALL {
        for address in NOT_PUBLIC {
            let literal = if address.contains(':') { format!("[{address}]") } else { (*address).to_owned() };
            refused(host(form, &format!("https://{literal}"), &none()).unwrap_err());
            let named = host(form, "https://git.test", &none().with_lookup(At(address.parse().unwrap()))).unwrap();
            refused(named.get(&repository(form), 7).await.unwrap_err());
        }
    }
}

#[tokio::test]
async fn a_host_that_the_operator_lists_is_asked_wherever_it_is() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    // It hangs up: that somebody came is all that counts.
    let came = tokio::spawn(async move {
        let mut came = 0;
        while came < 3 {
            drop(listener.accept().await.unwrap());
            came += 1;
        }
    });
    for allowed in ["git.test".to_owned(), format!("git.test:{port}"), "127.0.0.0/8".to_owned()] {
        let guard = Guard::new(Hosts::parse(&allowed)).with_lookup(At([127, 0, 0, 1].into()));
        let host = host(Form::Gitea, &format!("https://git.test:{port}/api/v1"), &guard).unwrap();
        let error = host.get(&repository(Form::Gitea), 7).await.unwrap_err();
        assert_eq!(error.kind, Kind::Transient, "{allowed}: {error}");
    }
    came.await.unwrap();
}

#[tokio::test]
async fn a_host_on_this_machine_is_asked_only_by_a_local_cloud() {
    for form in Form::ALL {
        let double = Double::start("", []).await;
        for guard in [none(), Guard::new(Hosts::parse("127.0.0.1"))] {
            let error = host(form, double.address(), &guard).unwrap_err();
            assert_eq!(error.kind, Kind::Address);
            assert!(error.message.contains("for a local cloud only"), "{error}");
        }
        double.done();
        assert!(host(form, double.address(), &here()).is_ok());
    }
}

#[tokio::test]
async fn a_redirect_to_an_address_that_is_not_public_is_told_and_not_followed() {
    let step = on("GET /repos/acme/shop/pulls/7").status(302).answer_header("location", "https://169.254.169.254/latest");
    let scene = scene(Form::GitHub, [step]).await;
    let error = scene.host.get(&scene.repository, 7).await.unwrap_err();
    scene.double.done();
    told(&error);
    refused(error);
}

/// Pages that are each small enough, of a list that is not.
#[tokio::test]
async fn all_pages_of_a_list_together_have_a_budget() {
    let page = |page: usize| {
        let mut empty = vec![b' '; 12 << 20];
        (empty[0], empty[1]) = (b'[', b']');
        on(format!("GET /repos/acme/shop/pulls?state=all&sort=updated&direction=desc&per_page=100&page={page}"))
            .gives_bytes(empty)
            .answer_header("link", "<https://git.test/next>; rel=\"next\"")
    };
    let scene = scene(Form::GitHub, (1..=3).map(page)).await;
    let error = scene.host.list(&scene.repository, &[1], None).await.unwrap_err();
    scene.double.done();
    told(&error);
    assert_eq!(error.kind, Kind::TooLarge, "{error}");
}

#[tokio::test]
async fn an_archive_has_a_budget_before_it_is_unpacked() {
    let repo = "/repos/acme/shop";
    let find = on(format!("GET {repo}/pulls?head=acme:{BRANCH}&state=all&per_page=100&page=1")).gives(200, json!([]));
    let steps = [
        find,
        on(format!("GET {repo}")).gives(200, json!({})),
        on(format!("GET {repo}/git/ref/heads/main")).gives(200, json!({"object": {"sha": BASE}})),
        on(format!("GET {repo}/tarball/{BASE}")).gives_bytes(vec![0; (64 << 20) + 1]),
    ];
    let scene = scene(Form::GitHub, steps).await;
    let error = scene.host.propose(&scene.change()).await.unwrap_err();
    scene.double.done();
    told(&error);
    assert_eq!((error.kind, error.message.contains("larger than 64 MiB")), (Kind::TooLarge, true), "{error}");
}
