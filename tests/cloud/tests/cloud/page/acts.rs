//! Deciding with the keyboard alone.

use super::{Page, Scene};
use crate::bed::Bed;
use keelway_cloud_tests::Outcome;
use keelway_cloud_tests::browser::key;
use keelway_cloud_tests::problem::{ensure, same};
use keelway_cloud_tests::runner::Test;
use serde_json::json;

pub fn tests() -> Vec<Test<Bed>> {
    vec![Test::new("page::criterion 11: from the address to an approval with a reason in twelve keys", keyboard)]
}

/// From the address to the decision, without the letters of the reason.
const KEYS: usize = 12;

fn keyboard(bed: &Bed) -> Outcome {
    let scene = Scene::make(bed)?;
    let page = Page::signed_in(bed, &scene.token)?;
    let browser = &page.browser;
    page.open(&scene.delivery())?;
    browser.until_text("main", "approval")?;
    let pressed = std::cell::Cell::new(0);
    let press = |key: &str| -> Outcome {
        browser.keys(key)?;
        pressed.set(pressed.get() + 1);
        let seen = browser.value(
            "(() => { const e = document.activeElement, s = getComputedStyle(e); return e.matches('body, main, dialog') || \
             (s.outlineStyle !== 'none' && parseFloat(s.outlineWidth) >= 2); })()",
        )?;
        ensure(seen == true, || format!("after {} keys, the focus is not seen: {}", pressed.get(), focus(&page)))
    };
    let to = |label: &str| -> Outcome {
        while !focus(&page).contains(label) {
            ensure(pressed.get() < 40, || format!("no key leads to {label:?}, the last one to {}", focus(&page)))?;
            press(key::TAB)?;
        }
        Ok(())
    };
    // The first stop leads past the navigation.
    press(key::TAB)?;
    same("the first stop", focus(&page).contains("Skip"), true)?;
    press(key::ENTER)?;
    to("Approve staging")?;
    press(key::ENTER)?;
    let asked = "document.querySelector('dialog')?.open === true";
    browser.until(asked)?;

    // Escape changes nothing, and leads back.
    let until_here = pressed.get();
    press(key::ESCAPE)?;
    browser.until("!document.querySelector('dialog')?.open")?;
    ensure(focus(&page).contains("Approve staging"), || format!("after Escape, the focus is at {}", focus(&page)))?;
    same("what was sent", browser.value("keelwayTest.requests.filter((r) => r.method === 'POST').length")?, json!(0))?;
    press(key::ENTER)?;
    browser.until(asked)?;
    pressed.set(until_here);

    let reason = || browser.value("document.activeElement.name");
    while reason()? != "reason" {
        press(key::TAB)?;
    }
    browser.keys("ok")?;
    // What is read meanwhile takes neither the focus nor the text away.
    browser.run("dispatchEvent(new Event('changed')); return keelwayTest.settled();", &[])?;
    same(
        "the reason after reading again",
        browser.value("[document.activeElement.name, document.activeElement.value]")?,
        json!(["reason", "ok"]),
    )?;
    press(key::TAB)?;
    while !(focus(&page).contains("Approve") && focus(&page).contains("submit")) {
        ensure(pressed.get() < 40, || format!("no key leads to the button, the last one to {}", focus(&page)))?;
        press(key::TAB)?;
    }
    press(key::ENTER)?;
    ensure(pressed.get() <= KEYS, || format!("{} keys", pressed.get()))?;
    browser.until("!document.querySelector('dialog')?.open")?;
    let event = bed.observer.event(&scene.context, "sh.keptn.event.approval.finished", 0)?;
    same("the reason", event.event["data"]["message"].as_str().is_some_and(|text| text.contains("ok")), true)?;
    bed.observer.event(&scene.context, "sh.keptn.event.deployment.triggered", 1).map(drop)
}

fn focus(page: &Page<'_>) -> String {
    let at = "document.activeElement.outerHTML.slice(0, 300) + document.activeElement.innerText?.slice(0, 100)";
    page.browser.value(at).map(|text| text.to_string()).unwrap_or_default()
}
