//! `kind: ArtifactSource`.

use super::additions::{ACCOUNT, REGION};
use super::pipelines::OBJECT_METADATA;
use super::projects::API_VERSION;
use super::shape::{Shape, name};
use super::{Level, document, entry, field, needed, required, under};

use Shape::{Any, Constant, Entries, List, Needed, Of, Pattern};

pub static LEVELS: [&Level; 5] = [&SOURCE, &SPEC, &ECR, &WEBHOOK, &TAG];

pub static SOURCE: Level = Level {
    head: document("DeploymentSource", "an ArtifactSource").strict(),
    fields: &[
        required("apiVersion", Constant(API_VERSION)),
        required("kind", Constant("ArtifactSource")),
        required("metadata", Of(&OBJECT_METADATA)),
        needed("spec", Of(&SPEC), "write `spec:` with `ecr` or `webhook` below it"),
        field("status", Any),
    ],
};

pub static SPEC: Level = Level {
    head: under("DeploymentSourceSpec", &SOURCE, "spec")
        .called("an ArtifactSource's `spec`")
        .one_of(&[&["ecr"], &["webhook"]])
        .strict(),
    fields: &[
        field("ecr", Of(&ECR)),
        field("webhook", Of(&WEBHOOK)),
        field("images", List(&Needed, 1)).about(
            "What a webhook may say that the tags point to: `<registry>/<repository>` or `s3://<bucket>/<key>`; `*` stands for any text.",
        ),
        field("tags", Entries(&TAG, 0)),
    ],
};

pub static ECR: Level = Level {
    head: under("DeploymentEcr", &SPEC, "ecr").strict(),
    fields: &[
        required("repository", Pattern("^[a-z0-9]([a-z0-9._/-]*[a-z0-9])$", 256)),
        field("account", ACCOUNT),
        field("region", REGION),
    ],
};

pub static WEBHOOK: Level =
    Level { head: under("DeploymentWebhook", &SPEC, "webhook").strict(), fields: &[required("secret", name(253))] };

pub static TAG: Level = Level {
    head: entry("DeploymentSourceTag", &SPEC, "tags", "name: stable").strict(),
    fields: &[
        required("name", Pattern("^[A-Za-z0-9_][A-Za-z0-9_.-]*$", 128)),
        required("pattern", Pattern("^[A-Za-z0-9_.*?-]+$", 1000))
            .about("The tags that it follows: `*` stands for any text, `?` for one character."),
    ],
};
