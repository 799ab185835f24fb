//! The API answers late, wrongly or not at all.

use super::{Page, Scene};
use crate::bed::Bed;
use keelway_cloud_tests::Outcome;
use keelway_cloud_tests::problem::{ensure, same};
use keelway_cloud_tests::runner::Test;
use serde_json::{Value, json};

pub fn tests() -> Vec<Test<Bed>> {
    vec![
        Test::new("page::criterion 14: when the API fails, the last data stay with their age and the cause", fails),
        Test::new("page::criterion 14: what is sent again has the key that it had", twice),
        Test::new("page::what is gone, what never was, and a clock that is wrong are told, with a way out", odd),
    ]
}

fn fails(bed: &Bed) -> Outcome {
    let scene = Scene::shared(bed)?;
    let page = Page::signed_in(bed, &scene.token)?;
    let browser = &page.browser;
    browser.before("window.keelwayTest?.stop();")?;
    page.open(&scene.environments())?;
    browser.until_text("main", "cart")?;
    let pass = |millis: u32| browser.run(&format!("return keelwayTest.advance({millis});"), &[]);
    let answers = |answer: &str| {
        browser.run(
            &format!("keelwayTest.answer = () => ({answer}); dispatchEvent(new Event('changed')); return keelwayTest.settled();"),
            &[],
        )
    };
    for (answer, cause) in [
        ("{status: 500, body: {title: 'internal error', detail: 'broken'}}", "internal error"),
        ("{lost: true}", "no answer"),
        ("{status: 200, body: 'not what was asked for', headers: {'content-type': 'application/json'}}", "not understood"),
        (
            "{status: 429, body: {title: 'too many requests', detail: 'slow down'}, headers: {'retry-after': '7'}}",
            "too many requests",
        ),
    ] {
        answers(answer)?;
        pass(3000)?;
        let age = browser.text(".age")?;
        ensure(age.contains("s old") && age.contains(cause), || format!("{cause}: {age:?}"))?;
        ensure(browser.text("main")?.contains("1.5.0"), || {
            format!("{cause}: the data are gone: {}", browser.text("main").unwrap_or_default())
        })?;
        // It goes on as soon as there is an answer.
        browser.run("keelwayTest.answer = undefined; return keelwayTest.advance(61_000);", &[])?;
        browser.until("document.querySelector('.age').innerText.includes('updated')")?;
    }
    // An answer that takes five seconds is waited for; the age says how old the data are.
    browser.run("keelwayTest.answer = () => ({after: 5000, lost: true}); dispatchEvent(new Event('changed')); return keelwayTest.settled();", &[])?;
    pass(4000)?;
    let age = browser.text(".age")?;
    ensure(["4", "5"].iter().any(|seconds| age.contains(&format!("updated {seconds} s ago"))), || age.clone())?;

    // The pauses grow.
    browser.run("keelwayTest.answer = () => ({lost: true}); return keelwayTest.advance(10_000);", &[])?;
    browser.run("keelwayTest.requests.length = 0; return keelwayTest.advance(300_000);", &[])?;
    let times = browser.value("keelwayTest.requests.filter((r) => !r.path.startsWith('/v1/wait')).map((r) => r.at)")?;
    let times: Vec<i64> = times.as_array().into_iter().flatten().filter_map(Value::as_i64).collect();
    let pauses: Vec<i64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    ensure(pauses.len() >= 3 && pauses.is_sorted() && pauses.last() <= Some(&61_000), || format!("the pauses are {pauses:?}"))
}

fn twice(bed: &Bed) -> Outcome {
    let scene = Scene::make(bed)?;
    let page = Page::signed_in(bed, &scene.token)?;
    let browser = &page.browser;
    page.open(&scene.delivery())?;
    browser.until_text("main", "approval")?;
    browser.click("button", "Approve staging")?;
    let send = "dialog button[type=submit]";
    // The first answer is lost after the API has decided; the button waits for it.
    browser.run("keelwayTest.answer = (method) => (method === 'POST' ? {lost: true, after: 50} : undefined);", &[])?;
    browser
        .run(&format!("const b = document.querySelector('{send}'); b.click(); window.disabled = b.disabled; b.click();"), &[])?;
    same("the button while the API has not answered", browser.value("window.disabled")?, json!(true))?;
    browser.until_text("dialog .failed", "no answer")?;
    browser.until_text("dialog .failed", "Send it again: it counts once.")?;
    browser.run("keelwayTest.answer = undefined;", &[])?;
    browser.click(send, "Approve")?;
    browser.until("!document.querySelector('dialog')?.open")?;
    let sent = browser.value("keelwayTest.requests.filter((r) => r.method === 'POST')")?;
    let keys: Vec<&str> =
        sent.as_array().into_iter().flatten().map(|request| request["key"].as_str().unwrap_or_default()).collect();
    ensure(keys.len() == 2 && keys[0] == keys[1] && keys[0].len() > 20, || format!("the keys are {keys:?}"))?;
    bed.observer.event(&scene.context, "sh.keptn.event.deployment.triggered", 1).map(drop)
}

fn odd(bed: &Bed) -> Outcome {
    let scene = Scene::shared(bed)?;
    let page = Page::signed_in(bed, &scene.token)?;
    let browser = &page.browser;
    let gone = "00000000-0000-4000-8000-000000000000";
    for (address, told) in [
        ("#/nothing".to_owned(), "There is no screen nothing: choose one above."),
        (format!("#/delivery/{}/{gone}", scene.project), "There is no such delivery."),
        (format!("#/pipelines/{}/none", scene.project), "It may have been deleted, or the address is wrong."),
        ("#/operations/nothing".to_owned(), "It may have been deleted, or the address is wrong."),
    ] {
        page.open(&address)?;
        browser.until_text("main", told)?;
        page.calm(&address)?;
    }
    // A clock that is ten minutes ahead: times are the server's, and the reader is told.
    browser.window()?;
    page.sign_in(&scene.token)?;
    browser.before("window.keelwayTest?.stop(Date.now() + 600_000);")?;
    page.open(&scene.delivery())?;
    browser.run("return keelwayTest.advance(1000);", &[])?;
    browser.until_text(".age", "this computer's clock is wrong by 10 min; times are the server's")
}
