//! `kind: Project`.

use super::shape::{PROJECT_NAME, Shape};
use super::{Level, document, entry, field, needed, required, under};
use keelway_domain::border::Act;
use serde_json::{Value, json};

/// The `apiVersion` of the kinds that Keelway defines itself.
pub const API_VERSION: &str = "keelway.dev/v1";

use Shape::{Constant, Duration, Either, Entries, List, Needed, Of, Pattern, Schema, Text, Texts, Whole};

pub static LEVELS: [&Level; 8] = [&PROJECT, &METADATA, &SPEC, &CONSENT, &POLICY, &ALLOWS, &RESOURCE_PATTERN, &QUOTAS];

pub static PROJECT: Level = Level {
    head: document("Project", "a Project"),
    fields: &[
        required("apiVersion", Constant(API_VERSION)),
        required("kind", Constant("Project")),
        required("metadata", Of(&METADATA)),
        field("spec", Of(&SPEC)),
    ],
};

/// Of schedules, too.
pub static METADATA: Level = Level {
    head: under("ProjectMetadata", &PROJECT, "metadata"),
    fields: &[required("name", PROJECT_NAME), field("annotations", Texts), field("labels", Texts)],
};

pub static SPEC: Level = Level {
    head: under("ProjectSpec", &PROJECT, "spec").called("a Project's `spec`"),
    fields: &[
        field("description", Text),
        field("startDeadline", Duration).about("How long executors have to answer a task's trigger, unless the task says."),
        field("taskTimeout", Duration)
            .about("How long a started task may take, unless it says. 0 is for ever.")
            .also(&["timeout"]),
        field("consents", Entries(&CONSENT, 0)).about("What other projects may do here. Absent: nothing."),
        field("policy", Of(&POLICY)).about(
            "What this project may use of the installation; only who administers all projects may write it. Absent: it stays as it is; null: none.",
        ),
    ],
};

pub static CONSENT: Level = Level {
    head: entry("Consent", &SPEC, "consents", "to: [team-a]").strict(),
    fields: &[
        needed(
            "to",
            List(&Pattern("^[A-Za-z0-9*?-]+$", 100), 1),
            "write the projects that are let in, for example `to: [team-a]`; `*` stands for any text",
        )
        .about("Who is let in: names of projects; `*` stands for any text, `?` for one character.")
        .also(&["from", "projects", "project"]),
        required("may", List(&Schema(acts), 1))
            .about("`deploy` and `observe` configs, `tag` artifact sources, `observe` tags and clusters, `trigger` sequences.")
            .also(&["allow", "allows", "acts", "actions"]),
        field("names", List(&Pattern("^[A-Za-z0-9._*?-]+$", 100), 1))
            .about("Of which configs, sources, clusters and stages, as patterns. Absent: of all of them.")
            .also(&["configs", "sources", "clusters", "stages", "resources"]),
    ],
};

pub static POLICY: Level = Level {
    head: under("Policy", &SPEC, "policy").strict(),
    fields: &[
        field("allows", Of(&ALLOWS))
            .about("What manifests of this project may name, by kind. A kind that is absent: nothing of it.")
            .also(&["allow", "allowed", "resources"]),
        field("quotas", Of(&QUOTAS)).about("How many of something the project may have.").also(&["quota", "limits"]),
    ],
};

static PATTERN: Shape = Either(&[Needed, Of(&RESOURCE_PATTERN)]);

pub static ALLOWS: Level = Level {
    head: under("Allows", &POLICY, "allows").written("under `allows`, which stands under `policy`").strict(),
    fields: &[
        field("functions", List(&PATTERN, 0)).about("Lambda functions that Keelway deploys to."),
        field("hookFunctions", List(&PATTERN, 0)).about("Lambda functions that hooks call.").also(&["hooks"]),
        field("packages", List(&PATTERN, 0)).about("Packages of code in S3: `<bucket>/<key>`."),
        field("images", List(&PATTERN, 0)).about("Repositories of images: `<registry>/<repository>`."),
        field("tasks", List(&PATTERN, 0)).about("Task definitions of ECS: `<cluster>/<family>`."),
        field("builds", List(&PATTERN, 0)).about("Projects of CodeBuild."),
        field("repositories", List(&PATTERN, 0)).about("Repositories of git hosts, as URLs."),
        field("servers", List(&PATTERN, 0)).about("Servers of the Kubernetes API and of Prometheus, as URLs."),
        field("metrics", List(&PATTERN, 0)).about(
            "Metrics that are read with credentials of AWS: `cloudwatch` or `prometheus`, with `/<role>` if a role is assumed.",
        ),
    ],
};

pub static RESOURCE_PATTERN: Level = Level {
    head: entry("ResourcePattern", &ALLOWS, "functions", "name: shop-*")
        .called("a pattern")
        .written("in an entry with `name`")
        .strict(),
    fields: &[
        needed("name", Needed, "write a name, in which `*` stands for any text"),
        field("region", Pattern("^[a-z0-9*?-]+$", 63)).about("Absent: the installation's own."),
        field("account", Schema(account)).about("Absent: the installation's own."),
    ],
};

pub static QUOTAS: Level = Level {
    head: under("Quotas", &POLICY, "quotas").written("under `quotas`, which stands under `policy`").strict(),
    fields: &[
        field("webhooks", Whole(1)),
        field("integrations", Whole(1)),
        field("pipelines", Whole(1)),
        field("deploymentConfigs", Whole(1)),
        field("schedules", Whole(1)),
    ],
};

fn acts() -> Value {
    json!({"enum": Act::ALL.map(Act::as_str)})
}

/// Read as a text, however it is written.
fn account() -> Value {
    json!({"type": ["string", "integer"], "pattern": "^[0-9*?]+$"})
}
