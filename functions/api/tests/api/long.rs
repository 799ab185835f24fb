//! A context whose history is longer than one answer.

use crate::stand::Stand;
use keelway_domain::time::Span;
use serde_json::json;

const STAGES: &str = "
    - name: dev
      sequences:
        - name: delivery
          tasks: [{name: build}, {name: test}]
";

/// More than are read for one page.
const NOTES: usize = 5_200;

#[tokio::test]
async fn a_long_history_is_read_page_by_page() {
    let mut stand = Stand::new();
    stand.apply("shop", STAGES).await;
    let context = stand.trigger("shop", "dev", "delivery", "cart").await;
    stand.execute("build", "pass").await;
    for n in 0..NOTES {
        let note = json!({
            "type": "sh.keptn.log.error", "source": "tool", "id": format!("note-{n:05}"), "shkeptncontext": context,
            "data": {"project": "shop", "stage": "dev", "service": "cart", "message": n.to_string()}
        });
        assert_eq!(stand.post("/v1/event", &note).await.status, 200);
        if n % 3 == 0 {
            stand.work().await;
            stand.world.pass(Span(40));
        }
    }
    stand.work().await;
    stand.execute("test", "pass").await;
    stand.world.pass(Span::minutes(1));

    let (mut ids, mut types, mut key, mut pages) = (vec![], vec![], "0".to_owned(), 0);
    loop {
        let answer = stand.get(&format!("/v1/event?keptnContext={context}&project=shop&pageSize=100&nextPageKey={key}")).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let page = answer.json();
        for event in page["events"].as_array().unwrap() {
            ids.push(event["id"].as_str().unwrap().to_owned());
            types.push(event["type"].as_str().unwrap().trim_start_matches("sh.keptn.").to_owned());
        }
        pages += 1;
        key = page["nextPageKey"].as_str().unwrap().to_owned();
        if key == "0" {
            break;
        }
    }
    let mut once = ids.clone();
    once.sort();
    once.dedup();
    assert_eq!((once.len(), pages > 50), (ids.len(), true), "no event comes twice");
    assert_eq!(types.iter().filter(|ty| *ty == "log.error").count(), NOTES, "and none is missing");
    let others: Vec<&str> = types.iter().map(String::as_str).filter(|ty| *ty != "log.error").collect();
    let expected = [
        "event.dev.delivery.triggered",
        "event.dev.delivery.started",
        "event.build.triggered",
        "event.build.started",
        "event.build.finished",
        "event.test.triggered",
        "event.test.started",
        "event.test.finished",
        "event.dev.delivery.finished",
    ];
    assert_eq!(others, expected);
}
