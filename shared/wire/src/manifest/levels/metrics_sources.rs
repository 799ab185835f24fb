//! `kind: MetricsSource`.

use super::additions::REGION;
use super::pipelines::OBJECT_METADATA;
use super::projects::API_VERSION;
use super::shape::{Shape, name};
use super::{Level, document, field, needed, required, under};

use Shape::{Any, Constant, Duration, Of, Pattern, Url};

pub static LEVELS: [&Level; 4] = [&SOURCE, &SPEC, &PROMETHEUS, &CLOUDWATCH];

const ROLE: Shape = Pattern("^arn:[a-z-]+:iam::[0-9]{12}:role/[A-Za-z0-9+=,.@_/-]+$", 600);
/// As `AssumeRole` has it; its shortest is two letters long.
const EXTERNAL_ID: Shape = Pattern("^[A-Za-z0-9_+=,.@:/-]{2,}$", 1224);

pub static SOURCE: Level = Level {
    head: document("MetricsSource", "a MetricsSource").strict(),
    fields: &[
        required("apiVersion", Constant(API_VERSION)),
        required("kind", Constant("MetricsSource")),
        required("metadata", Of(&OBJECT_METADATA)),
        needed("spec", Of(&SPEC), "write `spec:` with `prometheus` or `cloudwatch` below it"),
        field("status", Any),
    ],
};

pub static SPEC: Level = Level {
    head: under("MetricsSourceSpec", &SOURCE, "spec")
        .called("a MetricsSource's `spec`")
        .one_of(&[&["prometheus"], &["cloudwatch"]])
        .strict(),
    fields: &[
        field("prometheus", Of(&PROMETHEUS)).about("The HTTP API of Prometheus, and of what speaks like it."),
        field("cloudwatch", Of(&CLOUDWATCH)).about("`GetMetricData` of Amazon CloudWatch; `{}` for the installation's own."),
        field("delay", Duration).about("How long after the end of a window it is asked: metrics arrive late."),
    ],
};

pub static PROMETHEUS: Level = Level {
    head: under("MetricsPrometheus", &SPEC, "prometheus").strict(),
    fields: &[
        required("url", Url).about("The address below which `/api/v1/query` is."),
        field("secret", name(253)).about("The secret with `{\"token\": …}` or `{\"username\": …, \"password\": …}`.").also(&[
            "secretref",
            "token",
            "credentials",
        ]),
        field("region", REGION).about("The region of Amazon Managed Service for Prometheus: requests are signed for it."),
        field("role", ROLE).about("The role that is assumed for signed requests.").also(&["rolearn", "assumerole"]),
        field("externalId", EXTERNAL_ID).about("The external id that the role's trust policy asks for."),
    ],
};

pub static CLOUDWATCH: Level = Level {
    head: under("MetricsCloudWatch", &SPEC, "cloudwatch").strict(),
    fields: &[
        field("region", REGION).about("Absent: the installation's own."),
        field("role", ROLE)
            .about("The role that is assumed for requests, in the account whose metrics are read.")
            .also(&["rolearn", "assumerole"]),
        field("externalId", EXTERNAL_ID).about("The external id that the role's trust policy asks for."),
    ],
};
