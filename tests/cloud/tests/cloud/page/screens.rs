//! Every screen: its address, and what a machine can say about whether everybody can read it.

use super::{Page, Scene, TAME, addresses};
use crate::bed::Bed;
use keelway_cloud_tests::problem::{ensure, same};
use keelway_cloud_tests::runner::Test;
use keelway_cloud_tests::{Outcome, Problem};
use serde_json::{Value, json};

pub fn tests() -> Vec<Test<Bed>> {
    vec![
        Test::new("page::criterion 10: axe finds nothing on any screen, full, empty and failed, light and dark", accessible),
        Test::new("page::criterion 09: every screen has an address, and Back leads to what one has seen", address),
    ]
}

fn accessible(bed: &Bed) -> Outcome {
    let page = Page::new(bed)?;
    let browser = &page.browser;
    let mut found = vec![];
    for state in ["full", "empty", "failed"] {
        browser.window()?;
        page.sign_in(&bed.stack.api().token)?;
        page.world(bed, &TAME, if state == "empty" { 0 } else { 3 })?;
        if state == "failed" {
            browser.before(
                "if (window.keelwayTest) keelwayTest.answer = (method, path) => path === '/v1/whoami' ? undefined : {status: 500, \
                 body: {title: 'internal error', detail: 'something is broken'}};",
            )?;
        }
        for address in addresses("cart", "payments") {
            page.open(&address)?;
            let dark = || -> Result<Vec<String>, Problem> {
                browser.prefers("", &[("prefers-color-scheme", "dark")])?;
                let found = browser.axe(&["color-contrast"])?;
                browser.prefers("", &[("prefers-color-scheme", "light")])?;
                Ok(found)
            };
            // Only colours differ in the dark.
            found.extend(browser.axe(&[])?.into_iter().chain(dark()?).map(|line| format!("{address}, {state}: {line}")));
        }
    }
    // The form for a token, and a dialog.
    browser.window()?;
    browser.go(&page.ui)?;
    browser.until("Boolean(document.querySelector('input[name=token]'))")?;
    found.extend(browser.axe(&[])?);
    let scene = Scene::shared(bed)?;
    page.sign_in(&scene.token)?;
    browser.reload()?;
    page.open(&scene.delivery())?;
    browser.click("button", "Abort")?;
    found.extend(browser.axe(&[])?);
    ensure(found.is_empty(), || format!("{} findings:\n{}", found.len(), found.join("\n")))
}

fn address(bed: &Bed) -> Outcome {
    let scene = Scene::shared(bed)?;
    let page = Page::signed_in(bed, &scene.token)?;
    let browser = &page.browser;
    // Ages go on, so digits say nothing.
    let text = || -> Result<String, Problem> {
        let text = browser.text("main")?;
        Ok(text.chars().filter(|c| !c.is_ascii_digit()).collect::<String>().replace("ms", "s"))
    };
    let mut seen = vec![];
    for address in addresses(&scene.project, &scene.context) {
        page.open(&address)?;
        let title = browser.value("document.title")?;
        seen.push((address, title, text()?));
    }
    browser.window()?;
    page.sign_in(&scene.token)?;
    for (address, title, before) in &seen {
        page.open(address)?;
        let alike = |text: String| text.lines().count() == before.lines().count();
        ensure(alike(text()?), || format!("{address} shows\n{}\nand before\n{before}", text().unwrap_or_default()))?;
        same("the title", &browser.value("document.title")?, title)?;
    }
    let titles: std::collections::HashSet<String> = seen.iter().map(|(_, title, _)| title.to_string()).collect();
    ensure(titles.len() > seen.len() / 2, || format!("the titles do not tell screens apart: {titles:?}"))?;

    // What was filtered, scrolled and folded is there again.
    browser.resize(900, 300)?;
    page.open(&scene.environments())?;
    browser
        .run("const i = document.querySelector('input[type=search]'); i.value = 'ca'; i.dispatchEvent(new Event('input'));", &[])?;
    browser.until("document.querySelectorAll('main tbody tr').length === 1")?;
    browser.run("document.querySelector('main tbody a').click();", &[])?;
    browser.until_text("h1", "cart")?;
    page.shown()?;
    browser.run("document.querySelector('details.log summary').click();", &[])?;
    browser.until("document.querySelector('details.log').open && document.documentElement.scrollHeight > 500")?;
    browser.run("scrollTo(0, 120);", &[])?;
    browser.until("history.state?.scroll === 120")?;
    browser.previous()?;
    browser.until_text("h1", "Environments")?;
    page.shown()?;
    same("the filter after Back", browser.value("document.querySelector('input[type=search]').value")?, Value::from("ca"))?;
    same("rows after Back", browser.count("main tbody tr")?, 1)?;
    browser.next()?;
    browser.until_text("h1", "cart")?;
    page.shown()?;
    browser.until("scrollY === 120")?;
    same("what was open", browser.value("document.querySelector('details.log').open")?, json!(true))
}
