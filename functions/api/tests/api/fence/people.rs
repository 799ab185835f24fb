//! Who somebody is: told apart by who vouches for it.

use crate::fence::identity::{Provider, Signer};
use crate::pipelines::applied::{CARTS, begin, manual};
use crate::pipelines::approvals::path;
use crate::stand::{Answer, Stand};
use axum::body::Body;
use axum::http::Request;
use keelway_domain::access::Identities;
use serde_json::{Value, json};

/// A stand with two providers, whose people of the group `ops` may approve; `by` says by which claim they are told apart at the
/// first.
async fn stand(promotion: &str, by: &str) -> (Stand, [Provider; 2], Signer) {
    let (providers, key) = ([Provider::start().await, Provider::start().await], Signer::ec("ec"));
    providers.iter().for_each(|provider| provider.publish(&[&key]));
    let [one, two] = [&providers[0].url, &providers[1].url];
    let rules = format!("iss={one},groups=ops{by}=>read,trigger,approve:*@shop;iss={two},groups=ops=>approve:*@shop");
    let known = Identities::parse(&format!("{one},{two}"), "keelway", &rules).unwrap();
    let mut stand = Stand::with_identities(known);
    begin(&mut stand, promotion).await;
    stand.token("ann", &["read", "approve:*"], &["shop"]).await;
    (stand, providers, key)
}

fn ops(provider: &Provider, key: &Signer, more: Value) -> String {
    let mut claims = provider.claims(json!({"groups": ["ops"]}));
    claims.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    key.sign(&claims)
}

async fn send(stand: &mut Stand, path: &str, token: &str, body: Value) -> Answer {
    let request = Request::post(path).header("authorization", format!("Bearer {token}")).header("content-type", "application/json");
    let answer = stand.request(request.body(Body::from(body.to_string())).unwrap()).await;
    stand.work().await;
    answer
}

async fn approve(stand: &mut Stand, token: &str) -> Answer {
    send(stand, &path("staging", "v2"), token, json!({})).await
}

async fn suspend(stand: &mut Stand, token: &str) -> Answer {
    send(stand, &format!("{CARTS}/commands"), token, json!({"command": "suspend"})).await
}

/// Who has approved.
async fn approvals(stand: &Stand) -> Vec<String> {
    let state = stand.get(CARTS).await.json();
    let given = state["environments"][1]["promotion"]["approvals"].as_array().cloned().unwrap_or_default();
    given.iter().map(|one| one["by"].as_str().unwrap().to_owned()).collect()
}

fn host(provider: &Provider) -> &str {
    provider.url.strip_prefix("http://").unwrap()
}

#[tokio::test]
async fn a_token_and_a_subject_of_one_name_are_two_people() {
    let (mut stand, [provider, _], key) = stand(&manual("    approval: {quorum: 2}\n"), "").await;
    let ann = stand.secret_of("ann");
    for _ in 0..2 {
        assert_eq!(approve(&mut stand, &ann).await.status, 202);
    }
    assert_eq!(approvals(&stand).await, ["token:ann"]);
    approve(&mut stand, &ops(&provider, &key, json!({"sub": "ann"}))).await;
    assert_eq!(approvals(&stand).await, ["token:ann".to_owned(), format!("{}/ann", host(&provider))]);
    assert_eq!(stand.forge.opened(), ["staging v2"]);
}

#[tokio::test]
async fn a_subject_does_not_satisfy_an_approver_that_is_a_token() {
    for approver in ["\"token:ann\"", "ann"] {
        let (mut stand, providers, key) = stand(&manual(&format!("    approval: {{approvers: [{approver}]}}\n")), "").await;
        for provider in &providers {
            let refused = approve(&mut stand, &ops(provider, &key, json!({"sub": "ann"}))).await;
            assert_eq!((refused.status, refused.problem().contains("token:ann do")), (409, true), "{refused:?}");
        }
        let ann = stand.secret_of("ann");
        assert_eq!(approve(&mut stand, &ann).await.status, 202);
        assert_eq!(approvals(&stand).await, ["token:ann"]);
    }
}

#[tokio::test]
async fn two_providers_with_the_same_subject_are_two_people() {
    let (mut stand, providers, key) = stand(&manual("    approval: {quorum: 2}\n"), "").await;
    for provider in &providers {
        approve(&mut stand, &ops(provider, &key, json!({"sub": "ann"}))).await;
    }
    assert_eq!(approvals(&stand).await.len(), 2);
    assert_eq!(stand.forge.opened(), ["staging v2"]);
}

#[tokio::test]
async fn one_person_with_two_subjects_counts_once_if_the_rule_names_the_claim() {
    let (mut stand, [provider, _], key) = stand(&manual("    approval: {quorum: 2}\n"), ",by:actor_id").await;
    let job = |branch: &str, actor: &str| {
        ops(&provider, &key, json!({"sub": format!("repo:acme/shop:ref:refs/heads/{branch}"), "actor_id": actor}))
    };
    for branch in ["a", "b"] {
        assert_eq!(approve(&mut stand, &job(branch, "583231")).await.status, 202);
    }
    assert_eq!(approvals(&stand).await, [format!("{}/583231", host(&provider))]);
    let nobody = suspend(&mut stand, &ops(&provider, &key, json!({"sub": "x"}))).await;
    assert_eq!((nobody.status, nobody.problem().contains("no claim actor_id")), (401, true), "{nobody:?}");
    approve(&mut stand, &job("a", "583232")).await;
    assert_eq!(stand.forge.opened(), ["staging v2"]);
}

#[tokio::test]
async fn a_subject_called_administrator_is_not_shown_as_the_administrator() {
    let (mut stand, [provider, _], key) = stand(&manual(""), "").await;
    let token = ops(&provider, &key, json!({"sub": "administrator"}));
    let suspended = suspend(&mut stand, &token).await;
    assert!([200, 202].contains(&suspended.status), "{suspended:?}");
    let by = format!("{}/administrator", host(&provider));
    assert_eq!(stand.get(CARTS).await.json()["suspended"]["by"], json!(by));
    let audit = |name: String| {
        let stand = &stand;
        async move { stand.get(&format!("/v1/audit?action=control&token={name}")).await.json() }
    };
    assert_eq!(audit(by.replace('/', "%2F")).await["items"][0]["by"], json!(by));
    assert_eq!(audit("administrator".into()).await["items"][0]["by"], json!(by), "a subject is found by its name, too");
}

#[tokio::test]
async fn a_subject_that_is_too_long_is_refused_and_not_cut() {
    let (mut stand, [provider, _], key) = stand(&manual(""), "").await;
    let refused = suspend(&mut stand, &ops(&provider, &key, json!({"sub": "x".repeat(201)}))).await;
    assert_eq!((refused.status, refused.problem().contains("201 characters")), (401, true), "{refused:?}");
    assert_eq!(approve(&mut stand, &ops(&provider, &key, json!({"sub": "x".repeat(200)}))).await.status, 202);
}
