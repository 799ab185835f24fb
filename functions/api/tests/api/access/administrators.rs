//! Whoever administers one project manages its tokens and reads its audit, gets no more rights by that, and learns nothing of other
//! projects.

use super::tokens::STAGES;
use crate::stand::Stand;
use serde_json::{Value, json};

/// Tokens of every reach, and `team`, which administers `shop` and `carts`.
async fn furnished() -> Stand {
    let mut stand = Stand::new();
    for (name, scopes, projects) in [
        ("a-all", ["administer"], &[][..]),
        ("b-shop", ["read"], &["shop"]),
        ("c-both", ["read"], &["shop", "carts"]),
        ("d-beyond", ["read"], &["shop", "other"]),
        ("e-other", ["administer"], &["other"]),
        ("f-carts", ["read"], &["carts"]),
        ("g-reader", ["read"], &[]),
        ("team", ["administer"], &["shop", "carts"]),
        ("z-other", ["read"], &["other"]),
    ] {
        stand.token(name, &scopes, projects).await;
    }
    stand
}

/// The tokens that are not entirely within the projects of `team`.
const FOREIGN: [&str; 5] = ["a-all", "d-beyond", "e-other", "g-reader", "z-other"];

fn names(page: &Value) -> Vec<String> {
    page["items"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a_projects_administrator_manages_its_tokens() {
    let mut stand = furnished().await;
    stand.like("team");
    assert_eq!(names(&stand.get("/v1/tokens").await.json()), ["b-shop", "c-both", "f-carts", "team"]);
    let made = stand.post("/v1/tokens", &json!({"name": "ci", "scopes": ["read", "trigger"], "projects": ["shop"]})).await;
    assert_eq!((made.status, &made.json()["token"]["by"]), (201, &json!("token:team")), "{made:?}");
    stand.token("deputy", &["administer"], &["carts"]).await;
    for name in ["ci", "c-both"] {
        assert_eq!(stand.get(&format!("/v1/tokens/{name}")).await.status, 200, "{name}");
        assert_eq!(stand.post(&format!("/v1/tokens/{name}/rotate"), &json!({})).await.status, 200, "{name}");
        assert_eq!(stand.delete(&format!("/v1/tokens/{name}")).await.status, 204, "{name}");
    }
    // Whoever is made an administrator of less sees less.
    stand.like("deputy");
    assert_eq!(names(&stand.get("/v1/tokens").await.json()), ["deputy", "f-carts"]);
    let more = stand.post("/v1/tokens", &json!({"name": "more", "scopes": ["read"], "projects": ["shop"]})).await;
    assert_eq!(more.status, 403, "{more:?}");
}

#[tokio::test]
async fn nobody_makes_a_token_that_may_do_more_than_they() {
    let mut stand = furnished().await;
    stand.token("ann", &["read", "trigger:*", "approve:*", "execute:*", "trigger"], &["shop"]).await;
    let before = names(&stand.get("/v1/tokens").await.json());
    for projects in [json!([]), json!(["other"]), json!(["shop", "other"]), json!(["shop", "carts", "unknown"])] {
        for scope in ["read", "trigger", "execute:*", "approve:prod", "administer"] {
            let asked = json!({"name": "more", "scopes": [scope], "projects": projects});
            let refused = stand.like("team").post("/v1/tokens", &asked).await;
            assert_eq!(refused.status, 403, "{asked} {refused:?}");
            assert!(refused.problem().starts_with("this needs administer in "), "{refused:?}");
        }
    }
    let unsaid = stand.post("/v1/tokens", &json!({"name": "more", "scopes": ["read"]})).await;
    assert!(unsaid.status == 403 && unsaid.problem().contains("say in projects where"), "{unsaid:?}");
    // Every other scope together does not administer.
    for (method, path) in [("GET", ""), ("POST", ""), ("GET", "/b-shop"), ("POST", "/b-shop/rotate"), ("DELETE", "/b-shop")] {
        let path = format!("/v1/tokens{path}");
        let asked = json!({"name": "more", "scopes": ["read"], "projects": ["shop"]});
        let refused = match method {
            "GET" => stand.like("ann").get(&path).await,
            "POST" => stand.like("ann").post(&path, &asked).await,
            _ => stand.like("ann").delete(&path).await,
        };
        assert_eq!(refused.status, 403, "{method} {path} {refused:?}");
    }
    assert_eq!(stand.get("/v1/audit?project=shop").await.status, 403);
    assert_eq!(names(&stand.like("").get("/v1/tokens").await.json()), before, "nothing was made");
}

#[tokio::test]
async fn a_token_that_is_valid_elsewhere_does_not_exist_for_a_projects_administrator() {
    let mut stand = furnished().await;
    for name in FOREIGN {
        stand.like("team");
        let path = |name: &str| format!("/v1/tokens/{name}");
        let tried = |answer: crate::stand::Answer| (answer.status, answer.text);
        for asked in ["GET", "DELETE", "ROTATE"] {
            let mut both = vec![];
            for name in [name, "nobody"] {
                let answer = match asked {
                    "GET" => stand.get(&path(name)).await,
                    "DELETE" => stand.delete(&path(name)).await,
                    _ => stand.post(&format!("{}/rotate", path(name)), &json!({"overlap": "0"})).await,
                };
                let (status, text) = tried(answer);
                both.push((status, text.replace(name, "NAME")));
            }
            assert_eq!(both[0].0, 404, "{asked} {name} {both:?}");
            assert_eq!(both[0], both[1], "{asked} {name}: it does not tell that there is one");
        }
        // Its name is taken; the one who has it keeps it.
        let taken = stand.post("/v1/tokens", &json!({"name": name, "scopes": ["administer"], "projects": ["shop"]})).await;
        assert_eq!(taken.status, 409, "{taken:?}");
        let me = stand.like(name).get("/v1/whoami").await;
        assert_eq!((me.status, &me.json()["token"]), (200, &json!(name)), "{me:?}");
    }
    // Neither a page nor its key names one.
    let (mut seen, mut key) = (vec![], String::new());
    stand.like("team");
    while key != "0" {
        let page = stand.get(&format!("/v1/tokens?pageSize=1&nextPageKey={key}")).await.json();
        assert_eq!(names(&page).len(), 1, "pages are full: {page}");
        seen.extend(names(&page));
        key = page["nextPageKey"].as_str().unwrap().to_owned();
        assert!(!FOREIGN.contains(&key.as_str()), "{key}");
    }
    assert_eq!(seen, ["b-shop", "c-both", "f-carts", "team"]);
}

#[tokio::test]
async fn a_token_that_gets_a_wider_reach_is_out_of_hand() {
    let mut stand = furnished().await;
    assert_eq!(stand.like("team").get("/v1/tokens/b-shop").await.status, 200);
    // The installation revokes it, and gives the name to somebody else.
    assert_eq!(stand.like("").delete("/v1/tokens/b-shop").await.status, 204);
    let wide = stand.token("b-shop", &["administer"], &[]).await;
    stand.like("team");
    assert_eq!(stand.post("/v1/tokens/b-shop/rotate", &json!({})).await.status, 404);
    assert_eq!(stand.delete("/v1/tokens/b-shop").await.status, 404);
    stand.like("b-shop");
    assert_eq!((stand.secret_of("b-shop"), stand.get("/v1/githosts").await.status), (wide, 200));
}

async fn told(stand: &Stand, query: &str) -> Vec<(String, String)> {
    let page = stand.get(&format!("/v1/audit?pageSize=100{query}")).await.json();
    let text = |entry: &Value, name: &str| entry[name].as_str().unwrap_or("-").to_owned();
    let entries = page["items"].as_array().unwrap_or_else(|| panic!("{page}"));
    entries.iter().rev().map(|entry| (text(entry, "project"), text(entry, "what"))).collect()
}

#[tokio::test]
async fn a_projects_administrator_reads_who_did_what_there() {
    let mut stand = furnished().await;
    for project in ["shop", "other"] {
        stand.apply(project, STAGES).await;
    }
    let manifest = |name: &str| format!("apiVersion: keelway.dev/v1\nkind: Project\nmetadata: {{name: {name}}}\n");
    stand.manifests(&["carts", "other", "shop"].map(manifest).join("---\n")).await;
    let line = |project: &str, what: &str| (project.to_owned(), what.to_owned());
    let shop = [
        line("shop", "applied Project shop"),
        line("shop", "applied Project shop, Shipyard shop"),
        line("shop", "created token b-shop: read"),
        line("shop", "created token c-both: read"),
        line("shop", "created token d-beyond: read"),
        line("shop", "created token team: administer"),
    ];
    // All of it happened at one time, in which entries have no order.
    let sorted = |mut lines: Vec<(String, String)>| {
        lines.sort();
        lines
    };
    stand.like("team");
    assert_eq!(sorted(told(&stand, "&project=shop").await), shop);
    let both = told(&stand, "").await;
    assert!(both.iter().all(|(project, _)| ["shop", "carts"].contains(&project.as_str())), "{both:?}");
    assert!(both.contains(&line("carts", "applied Project carts")) && both.len() > shop.len(), "{both:?}");
    assert!(!format!("{both:?}").contains("other"), "{both:?}");
    for (path, status) in [
        ("/v1/audit?project=other", 403),
        ("/v1/audit?project=unknown", 403),
        ("/v1/audit?token=e-other&project=carts", 200),
        ("/v1/audit?project=shop", 200),
    ] {
        assert_eq!(stand.get(path).await.status, status, "{path}");
    }
    // Who administers everything sees each project's entry, and what belongs to none.
    let all = told(stand.like(""), "").await;
    assert!(
        all.contains(&line("other", "applied Project other")) && all.contains(&line("-", "created token a-all: administer")),
        "{all:?}"
    );
}
