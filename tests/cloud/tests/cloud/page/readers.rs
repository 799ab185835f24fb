//! Readers who see no colours, who hear the page, who have a small window, and who print.

use super::{Page, Scene, TAME, addresses};
use crate::bed::Bed;
use keelway_cloud_tests::Outcome;
use keelway_cloud_tests::problem::{ensure, same};
use keelway_cloud_tests::runner::Test;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};

pub fn tests() -> Vec<Test<Bed>> {
    vec![
        Test::new("page::criterion 12: no state is told by a colour alone", heard),
        Test::new("page::criterion 12: in greys, states still differ", grey),
        Test::new("page::criterion 13: a narrow window, large letters, no motion, paper", small),
    ]
}

fn heard(bed: &Bed) -> Outcome {
    let scene = Scene::shared(bed)?;
    let page = Page::signed_in(bed, &scene.token)?;
    page.open(&scene.environments())?;
    page.browser.until_text("main", "approval")?;
    let tree = page.browser.devtools("Accessibility.getFullAXTree", json!({}))?;
    let nodes = tree["nodes"].as_array().cloned().unwrap_or_default();
    let cells: Vec<String> = nodes
        .iter()
        .filter(|node| ["cell", "gridcell"].contains(&node["role"]["value"].as_str().unwrap_or_default()))
        .map(|node| node["name"]["value"].as_str().unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    // A stage, a version and since when, and in words what the signs say.
    let told = |words: &[&str]| {
        ensure(cells.iter().any(|cell| words.iter().all(|word| cell.contains(word))), || {
            format!("no cell says {words:?}: {cells:#?}")
        })
    };
    told(&["dev,", "1.5.0"])?;
    told(&["staging,", "waits for a person", "approval"])?;
    told(&["dev,", "failed", "delivery"])?;
    // Each sign is hidden from those who hear the page, and has words beside it for them.
    let bare = "[...document.querySelectorAll('.sign')].filter((s) => s.ariaHidden !== 'true' || !s.nextElementSibling?.matches('.unseen') || \
                !s.nextElementSibling.innerText.trim() || !s.innerText.trim()).map((s) => s.outerHTML)";
    page.browser.window()?;
    page.sign_in(&scene.token)?;
    page.world(bed, &TAME, 3)?;
    for address in addresses("cart", "payments") {
        page.open(&address)?;
        same(&format!("signs without words in {address}"), page.browser.value(bare)?, json!([]))?;
    }
    // Bars are for the eye: what they say stands beside them.
    same("bars that are heard", page.browser.count(".bars:not([aria-hidden=true])")?, 0)
}

/// The states of signs, and of bars in time.
const SIGNS: [&str; 8] = ["pass", "warning", "fail", "runs", "person", "frozen", "waits", "void"];
const BARS: [&str; 7] = ["pass", "warning", "fail", "runs", "person", "frozen", "waits"];

fn grey(bed: &Bed) -> Outcome {
    let scene = Scene::shared(bed)?;
    let page = Page::signed_in(bed, &scene.token)?;
    let browser = &page.browser;
    page.world(bed, &TAME, 3)?;
    // What a sign looks like, on whatever screen it is.
    let mut seen: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for address in addresses("cart", "payments") {
        page.open(&address)?;
        let signs = browser.value("[...document.querySelectorAll('.sign')].map((s) => [s.classList[1], s.textContent])")?;
        for sign in signs.as_array().into_iter().flatten() {
            seen.entry(sign[0].to_string()).or_default().insert(sign[1].to_string());
        }
    }
    ensure(seen.values().all(|looks| looks.len() == 1), || format!("a state has two signs: {seen:?}"))?;
    let looks: BTreeSet<&String> = seen.values().flatten().collect();
    ensure(looks.len() == seen.len() && seen.len() >= SIGNS.len() - 2, || format!("two states have one sign: {seen:?}"))?;
    // Bars differ in pattern, frame or what stands above them, without their colours.
    page.open(&scene.delivery())?;
    let bars = "arguments[0].map((name) => { const bar = document.createElement('span'); bar.className = `bar ${name}`; \
                document.querySelector('.bars').append(bar); const s = getComputedStyle(bar); \
                const look = [s.backgroundImage.replace(/rgba?\\([^)]*\\)/g, ''), s.borderStyle, getComputedStyle(bar, '::after').content].join(' '); \
                bar.remove(); return look; })";
    let bars = browser.run(&format!("return {bars};"), &[json!(BARS)])?;
    let looks: BTreeSet<String> = bars.as_array().into_iter().flatten().map(|look| look.to_string()).collect();
    ensure(looks.len() == BARS.len(), || format!("bars of {BARS:?} look alike without colours: {bars}"))
}

fn small(bed: &Bed) -> Outcome {
    let scene = Scene::shared(bed)?;
    let page = Page::signed_in(bed, &scene.token)?;
    let browser = &page.browser;
    // 1,280 pixels at 400 % are 320.
    page.world(bed, &TAME, 3)?;
    browser.resize(320, 640)?;
    for address in addresses("cart", "payments") {
        page.open(&address)?;
        let wide = browser.value("document.documentElement.scrollWidth")?;
        ensure(wide.as_u64().is_some_and(|wide| wide <= 320), || format!("{address} is {wide} pixels wide"))?;
    }
    browser.window()?;
    page.sign_in(&scene.token)?;
    browser.resize(320, 640)?;
    page.open(&scene.environments())?;
    browser.until_text("main", "cart")?;
    let left = "document.querySelector('.matrix tbody th').getBoundingClientRect().left";
    let before = browser.value(left)?;
    browser.run("document.querySelector('.wide').scrollLeft = 150;", &[])?;
    browser.until("document.querySelector('.wide').scrollLeft === 150")?;
    same("the first column while the others move", browser.value(left)?, before)?;

    browser.resize(1280, 900)?;
    browser.prefers("", &[("prefers-reduced-motion", "reduce")])?;
    page.open(&scene.delivery())?;
    same("what moves", browser.value("document.getAnimations().length")?, json!(0))?;

    page.open(&scene.environments())?;
    browser.prefers("print", &[])?;
    let seen = "(selector) => [...document.querySelectorAll(selector)].filter((e) => e.checkVisibility()).length";
    let paper = browser.value(&format!("[({seen})('nav a'), ({seen})('button'), ({seen})('.matrix tbody tr') > 1, getComputedStyle(document.querySelector('.wide')).overflowX]"))?;
    same("on paper: navigation, buttons, rows, what is cut off", paper, json!([0, 0, true, "visible"]))
}
