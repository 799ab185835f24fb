//! What screens show and offer by fields of the API: recorded answers, and what the page sends.

use super::{Page, Scene, strings, token};
use crate::bed::Bed;
use keelway_cloud_tests::problem::{ensure, same};
use keelway_cloud_tests::runner::Test;
use keelway_cloud_tests::{Outcome, Problem};
use serde_json::{Value, json};

pub fn tests() -> Vec<Test<Bed>> {
    vec![
        Test::new("page::waits: windows are overridden, deliveries resumed, and canaries proceed, by who may", onward),
        Test::new("page::deployments: share, hooks and alarms are fields, and no sentences", canary),
        Test::new("page::pipelines: what an evaluation came to is the sentence of its gate", evaluated),
        Test::new("page::calendar: pipelines are closed, too, where nothing waits", closures),
    ]
}

/// A page whose requests for these paths have these answers. What it sends is accepted: a method before the path says with what.
pub(super) fn open<'a>(bed: &'a Bed, secret: &str, answers: &Value, address: &str) -> Result<Page<'a>, Problem> {
    let page = Page::signed_in(bed, secret)?;
    page.browser.before(&format!(
        "if (window.keelwayTest) keelwayTest.answer = (method, path) => {{ const known = {answers}; \
         return method === 'GET' ? known[path] && {{body: known[path]}} : {{body: known[`${{method}} ${{path}}`] ?? {{}}}}; }};"
    ))?;
    page.open(address)?;
    Ok(page)
}

fn onward(bed: &Bed) -> Outcome {
    let scene = Scene::shared(bed)?;
    let (project, since) = (&scene.project, "2026-11-27T10:00:00.000Z");
    let sequence = |reason: &str, context: &str, needs: &str, group: &str| {
        json!({"group": group, "engine": "sequence", "reason": reason, "project": project, "service": "cart", "stage": "staging", "since": since,
            "shkeptncontext": context, "sequence": "delivery", "version": "cart:1.5.0", "window": "quarter end", "needs": needs})
    };
    let items = json!([
        {"group": "person", "engine": "deployment", "reason": "Held", "project": project, "name": "greeter", "number": 4, "since": since, "needs": "trigger"},
        sequence("resume", "c-paused", "trigger", "person"),
        {"group": "person", "engine": "pipeline", "reason": "ApprovalNeeded", "project": project, "name": "carts", "environment": "prod", "since": since,
            "version": "v2", "needs": "approve:prod", "compareUrl": "https://git.test/o/r/compare/a...b"},
        sequence("window", "c-closed", "approve:staging", "waiting"),
    ]);
    let answers = json!({"/v1/wait": {"items": items, "cut": [], "nextPageKey": "0"}});
    let page = open(bed, &scene.token, &answers, "#/waits")?;
    let browser = &page.browser;
    browser.until_text("main", "Proceed")?;
    same(
        "the comparison",
        browser.value("document.querySelector('main a[href^=\"https://git.test\"]')?.href")?,
        json!("https://git.test/o/r/compare/a...b"),
    )?;
    let send = |label: &str| -> Outcome {
        browser.click("main button", label)?;
        browser.until("document.querySelector('dialog').open")?;
        browser.run("const t = document.querySelector('dialog textarea'); if (t) t.value = 'INC-7';", &[])?;
        browser.click("dialog button[type=submit]", label)?;
        browser.until("!document.querySelector('dialog').open")
    };
    // A window is overridden with a reason only.
    browser.click("main button", "Override")?;
    browser.click("dialog button[type=submit]", "Override")?;
    same(
        "an override without a reason",
        browser.value("[document.querySelector('dialog').open, document.querySelector('dialog textarea').required]")?,
        json!([true, true]),
    )?;
    ensure(browser.text("dialog")?.contains("keelway override c-closed --stage staging"), || {
        browser.text("dialog").unwrap_or_default()
    })?;
    // Whoever opens it again before the browser tells that it was closed sees all of it.
    let again = "const buttons = (inside) => [...document.querySelectorAll(`${inside} button`)]; \
        const button = (inside, label) => buttons(inside).find((b) => b.innerText.includes(label)); \
        document.querySelector('dialog').addEventListener('close', () => { window.told = true; }, {once: true}); \
        button('dialog', 'Cancel').click(); button('main', 'Override').click();";
    browser.run(again, &[])?;
    browser.until("window.told")?;
    ensure(browser.text("dialog")?.contains("keelway override c-closed"), || browser.text("dialog").unwrap_or_default())?;
    browser.click("dialog button", "Cancel")?;
    ["Override", "Resume", "Proceed"].into_iter().try_for_each(send)?;
    let sent =
        "keelwayTest.requests.filter((r) => r.method === 'POST').map((r) => [r.path, JSON.parse(r.body), r.key.length > 20])";
    let expected = json!([
        [format!("/v1/sequence/{project}/c-closed/override"), {"reason": "INC-7", "stage": "staging"}, true],
        [format!("/v1/sequence/{project}/c-paused/control"), {"state": "resume", "stage": ""}, true],
        [format!("/v1/deploymentConfigs/{project}%3Agreeter/proceed"), {"message": "INC-7"}, true],
    ]);
    same("what was sent", browser.value(sent)?, expected)?;
    same("what axe finds", browser.axe(&[])?, Vec::<String>::new())?;
    drop(page);

    let reader = open(bed, &token(bed, project, &["read"])?, &answers, "#/waits")?;
    reader.browser.until_text("main", "takes approve:staging")?;
    let offered = strings(&reader.browser.value("[...document.querySelectorAll('main button')].map((b) => b.innerText.trim())")?);
    same("what a reader is offered", offered, vec!["Copy".to_owned()])
}

fn canary(bed: &Bed) -> Outcome {
    let scene = Scene::shared(bed)?;
    let base = format!("/v1/deploymentConfigs/{}%3Agreeter", scene.project);
    let latest = json!({"namespace": scene.project, "name": "greeter-4", "config": "greeter", "version": 4, "attempt": 1, "status": "Running",
        "message": "image change", "details": {"message": "", "causes": []}, "images": {}, "since": "2026-11-27T10:00:00.000Z", "starts": true,
        "desired": "run", "holds": true, "share": 20, "deployer": "keelway-strategies", "heard": "2026-11-27T10:00:30.000Z",
        "hooks": {"pre": "done", "mid": "ignored", "post": "runs"},
        "progress": {"message": "something else: 99 %", "analysis": {"from": "2026-11-27T10:00:00.000Z", "to": "2026-11-27T10:01:00.000Z", "result": "fail",
            "message": "", "failures": 1, "samples": 60, "score": 50, "objectives": [
                {"target": "live", "sli": "errors", "result": "fail", "value": 4, "baseline": 2, "targets": [{"criteria": "<=+50%", "targetValue": 3, "violated": true}]},
                {"target": "live", "sli": "latency", "result": "pass", "value": 80, "targets": [{"criteria": "<300", "targetValue": 300, "violated": false}]}]}}});
    let asked = "task deployment of shop/dev/greeter (c-1)";
    let cause =
        json!({"type": "Manual", "by": "keelway-sequences", "notes": asked, "delivery": {"task": "deployment", "context": "c-1"}});
    let mut past = latest.clone();
    past["details"] = json!({"message": asked, "causes": [cause]});
    let history = json!({"items": [past], "nextPageKey": "0"});
    let alarms = json!([{"name": "errors", "on": true, "since": "2026-11-27T10:00:00.000Z"}, {"name": "latency"}]);
    let status = json!({"namespace": scene.project, "name": "greeter", "latestVersion": 4, "latest": latest, "triggers": [], "reason": "", "message": "",
        "resourceVersion": "1", "alarms": alarms});
    let answers = json!({format!("{base}/status"): status, base.clone(): {"spec": {}}, format!("{base}/history"): history});
    let page = open(bed, &scene.token, &answers, &format!("#/deployments/{}/greeter", scene.project))?;
    let browser = &page.browser;
    browser.until_text("main", "20 % of the requests")?;
    same("the bar", browser.value("document.querySelector('progress').value")?, json!(20))?;
    let text = browser.text("main")?;
    for told in [
        "pre is done",
        "mid failed, which is ignored",
        "post runs",
        "fail · 60 requests · score 50",
        "live errors 4, 2 before · <=+50% missed (3)",
        "live latency 80 · <300",
        "errors is on",
        "latency: nothing was told yet",
        "keelway-strategies, heard ",
        asked,
        "#4 holds until a person lets it go on",
    ] {
        ensure(text.contains(told), || format!("no {told:?} in {text}"))?;
    }
    same("what axe finds", browser.axe(&[])?, Vec::<String>::new())?;
    page.calm("a canary")
}

fn evaluated(bed: &Bed) -> Outcome {
    let scene = Scene::shared(bed)?;
    let (base, since) = (format!("/v1/pipelines/{}/carts", scene.project), "2026-11-27T10:00:00.000Z");
    let failed = "the evaluation of v2 in staging failed with a score of 50: error_rate is 2.5, not <1";
    let waiting = "the evaluation of v2 in staging is under way";
    let page = |reason: &str, message: &str| {
        let promotion =
            json!({"revision": "v2", "phase": "waiting", "reason": reason, "message": message, "run": 2, "since": since});
        let state = json!({"namespace": scene.project, "name": "carts", "reason": reason, "message": message,
            "run": {"revision": "v2", "number": 2}, "environments": [{"name": "staging", "targets": [], "healthy": {"revision": "v2", "since": since}},
                {"name": "prod", "targets": [], "healthy": {"revision": "v1", "since": since}, "promotion": promotion}]});
        let why = json!({"environments": [{"environment": "staging", "done": true, "reason": "", "message": ""},
            {"environment": "prod", "done": false, "reason": reason, "message": message,
                "remedy": "keelway pipeline retry prod"}]});
        let listed = json!({"items": [{"namespace": scene.project, "name": "carts", "environments": ["staging", "prod"],
            "revision": "v2",
            "reason": reason, "message": message}], "nextPageKey": "0"});
        let history = json!({"items": [], "commands": [], "nextPageKey": "0"});
        let answers = json!({base.clone(): state, format!("{base}/explain"): why, format!("{base}/history"): history,
            "/v1/pipelines": listed});
        open(bed, &scene.token, &answers, &format!("#/pipelines/{}/carts", scene.project))
    };
    let gate = "document.querySelectorAll('.matrix tbody tr')";
    let of_prod =
        format!("[...{gate}].find((r) => r.cells[0].innerText === 'Gates').cells[2].innerText.replace(/\\s+/g, ' ').trim()");
    let evaluating = page("Evaluating", waiting)?;
    evaluating.browser.until_text(".matrix", waiting)?;
    let told = evaluating.browser.value(&of_prod)?;
    ensure(told.as_str().is_some_and(|told| !told.contains('✗')), || format!("it looks like a failure: {told}"))?;
    drop(evaluating);

    let closed = page("EvaluationFailed", failed)?;
    let browser = &closed.browser;
    browser.until_text(".matrix", failed)?;
    let told = browser.value(&of_prod)?;
    ensure(
        told.as_str()
            .is_some_and(|told| told.contains('✗') && told.contains(failed) && told.contains("keelway pipeline retry prod")),
        || format!("the gate says {told}"),
    )?;
    // A retry evaluates anew, and says so before it is sent.
    browser.click("main button", "Retry prod")?;
    browser.until_text("dialog", "The soak time until now is evaluated.")?;
    browser.click("dialog button[type=submit]", "Retry")?;
    browser.until("!document.querySelector('dialog').open")?;
    let sent = browser.value("keelwayTest.requests.filter((r) => r.method === 'POST').map((r) => [r.path, JSON.parse(r.body)])")?;
    same("what was sent", sent, json!([[format!("{base}/commands"), {"command": "retry", "environment": "prod"}]]))?;
    same("what axe finds", browser.axe(&[])?, Vec::<String>::new())?;
    closed.open("#/pipelines")?;
    browser.until_text("main", failed)?;
    closed.calm("a closed gate")
}

fn closures(bed: &Bed) -> Outcome {
    let scene = Scene::shared(bed)?;
    let plan = json!({"environments": [{"name": "dev", "windows": [], "closures": []}, {"name": "prod", "windows": ["deny 0 18 * * FRI for 62h UTC: weekend"],
        "closures": [{"from": "2026-12-04T18:00:00.000Z", "until": "2026-12-07T08:00:00.000Z", "reason": "weekend"}]}]});
    let answers = json!({
        "/v1/pipelines": {"items": [{"namespace": scene.project, "name": "carts", "appliedAt": "2026-11-01T10:00:00.000Z"}], "nextPageKey": "0"},
        format!("/v1/pipelines/{}/carts/plan", scene.project): plan,
        "/v1/wait": {"items": [], "cut": [], "nextPageKey": "0", "now": "2026-11-27T12:00:00.000Z"},
    });
    let page = open(bed, &scene.token, &answers, &format!("#/calendar?project={}", scene.project))?;
    let browser = &page.browser;
    let told = format!("prod of the pipeline {}/carts is closed: weekend", scene.project);
    // The clock of the answers is that of the server, whatever day it is there.
    let all = format!("prod of the pipeline {}/carts", scene.project);
    browser.until_text("main", &all)?;
    let shown = browser.text("main")?;
    ensure(
        shown.contains("deny 0 18 * * FRI for 62h UTC: weekend") && (shown.contains(&told) || shown.contains("more later")),
        || shown.clone(),
    )?;
    // A plan is not read again with each look.
    browser.run("dispatchEvent(new Event('changed')); return keelwayTest.settled();", &[])?;
    same(
        "reads of the plan",
        browser.value("keelwayTest.requests.filter((r) => r.path.endsWith('/plan') && r.path.includes('pipelines')).length")?,
        json!(1),
    )
}
