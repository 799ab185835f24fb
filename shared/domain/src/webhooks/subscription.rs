//! Subscriptions: which events they select, and which requests they make.

use crate::event::{AUDIT, CloudEvent, Object};
use crate::pattern::matches;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// A subscription: the events, the receiver, and the form of the requests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Subscription {
    /// Types of events; `*` matches any text, `?` one character. At least one.
    pub events: Vec<String>,
    /// Patterns of projects. Only `*` selects events that belong to no project.
    pub projects: Vec<String>,
    /// Patterns of stages, or of environments of pipelines. Empty: all, including events without a stage.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stages: Vec<String>,
    /// Patterns of services. Empty: all, including events without a service.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub services: Vec<String>,
    /// Conditions on the data, all of which must hold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub match_expressions: Vec<Expression>,
    /// The template of the URL.
    pub url: String,
    /// The templates of additional headers, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// The body of the requests.
    #[serde(default, skip_serializing_if = "Body::is_event")]
    pub body: Body,
    /// The secrets that templates may use, as `name in templates: name of the secret in the subscription's namespace`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub secrets: BTreeMap<String, String>,
    /// The name of the secret that signs the requests, in the subscription's namespace. Absent: they are not signed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signing: Option<String>,
    /// Whether Keelway answers a task's `.triggered` event with `.started`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub send_started: bool,
    /// Whether Keelway answers it with `.finished`, too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub send_finished: bool,
    /// The most attempts of a delivery, 1 to [`super::MAX_ATTEMPTS`].
    pub attempts: u32,
}

crate::stored!(Subscription);

/// The body of a request.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Body {
    /// The CloudEvent, as structured JSON.
    #[default]
    Event,
    /// A message for people, in the format of a chat.
    Form(Form),
    /// A template. Its result is JSON unless `content_type` says otherwise.
    #[serde(rename_all = "camelCase")]
    Template {
        /// The text of the template.
        text: String,
        /// The header `content-type`.
        content_type: String,
    },
}

impl Body {
    fn is_event(&self) -> bool {
        *self == Self::Event
    }
}

/// A chat whose message format Keelway knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Form {
    /// Incoming webhooks of Slack.
    Slack,
    /// Workflows of Microsoft Teams, which accept adaptive cards.
    Teams,
}

/// A condition on a member of `data`, with the operators of Kubernetes' label selectors.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Expression {
    /// The path of the member, such as `data.test.result`.
    pub key: String,
    #[expect(missing_docs, reason = "the name says it")]
    pub operator: Operator,
    /// The values for `In` and `NotIn`, with numbers and booleans as text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<String>,
}

/// A condition on the value of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Operator {
    /// The value, or an element of the list, is one of the values.
    In,
    /// The value is none of the values, or the member is absent.
    NotIn,
    /// The member is present. `null` counts as absent.
    Exists,
    /// The member is absent.
    DoesNotExist,
}

impl Subscription {
    /// Whether the subscription selects an event.
    pub fn takes(&self, event: &CloudEvent) -> bool {
        let any = |patterns: &[String], text: &str| patterns.iter().any(|pattern| matches(pattern, text));
        let filter = |patterns: &[String], text: Option<&str>| patterns.is_empty() || text.is_some_and(|text| any(patterns, text));
        // Only subscriptions to all projects may see the audit, including its entries about single projects.
        let project = match event.text("project") {
            Some(project) if event.ty != AUDIT => any(&self.projects, project),
            _ => self.projects.iter().any(|all| all == "*"),
        };
        project
            && any(&self.events, &event.ty)
            && filter(&self.stages, event.text("stage").or_else(|| event.text("environment")))
            && filter(&self.services, event.text("service"))
            && self.match_expressions.iter().all(|expression| expression.holds(event))
    }

    /// Whether the subscription selects only events of this project.
    pub fn is_within(&self, project: &str) -> bool {
        self.projects.iter().all(|pattern| pattern == project)
    }
}

impl Expression {
    /// Whether the condition holds for an event.
    pub fn holds(&self, event: &CloudEvent) -> bool {
        let found = self.key.strip_prefix("data.").and_then(|path| member(&event.data, path)).filter(|value| !value.is_null());
        let is_listed = |value: &Value| scalar(value).is_some_and(|text| self.values.contains(&text));
        let within = || match found {
            Some(Value::Array(elements)) => elements.iter().any(is_listed),
            Some(value) => is_listed(value),
            None => false,
        };
        match self.operator {
            Operator::In => within(),
            Operator::NotIn => !within(),
            Operator::Exists => found.is_some(),
            Operator::DoesNotExist => found.is_none(),
        }
    }
}

/// The member at a path. Names of members may contain dots, as those of labels do: the longest matching name counts.
fn member<'e>(of: &'e Object, path: &str) -> Option<&'e Value> {
    let inside = |(dot, _): (usize, &str)| member(of.get(&path[..dot])?.as_object()?, &path[dot + 1..]);
    of.get(path).or_else(|| path.rmatch_indices('.').find_map(inside))
}

fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::Context;
    use crate::time::Timestamp;
    use proptest::prelude::*;
    use serde_json::json;

    fn subscription(events: &[&str], projects: &[&str]) -> Subscription {
        let texts = |all: &[&str]| all.iter().map(|one| (*one).to_owned()).collect();
        Subscription {
            events: texts(events),
            projects: texts(projects),
            stages: vec![],
            services: vec![],
            match_expressions: vec![],
            url: "https://hooks.example.com".into(),
            headers: BTreeMap::new(),
            body: Body::Event,
            secrets: BTreeMap::new(),
            signing: None,
            send_started: false,
            send_finished: false,
            attempts: 10,
        }
    }

    fn event(ty: &str, data: Value) -> CloudEvent {
        CloudEvent {
            id: "1".into(),
            source: "me".into(),
            ty: ty.into(),
            time: Timestamp(0),
            context: Context::of("c"),
            authors: vec![],
            triggered_id: None,
            git_commit_id: None,
            data: data.as_object().cloned().unwrap_or_default(),
        }
    }

    const FINISHED: &str = "sh.keptn.event.dev.delivery.finished";

    #[test]
    fn a_body_is_stored_unless_it_is_the_event_itself() {
        let stored = |body| serde_json::to_value(Subscription { body, ..subscription(&["*"], &["*"]) }).unwrap();
        assert_eq!(stored(Body::Event).get("body"), None);
        let own = Body::Template { text: "{}".into(), content_type: "application/json".into() };
        let again: Subscription = serde_json::from_value(stored(own.clone())).unwrap();
        assert_eq!(again.body, own);
    }

    #[test]
    fn types_are_patterns() {
        let shop = json!({"project": "shop", "stage": "dev", "service": "cart"});
        for (pattern, taken) in [
            (FINISHED, true),
            ("sh.keptn.event.*.finished", true),
            ("*", true),
            ("sh.keptn.event.*.started", false),
            ("dev.*", false),
        ] {
            assert_eq!(subscription(&[pattern], &["shop"]).takes(&event(FINISHED, shop.clone())), taken, "{pattern}");
        }
    }

    #[test]
    fn only_events_of_the_named_projects_are_taken() {
        let of = |project: &str| event(FINISHED, json!({"project": project}));
        let none = event("dev.keelway.target.observed", json!({}));
        let shop = subscription(&["*"], &["shop"]);
        assert!(shop.takes(&of("shop")) && !shop.takes(&of("shop2")) && !shop.takes(&none));
        let shops = subscription(&["*"], &["shop*"]);
        assert!(shops.takes(&of("shop2")) && !shops.takes(&none));
        assert!(subscription(&["*"], &["*"]).takes(&none));
        let audit = event("dev.keelway.audit", json!({"project": "shop"}));
        assert!(!shop.takes(&audit) && !shops.takes(&audit) && subscription(&["*"], &["*"]).takes(&audit));
        assert!(shop.is_within("shop") && !shops.is_within("shop"));
    }

    #[test]
    fn stages_and_services_are_filters() {
        let staged =
            Subscription { stages: vec!["prod*".into()], services: vec!["cart".into()], ..subscription(&["*"], &["shop"]) };
        assert!(staged.takes(&event(FINISHED, json!({"project": "shop", "stage": "production", "service": "cart"}))));
        assert!(!staged.takes(&event(FINISHED, json!({"project": "shop", "stage": "dev", "service": "cart"}))));
        assert!(!staged.takes(&event(FINISHED, json!({"project": "shop", "stage": "production"}))));
        let pipeline = Subscription { services: vec![], ..staged };
        assert!(pipeline.takes(&event("dev.keelway.promotion.failed", json!({"project": "shop", "environment": "production"}))));
    }

    #[test]
    fn expressions_look_at_members_of_data() {
        let event =
            event(FINISHED, json!({"result": "fail", "test": {"result": "pass", "tries": 3, "tags": ["a", "b"], "none": null}}));
        let holds = |key: &str, operator, values: &[&str]| {
            Expression { key: key.into(), operator, values: values.iter().map(|value| (*value).to_owned()).collect() }.holds(&event)
        };
        use Operator::{DoesNotExist, Exists, In, NotIn};
        assert!(holds("data.result", In, &["warning", "fail"]) && !holds("data.result", NotIn, &["fail"]));
        assert!(holds("data.test.tries", In, &["3"]) && holds("data.test.tags", In, &["b"]));
        assert!(!holds("data.test.other", In, &["x"]) && holds("data.test.other", NotIn, &["x"]));
        assert!(holds("data.test.result", Exists, &[]) && !holds("data.test.none", Exists, &[]));
        assert!(holds("data.deployment.result", DoesNotExist, &[]) && !holds("data.test", DoesNotExist, &[]));
        // Only strings, numbers and booleans are compared; a string or a list has no members.
        assert!(!holds("data.test", In, &["pass"]) && holds("data.test", NotIn, &["pass"]));
        assert!(holds("data.result.length", DoesNotExist, &[]) && holds("data.test.tags.0", DoesNotExist, &[]));
    }

    #[test]
    fn names_of_members_may_have_dots_in_them() {
        let labels =
            json!({"labels": {"app.kubernetes.io/name": "cart", "app": {"kubernetes": {"io/name": "other"}}, "a": {"b.c": "1"}}});
        let event = event(FINISHED, labels);
        let is = |key: &str, value: &str| {
            Expression { key: key.into(), operator: Operator::In, values: vec![value.into()] }.holds(&event)
        };
        assert!(is("data.labels.app.kubernetes.io/name", "cart") && !is("data.labels.app.kubernetes.io/name", "other"));
        assert!(is("data.labels.a.b.c", "1") && !is("data.labels.a.b", "1"));
    }

    proptest! {
        #[test]
        fn in_and_not_in_are_opposites_and_so_are_the_others(value in "[ab]{0,2}", list in proptest::collection::vec("[ab]{0,2}", 0..4)) {
            let event = event("t", json!({"task": {"value": value}}));
            let of = |operator, key: &str| Expression { key: key.into(), operator, values: list.clone() }.holds(&event);
            for key in ["data.task.value", "data.task.other", "data.task", "data.x.y"] {
                prop_assert_ne!(of(Operator::In, key), of(Operator::NotIn, key));
                prop_assert_ne!(of(Operator::Exists, key), of(Operator::DoesNotExist, key));
            }
            prop_assert_eq!(of(Operator::In, "data.task.value"), list.contains(&value));
        }
    }
}
