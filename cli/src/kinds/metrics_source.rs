//! Sources of metrics.

use super::{Kind, Place, Verb, json, typed};
use crate::args::named::Format;
use crate::error::CliError;
use crate::table::Table;
use keelway_domain::time::Timestamp;
use keelway_wire::http::promotions::Registered;
use serde_json::Value;

pub const KIND: Kind = Kind {
    kind: "MetricsSource",
    noun: "metrics source",
    collection: "metricsSources",
    place: Place::Namespace,
    get: Verb {
        name: "metricssources",
        aliases: &["metricssource"],
        about: "The sources of metrics that evaluations ask",
        examples: "Examples:\n  keelway get metricssources -p shop\n  keelway get metricssource shop/prometheus -o yaml",
    },
    delete: Verb {
        name: "metricssource",
        aliases: &[],
        about: "A source of metrics: evaluations no longer ask it",
        examples: "Examples:\n  keelway delete metricssource shop/prometheus --yes",
    },
    ends: "Evaluations no longer ask it.",
    json: json::<Registered>,
    table,
};

fn table(all: Vec<Value>, _: Option<Timestamp>, format: Format) -> Result<Table, CliError> {
    let mut all: Vec<Registered> = typed(all.into())?;
    for one in &mut all {
        // Which API it is, and its fields in one row.
        for api in ["prometheus", "cloudwatch"] {
            if let Some(Value::Object(fields)) = one.spec.remove(api) {
                one.spec.insert("api".into(), api.into());
                one.spec.extend(fields);
            }
        }
    }
    let fields: &[_] = match format.is_wide() {
        true => &[
            ("API", "api"),
            ("URL", "url"),
            ("REGION", "region"),
            ("SECRET", "secret"),
            ("ROLE", "role"),
            ("EXTERNAL ID", "externalId"),
            ("DELAY", "delay"),
        ],
        false => &[("API", "api"), ("URL", "url"), ("REGION", "region")],
    };
    Ok(Table::registered(&all, fields, format))
}
