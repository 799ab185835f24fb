//! `kind: WebhookSubscription`: what it becomes, and everything that is wrong with one at once.

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

/// `<line> <path>: <message>` of each finding.
fn findings(text: &str, severity: Severity) -> Vec<String> {
    let parsed = manifest::parse(text, "x");
    let all = parsed.findings.iter().filter(|finding| finding.severity == severity);
    all.map(|finding| format!("{} {}: {}", finding.line, finding.path, finding.message)).collect()
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
fn everything_wrong_is_told_at_once() {
    let text = manifest(
        "  events: [deployment.finished, 'sh.keptn.*']\n  filter: {project: [shop]}\n  matchExpressions:\n  - {key: result, operator: Is}\n  - {key: \
         data.result, operator: In}\n  url: ftp://hooks\n  headers: {Host: a, 'a b': '{{ data'}\n  form: slack\n  body: '{{ nothing }}'\n  \
         secrets:\n  - {name: a-b}\n  sendStarted: false\n  sendFinished: true\n  attempts: 11\n  retries: 3\n",
    );
    let told = findings(&text, Severity::Error);
    let expected = [
        ("5 spec.events[0]", "is the type of no event of Keelway"),
        ("6 spec.filter.project", "write `projects`"),
        ("8 spec.matchExpressions[0].key", "write a path such as `data.result`"),
        ("8 spec.matchExpressions[0].operator", "write `In` or `NotIn` or `Exists` or `DoesNotExist`"),
        ("9 spec.matchExpressions[1].values", "is missing: write the list of values"),
        ("10 spec.url", "does not begin with `https://`"),
        ("11 spec.headers.Host", "is written by Keelway"),
        ("11 spec.headers.a b", "is no name of a header"),
        ("11 spec.headers.a b", "is no template"),
        ("13 spec.body", "cannot stand beside `form`"),
        ("15 spec.secrets[0].name", "is no name for templates"),
        ("15 spec.secrets[0].secretRef", "name the secret"),
        ("16 spec.sendStarted", "a task that was not started cannot be finished"),
        ("17 spec.sendFinished", "answers tasks"),
        ("18 spec.attempts", "a delivery is tried 1 to 10 times"),
        ("19 spec.retries", "write `attempts`"),
    ];
    for (at, what) in expected {
        assert!(told.iter().any(|line| line.starts_with(at) && line.contains(what)), "{at}: {what}\n{told:#?}");
    }
    assert_eq!(told.len(), expected.len(), "{told:#?}");
}

#[test]
fn templates_name_what_there_is() {
    let with = |body: &str| {
        let text = manifest(&format!("  events: ['*']\n  url: 'https://h/'\n  signingSecretRef: {{name: k}}\n  body: '{body}'\n"));
        findings(&text, Severity::Error)
    };
    assert_eq!(
        with("{% for name in data.labels %}{{ name }} {{ loop.index }}{% endfor %}{% set x = 1 %}{{ x }}"),
        Vec::<String>::new()
    );
    assert!(with("{{ secrets.token }}")[0].contains("uses `secrets.token`, which `spec.secrets` does not name"));
    assert!(with("{{ event.id }}")[0].contains("uses `event`, which no event has"));
    assert!(with("{{ data.a")[0].contains("is no template"));
}

#[test]
fn whom_a_subscription_is_for_must_be_said() {
    let text = |metadata: &str, filter: &str| {
        format!(
            "apiVersion: keelway.dev/v1\nkind: WebhookSubscription\nmetadata: {{name: hook{metadata}}}\nspec:\n  events: ['*']\n  url: \
             https://h/\n  signingSecretRef: {{name: k}}\n{filter}"
        )
    };
    let told = findings(&text("", ""), Severity::Error);
    assert!(told.len() == 1 && told[0].contains("metadata.namespace: is missing"), "{told:?}");
    assert_eq!(findings(&text("", "  filter: {projects: ['*']}\n"), Severity::Error), Vec::<String>::new());
    assert_eq!(findings(&text(", namespace: default", ""), Severity::Error), Vec::<String>::new());
}

#[test]
fn what_may_surprise_is_a_warning_and_a_url_is_not_repeated() {
    let told = findings(&manifest("  events: ['*']\n  url: http://hooks.internal/\n"), Severity::Warning);
    assert!(told.iter().any(|line| line.contains("spec.signingSecretRef: is missing")), "{told:?}");
    assert!(told.iter().any(|line| line.contains("WebhookAllowedHosts")), "{told:?}");
    let told = findings(&manifest("  events: ['*']\n  form: slack\n  url: https://hooks.chat.test/s3cret\n"), Severity::Warning);
    assert!(told.len() == 1 && told[0].contains("whoever has the URL") && !told[0].contains("s3cret"), "{told:?}");
    let told = findings(&manifest("  events: ['*']\n  body: ''\n  headers: {Expect: x}\n  url: https://h/\n"), Severity::Error);
    assert!(told.len() == 2 && told[0].contains("is empty") && told[1].contains("is written by Keelway"), "{told:?}");
    let told =
        findings(&manifest("  events: ['*']\n  url: 'https://me:s3cret@h/'\n  signingSecretRef: {name: k}\n"), Severity::Error);
    assert!(told[0].contains("names a user") && !told[0].contains("s3cret"), "{told:?}");
}

#[test]
fn lists_have_limits() {
    let many = |n: usize, one: &dyn Fn(usize) -> String| (0..n).map(one).collect::<Vec<_>>().join(", ");
    let secrets = |n| many(n, &|n| format!("{{name: s{n}, secretRef: {{name: s}}}}"));
    let headers = |n| many(n, &|n| format!("x-{n}: a"));
    let told = |secrets: String, headers: String| {
        let spec = format!("  events: ['*']\n  url: https://h/\n  secrets: [{secrets}]\n  headers: {{{headers}}}\n");
        findings(&manifest(&spec), Severity::Error)
    };
    assert_eq!(told(secrets(20), headers(50)), Vec::<String>::new());
    let refused = told(secrets(21), headers(51));
    assert!(refused.len() == 2 && refused[0].contains("at most 20") && refused[1].contains("at most 50"), "{refused:?}");
}
