//! How new what is shown is, and who asks for it when.

use super::{Page, Scene};
use crate::bed::Bed;
use crate::shell::Shell;
use keelway_cloud_tests::patience::until;
use keelway_cloud_tests::problem::{ensure, same};
use keelway_cloud_tests::runner::Test;
use keelway_cloud_tests::{Outcome, Problem};
use serde_json::{Value, json};

pub fn tests() -> Vec<Test<Bed>> {
    vec![
        Test::new(
            "page::criterion 03: an approval by the command appears on the open screens, which keep what one has done",
            |bed| {
                appears(bed, |scene, _| {
                    let words = ["approve", &scene.context, "--project", &scene.project];
                    Shell(bed).fine(&words).map(drop)
                })
            },
        ),
        Test::new("page::an approval in one browser appears in another one", |bed| appears(bed, in_a_browser)),
        Test::new("page::criterion 04: a page that nobody looks at asks for nothing", hidden),
    ]
}

fn in_a_browser(scene: &Scene, page: &Page<'_>) -> Outcome {
    let browser = &page.browser;
    browser.window()?;
    page.sign_in(&scene.token)?;
    page.open(&scene.delivery())?;
    browser.click("button", "Approve staging")?;
    browser.run("document.querySelector('dialog textarea').value = 'fine';", &[])?;
    browser.click("dialog button[type=submit]", "Approve")?;
    // On a busy machine the API may be away for a moment: then it is sent again, as the dialog says.
    let again = "const dialog = document.querySelector('dialog[open]'); if (dialog?.innerText.includes('Send it again')) \
                 dialog.querySelector('button[type=submit]').click(); return !dialog;";
    browser.until(&format!("(() => {{ {again} }})()"))
}

/// Three open screens see what was decided elsewhere. Nothing is loaded anew, and focus, scroll and what was typed stay.
fn appears(bed: &Bed, decide: impl Fn(&Scene, &Page<'_>) -> Outcome) -> Outcome {
    let scene = Scene::make(bed)?;
    let page = Page::new(bed)?;
    let browser = &page.browser;
    // A low window, so that there is something to scroll.
    let open = |address: &str| -> Result<String, Problem> {
        let window = browser.window()?;
        page.sign_in(&scene.token)?;
        browser.before("window.keelwayTest?.stop();")?;
        browser.resize(900, 300)?;
        page.open(address)?;
        Ok(window)
    };
    let (matrix, waits, delivery) = (open(&scene.environments())?, open("#/waits")?, open(&scene.delivery())?);
    browser.until_text("main", "approval")?;
    browser.click("button", "Decline staging")?;
    browser.run(
        "document.querySelector('dialog textarea').value = 'half a sen'; document.querySelector('dialog textarea').focus();",
        &[],
    )?;
    browser.choose(&waits)?;
    browser.until_text("main", "staging")?;
    browser.choose(&matrix)?;
    browser.until_text("main", "approval")?;
    let typed = "const i = document.querySelector('input[type=search]'); i.value = 'a'; i.dispatchEvent(new Event('input')); i.focus(); \
                 scrollTo(0, 40);";
    browser.run(typed, &[])?;
    for window in [&matrix, &waits, &delivery] {
        browser.choose(window)?;
        browser.run("window.same = true;", &[])?;
    }

    decide(&scene, &page)?;
    let api = bed.stack.api();
    let path = format!("/v1/project/{}/environment?service=cart&stage=staging", scene.project);
    let cell = || -> Result<Value, Problem> { bed.stack.wait(api.get(&path))?.fine("the environment") };
    let told = || Ok((cell()?["items"][0]["coming"][0]["waits"]["task"] == "deployment").then_some(()));
    until("the API to say so", told, || format!("{:?}", cell()))?;
    // From now on, the page has three seconds.
    let seen = |what: &str, so: &str| -> Outcome {
        let so = browser.run(&format!("return keelwayTest.advance(3_000).then(() => {so});"), &[])?;
        ensure(so == true, || format!("{what} does not show it after three seconds: {}", browser.text("main").unwrap_or_default()))
    };

    browser.choose(&matrix)?;
    let cell = "[...document.querySelectorAll('tbody tr')].find((r) => r.innerText.startsWith('cart'))?.innerText ?? ''";
    seen("the matrix", &format!("!({cell}).includes('approval') && ({cell}).includes('deploy')"))?;
    let kept = "[window.same, document.activeElement.type, document.activeElement.value, scrollY]";
    same("the matrix afterwards", browser.value(kept)?, json!([true, "search", "a", 40]))?;
    browser.choose(&waits)?;
    // On a slow machine, it is there for another reason: nobody deploys.
    let row = format!("[...document.querySelectorAll('main tbody tr')].find((r) => r.innerHTML.includes('{}'))", scene.context);
    seen("the inbox", &format!("!({row})?.innerText.includes('Approve')"))?;
    same("the waits afterwards", browser.value("window.same")?, json!(true))?;
    browser.choose(&delivery)?;
    seen("the delivery", "![...document.querySelectorAll('main button')].some((b) => b.innerText.includes('Approve'))")?;
    let kept = "[window.same, document.activeElement.name, document.activeElement.value]";
    same("the delivery afterwards", browser.value(kept)?, json!([true, "reason", "half a sen"]))
}

fn hidden(bed: &Bed) -> Outcome {
    let scene = Scene::shared(bed)?;
    let page = Page::signed_in(bed, &scene.token)?;
    let browser = &page.browser;
    browser.before("window.keelwayTest?.stop();")?;
    page.open(&scene.environments())?;
    let pass = |millis: u32| browser.run(&format!("return keelwayTest.advance({millis});"), &[]);
    pass(60_000)?;
    let seen = page.requests()?;
    pass(60_000)?;
    ensure(page.requests()? > seen, || "a page that is looked at asks for nothing".into())?;
    ensure(browser.text(".age")?.contains("updated"), || "the age is not told".into())?;

    browser.run("keelwayTest.hide(true); return keelwayTest.settled();", &[])?;
    let seen = page.requests()?;
    pass(600_000)?;
    same("requests while nobody looks", page.requests()?, seen)?;
    browser.run("keelwayTest.hide(false); return keelwayTest.settled();", &[])?;
    pass(1000)?;
    ensure(page.requests()? > seen, || "a page that is looked at again asks for nothing".into())?;
    let age = browser.text(".age")?;
    ensure(age.contains("updated 0 s") || age.contains("updated 1 s"), || format!("its age is told as {age:?}"))?;

    // The age is right while nothing new comes.
    browser.run(
        "keelwayTest.answer = () => ({lost: true}); dispatchEvent(new Event('changed')); return keelwayTest.settled();",
        &[],
    )?;
    pass(7000)?;
    let age = browser.text(".age")?;
    ensure(age.contains("7 s old") || age.contains("8 s old"), || format!("its age is told as {age:?}"))
}
