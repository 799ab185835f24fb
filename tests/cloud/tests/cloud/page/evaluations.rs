//! The screen of evaluations, against recorded answers.

use super::{Page, Scene, strings, token};
use crate::bed::Bed;
use keelway_cloud_tests::browser::key;
use keelway_cloud_tests::problem::{ensure, same};
use keelway_cloud_tests::runner::Test;
use keelway_cloud_tests::{Outcome, Problem};
use serde_json::{Value, json};

pub fn tests() -> Vec<Test<Bed>> {
    vec![
        Test::new("page::evaluations: objectives by run, targets, and what was compared with", shown),
        Test::new("page::evaluations: what was not evaluated has not passed", never),
        Test::new("page::evaluations: a run is invalidated once, by who may", invalidated),
    ]
}

/// Six runs: one is being measured, one was let through without an evaluation, one failed, one was invalidated, one is a warning,
/// and the first one had nothing to be compared with.
const RUNS: &str = include_str!("evaluations.json");
const FAILED: &str = "e003a7f3-11aa-4bb0-9c00-000000000003";
const NOT_EVALUATED: &str = "e002a7f3-11aa-4bb0-9c00-000000000002";

fn open<'a>(bed: &'a Bed, secret: &str, runs: &str, address: &str) -> Result<Page<'a>, Problem> {
    let page = Page::signed_in(bed, secret)?;
    page.browser.before(&format!(
        "if (window.keelwayTest) keelwayTest.answer = (method, path) => method === 'POST' ? {{body: {{}}}} : path.endsWith('/evaluation') ? \
         {{body: {runs}}} : undefined;"
    ))?;
    page.open(address)?;
    Ok(page)
}

fn address(project: &str, run: &str) -> String {
    format!("#/evaluations/{project}/staging/cart{run}")
}

/// The text of the table with this caption, a row a line.
fn rows(page: &Page<'_>, region: &str) -> Result<Vec<String>, Problem> {
    let rows = format!(
        "[...document.querySelectorAll('[aria-label=\"{region}\"] tbody tr')].map((r) => r.innerText.replace(/\\s+/g, ' ').trim())"
    );
    Ok(strings(&page.browser.value(&rows)?))
}

fn shown(bed: &Bed) -> Outcome {
    let scene = Scene::shared(bed)?;
    let page = open(bed, &scene.token, RUNS, &address(&scene.project, ""))?;
    let browser = &page.browser;
    let heat = rows(&page, "Objectives by run")?;
    let has = |rows: &[String], words: &[&str]| {
        ensure(rows.iter().any(|row| words.iter().all(|word| row.contains(word))), || format!("no row says {words:?}: {rows:#?}"))
    };
    same("objectives", heat.len(), 3)?;
    has(&heat, &["Response time", "key", "✗", "✓", "!", "not measured"])?;
    has(&heat, &["cpu_seconds", "○"])?;
    // Each state is a sign with words, beside its colour.
    let bare = "[...document.querySelectorAll('.heat')].filter((c) => !c.querySelector('.sign + .unseen')).length";
    same("cells without words", browser.value(bare)?, json!(0))?;
    let scores = browser.value("document.querySelector('.chart').getAttribute('aria-label')")?;
    ensure(scores.as_str().is_some_and(|text| text.contains("42.5 fail") && text.contains("80 warning")), || scores.to_string())?;

    // A run is opened by the keyboard, and has an address.
    let link = format!("document.querySelector('[aria-label=\"Objectives by run\"] a[href$=\"{FAILED}\"]')");
    browser.run(&format!("{link}.focus();"), &[])?;
    browser.keys(key::ENTER)?;
    browser.until(&format!("location.hash.endsWith('run={FAILED}') && {link}.ariaCurrent === 'true'"))?;
    let run = rows(&page, "Objectives of this run")?;
    has(&run, &["Response time", "<=+10% = 341", "<600", "<=800", "310", "fail"])?;
    let facts = browser.text("dl")?;
    for words in ["Compared with", "prometheus", "fail 42.5", "was 310 before"] {
        ensure(facts.contains(words), || format!("no {words:?} in {facts}"))?;
    }
    ensure(browser.count("dl a[href*='run=']")? == 2, || format!("the compared runs are no links: {facts}"))?;
    for command in [
        &format!("keelway evaluation show {FAILED}"),
        &format!("keelway get evaluations -p {} --stage staging --service cart", scene.project),
    ] {
        ensure(browser.text("main")?.contains(command.as_str()), || format!("no {command:?}"))?;
    }
    browser.previous()?;
    browser.until("!location.hash.includes('run=')")?;
    for scheme in ["light", "dark"] {
        browser.prefers("", &[("prefers-color-scheme", scheme)])?;
        same(scheme, browser.axe(&[])?, Vec::<String>::new())?;
    }
    page.calm("evaluations")?;
    drop(page);

    let page = open(bed, &scene.token, r#"{"items": [], "nextPageKey": "0"}"#, &address(&scene.project, ""))?;
    page.browser.until_text(".empty", "Nothing was evaluated here yet")?;
    // From the delivery and from the environments, a link leads here.
    page.open(&scene.environments())?;
    same("links", page.browser.count("main a[href^='#/evaluations']")? > 0, true)
}

fn never(bed: &Bed) -> Outcome {
    let scene = Scene::shared(bed)?;
    let page = open(bed, &scene.token, RUNS, &address(&scene.project, &format!("?run={NOT_EVALUATED}")))?;
    let browser = &page.browser;
    let facts = browser.text("dl")?;
    ensure(facts.contains("not evaluated") && facts.contains("let through without an evaluation"), || facts.clone())?;
    ensure(!facts.contains("pass") && !facts.contains('✓'), || format!("it looks like a success: {facts}"))?;
    let head = format!(
        "document.querySelector('[aria-label=\"Objectives by run\"] a[href$=\"{NOT_EVALUATED}\"]').closest('th').innerText"
    );
    let head = browser.value(&head)?;
    ensure(
        head.as_str().is_some_and(|text| text.contains("not evaluated") && !text.contains('✓') && !text.contains("pass")),
        || head.to_string(),
    )?;
    let chart = browser.count(".chart g")?;
    same("runs with a score", chart, 4)?;
    same(
        "what may be invalidated",
        browser.value("[...document.querySelectorAll('main button')].filter((b) => b.innerText === 'Invalidate').length")?,
        json!(0),
    )
}

fn invalidated(bed: &Bed) -> Outcome {
    let scene = Scene::shared(bed)?;
    let at = address(&scene.project, &format!("?run={FAILED}"));
    let reader = token(bed, &scene.project, &["read"])?;
    let page = open(bed, &reader, RUNS, &at)?;
    let offered = "[...document.querySelectorAll('main button')].map((b) => b.innerText.trim()).filter((text) => text !== 'Copy')";
    same("what a reader is offered", page.browser.value(offered)?, json!([]))?;
    drop(page);
    let page = open(bed, &scene.token, RUNS, &at)?;
    let browser = &page.browser;
    browser.click("main button", "Invalidate")?;
    browser.click("dialog button[type=submit]", "Invalidate")?;
    browser.until("!document.querySelector('dialog')?.open")?;
    let sent = browser.value("keelwayTest.requests.filter((r) => r.method === 'POST').map((r) => [r.path, r.key?.length > 20])")?;
    let path = format!("/v1/project/{}/stage/staging/service/cart/evaluation/{FAILED}/invalidate", scene.project);
    same("what was sent", sent, Value::from(vec![json!([path, true])]))
}
