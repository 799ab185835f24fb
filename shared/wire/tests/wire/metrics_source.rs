//! `kind: MetricsSource`: what is read. What is refused is in `refusals/metricssource.yaml`.

use keelway_domain::evaluation::{CloudWatch, MetricsApi, MetricsSource, Prometheus};
use keelway_domain::time::Span;
use keelway_wire::manifest::{self, Document};

fn read(spec: &str) -> MetricsSource {
    let text =
        format!("apiVersion: keelway.dev/v1\nkind: MetricsSource\nmetadata: {{name: numbers, namespace: shop}}\nspec: {spec}\n");
    let parsed = manifest::parse(&text, "-");
    match &parsed.documents[..] {
        [Document::MetricsSource(source)] => {
            assert_eq!((source.namespace.as_str(), source.name.as_str()), ("shop", "numbers"));
            source.metrics.clone()
        }
        other => panic!("{other:?} {:?}", parsed.findings),
    }
}

#[test]
fn a_source_is_a_prometheus_or_cloudwatch() {
    let source = |api, delay: Option<i64>| MetricsSource { api, delay: delay.map(Span::seconds), vouched: false };
    let role = || Some("arn:aws:iam::123456789012:role/metrics".to_owned());
    let open = Prometheus { url: "https://prometheus.test".into(), ..Prometheus::default() };
    let expected = source(MetricsApi::Prometheus(open.clone()), Some(0));
    assert_eq!(read("{prometheus: {url: 'https://prometheus.test/'}, delay: 0s}"), expected);
    let closed = Prometheus { secret: Some("key".into()), ..open };
    assert_eq!(read("{prometheus: {url: 'https://prometheus.test', secret: key}}"), source(MetricsApi::Prometheus(closed), None));
    let url = "https://aps-workspaces.eu-west-1.amazonaws.com/workspaces/ws-1";
    let region = || Some("eu-west-1".to_owned());
    let signed = Prometheus { url: url.into(), region: region(), role: role(), ..Prometheus::default() };
    assert_eq!(
        read(&format!(
            "{{prometheus: {{url: '{url}', region: eu-west-1, role: 'arn:aws:iam::123456789012:role/metrics'}}, delay: 2m}}"
        )),
        source(MetricsApi::Prometheus(signed), Some(120))
    );
    assert_eq!(read("{cloudwatch: {}}"), source(MetricsApi::Cloudwatch(CloudWatch::default()), None));
    let theirs = CloudWatch { region: region(), role: role(), external_id: Some("shop:42".into()) };
    assert_eq!(
        read("{cloudwatch: {region: eu-west-1, role: 'arn:aws:iam::123456789012:role/metrics', externalId: 'shop:42'}}"),
        source(MetricsApi::Cloudwatch(theirs), None)
    );
}

#[test]
fn a_source_is_stored_as_its_manifest_says_it() {
    for spec in [r#"{"cloudwatch":{}}"#, r#"{"prometheus":{"url":"https://a","secret":"s"},"delay":30000,"vouched":true}"#] {
        let source: MetricsSource = serde_json::from_str(spec).unwrap();
        assert_eq!(serde_json::to_string(&source).unwrap(), spec);
    }
}
