//! The screen of operations: what each of its tabs shows, what it sends, and who sees it. Against recorded answers.

use super::fields::open;
use super::{Page, Scene, strings, token};
use crate::bed::Bed;
use keelway_cloud_tests::Outcome;
use keelway_cloud_tests::problem::{ensure, same};
use keelway_cloud_tests::runner::Test;
use serde_json::{Value, json};

pub fn tests() -> Vec<Test<Bed>> {
    vec![
        Test::new("page::operations: dead letters are read, sent again and dropped; invalid input is listed by day", letters),
        Test::new("page::operations: webhooks are resumed, and their deliveries sent again", webhooks),
        Test::new("page::operations: a token is made, rotated and revoked, and its secret is shown once", tokens),
        Test::new("page::operations: the audit is filtered, and says in sentences what was done", audit),
        Test::new("page::operations: rules, limits and the clock", limits),
        Test::new("page::operations: who does not administer sees what they may", reader),
    ]
}

const SINCE: &str = "2026-11-27T10:00:00.000Z";

/// What was sent, without what was read: method, path, and whether it has a key.
fn sent(page: &Page<'_>) -> Result<Value, keelway_cloud_tests::Problem> {
    page.browser.value("keelwayTest.requests.filter((r) => r.method !== 'GET').map((r) => [r.method, r.path, r.key?.length > 20])")
}

/// Presses a button, and the one of the dialog that asks back. The dialog shows the command that does the same.
fn act(page: &Page<'_>, label: &str, command: &str) -> Outcome {
    let browser = &page.browser;
    browser.click("main button", label)?;
    browser.until("document.querySelector('dialog').open")?;
    let asked = browser.text("dialog")?;
    ensure(asked.contains(command), || format!("{label}: no {command:?} in {asked}"))?;
    browser.click("dialog button[type=submit]", label)
}

fn closed(page: &Page<'_>) -> Outcome {
    page.browser.until("!document.querySelector('dialog').open")
}

/// Both schemes are readable, and nothing was refused or thrown.
fn sound(page: &Page<'_>, what: &str) -> Outcome {
    for scheme in ["light", "dark"] {
        page.browser.prefers("", &[("prefers-color-scheme", scheme)])?;
        same(&format!("{what}, {scheme}"), page.browser.axe(&[])?, Vec::<String>::new())?;
    }
    page.calm(what)
}

fn letters(bed: &Bed) -> Outcome {
    let letter = |id: &str, more: Value| {
        let mut letter = json!({"id": id, "engine": "sequences", "sentAt": SINCE, "receives": 5, "reason": "the table is gone", "truncated": false});
        if let (Some(all), Some(more)) = (letter.as_object_mut(), more.as_object()) {
            all.extend(more.clone());
        }
        letter
    };
    let waiting = letter("l-1", json!({"nextRedrive": "2036-11-27T10:00:00.000Z"}));
    let answers = json!({
        "/v1/dead-letters": {"items": [waiting, letter("l-2", json!({"truncated": true}))], "nextPageKey": "0"},
        "/v1/dead-letters/l-1": letter("l-1", json!({"body": "{\"turn\": 7}"})),
        "/v1/invalid": {"day": "2026-11-27", "items": [{"at": SINCE, "reason": "no such type", "text": "{\"type\": \"x\"}"}], "nextPageKey": "0"},
    });
    let page = open(bed, &bed.stack.api().token, &answers, "#/operations/dead-letters")?;
    let browser = &page.browser;
    let rows = strings(&browser.value("[...document.querySelectorAll('main tbody tr')].map((r) => r.innerText)")?);
    ensure(rows.len() == 2 && rows[0].contains("the table is gone") && rows[0].contains("sent again in"), || format!("{rows:?}"))?;
    // What was cut cannot be sent again.
    ensure(rows[1].contains("waits for a person") && !rows[1].contains("Redrive"), || format!("{rows:?}"))?;
    browser.until_text("main", "keelway dead-letters list")?;
    browser.click("main button", "Show")?;
    browser.until_text("dialog", "{\"turn\": 7}")?;
    browser.click("dialog button", "Close")?;
    closed(&page)?;
    act(&page, "Redrive", "keelway dead-letters redrive l-1")?;
    closed(&page)?;
    act(&page, "Drop", "keelway dead-letters drop l-1")?;
    closed(&page)?;
    let expected = json!([["POST", "/v1/dead-letters/l-1/redrive", true], ["DELETE", "/v1/dead-letters/l-1", true]]);
    same("what was sent", sent(&page)?, expected)?;
    sound(&page, "dead letters")?;

    page.open("#/operations/invalid")?;
    browser.until_text("main tbody", "no such type")?;
    browser.run(
        "const i = document.querySelector('input[type=date]'); i.value = '2026-11-26'; i.dispatchEvent(new Event('change'));",
        &[],
    )?;
    browser.until("keelwayTest.requests.some((r) => r.path.includes('/v1/invalid') && r.path.includes('day=2026-11-26'))")?;
    browser.until_text("main", "keelway get invalid --day 2026-11-26")
}

fn webhooks(bed: &Bed) -> Outcome {
    let scene = Scene::shared(bed)?;
    let project = &scene.project;
    let webhook = |name: &str, disabled: Value| {
        json!({"namespace": project, "name": name, "disabled": disabled,
        "spec": {"url": "https://chat.test/hook", "events": ["sh.keptn.event.dev.delivery.finished"]}, "appliedAt": SINCE, "version": 1})
    };
    let delivery = json!({"id": "d-1", "webhook": "slack", "status": "failed", "message": "the receiver is gone", "eventType": "dev.delivery.finished",
        "keptnContext": scene.context, "began": SINCE, "attempts": [{"at": SINCE, "status": 410, "ms": 12, "error": "", "answer": "Gone"}]});
    let off = json!({"reason": "gone", "message": "410 Gone", "at": SINCE});
    let answers = json!({
        "/v1/webhookSubscriptions": {"items": [webhook("slack", off), webhook("mail", Value::Null)], "nextPageKey": "0"},
        "/v1/deliveries": {"items": [delivery], "nextPageKey": "0"},
    });
    let page = open(bed, &scene.token, &answers, "#/operations/webhooks")?;
    let browser = &page.browser;
    browser.until_text("main tbody", "disabled (gone): 410 Gone")?;
    same("webhooks that can be resumed", browser.text("main tbody")?.matches("Resume").count(), 1)?;
    act(&page, "Resume", &format!("keelway webhook resume slack -p {project}"))?;
    closed(&page)?;
    browser.click("main tbody a", "slack")?;
    browser.until_text("main", "Deliveries of")?;
    browser.until_text("main", "the receiver is gone")?;
    ensure(browser.text("main")?.contains("410 Gone"), || browser.text("main").unwrap_or_default())?;
    act(&page, "Redeliver", &format!("keelway webhook redeliver d-1 -p {project}"))?;
    closed(&page)?;
    let expected = json!([
        ["POST", format!("/v1/webhookSubscriptions/{project}/slack/resume"), true],
        ["POST", format!("/v1/deliveries/{project}/d-1/redeliver"), true],
    ]);
    same("what was sent", sent(&page)?, expected)?;
    // Whose deliveries are shown is in the address.
    let address = format!("#/operations/webhooks?of={project}%2Fslack");
    ensure(browser.address()?.ends_with(&address), || format!("no {address}: {:?}", browser.address()))?;
    sound(&page, "webhooks")
}

fn tokens(bed: &Bed) -> Outcome {
    let token = json!({"name": "ci", "scopes": ["read", "trigger"], "projects": ["shop"], "created": SINCE, "by": "administrator", "note": "for CI", "expired": true});
    let answers = json!({
        "/v1/tokens": {"items": [token], "nextPageKey": "0"},
        "POST /v1/tokens": {"secret": "keelway_new_1", "token": {"name": "new"}},
        "POST /v1/tokens/ci/rotate": {"secret": "keelway_ci_2", "token": {"name": "ci"}},
    });
    let page = open(bed, &bed.stack.api().token, &answers, "#/operations/tokens")?;
    let browser = &page.browser;
    browser.until_text("main tbody", "read, trigger")?;
    let row = browser.text("main tbody")?;
    ensure(["for CI", "shop", "by administrator", "expired", "not yet"].iter().all(|told| row.contains(told)), || row.clone())?;

    browser.click("main button", "Create a token")?;
    browser.run(
        "const e = document.querySelector('dialog form').elements; e.name.value = ' new '; e.scopes.value = 'read, execute:test'; e.expires.value = '';",
        &[],
    )?;
    browser.click("dialog button[type=submit]", "Create a token")?;
    browser.until_text("dialog", "keelway_new_1")?;
    let body = browser.value("JSON.parse(keelwayTest.requests.find((r) => r.method === 'POST').body)")?;
    same("what is asked for", body, json!({"name": "new", "scopes": ["read", "execute:test"], "projects": []}))?;
    browser.click("dialog button", "Close")?;
    closed(&page)?;
    browser.until("!document.documentElement.outerHTML.includes('keelway_new_1')")?;

    act(&page, "Rotate", "keelway token rotate ci --overlap 1h")?;
    browser.until_text("dialog", "keelway_ci_2")?;
    browser.click("dialog button", "Close")?;
    closed(&page)?;
    act(&page, "Revoke", "keelway token revoke ci")?;
    closed(&page)?;
    let expected = json!([["POST", "/v1/tokens", true], ["POST", "/v1/tokens/ci/rotate", true], ["DELETE", "/v1/tokens/ci", true]]);
    same("what was sent", sent(&page)?, expected)?;
    sound(&page, "tokens")
}

fn audit(bed: &Bed) -> Outcome {
    let told = "approved cart 1.5.0 for prod (54c7f0df-2ea5-5f6b-9d6e-0a3c5b7d9e1f)";
    let entry = json!({"at": SINCE, "id": "0f", "action": "decide", "token": "ci", "by": "token:ci", "address": "203.0.113.9", "project": "shop",
        "request": "POST /v1/project/shop/approval/c/t", "what": told, "note": "as agreed", "status": 202});
    let answers = json!({"/v1/audit": {"items": [entry], "nextPageKey": "0"}});
    let page = open(bed, &bed.stack.api().token, &answers, "#/operations/audit")?;
    let browser = &page.browser;
    browser.until_text("main tbody", told)?;
    let row = browser.text("main tbody")?;
    ensure(["token:ci", "203.0.113.9", "as agreed"].iter().all(|told| row.contains(told)), || row.clone())?;
    browser.run(
        "const s = [...document.querySelectorAll('main label')].find((l) => l.innerText.includes('Action')).querySelector('select'); \
         s.value = 'decide'; s.dispatchEvent(new Event('change'));",
        &[],
    )?;
    browser.until("keelwayTest.requests.some((r) => r.path.includes('/v1/audit') && r.path.includes('action=decide'))")?;
    browser.until_text("main", "keelway audit --action decide")?;
    // Back leads to everything again.
    browser.previous()?;
    browser.until("!location.hash.includes('action=')")?;
    sound(&page, "the audit")
}

fn limits(bed: &Bed) -> Outcome {
    let rules = json!([{"name": "sequences", "state": "enabled"}, {"name": "observer", "state": "disabled"}]);
    let bounds =
        json!({"maxEventBytes": 245_760, "maxExecutions": 1000, "startDeadline": "10m", "taskTimeout": "1d", "retentionDays": 90});
    let answers = json!({"/v1/checks": {"rules": rules, "limits": bounds}});
    let page = open(bed, &bed.stack.api().token, &answers, "#/operations/limits")?;
    let text = page.browser.text("main")?;
    for told in ["sequences enabled", "observer disabled", "as this computer's", "245760 bytes", "1d", "90 days", "keelway doctor"]
    {
        ensure(text.contains(told), || format!("no {told:?} in {text}"))?;
    }
    sound(&page, "limits")
}

/// A token for one project, without `administer`: there is nothing of the installation to see.
fn reader(bed: &Bed) -> Outcome {
    let scene = Scene::shared(bed)?;
    let page = Page::signed_in(bed, &token(bed, &scene.project, &["read"])?)?;
    page.open("#/operations/webhooks")?;
    let tabs = strings(&page.browser.value("[...document.querySelectorAll('main nav a')].map((a) => a.innerText.trim())")?);
    for hidden in ["Tokens", "Audit"] {
        ensure(!tabs.iter().any(|tab| tab == hidden), || format!("a reader is offered {hidden}: {tabs:?}"))?;
    }
    for address in ["tokens", "audit"] {
        page.open(&format!("#/operations/{address}"))?;
        page.browser.until_text("main", "This token may not see it.")?;
    }
    Ok(())
}
