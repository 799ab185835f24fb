//! How much is sent and drawn.

use super::{Page, Scene};
use crate::bed::Bed;
use keelway_cloud_tests::Outcome;
use keelway_cloud_tests::problem::{ensure, same};
use keelway_cloud_tests::runner::Test;
use serde_json::json;

pub fn tests() -> Vec<Test<Bed>> {
    vec![
        Test::new("page::criterion 01: the page is small, and comes from one origin", small),
        Test::new("page::criterion 02: a thousand services in five stages are drawn as far as one sees them", large),
    ]
}

fn small(bed: &Bed) -> Outcome {
    let scene = Scene::shared(bed)?;
    let page = Page::signed_in(bed, &scene.token)?;
    page.browser.devtools("Network.clearBrowserCache", json!({}))?;
    page.open(&scene.environments())?;
    let files = "performance.getEntriesByType('resource').concat(performance.getEntriesByType('navigation')) \
                 .filter((e) => e.name.includes('/ui/'))";
    let first = page.browser.value(&format!("{files}.length"))?;
    ensure(first.as_u64().is_some_and(|count| count <= FILES), || format!("{first} files before the first screen is there"))?;
    let sums = format!("{files}.reduce(([a, b], e) => [a + e.decodedBodySize, b + e.encodedBodySize], [0, 0])");
    let (plain, sent) = (page.browser.value(&sums)?[0].as_u64(), page.browser.value(&sums)?[1].as_u64());
    ensure(plain.is_some_and(|bytes| (10_000..=150_000).contains(&bytes)), || format!("{plain:?} bytes"))?;
    ensure(sent.is_some_and(|bytes| (5_000..=40_000).contains(&bytes)), || format!("{sent:?} bytes are sent"))?;
    let elsewhere =
        "performance.getEntriesByType('resource').map((e) => new URL(e.name).origin).filter((o) => o !== location.origin)";
    same("other origins", page.browser.value(elsewhere)?, json!([]))
}

/// How many files the first screen takes.
const FILES: u64 = 20;

fn large(bed: &Bed) -> Outcome {
    let scene = Scene::shared(bed)?;
    let page = Page::signed_in(bed, &scene.token)?;
    let browser = &page.browser;
    browser.before("window.keelwayTest?.stop(); window.keelwayTest?.large(1000);")?;
    page.open("#/environments?project=large")?;
    browser.until_text("h2", "1000 of 1000 services")?;
    browser.run("return keelwayTest.settled();", &[])?;
    let rows = "main tbody tr:has(th)";
    let drawn = browser.count(rows)?;
    ensure((10..=120).contains(&drawn), || format!("{drawn} rows are drawn"))?;
    let nodes = browser.count("*")?;
    ensure(nodes < 4_000, || format!("{nodes} elements"))?;
    let asked = page.requests()?;
    ensure(asked <= 20, || format!("{asked} requests for 1,000 services"))?;

    // The end of the list is drawn when one gets there, and what is far away then is not.
    browser.run("scrollTo(0, document.documentElement.scrollHeight);", &[])?;
    browser.until("document.body.innerText.includes('service-0999')")?;
    let drawn = browser.count(rows)?;
    ensure(drawn <= 120, || format!("{drawn} rows are drawn at the end"))?;
    browser.run("scrollTo(0, 0);", &[])?;

    // One cell changes: few nodes do, and nothing but that cell is read again.
    browser.until("document.body.innerText.includes('service-0003')")?;
    let before = page.requests()?;
    browser.run(
        "keelwayTest.moving = [{id: 'x1', stage: 'test', service: 'service-0003', sequence: 'delivery', state: 'started', tasks: [], \
         shkeptncontext: 'c16', waits: {reason: 'answer', task: 'deploy', since: new Date(Date.now()).toISOString()}}]; \
         window.changes = 0; new MutationObserver((all) => all.forEach((m) => (changes += m.addedNodes.length + m.removedNodes.length + \
         (m.type === 'characterData')))).observe(document.querySelector('main table'), {childList: true, subtree: true, characterData: true}); \
         return keelwayTest.advance(16_000);",
        &[],
    )?;
    browser.until("[...document.querySelectorAll('main tbody tr')].some((r) => r.innerText.includes('service-0003') && r.innerText.includes('deploy'))")?;
    let changes = browser.value("changes")?;
    ensure(changes.as_u64().is_some_and(|count| (1..=10).contains(&count)), || format!("{changes} nodes changed for one cell"))?;
    let asked = page.requests()? - before;
    ensure(asked <= 8, || format!("{asked} requests for one cell"))?;

    browser.run(
        "const i = document.querySelector('input[type=search]'); i.value = '0777'; i.dispatchEvent(new Event('input'));",
        &[],
    )?;
    browser.until(&format!("document.querySelectorAll('{rows}').length === 1"))?;
    browser.until_text("main tbody", "service-0777")?;
    page.calm("a large project")
}
