//! The screen of a shipyard: its drawing, what stands where, and what changed between revisions.

use super::fields::open;
use super::{Page, Scene, strings};
use crate::bed::Bed;
use keelway_cloud_tests::Outcome;
use keelway_cloud_tests::problem::{ensure, same};
use keelway_cloud_tests::runner::Test;
use serde_json::json;

pub fn tests() -> Vec<Test<Bed>> {
    vec![
        Test::new("page::shipyard: stages, sequences and what starts them are drawn, with what stands where", drawn),
        Test::new("page::shipyard: revisions are compared, and the comparison has an address", compared),
    ]
}

/// The text of the table with this caption, a row a line.
fn rows(page: &Page<'_>, region: &str) -> Result<Vec<String>, keelway_cloud_tests::Problem> {
    let rows = format!(
        "[...document.querySelectorAll('[aria-label=\"{region}\"] tbody tr')].map((r) => r.innerText.replace(/\\s+/g, ' ').trim())"
    );
    Ok(strings(&page.browser.value(&rows)?))
}

fn drawn(bed: &Bed) -> Outcome {
    let scene = Scene::shared(bed)?;
    let page = Page::signed_in(bed, &scene.token)?;
    let browser = &page.browser;
    page.open("#/shipyard")?;
    let link = format!("main a[href='#/shipyard/{}']", scene.project);
    browser.click(&link, "")?;
    browser.until_text("h1", &format!("Shipyard of {}", scene.project))?;
    page.shown()?;
    // A box for each sequence; an arrow from each one to what it starts.
    same("sequences", browser.count(".drawing rect")?, 3)?;
    same("arrows", browser.count(".drawing path.arrow")?, 2)?;
    let text = browser.value("document.querySelector('.drawing').textContent")?;
    let text = text.as_str().unwrap_or_default();
    ensure(["dev", "staging", "prod", "delivery", "approval", "cart 1.5.0"].iter().all(|told| text.contains(told)), || {
        text.to_owned()
    })?;
    // The table says the same in words, and more: what is on its way, with a link to it.
    let stages = rows(&page, "Stages")?;
    let says = |place: usize, words: &[&str]| {
        let row = stages.get(place).map(String::as_str).unwrap_or_default();
        ensure(words.iter().all(|word| row.contains(word)), || format!("row {place} does not say {words:?}: {stages:#?}"))
    };
    says(0, &["dev", "delivery: deployment", "cart 1.5.0", "mail", "no version"])?;
    says(1, &["staging", "delivery: approval, deployment", "after dev.delivery.finished", "approval"])?;
    says(2, &["prod", "after staging.delivery.finished"])?;
    same("links to what waits", browser.count(&format!("main a[href='{}']", scene.delivery()))?, 1)?;
    browser.click("details summary", "The text in force")?;
    browser.until_text("details pre", "kind: Shipyard")?;
    same("revisions", rows(&page, "Revisions")?.len(), 1)?;
    ensure(rows(&page, "Revisions")?[0].contains("in force"), || "no revision is in force".into())?;
    browser.until_text("main", &format!("keelway get shipyard {}", scene.project))?;
    page.calm("a shipyard")
}

fn compared(bed: &Bed) -> Outcome {
    let scene = Scene::shared(bed)?;
    let base = format!("/v1/project/{}/shipyard", scene.project);
    let (new, old) = ("2".repeat(40), "1".repeat(40));
    let revision = |number: u64, revision: &str| json!({"number": number, "revision": revision, "applied": "2026-11-27T10:00:00.000Z", "by": "ann", "inForce": number == 2});
    let change = json!({"field": "spec.stages[0].sequences[0].tasks", "was": ["build"], "becomes": ["build", "test"]});
    let answers = json!({
        format!("{base}/revisions"): {"items": [revision(2, &new), revision(1, &old)], "nextPageKey": "0"},
        format!("{base}/diff"): {"from": old, "to": new, "changes": [change]},
    });
    let page = open(bed, &scene.token, &answers, &format!("#/shipyard/{}", scene.project))?;
    let browser = &page.browser;
    same("revisions", rows(&page, "Revisions")?.len(), 2)?;
    same("differences before one is chosen", browser.count("main .changes")?, 0)?;
    browser.run(
        "const s = document.querySelector('main form select'); s.value = arguments[0]; s.dispatchEvent(new Event('change'));",
        &[json!(old)],
    )?;
    browser.until_text("main .changes", "spec.stages[0].sequences[0].tasks: [\"build\"] → [\"build\",\"test\"]")?;
    let asked = "keelwayTest.requests.filter((r) => r.path.includes('/shipyard/diff')).map((r) => r.path)";
    same("what is asked", browser.value(asked)?, json!([format!("{base}/diff?from={old}")]))?;
    browser.until_text("main", &format!("keelway diff shipyard {} 11111111 22222222", scene.project))?;
    let address = browser.address()?;
    ensure(address.contains(&format!("from={old}")), || address.clone())?;
    for scheme in ["light", "dark"] {
        browser.prefers("", &[("prefers-color-scheme", scheme)])?;
        same(scheme, browser.axe(&[])?, Vec::<String>::new())?;
    }
    // The same comparison is there after loading anew; it is read once, however often the screen is.
    browser.reload()?;
    page.shown()?;
    browser.until_text("main .changes", "spec.stages[0].sequences[0].tasks")?;
    browser.run("dispatchEvent(new Event('changed')); return keelwayTest.settled();", &[])?;
    same("reads of the comparison", browser.value(&format!("{asked}.length"))?, json!(1))?;
    page.calm("a comparison")
}
