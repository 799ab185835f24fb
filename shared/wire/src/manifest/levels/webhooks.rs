//! `kind: WebhookSubscription`.

use super::pipelines::{OBJECT_METADATA, SECRET_REF};
use super::projects::API_VERSION;
use super::shape::{Shape, WORDS};
use super::{Level, document, entry, field, needed, required, under};
use keelway_domain::webhooks::{Form, Operator};
use serde_json::{Value, json};

/// The operators of expressions.
pub const OPERATORS: [(&str, Operator); 4] =
    [("In", Operator::In), ("NotIn", Operator::NotIn), ("Exists", Operator::Exists), ("DoesNotExist", Operator::DoesNotExist)];
/// The ready-made forms of messages.
pub const FORMS: [(&str, Form); 2] = [("slack", Form::Slack), ("teams", Form::Teams)];

use Shape::{Any, Constant, Entries, Flag, List, Of, Pattern, Schema, Text, Texts};

pub static LEVELS: [&Level; 5] = [&WEBHOOK, &SPEC, &FILTER, &MATCH_EXPRESSION, &SECRET];

pub static WEBHOOK: Level = Level {
    head: document("Webhook", "a WebhookSubscription"),
    fields: &[
        required("apiVersion", Constant(API_VERSION)),
        required("kind", Constant("WebhookSubscription")),
        required("metadata", Of(&OBJECT_METADATA)),
        needed("spec", Of(&SPEC), "write `spec:` with `events` and `url`"),
        field("status", Any),
    ],
};

const GLOB: Shape = Pattern("^\\S+$", 200);

pub static SPEC: Level = Level {
    head: under("WebhookSpec", &WEBHOOK, "spec").called("a WebhookSubscription's `spec`"),
    fields: &[
        needed(
            "events",
            List(&GLOB, 1),
            "write types of events, such as `sh.keptn.event.approval.triggered`; `*` stands for any text",
        )
        .about("Types of events; `*` stands for any text, `?` for one character.")
        .also(&["event", "types", "eventtypes", "on"]),
        field("filter", Of(&FILTER)).also(&["projects", "stages", "services", "selector"]),
        field("matchExpressions", Entries(&MATCH_EXPRESSION, 0))
            .about("Conditions on members of the event's data; all of them must hold."),
        required("url", Pattern("^(https?://|[{][{])", 65536))
            .about("Where the events go: a template, with `{{ secrets.<name> }}` for secrets."),
        field("headers", Texts),
        field("form", Schema(forms)).about("A ready-made message for a chat, in place of the event."),
        field("body", Text)
            .about("A template in place of the event: `{{ data.project }}`. Values are escaped for JSON.")
            .also(&["payload", "template"]),
        field("contentType", Pattern("/", 200)),
        field("secrets", Entries(&SECRET, 0)).about("Secrets that templates may use."),
        field("signingSecretRef", Of(&SECRET_REF))
            .about("The key that signs requests, as Standard Webhooks has it: `whsec_…`.")
            .also(&["secretref", "signing", "secret"]),
        field("sendStarted", Flag).about("Keelway answers the task's `.triggered` event with `.started`."),
        field("sendFinished", Flag).about("Keelway answers it with `.finished`, too, from the answer of the receiver."),
        field("attempts", Schema(attempts)).about("How often a delivery is tried: 1 to 10.").also(&["retries", "tries"]),
    ],
};

pub static FILTER: Level = Level {
    head: under("WebhookFilter", &SPEC, "filter"),
    fields: &[
        field("projects", List(&GLOB, 0)).about("Patterns of projects; without them, the project of the namespace."),
        field("stages", List(&GLOB, 0)),
        field("services", List(&GLOB, 0)),
    ],
};

pub static MATCH_EXPRESSION: Level = Level {
    head: entry("MatchExpression", &SPEC, "matchExpressions", "key: data.result"),
    fields: &[required("key", Pattern("^data([.][^.]+)+$", 1000)), required("operator", Schema(operators)), field("values", WORDS)],
};

pub static SECRET: Level = Level {
    head: entry("WebhookSecret", &SPEC, "secrets", "name: token"),
    fields: &[
        required("name", Pattern("^[A-Za-z_][A-Za-z0-9_]*$", 63)),
        needed("secretRef", Of(&SECRET_REF), "name the secret with `secretRef: {name: …}`"),
    ],
};

fn operators() -> Value {
    json!({"enum": OPERATORS.map(|(name, _)| name)})
}

fn forms() -> Value {
    json!({"enum": FORMS.map(|(name, _)| name)})
}

fn attempts() -> Value {
    json!({"type": ["integer", "string"], "minimum": 1, "maximum": 10, "pattern": "^([1-9]|10)$"})
}
