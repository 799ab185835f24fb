//! Files of indicators (`sli.yaml`): queries by name, from project, stage and service, and what stands for the place of an
//! evaluation in them. As Keptn's Prometheus service does it.

use super::built_in::built_in;
use super::source::MetricsApi;
use std::collections::BTreeMap;

/// Queries by the name of their indicator.
pub type Queries = BTreeMap<String, String>;

/// Where and when an evaluation takes place.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[expect(missing_docs, reason = "the words that queries use")]
pub struct Place {
    pub project: String,
    pub stage: String,
    pub service: String,
    pub deployment: String,
    /// The Lambda function that is evaluated, if it is one: its name.
    pub function: Option<String>,
    /// The alias that calls come by.
    pub alias: Option<String>,
    /// The version of the function that is evaluated.
    pub version: Option<String>,
    pub labels: BTreeMap<String, String>,
    /// `filter` of the objectives.
    pub filter: BTreeMap<String, String>,
    /// From the beginning to the end of the evaluation.
    pub milliseconds: i64,
}

/// Why there is no query. The messages are those of Keptn's Prometheus service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum QueryError {
    /// A file without indicators, and none in the files before it.
    #[error("missing required field: indicators")]
    NoIndicators,
    /// No file has it, and it is not built in.
    #[error("unsupported SLI")]
    Unsupported,
}

/// The queries of the files of project, stage and service, as far as there are any: the later one counts, name by name.
///
/// # Errors
/// The first files have no indicator.
pub fn merged(files: &[Option<&Queries>; 3]) -> Result<Queries, QueryError> {
    let mut all = Queries::new();
    for file in files.iter().flatten() {
        all.extend(file.iter().map(|(name, query)| (name.clone(), query.clone())));
        if all.is_empty() {
            return Err(QueryError::NoIndicators);
        }
    }
    Ok(all)
}

/// The query of an indicator for a source of this API, with the place filled in.
///
/// # Errors
/// There is none.
pub fn query(queries: &Queries, sli: &str, place: &Place, api: &MetricsApi) -> Result<String, QueryError> {
    match queries.get(sli).filter(|query| !query.is_empty()) {
        Some(query) => Ok(place.filled(query)),
        None => built_in(sli, place, api).ok_or(QueryError::Unsupported),
    }
}

impl Place {
    /// The names are replaced wherever they stand, also within longer words: the longest of them first.
    pub(super) fn filled(&self, query: &str) -> String {
        let mut query = query.to_owned();
        for (key, value) in longest_first(&self.filter) {
            let value = plain(value);
            query = query.replace(&format!("${key}"), &value).replace(&format!("${}", key.to_uppercase()), &value);
        }
        let names = [
            ("$DEPLOYMENT", Some(&self.deployment)),
            ("$FUNCTION", self.function.as_ref()),
            ("$PROJECT", Some(&self.project)),
            ("$SERVICE", Some(&self.service)),
            ("$VERSION", self.version.as_ref()),
            ("$ALIAS", self.alias.as_ref()),
            ("$STAGE", Some(&self.stage)),
        ];
        for (name, value) in names.iter().filter_map(|(name, value)| Some((name, (*value)?))) {
            query = query.replace(name, &plain(value));
        }
        for (key, value) in longest_first(&self.labels) {
            query = query.replace(&format!("$LABEL.{key}"), &plain(value));
        }
        query.replace("$DURATION_SECONDS", &self.duration())
    }

    /// Whole seconds, rounded up.
    pub(super) fn duration(&self) -> String {
        let more = i64::from(self.milliseconds.rem_euclid(1000) > 0);
        format!("{}s", self.milliseconds.div_euclid(1000) + more)
    }
}

/// A text without what would end a text in a query: whoever may trigger says which values are asked for, not what the query is.
pub(super) fn plain(value: &str) -> String {
    value.replace(['\'', '"', '`', '\\', '\n', '\r'], "")
}

fn longest_first(of: &BTreeMap<String, String>) -> Vec<(&String, &String)> {
    let mut all: Vec<_> = of.iter().collect();
    all.sort_by_key(|(key, _)| std::cmp::Reverse(key.len()));
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evaluation::{CloudWatch, Prometheus};

    fn map(of: &[(&str, &str)]) -> BTreeMap<String, String> {
        of.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    fn place() -> Place {
        let (labels, filter) = (map(&[("build", "7"), ("build_id", "x")]), map(&[]));
        let [project, stage, service, deployment] = ["shop", "dev", "carts", "canary"].map(str::to_owned);
        Place { project, stage, service, deployment, labels, filter, milliseconds: 299_001, ..Place::default() }
    }

    fn prometheus() -> MetricsApi {
        MetricsApi::Prometheus(Prometheus::default())
    }

    #[test]
    fn the_file_nearest_to_the_service_counts() {
        let (project, stage, none) = (map(&[("a", "1"), ("b", "1")]), map(&[("b", "2")]), map(&[]));
        assert_eq!(merged(&[Some(&project), Some(&stage), None]), Ok(map(&[("a", "1"), ("b", "2")])));
        assert_eq!(merged(&[None, None, None]), Ok(none.clone()));
        assert_eq!(merged(&[Some(&project), None, Some(&none)]), Ok(project.clone()), "what others say is enough");
        let error = merged(&[Some(&none), Some(&project), None]).unwrap_err();
        assert_eq!(error.to_string(), "missing required field: indicators");
    }

    #[test]
    fn a_duration_is_whole_seconds_rounded_up() {
        for (milliseconds, told) in [(299_000, "299s"), (299_001, "300s"), (299_999, "300s"), (0, "0s")] {
            assert_eq!(Place { milliseconds, ..Place::default() }.duration(), told);
        }
    }

    #[test]
    fn a_query_names_its_place() {
        let queries = map(&[
            ("a", "rate(x{job=\"$SERVICE-$PROJECT-$STAGE\",d='$DEPLOYMENT'}[$DURATION_SECONDS])"),
            ("b", "$LABEL.build_id $LABEL.build $LABEL.other $SERVICE_NAME"),
            ("c", "$svc $SVC_ID $svc_id"),
            ("empty", ""),
        ]);
        let filled = |sli: &str, place: &Place| query(&queries, sli, place, &prometheus()).unwrap();
        assert_eq!(filled("a", &place()), "rate(x{job=\"carts-shop-dev\",d='canary'}[300s])");
        assert_eq!(filled("b", &place()), "x 7 $LABEL.other carts_NAME", "the longest name first");
        let hostile = Place { labels: map(&[("build", "7\"} or vector(0) #\\"), ("other", "`1`")]), ..place() };
        assert_eq!(filled("b", &hostile), "7} or vector(0) #_id 7} or vector(0) # 1 carts_NAME", "no text ends early");
        let filtered = Place { filter: map(&[("svc", "'s\""), ("svc_id", "i")]), ..place() };
        assert_eq!(filled("c", &filtered), "s i i");
        let error = query(&queries, "empty", &place(), &prometheus()).unwrap_err();
        assert_eq!(error.to_string(), "unsupported SLI");
    }

    #[test]
    fn a_query_names_the_function_if_there_is_one() {
        let queries = map(&[("a", "$FUNCTION:$ALIAS:$VERSION $FUNCTIONS")]);
        let filled = |place: &Place| query(&queries, "a", place, &MetricsApi::Cloudwatch(CloudWatch::default())).unwrap();
        assert_eq!(filled(&place()), queries["a"], "names of nothing stay");
        let [function, alias, version] = ["shop", "live\"", "12"].map(|text| Some(text.to_owned()));
        assert_eq!(filled(&Place { function, alias, version, ..place() }), "shop:live:12 shopS");
    }
}
