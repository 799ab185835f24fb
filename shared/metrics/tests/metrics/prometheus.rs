//! Prometheus: what is asked, and what answers mean.

use crate::ports::Ports;
use crate::server::{Server, error, sample, success};
use crate::{measure, told};
use keelway_domain::evaluation::{MetricsApi, Prometheus};
use keelway_engine::ports::PortError;
use keelway_engine::secrets::Known;
use serde_json::json;

const NO_VALUES: &str = "query did not return any values";
const SEVERAL: &str = "query did return multiple values";
const INVALID: &str = "query did not return valid values";

fn at(server: &Server) -> MetricsApi {
    MetricsApi::Prometheus(Prometheus { url: server.url.clone(), ..Prometheus::default() })
}

fn with_secret(server: &Server) -> MetricsApi {
    MetricsApi::Prometheus(Prometheus { url: server.url.clone(), secret: Some("prometheus".into()), ..Prometheus::default() })
}

fn knowing(text: &str) -> Ports {
    Ports { secrets: Known::default().with("shop/prometheus", text), ..Ports::default() }
}

#[tokio::test]
async fn a_query_has_the_one_number_that_it_returns() {
    let warned = json!({"status": "success", "warnings": ["a store is away"], "infos": ["x"],
        "data": {"resultType": "vector", "result": [{"metric": {}, "value": [1.5, "7"]}]}});
    let histogram = json!([{"metric": {}, "histogram": [1.5, {"count": "3"}]}]);
    let two = json!([{"metric": {"a": "1"}, "value": [1, "1"]}, {"metric": {"a": "2"}, "value": [1, "2"]}]);
    let expected = [
        ("sum(rate(x{job=\"carts-shop-dev\",status!~\"2..\"}[300s])) + 1 & 2 = %", sample("0.25"), Ok(0.25)),
        ("scalar", success("scalar", json!([1.5, "-3e2"])), Ok(-300.0)),
        ("warned", (200, warned.to_string()), Ok(7.0)),
        ("none", success("vector", json!([])), Err(NO_VALUES)),
        ("two", success("vector", two), Err(SEVERAL)),
        ("nan", sample("NaN"), Err(INVALID)),
        ("infinite", sample("+Inf"), Err(INVALID)),
        ("histogram", success("vector", histogram), Err(INVALID)),
        ("x[5m]", success("matrix", json!([])), Err("query returns a matrix: have it return one number")),
        ("'text'", success("string", json!([1.5, "text"])), Err("query returns a string: have it return one number")),
        (
            "sum(",
            error(400, "bad_data", "invalid parameter \"query\": 1:5: parse error:\n unclosed"),
            Err("invalid parameter \"query\": 1:5: parse error: unclosed"),
        ),
        ("many-to-many", error(422, "execution", "found duplicate series"), Err("found duplicate series")),
        ("plain", (400, "no".into()), Err("the server refuses the query (400)")),
    ];
    let server = Server::start(expected.iter().map(|(query, answer, _)| (*query, answer.clone()))).await;
    let texts: Vec<&str> = expected.iter().map(|(query, ..)| *query).collect();
    let measured = measure(&Ports::default(), at(&server), &texts).await.unwrap();
    assert_eq!(told(&measured), expected.iter().map(|(.., value)| *value).collect::<Vec<_>>());
    assert_eq!(server.asked().len(), expected.len());
}

#[tokio::test]
async fn a_query_of_several_indicators_is_asked_once() {
    let server = Server::start([("a", sample("1")), ("b", sample("2"))]).await;
    let measured = measure(&Ports::default(), at(&server), &["b", "a", "b"]).await.unwrap();
    assert_eq!(told(&measured), [Ok(2.0), Ok(1.0), Ok(2.0)]);
    assert_eq!(server.asked(), ["a", "b"]);
    assert_eq!(measure(&Ports::default(), at(&server), &[]).await, Ok(vec![]));
}

#[tokio::test]
async fn credentials_are_the_projects_own() {
    for (secret, header) in [
        (r#"{"token": "t0k3n"}"#, "Bearer t0k3n"),
        ("t0k3n", "Bearer t0k3n"),
        (r#"{"username": "shop", "password": "s3cret"}"#, "Basic c2hvcDpzM2NyZXQ="),
    ] {
        let server = Server::start([("a", sample("1"))]).await;
        server.wants(&[("authorization", header)]);
        let measured = measure(&knowing(secret), with_secret(&server), &["a"]).await.unwrap();
        assert_eq!((told(&measured), server.asked().len()), (vec![Ok(1.0)], 1));
    }
    let server = Server::start([("a", sample("1"))]).await;
    for (ports, why) in [
        (Ports::default(), "there is no secret \"shop/prometheus\" for 127.0.0.1"),
        (knowing("{}"), "secret \"shop/prometheus\" has no credentials"),
        (Ports { secrets: Known::default().with("blog/prometheus", "t"), ..Ports::default() }, "there is no secret"),
    ] {
        let refused = measure(&ports, with_secret(&server), &["a"]).await.unwrap_err();
        assert!(matches!(refused, PortError::Refused { .. }) && refused.to_string().contains(why), "{refused}");
    }
    assert!(server.asked().is_empty(), "nothing is sent without them");
}

#[tokio::test]
async fn a_managed_prometheus_gets_signed_requests() {
    let server = Server::start([("up == 1", sample("1"))]).await;
    server.wants(&[("authorization", "AWS4-HMAC-SHA256 Credential=A"), ("x-amz-date", "20261121T005106Z")]);
    let (ports, region) = (Ports::default(), Some("eu-west-1".to_owned()));
    let api = MetricsApi::Prometheus(Prometheus { url: server.url.clone(), region, ..Prometheus::default() });
    let measured = measure(&ports, api, &["up == 1"]).await.unwrap();
    assert_eq!((told(&measured), server.asked().len()), (vec![Ok(1.0)], 1));
    let body = "query=up+%3D%3D+1&time=1795222319.750".to_owned();
    assert_eq!(ports.cloud().signed, [(format!("{}/api/v1/query", server.url), body)]);
}

#[tokio::test]
async fn who_is_busy_is_asked_again_and_who_is_no_prometheus_is_not() {
    let large = "x".repeat((1 << 20) + 1);
    let token = "t0p-s3cret";
    for (answer, passes, why) in [
        (error(503, "timeout", "query timed out"), true, "fails (503): query timed out"),
        ((502, "<html>".into()), true, "fails (502)"),
        ((500, String::new()), true, "fails (500)"),
        ((429, "slow down".into()), true, "is busy (429)"),
        ((401, format!("no {token}")), false, "refuses the credentials in secret \"prometheus\" (401)"),
        (error(403, "x", "token t0p-s3cret is old"), false, "(403): token *** is old"),
        ((404, "nothing here".into()), false, "answers with status 404: is spec.prometheus.url right?"),
        ((302, String::new()), false, "redirects (302)"),
        ((200, "<html>".into()), false, "something that is not JSON"),
        ((200, r#"{"status": "success", "data""#.into()), false, "something that is not JSON"),
        ((200, "{}".into()), false, "no result of a query"),
        (
            (200, json!({"status": "success", "data": {"resultType": "table", "result": []}}).to_string()),
            false,
            "no result of a query",
        ),
        ((200, large), false, "more than 1 MiB"),
    ] {
        let server = Server::start([("a", sample("1")), ("b", answer)]).await;
        server.wants(&[]);
        let lost = measure(&knowing(token), with_secret(&server), &["a", "b"]).await.unwrap_err();
        assert_eq!(matches!(lost, PortError::Retry { .. }), passes, "{lost}");
        assert!(lost.to_string().contains(why) && !lost.to_string().contains(token), "{why}: {lost}");
    }
}

#[tokio::test]
async fn a_server_that_is_away_or_not_permitted() {
    let url = "http://127.0.0.1:9/main".to_owned();
    let away =
        measure(&Ports::default(), MetricsApi::Prometheus(Prometheus { url, ..Prometheus::default() }), &["a"]).await.unwrap_err();
    assert!(matches!(away, PortError::Retry { .. }) && away.to_string().contains("127.0.0.1:9 cannot be reached"), "{away}");
    let url = "https://169.254.169.254".to_owned();
    let barred =
        measure(&Ports::default(), MetricsApi::Prometheus(Prometheus { url, ..Prometheus::default() }), &["a"]).await.unwrap_err();
    assert!(matches!(barred, PortError::Refused { .. }) && barred.to_string().contains("is not asked"), "{barred}");
}
