//! What a browser may run, what is text, what a token shows, and where the token is.

use super::{HOSTILE, Page, Scene, addresses, strings, token};
use crate::bed::Bed;
use keelway_cloud_tests::Outcome;
use keelway_cloud_tests::browser::key;
use keelway_cloud_tests::problem::{ensure, same};
use keelway_cloud_tests::runner::Test;
use serde_json::{Value, json};

pub fn tests() -> Vec<Test<Bed>> {
    vec![
        Test::new("page::criterion 05: the policy is kept on every screen, and stops what is injected", policy),
        Test::new("page::criterion 06: what comes from outside is text on every screen", hostile),
        Test::new("page::criterion 07: nothing is offered that the token may not do", rights),
        Test::new("page::criterion 08: the token is in the tab and nowhere else", secret),
    ]
}

fn policy(bed: &Bed) -> Outcome {
    let scene = Scene::shared(bed)?;
    let page = Page::signed_in(bed, &scene.token)?;
    for address in addresses(&scene.project, &scene.context) {
        page.open(&address)?;
        page.calm(&address)?;
    }
    let browser = &page.browser;
    let thrown = browser.run(
        "const e = document.createElement('script'); try { e.textContent = 'window.ran = 1'; document.body.append(e); } \
         catch (error) { return String(error); }",
        &[],
    )?;
    ensure(thrown.to_string().contains("TrustedScript"), || format!("a script made of text: {thrown}"))?;
    browser.run(
        "const a = document.createElement('a'); a.href = 'javascript:window.ran = 2'; document.body.append(a); a.click();",
        &[],
    )?;
    browser.until("keelwayTest.violations.length === 2")?;
    let markup = "try { document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"window.ran = 3\">'); } catch (e) { return String(e); }";
    let thrown = browser.run(markup, &[])?;
    ensure(thrown.to_string().contains("TrustedHTML"), || format!("markup made of text: {thrown}"))?;
    same("what ran", browser.value("window.ran ?? null")?, Value::Null)
}

const TEXTS: [&str; 6] = [
    HOSTILE,
    "<script>alert(1)</script>",
    "javascript:alert(1)",
    "../../../etc/passwd?x=1#/waits",
    "🚢 \u{202e}\u{200f} ünï \u{7} \u{1b}[31m",
    "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
];

fn hostile(bed: &Bed) -> Outcome {
    let page = Page::signed_in(bed, &bed.stack.api().token)?;
    page.world(bed, &TEXTS, 3)?;
    let name = "%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E";
    for address in addresses(name, "..%2F..%2Fx") {
        page.open(&address)?;
        page.calm(&address)?;
        let browser = &page.browser;
        // The page makes no image and no script, and each element that names are in has text only.
        same(&address, browser.count("main img, main script, main iframe, main object")?, 0)?;
        let shown = browser.text("main")?;
        ensure(TEXTS.iter().any(|text| shown.contains(&text[..8])) || address.contains("limits"), || {
            format!("{address}: {shown}")
        })?;
        let links = strings(&browser.value("[...document.querySelectorAll('a')].map((a) => a.getAttribute('href'))")?);
        let bad: Vec<_> = links.iter().filter(|link| !link.starts_with('#') && !link.starts_with("http")).collect();
        ensure(bad.is_empty(), || format!("{address} links to {bad:?}"))?;
        // A name in an address is one part of it, whatever is in it.
        let bad: Vec<_> = links.iter().filter(|link| link.contains("/../") || link.matches('#').count() > 1).collect();
        ensure(bad.is_empty(), || format!("{address} links to {bad:?}"))?;
        let wide = browser.value("document.documentElement.scrollWidth - innerWidth")?;
        ensure(wide.as_i64().is_some_and(|over| over <= 0), || format!("{address} is {wide} pixels too wide"))?;
    }
    Ok(())
}

fn rights(bed: &Bed) -> Outcome {
    let scene = Scene::shared(bed)?;
    let reader = token(bed, &scene.project, &["read"])?;
    let page = Page::signed_in(bed, &reader)?;
    let buttons = "[...document.querySelectorAll('button')].map((b) => b.innerText.trim())";
    let harmless = ["Sign out", "Copy", "Show", "Show more", "Show all", "Compare"];
    for address in addresses(&scene.project, &scene.context).iter().filter(|address| !address.contains("operations")) {
        page.open(address)?;
        let offered: Vec<_> = strings(&page.browser.value(buttons)?);
        let bad: Vec<_> = offered.iter().filter(|label| !harmless.contains(&label.as_str())).collect();
        ensure(bad.is_empty(), || format!("{address} offers a reader {bad:?}"))?;
    }
    page.open("#/operations/tokens")?;
    ensure(page.browser.count("main table")? == 0, || "a reader sees tokens".into())?;
    drop(page);

    let approvals = |secret: &str| -> Result<Vec<String>, keelway_cloud_tests::Problem> {
        let page = Page::signed_in(bed, secret)?;
        page.open(&scene.delivery())?;
        page.browser.until_text("main", "staging")?;
        let labels = strings(&page.browser.value(buttons)?);
        Ok(labels.into_iter().filter(|label| !harmless.contains(&label.as_str())).collect())
    };
    let (staging, prod) =
        (token(bed, &scene.project, &["read", "approve:staging"])?, token(bed, &scene.project, &["read", "approve:prod"])?);
    same("who approves for staging", approvals(&staging)?, vec!["Approve staging".into(), "Decline staging".into()])?;
    same("who approves for prod", approvals(&prod)?, vec![])?;

    // The API decides: the request by hand is refused.
    let open = bed.stack.wait(bed.stack.api().open(&scene.project, "approval"))?;
    let waiting = open.iter().find(|event| event["shkeptncontext"] == scene.context.as_str()).ok_or("no open approval")?;
    let path = format!("/v1/project/{}/approval/{}/{}", scene.project, scene.context, waiting["id"].as_str().unwrap_or_default());
    for secret in [&reader, &prod] {
        let reply = bed.stack.wait(bed.stack.api().post_as(&path, secret, &json!({"decision": "approve"})))?;
        same("an approval by hand", reply.status, 403)?;
    }
    Ok(())
}

fn secret(bed: &Bed) -> Outcome {
    let scene = Scene::shared(bed)?;
    let secret = token(bed, &scene.project, &["read"])?;
    let page = Page::new(bed)?;
    let browser = &page.browser;
    let sign_in = || -> Outcome {
        browser.until("Boolean(document.querySelector('input[name=token]'))")?;
        browser.run("document.querySelector('input[name=token]').focus();", &[])?;
        browser.keys(&secret)?;
        browser.keys(key::ENTER)?;
        browser.until("Boolean(document.querySelector('header'))")?;
        page.shown()
    };
    browser.go(&format!("{}{}", page.ui, scene.delivery()))?;
    sign_in()?;
    // The screen that was asked for is there.
    let at = |what: &str| -> Outcome {
        browser.until_text("h1", "cart 1.5.0")?;
        ensure(browser.address()?.ends_with(&scene.delivery()), || format!("{what}: {}", browser.address().unwrap_or_default()))
    };
    at("after signing in")?;
    page.open(&scene.environments())?;
    let places = "[location.href, document.referrer, document.cookie, JSON.stringify(localStorage), document.documentElement.outerHTML, \
                  JSON.stringify(history.state), ...performance.getEntriesByType('resource').map((e) => e.name), \
                  ...keelwayTest.requests.map((r) => r.path + r.body)].join('\\n')";
    let found = browser.value(places)?;
    ensure(!found.to_string().contains(&secret), || format!("the token is in {found}"))?;
    let log = browser.log()?;
    ensure(!log.iter().any(|line| line.contains(&secret)), || format!("the token is in {log:?}"))?;
    same("other storage", browser.value("[localStorage.length, document.cookie]")?, json!([0, ""]))?;

    // A token that is no longer accepted leads back to the same screen.
    page.open(&scene.delivery())?;
    browser.run(
        "keelwayTest.answer = () => ({status: 401, body: {title: 'unauthorized', detail: 'the token has expired'}}); \
                 dispatchEvent(new Event('changed'));",
        &[],
    )?;
    browser.until_text(".failed", "sign in again")?;
    same("the token of a tab that is signed out", browser.value("sessionStorage.length")?, json!(0))?;
    browser.run("keelwayTest.answer = undefined;", &[])?;
    sign_in()?;
    at("after signing in again")?;

    // Another window is not signed in; and signing out is.
    let first = browser.current()?;
    browser.window()?;
    browser.go(&page.ui)?;
    browser.until("Boolean(document.querySelector('input[name=token]'))")?;
    browser.choose(&first)?;
    browser.click("button", "Sign out")?;
    browser.until("Boolean(document.querySelector('input[name=token]'))")?;
    same("the token after signing out", browser.value("sessionStorage.length")?, json!(0))
}
