//! `kind: WebhookSubscription`: which events are delivered to which URL.

use super::finding::Report;
use super::levels;
use super::levels::projects::API_VERSION;
use super::levels::webhooks::{self, FORMS, OPERATORS};
use super::objects;
use super::tree::Node;
use super::values::{self, flag, text, words};
use keelway_domain::names::ProjectName;
use keelway_domain::webhooks::{Body, Expression, MAX_ATTEMPTS, Operator, Subscription};
use std::collections::{BTreeMap, HashSet};

/// What types of events begin with.
const TYPES: [&str; 2] = ["sh.keptn.", "dev.keelway."];
/// Most patterns in a list.
const PATTERNS: usize = 50;
/// Most secrets: each of them may have to be read for a request.
const SECRETS: usize = 20;
/// Most headers.
const HEADERS: usize = 50;
/// The longest template, in bytes.
const LONGEST: usize = 64 * 1024;
/// The default number of attempts of a webhook that carries out a task; they take about five minutes.
const TASK_ATTEMPTS: u32 = 3;
/// Headers that Keelway writes, or that belong to the connection.
const RESERVED: [&str; 14] = [
    "host",
    "content-length",
    "content-type",
    "connection",
    "expect",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "webhook-id",
    "webhook-timestamp",
    "webhook-signature",
];
/// The members of an event that templates may use, beside `secrets`.
pub const MEMBERS: [&str; 11] = [
    "specversion",
    "datacontenttype",
    "shkeptnspecversion",
    "id",
    "source",
    "type",
    "time",
    "shkeptncontext",
    "triggeredid",
    "gitcommitid",
    "data",
];

/// A subscription as its manifest declares it.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "named as the fields of the manifest are")]
pub struct WebhookManifest {
    /// The project; `default` if absent.
    pub namespace: ProjectName,
    pub name: String,
    pub subscription: Subscription,
    /// The text of the document.
    pub source: String,
}

pub fn read(root: &Node, source: &str, report: &mut Report) -> Option<WebhookManifest> {
    levels::check(root, &webhooks::WEBHOOK, "", report);
    objects::version(root, "WebhookSubscription", API_VERSION, report);
    let metadata = objects::metadata(root, report);
    let name = objects::name(metadata.unwrap_or(root), "metadata", report);
    let namespace = objects::namespace(root, metadata, report);
    let (spec, _) = levels::mapping(root, "spec", &webhooks::SPEC, "", report)?;
    let events = events(spec, report);
    let (projects, stages, services) = filter(spec, report);
    let projects = match (projects.is_empty(), &namespace) {
        (false, _) => projects,
        (true, Some(namespace)) => {
            if metadata.is_none_or(|metadata| metadata.get("namespace").is_none_or(Node::is_null)) {
                let message = "is missing: write the project as `namespace`, or the projects under `spec.filter.projects`";
                report.error(metadata.unwrap_or(root), "metadata.namespace", message.into());
            }
            vec![namespace.to_string()]
        }
        (true, None) => vec![],
    };
    let secrets = secrets(spec, report);
    let mut templates = Templates { secrets: &secrets, report };
    let url = url(spec, &mut templates);
    let headers = headers(spec, &mut templates);
    let body = body(spec, &mut templates);
    let signing = objects::secret(spec, "signingSecretRef", "spec", report);
    if signing.is_none() && !matches!(body, Body::Form(_)) && spec.get("signingSecretRef").is_none_or(Node::is_null) {
        let message = "is missing: requests are not signed, and a receiver cannot tell them from those of others; name the key with \
                       `signingSecretRef: {name: …}`";
        report.warning(spec, "spec.signingSecretRef", message.into());
    }
    if matches!(body, Body::Form(_)) && !url.contains("secrets.") && !url.is_empty() {
        let message = "stands in the manifest, and whoever has the URL of a chat can write there: name a secret under `secrets`, and write \
                       `url: \"{{ secrets.url }}\"`";
        report.warning(spec.get("url").unwrap_or(spec), "spec.url", message.into());
    }
    let (send_started, send_finished) = answers(spec, &events, report);
    let attempts = attempts(spec, if send_finished { TASK_ATTEMPTS } else { MAX_ATTEMPTS }, report);
    let match_expressions = expressions(spec, report);
    let subscription = Subscription {
        events,
        projects,
        stages,
        services,
        match_expressions,
        url,
        headers,
        body,
        secrets,
        signing,
        send_started,
        send_finished,
        attempts,
    };
    Some(WebhookManifest { namespace: namespace?, name: name?, subscription, source: source.to_owned() })
}

fn events(spec: &Node, report: &mut Report) -> Vec<String> {
    let events = patterns(spec, "events", "spec", report);
    let at = spec.get("events").unwrap_or(spec);
    for (place, pattern) in events.iter().enumerate() {
        let begins = pattern.split(['*', '?']).next().unwrap_or_default();
        if !TYPES.iter().any(|known| begins.starts_with(known) || known.starts_with(begins)) {
            let at = at.list().and_then(|list| list.get(place)).unwrap_or(at);
            let message =
                format!("{pattern:?} is the type of no event of Keelway: those begin with `sh.keptn.event.` or `dev.keelway.`");
            report.error(at, format!("spec.events[{place}]"), message);
        }
    }
    events
}

/// A list of patterns.
fn patterns(node: &Node, field: &str, path: &str, report: &mut Report) -> Vec<String> {
    let all = words(node, field, path, report);
    if all.len() > PATTERNS {
        let at = node.get(field).unwrap_or(node);
        report.error(at, format!("{path}.{field}"), format!("has {} entries: at most {PATTERNS} are taken", all.len()));
    }
    for (place, pattern) in
        all.iter().enumerate().filter(|(_, pattern)| pattern.len() > 200 || pattern.contains(char::is_whitespace))
    {
        let at = node.get(field).and_then(|list| list.list()?.get(place)).unwrap_or(node);
        let message = format!("{pattern:?} is no pattern: write at most 200 characters without blanks");
        report.error(at, format!("{path}.{field}[{place}]"), message);
    }
    all
}

/// Projects, stages and services.
fn filter(spec: &Node, report: &mut Report) -> (Vec<String>, Vec<String>, Vec<String>) {
    let Some((filter, _)) = levels::mapping(spec, "filter", &webhooks::FILTER, "spec", report) else { return Default::default() };
    let mut list = |field| patterns(filter, field, "spec.filter", report);
    (list("projects"), list("stages"), list("services"))
}

fn expressions(spec: &Node, report: &mut Report) -> Vec<Expression> {
    let Some(list) = spec.get("matchExpressions").filter(|list| !list.is_null()) else { return vec![] };
    let entries = levels::items(list, "spec.matchExpressions", &webhooks::MATCH_EXPRESSION, report).unwrap_or_default();
    let one = |(place, node): (usize, &Node)| expression(node, &format!("spec.matchExpressions[{place}]"), report);
    entries.into_iter().enumerate().filter_map(one).collect()
}

fn expression(node: &Node, path: &str, report: &mut Report) -> Option<Expression> {
    levels::check(node, &webhooks::MATCH_EXPRESSION, path, report);
    let key = text(node, "key", path, report).unwrap_or_default();
    let parts: Vec<&str> = key.split('.').collect();
    let is_path = parts.len() > 1 && parts[0] == "data" && parts.iter().all(|part| !part.is_empty());
    if !is_path {
        let what = if key.is_empty() { "is missing".to_owned() } else { format!("{key:?} is no member of an event's data") };
        let message = format!("{what}: write a path such as `data.result` or `data.test.result`");
        report.error(node.get("key").unwrap_or(node), format!("{path}.key"), message);
    }
    let names = OPERATORS.map(|(name, _)| name);
    if node.get("operator").is_none_or(Node::is_null) {
        report.error(node, format!("{path}.operator"), format!("is missing: write one of `{}`", names.join("`, `")));
    }
    let operator = values::word(node, "operator", path, &names, report).map(|place| OPERATORS[place].1);
    let values = words(node, "values", path, report);
    let at = node.get("values").unwrap_or(node);
    match operator {
        Some(Operator::In | Operator::NotIn) if values.is_empty() => {
            report.error(at, format!("{path}.values"), "is missing: write the list of values to compare with".into());
        }
        Some(Operator::Exists | Operator::DoesNotExist) if !values.is_empty() => {
            report.error(at, format!("{path}.values"), "has no meaning with this operator: leave it out".into());
        }
        _ => {}
    }
    Some(Expression { key, operator: operator?, values }).filter(|_| is_path)
}

/// The name of a secret in templates, and its name in the namespace.
fn secrets(spec: &Node, report: &mut Report) -> BTreeMap<String, String> {
    let Some(list) = spec.get("secrets").filter(|list| !list.is_null()) else { return BTreeMap::new() };
    let mut all = BTreeMap::new();
    if let Some(n) = list.list().map(<[Node]>::len).filter(|n| *n > SECRETS) {
        report.error(list, "spec.secrets", format!("has {n} entries: at most {SECRETS} are taken"));
    }
    for (place, node) in levels::items(list, "spec.secrets", &webhooks::SECRET, report).unwrap_or_default().into_iter().enumerate()
    {
        let path = format!("spec.secrets[{place}]");
        levels::check(node, &webhooks::SECRET, &path, report);
        let name = text(node, "name", &path, report).unwrap_or_default();
        let at = node.get("name").unwrap_or(node);
        let mut letters = name.chars();
        let first = letters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_');
        if !first || !letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '_') || name.len() > 63 {
            let message = format!("{name:?} is no name for templates: use letters, digits and `_`, a letter first");
            report.error(at, format!("{path}.name"), message);
        } else if all.contains_key(&name) {
            report.error(at, format!("{path}.name"), format!("{name:?} is there twice: give each secret its own name"));
        }
        let secret = objects::secret(node, "secretRef", &path, report).unwrap_or_default();
        all.insert(name, secret);
    }
    all
}

/// Checks templates.
struct Templates<'a, 'r, 't> {
    secrets: &'a BTreeMap<String, String>,
    report: &'r mut Report<'t>,
}

impl Templates<'_, '_, '_> {
    /// Whether a template can be read and names only what there is. Members of `data` are known when an event comes.
    fn check(&mut self, template: &str, at: &Node, path: &str) {
        if template.len() > LONGEST {
            let message = format!("has {} bytes: at most {LONGEST} are taken", template.len());
            self.report.error(at, path, message);
            return;
        }
        let environment = minijinja::Environment::new();
        let variables: HashSet<String> = match environment.template_from_named_str("template", template) {
            Ok(read) => read.undeclared_variables(true),
            Err(error) => {
                let detail = error.detail().map(|detail| format!(": {detail}")).unwrap_or_default();
                let line = error.line().map(|line| format!(" in its line {line}")).unwrap_or_default();
                self.report.error(
                    at,
                    path,
                    format!("is no template: {}{detail}{line}; write values as `{{{{ data.project }}}}`", error.kind()),
                );
                return;
            }
        };
        let mut variables: Vec<&String> = variables.iter().collect();
        variables.sort();
        for variable in variables {
            let mut parts = variable.split('.');
            match (parts.next().unwrap_or_default(), parts.next()) {
                ("secrets", Some(name)) if !self.secrets.contains_key(name) => {
                    let message = format!("uses `secrets.{name}`, which `spec.secrets` does not name: add it there");
                    self.report.error(at, path, message);
                }
                ("secrets", _) => {}
                // Functions of the template language.
                (name, None) if ["range", "dict", "namespace"].contains(&name) => {}
                (name, _) if MEMBERS.contains(&name) => {}
                (name, _) => {
                    let message = format!("uses `{name}`, which no event has: there are `secrets`, `{}`", MEMBERS.join("`, `"));
                    self.report.error(at, path, message);
                }
            }
        }
    }
}

fn is_template(text: &str) -> bool {
    text.contains("{{") || text.contains("{%")
}

fn url(spec: &Node, templates: &mut Templates<'_, '_, '_>) -> String {
    let path = "spec.url";
    let at = spec.get("url").unwrap_or(spec);
    let given = text(spec, "url", "spec", templates.report).unwrap_or_default().trim().to_owned();
    let rest = given.strip_prefix("https://").or_else(|| given.strip_prefix("http://"));
    let host = rest.map(|rest| rest.split(['/', '?', '#']).next().unwrap_or_default());
    let wrong = match host {
        _ if given.is_empty() => Some("is missing: write the URL of the receiver"),
        None if !given.starts_with("{{") => Some("does not begin with `https://`: write a URL, or a template that becomes one"),
        Some(host) if host.contains('@') && !is_template(host) => {
            Some("names a user: put credentials into `headers`, from a secret")
        }
        Some(host) if !is_template(host) && !objects::is_authority(host) => Some("has no host: write it like https://host/path"),
        _ => None,
    };
    match wrong {
        // The value may hold a secret and is not repeated.
        Some(wrong) => templates.report.error(at, path, wrong.into()),
        None => templates.check(&given, at, path),
    }
    objects::unencrypted(&given, at, path, templates.report);
    given
}

fn headers(spec: &Node, templates: &mut Templates<'_, '_, '_>) -> BTreeMap<String, String> {
    let given = values::texts(spec, "headers", "spec", templates.report);
    let mut all = BTreeMap::new();
    if given.len() > HEADERS {
        let at = spec.get("headers").unwrap_or(spec);
        templates.report.error(at, "spec.headers", format!("has {} entries: at most {HEADERS} are taken", given.len()));
    }
    for (name, value) in given {
        let path = format!("spec.headers.{name}");
        let at = spec.get("headers").and_then(|headers| headers.get(&name)).unwrap_or(spec);
        let lower = name.to_ascii_lowercase();
        let token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
        if name.is_empty() || !name.chars().all(token) {
            templates.report.error(at, path.clone(), format!("{name:?} is no name of a header: use letters, digits and `-`"));
        } else if RESERVED.contains(&lower.as_str()) {
            let instead = if lower == "content-type" { "write `contentType` beside `body`" } else { "leave it out" };
            templates.report.error(at, path.clone(), format!("is written by Keelway: {instead}"));
        } else if all.contains_key(&lower) {
            templates.report.error(at, path.clone(), "is there twice: upper and lower case are the same".into());
        }
        templates.check(&value, at, &path);
        all.insert(lower, value);
    }
    all
}

fn body(spec: &Node, templates: &mut Templates<'_, '_, '_>) -> Body {
    let form = values::word(spec, "form", "spec", &FORMS.map(|(name, _)| name), templates.report);
    let template = text(spec, "body", "spec", templates.report);
    let content_type = text(spec, "contentType", "spec", templates.report).filter(|given| !given.is_empty());
    if let Some(at) = spec.get("contentType").filter(|at| !at.is_null() && template.is_none()) {
        templates.report.error(at, "spec.contentType", "belongs to `body`, which is missing: leave it out, or write one".into());
    }
    match (form, template) {
        (Some(_), Some(_)) => {
            let at = spec.get("body").unwrap_or(spec);
            templates.report.error(at, "spec.body", "cannot stand beside `form`: leave one of them out".into());
            Body::Event
        }
        (Some(form), None) => Body::Form(FORMS[form].1),
        (None, Some(template)) => {
            let at = spec.get("body").unwrap_or(spec);
            if template.trim().is_empty() {
                templates.report.error(at, "spec.body", "is empty: leave it out to send the event, or write a template".into());
            }
            templates.check(&template, at, "spec.body");
            let content_type = content_type.unwrap_or_else(|| "application/json".into());
            if !content_type.contains('/') || content_type.contains(|c: char| c.is_control() || !c.is_ascii()) {
                let at = spec.get("contentType").unwrap_or(spec);
                templates.report.error(
                    at,
                    "spec.contentType",
                    format!("{content_type:?} is no type: write it like `application/json`"),
                );
            }
            Body::Template { text: template, content_type }
        }
        (None, None) => Body::Event,
    }
}

/// `sendStarted`, which follows from `sendFinished`, and `sendFinished`.
fn answers(spec: &Node, events: &[String], report: &mut Report) -> (bool, bool) {
    let finished = flag(spec, "sendFinished", "spec", report);
    let started = flag(spec, "sendStarted", "spec", report);
    let at = |field: &str| spec.get(field).filter(|at| !at.is_null());
    if let Some(at) = at("sendStarted").filter(|_| finished && !started) {
        let message = "is false, but a task that was not started cannot be finished: leave it out, or both";
        report.error(at, "spec.sendStarted", message.into());
    }
    let field = if finished { "sendFinished" } else { "sendStarted" };
    let task = |event: &String| event.starts_with("sh.keptn.event.") && event.ends_with(".triggered");
    if (finished || started) && !events.iter().all(task) {
        let message = "answers tasks: then all `events` are types of triggered tasks, such as `sh.keptn.event.test.triggered`";
        report.error(at(field).unwrap_or(spec), format!("spec.{field}"), message.into());
    }
    (started || finished, finished)
}

fn attempts(spec: &Node, default: u32, report: &mut Report) -> u32 {
    let Some(given) = values::whole(spec, "attempts", "spec", 1, report) else { return default };
    let number = u32::try_from(given).ok().filter(|number| (1..=MAX_ATTEMPTS).contains(number));
    if number.is_none() {
        let at = spec.get("attempts").unwrap_or(spec);
        report.error(at, "spec.attempts", format!("is {given}: a delivery is tried 1 to {MAX_ATTEMPTS} times"));
    }
    number.unwrap_or(default)
}
