//! `kind: WebhookSubscription`: what it becomes. What is refused is in `refusals/webhooksubscription.yaml`.

use keelway_domain::webhooks::{Body, Expression, Form, Operator};
use keelway_wire::manifest::{self, Document, Severity, WebhookManifest};

fn manifest(spec: &str) -> String {
    format!("apiVersion: keelway.dev/v1\nkind: WebhookSubscription\nmetadata: {{name: hook, namespace: shop}}\nspec:\n{spec}")
}

fn read(text: &str) -> WebhookManifest {
    let parsed = manifest::parse(text, "x");
    assert!(!parsed.refused(), "{:?}", parsed.findings);
    match &parsed.documents[..] {
        [Document::Webhook(webhook)] => (**webhook).clone(),
        other => panic!("{other:?}"),
    }
}

fn errors(text: &str) -> Vec<String> {
    let found = manifest::parse(text, "x").findings.into_iter();
    found.filter(|finding| finding.severity == Severity::Error).map(|finding| finding.message).collect()
}

#[test]
fn what_is_not_said_is_the_default() {
    let webhook = read(&manifest("  events: ['*']\n  url: https://hooks.example.com/a\n  signingSecretRef: {name: key}\n"));
    let subscription = webhook.subscription;
    assert_eq!((webhook.namespace.as_str(), webhook.name.as_str()), ("shop", "hook"));
    assert_eq!((subscription.projects, subscription.body, subscription.attempts), (vec!["shop".to_owned()], Body::Event, 10));
    assert!(subscription.stages.is_empty() && !subscription.send_started && !subscription.send_finished);
}

#[test]
fn everything_that_is_said() {
    let text = manifest(
        "  events: [sh.keptn.event.test.triggered]\n  filter: {projects: [shop, other], stages: [dev], services: ['c*']}\n  matchExpressions:\n  - \
         {key: data.test.level, operator: NotIn, values: [1, true, low]}\n  - {key: data.labels, operator: Exists}\n  url: \
         'https://h/{{ data.service }}'\n  headers: {X-Token: '{{ secrets.token }}'}\n  body: '{\"a\": \"{{ type }}\"}'\n  secrets:\n  - {name: \
         token, secretRef: {name: t}}\n  sendFinished: true\n",
    );
    let subscription = read(&text).subscription;
    let level = Expression {
        key: "data.test.level".into(),
        operator: Operator::NotIn,
        values: ["1", "true", "low"].map(str::to_owned).to_vec(),
    };
    assert_eq!(subscription.match_expressions[0], level);
    assert_eq!(subscription.match_expressions[1].operator, Operator::Exists);
    assert_eq!((subscription.projects.len(), subscription.services[0].as_str()), (2, "c*"));
    assert_eq!(subscription.headers["x-token"], "{{ secrets.token }}");
    assert_eq!(subscription.secrets["token"], "t");
    assert!(matches!(&subscription.body, Body::Template { content_type, .. } if content_type == "application/json"));
    assert_eq!((subscription.send_started, subscription.send_finished, subscription.attempts), (true, true, 3));
    let slack = read(&manifest(
        "  events: [dev.keelway.*]\n  url: '{{ secrets.u }}'\n  form: slack\n  secrets: [{name: u, secretRef: {name: u}}]\n",
    ));
    assert_eq!(slack.subscription.body, Body::Form(Form::Slack));
}

#[test]
fn lists_have_limits() {
    let many = |n: usize, one: &dyn Fn(usize) -> String| (0..n).map(one).collect::<Vec<_>>().join(", ");
    let secrets = |n| many(n, &|n| format!("{{name: s{n}, secretRef: {{name: s}}}}"));
    let headers = |n| many(n, &|n| format!("x-{n}: a"));
    let told = |secrets: String, headers: String| {
        let spec = format!("  events: ['*']\n  url: https://h/\n  secrets: [{secrets}]\n  headers: {{{headers}}}\n");
        errors(&manifest(&spec))
    };
    assert_eq!(told(secrets(20), headers(50)), Vec::<String>::new());
    let refused = told(secrets(21), headers(51));
    assert!(refused.len() == 2 && refused[0].contains("at most 20") && refused[1].contains("at most 50"), "{refused:?}");
}
