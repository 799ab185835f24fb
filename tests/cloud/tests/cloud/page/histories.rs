//! The screen of a delivery says what `keelway watch` says: the histories of `tests/histories`, whose words the command is held to.

use super::{Page, Scene};
use crate::bed::Bed;
use crate::shell::repository;
use keelway_cloud_tests::problem::{ensure, same};
use keelway_cloud_tests::runner::Test;
use keelway_cloud_tests::{Outcome, Problem};
use serde_json::{Value, json};

pub fn tests() -> Vec<Test<Bed>> {
    vec![Test::new("page::criterion 15: a delivery's screen and the command agree on twenty histories", agree)]
}

const SHOWN: &str =
    "[...document.querySelectorAll('.timeline tbody tr')].filter((r) => r.querySelector('td > .state')).map((row) => {
  const state = row.querySelector('td > .state').cloneNode(true);
  const time = state.querySelector('.dim')?.textContent.trim() ?? '';
  const mark = [...state.classList].find((c) => c !== 'state');
  state.querySelectorAll('.sign, .unseen, .dim').forEach((e) => e.remove());
  return {stage: row.querySelector('th').firstChild.nextSibling?.textContent || row.querySelector('th').innerText.split('\\n')[0],
    mark: {person: 'held', frozen: 'held'}[mark] ?? mark, what: state.textContent.replace(/\\s+/g, ' ').trim(), time};
})";

/// What follows, by history.
const THEN: [(&str, &str); 6] = [
    ("01-pass", "nothing follows."),
    ("02-runs", "if staging passes, prod begins with deploy."),
    ("03-fail", "nothing follows unless it is retried."),
    ("05-retry", "nothing follows."),
    ("06-paused", "staging goes on with test; if staging passes, prod begins with deploy."),
    (
        "17-lane",
        "staging goes on with deploy, test; if staging passes, prod begins with deploy; prod goes on with deploy, test; if prod passes, \
         nothing follows.",
    ),
];

/// The shipyard of the histories.
fn plan() -> Value {
    let sequence = |name: &str, tasks: &[&str], event: &str, selector: &[&str]| json!({"name": name, "tasks": tasks, "triggeredOn": [{"event": event, "selector": selector}]});
    let delivery = |after: &str| sequence("delivery", &["deploy", "test"], &format!("{after}.delivery.finished"), &[]);
    let rollback = sequence("rollback", &["rollback"], "prod.delivery.finished", &["result: fail"]);
    json!([
        {"name": "dev", "sequences": [{"name": "delivery", "tasks": ["deploy", "test"], "triggeredOn": []}]},
        {"name": "staging", "sequences": [delivery("dev")]},
        {"name": "prod", "sequences": [delivery("staging"), rollback]},
    ])
}

/// What is said to happen now, and then.
fn sentences(page: &Page<'_>) -> Result<(String, String), Problem> {
    let text = page.browser.text("main")?;
    let said = |label: &str| text.lines().find_map(|line| line.trim().strip_prefix(label)).unwrap_or_default().trim().to_owned();
    Ok((said("Now:"), said("Then:")))
}

fn agree(bed: &Bed) -> Outcome {
    let folder = repository().join("tests/histories");
    let entries = std::fs::read_dir(&folder).map_err(|error| Problem::of("the histories", error))?;
    let mut files: Vec<_> =
        entries.filter_map(|entry| Some(entry.ok()?.path())).filter(|file| file.extension().is_some()).collect();
    files.sort();
    ensure(files.len() >= 20, || format!("{} histories", files.len()))?;
    let page = Page::signed_in(bed, &Scene::shared(bed)?.token)?;
    let browser = &page.browser;
    browser.before("window.keelwayTest?.stop();")?;
    browser.go(&page.ui)?;
    let mut differences = vec![];
    for file in files {
        let text = std::fs::read_to_string(&file).map_err(|error| Problem::of("a history", error))?;
        let history: Value = serde_json::from_str(&text).map_err(|error| Problem::of(&file.display().to_string(), error))?;
        // The page's clock is the server's, which stands still at the history's time.
        let script = "const [delivery, now, stages] = arguments; keelwayTest.answer = (method, path) => path === '/v1/whoami' ? undefined : \
                      path.includes('/delivery/') ? {body: {delivery, promotions: [], deployments: [], now}} : \
                      {body: {stages, events: [], items: [], nextPageKey: '0', now}};";
        browser.run(script, &[history["state"].clone(), history["now"].clone(), plan()])?;
        let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        page.open(&format!("#/delivery/shop/{name}"))?;
        browser.run("return keelwayTest.advance(20);", &[])?;
        let shown = browser.value(SHOWN)?;
        for (shown, told) in shown.as_array().into_iter().flatten().zip(history["words"].as_array().into_iter().flatten()) {
            if shown != told {
                differences.push(format!("{name}: {}\n  the page: {shown}\n  the command: {told}", history["about"]));
            }
        }
        let count = |value: &Value| value.as_array().map(Vec::len);
        same(&format!("rows of {name}"), count(&shown), count(&history["words"]))?;
        // The sentences have the same words.
        let (now, then) = sentences(&page)?;
        let open = |place: usize| history["state"]["executions"][place]["finishedAt"].is_null();
        let words = history["words"].as_array().into_iter().flatten().enumerate().filter(|(place, _)| open(*place));
        for words in words.filter_map(|(_, words)| words["what"].as_str()) {
            ensure(now.contains(words), || format!("{name}: no {words:?} in {now:?}"))?;
        }
        if let Some((_, expected)) = THEN.iter().find(|(one, _)| *one == name) {
            same(&name, &*then, *expected)?;
        }
        let cut = browser.count(".cut")? > 0;
        same(&format!("{name} says that there is more"), cut, history["state"]["truncated"] == json!(true))?;
        let missed = history["state"]["notReached"].as_array().map_or(0, Vec::len);
        same(
            &format!("{name}: stages that were not reached"),
            browser.text(".timeline")?.matches("not reached").count() >= missed,
            true,
        )?;
        page.calm(&name)?;
    }
    ensure(differences.is_empty(), || differences.join("\n"))
}
