//! Signing in at an identity provider. The template takes providers over `https` only; so the API runs here in memory, beside a
//! provider on this machine.

use super::Page;
use super::provider::{CLIENT, Mood, Provider};
use crate::bed::Bed;
use axum::Router;
use keelway_api::{Api, Paces, Settings, SignIn, Tokens, router};
use keelway_cloud_tests::problem::{ensure, same};
use keelway_cloud_tests::runner::Test;
use keelway_cloud_tests::{Outcome, Problem};
use keelway_domain::access::Identities;
use keelway_domain::time::Timestamp;
use keelway_engine::deployments;
use keelway_engine::sequences::Limits;
use keelway_outgoing::{Guard, Hosts};
use keelway_world::World;
use keelway_world::at_once::AtOnce;
use serde_json::json;
use std::time::{Duration, SystemTime};

pub fn tests() -> Vec<Test<Bed>> {
    vec![
        Test::new("page::sign-in: authorization code with PKCE, at a provider that demands all of it", fine),
        Test::new("page::sign-in: what belongs to another sign-in, or was refused, signs nobody in", foul),
        Test::new("page::sign-in: what is wrong with a provider is said, with the parameter that mends it", broken),
    ]
}

/// Ann may read.
const GRANTS: &str = "email=ann@example.com,by:email=>read";

/// An API of which the provider is one, and the address of its page.
fn serve(bed: &Bed, provider: &Provider) -> Result<String, Problem> {
    let wrong = |error: &dyn std::fmt::Display| Problem::of("the API in memory", error);
    let identities = Identities::parse(&provider.url, CLIENT, GRANTS).map_err(|error| wrong(&error))?;
    let settings = Settings {
        tokens: Tokens::from_hex(""),
        patience: Duration::ZERO,
        stack: "sign-in".into(),
        deployments: deployments::Limits::default(),
        delivers_webhooks: false,
        sign_in: SignIn::parse(&provider.url, identities.as_ref()).map_err(|error| wrong(&error))?,
        identities,
        paces: Paces::default(),
        guard: Guard::new(Hosts::default()).with_loopback(true),
    };
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_err(|error| wrong(&error))?;
    let world = World::new(Timestamp(i64::try_from(now.as_millis()).unwrap_or_default()));
    let app = router(Api::new(AtOnce::new(world.worker(0)), Limits::default(), settings));
    let handle = bed.cloud.handle();
    let listener = handle.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).map_err(|error| wrong(&error))?;
    let ui = format!("http://{}/ui/", listener.local_addr().map_err(|error| wrong(&error))?);
    handle.spawn(async move { axum::serve(listener, Router::new().fallback_service(app)).await });
    provider.register(&ui);
    Ok(ui)
}

fn stand(bed: &Bed) -> Result<(Provider, Page<'_>), Problem> {
    let provider = Provider::start(&bed.cloud.handle())?;
    let ui = serve(bed, &provider)?;
    Ok((provider, Page { browser: bed.browsers()?.take()?, ui }))
}

/// From the form to the provider, and back by one of its two links.
fn go(page: &Page<'_>, address: &str, link: &str) -> Outcome {
    let browser = &page.browser;
    browser.go(&format!("{}{address}", page.ui))?;
    browser.until("[...document.querySelectorAll('button')].some((b) => b.innerText.includes('Sign in with'))")?;
    browser.click("button", "Sign in with")?;
    browser.until(&format!("Boolean(document.querySelector('#{link}'))"))?;
    browser.click(&format!("#{link}"), "")?;
    browser.until("Boolean(document.querySelector('header, .failed'))")
}

fn fine(bed: &Bed) -> Outcome {
    let (provider, page) = stand(bed)?;
    let browser = &page.browser;
    go(&page, "#/deployments?project=shop", "yes")?;
    browser.until_text("h1", "Deployments")?;
    same("what the provider has refused, and given", provider.seen(), (vec![], 1))?;
    let address = browser.address()?;
    same("the address that was asked for", address.as_str(), format!("{}#/deployments?project=shop", page.ui).as_str())?;
    ensure(browser.text("header")?.contains("ann@example.com"), || format!("nobody is signed in: {:?}", browser.text("header")))?;
    same("what she may do", browser.value("document.querySelector('.who span').title")?, json!("read in all projects"))?;
    same(
        "what is kept",
        browser.value("[Object.keys(sessionStorage), localStorage.length, document.cookie]")?,
        json!([["keelway.token"], 0, ""]),
    )?;
    page.calm("signing in")?;
    // The code is not sent again, neither by loading anew nor by going back.
    browser.reload()?;
    browser.until_text("h1", "Deployments")?;
    same("what the provider has refused, and given, after loading anew", provider.seen(), (vec![], 1))?;
    // Nor does an answer that nobody waits for sign anybody out, such as that of going back through the provider's pages.
    for answer in ["code=stolen&state=guessed", "error=temporarily_unavailable&state=of-before"] {
        browser.go(&format!("{}?{answer}#/waits", page.ui))?;
        browser.until_text("h1", "Environments")?;
        same("the address, after a stray answer", browser.value("location.search")?, json!(""))?;
    }
    same("what the provider has refused, and given, after stray answers", provider.seen(), (vec![], 1))?;
    browser.click("button", "Sign out")?;
    browser.until("Boolean(document.querySelector('input[name=token]'))")?;
    same("what is kept after signing out", browser.value("sessionStorage.length")?, json!(0))
}

fn foul(bed: &Bed) -> Outcome {
    let (provider, page) = stand(bed)?;
    let browser = &page.browser;
    let nobody = |why: &str| -> Outcome {
        browser.until_text(".failed", why)?;
        same(
            why,
            browser.value("[sessionStorage.length, Boolean(document.querySelector('input[name=token]')), location.search]")?,
            json!([0, true, ""]),
        )
    };
    go(&page, "#/waits", "no")?;
    nobody("The provider refused: access_denied")?;
    provider.is(Mood::OtherState);
    go(&page, "#/waits", "yes")?;
    nobody("belongs to no sign-in of this tab")?;
    same("tokens for the state of somebody else", provider.seen().1, 0)?;
    provider.is(Mood::OtherNonce);
    go(&page, "#/waits", "yes")?;
    nobody("belongs to another sign-in")?;
    // An answer that nobody has asked for, with and without a state.
    for answer in ["code=stolen&state=guessed", "code=stolen", "error=server_error"] {
        browser.go(&format!("{}?{answer}", page.ui))?;
        nobody("belongs to no sign-in of this tab")?;
    }
    for mood in [Mood::OtherIssuer, Mood::NoIssuer] {
        provider.is(mood);
        go(&page, "#/waits", "yes")?;
        nobody("The answer is of another provider")?;
    }
    same("what the provider was asked for", provider.seen(), (vec![], 1))?;
    // Each was one failure, and the next sign-in is another one.
    provider.is(Mood::Fine);
    go(&page, "#/waits", "yes")?;
    browser.until_text("h1", "What waits")
}

fn broken(bed: &Bed) -> Outcome {
    let (provider, page) = stand(bed)?;
    let browser = &page.browser;
    // Nobody is led to a provider whose answer the page could not use.
    for (mood, words) in [
        (Mood::Down, "/.well-known/openid-configuration cannot be read: "),
        (Mood::OtherName, "write it in OidcIssuers as it does"),
        (Mood::TokensElsewhere, "gives tokens at https://tokens.example.com, where this page may not ask: add that to PageSignIn"),
    ] {
        provider.is(mood);
        browser.go(&format!("{}#/waits", page.ui))?;
        browser.until("[...document.querySelectorAll('button')].some((b) => b.innerText.includes('Sign in with'))")?;
        browser.click("button", "Sign in with")?;
        browser.until_text(".failed", words)?;
        same("what is kept", browser.value("sessionStorage.length")?, json!(0))?;
    }
    for (mood, words) in [(Mood::NoCors, "does not let this page ask it (CORS)"), (Mood::WantsSecret, "client_secret is missing")] {
        provider.is(mood);
        go(&page, "#/waits", "yes")?;
        browser.until_text(".failed", words)?;
        browser.until_text(".failed", "Try again, or sign in with a token")?;
    }
    provider.is(Mood::Fine);
    go(&page, "#/waits", "yes")?;
    browser.until_text("h1", "What waits")
}
