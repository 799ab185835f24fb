//! What CloudWatch answers.

use super::window::Window;
use crate::said::said;
use crate::{Found, NO_VALID_VALUES, NO_VALUES, SEVERAL_VALUES, finite};
use keelway_engine::metrics::{self, POINTS};
use keelway_engine::ports::PortError;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

const NAME: &str = "cloudwatch.GetMetricData";

/// The results of all pages, by name and label: a query that groups has a result for each group.
#[derive(Debug, Default)]
pub struct Answers {
    results: BTreeMap<String, BTreeMap<String, Series>>,
    messages: Vec<Message>,
}

#[derive(Debug, Default)]
struct Series {
    points: Vec<(f64, Number)>,
    status: String,
    messages: Vec<Message>,
}

impl Series {
    /// The points whose period is over within the window.
    fn within(&self, period: i64, window: &Window) -> impl Iterator<Item = &(f64, Number)> {
        let (start, end) = (window.start as f64, (window.end - period) as f64);
        self.points.iter().filter(move |(at, _)| *at >= start && *at <= end)
    }
}

impl Number {
    fn value(&self) -> Option<f64> {
        match self {
            Self::Finite(value) => Some(*value),
            Self::Text(text) => text.parse().ok(),
        }
    }
}

/// Why there is no value where CloudWatch has some.
pub fn nothing_over(period: i64) -> String {
    format!("no period of {period} s is over within the evaluated time")
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Page {
    metric_data_results: Vec<Part>,
    #[serde(default)]
    messages: Vec<Message>,
    next_token: Option<Value>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Part {
    id: String,
    #[serde(default)]
    label: String,
    #[serde(default)]
    timestamps: Vec<f64>,
    #[serde(default)]
    values: Vec<Number>,
    #[serde(default)]
    status_code: String,
    #[serde(default)]
    messages: Vec<Message>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct Message {
    code: String,
    value: String,
}

/// JSON has no words for numbers that are not finite, so they are texts.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
enum Number {
    Finite(f64),
    Text(String),
}

impl Answers {
    /// Adds a page. What is returned asks for the next one.
    pub fn add(&mut self, page: &Value) -> Result<Option<Value>, PortError> {
        let odd = |why: String| PortError::Refused {
            request: NAME,
            reason: format!("CloudWatch answers with something else than results: {why}"),
        };
        let page: Page = serde_json::from_value(page.clone()).map_err(|error| odd(said(&error.to_string(), &[])))?;
        for result in page.metric_data_results {
            if result.timestamps.len() != result.values.len() {
                return Err(odd(format!(
                    "{:?} has {} times and {} values",
                    result.id,
                    result.timestamps.len(),
                    result.values.len()
                )));
            }
            let series = self.results.entry(result.id).or_default().entry(result.label).or_default();
            series.points.extend(result.timestamps.into_iter().zip(result.values));
            series.messages.extend(result.messages);
            series.status = result.status_code;
        }
        self.messages.extend(page.messages);
        Ok(page.next_token.filter(Value::is_string))
    }

    /// The value of a result: the newest whose period is over within the window.
    ///
    /// # Errors
    /// CloudWatch could not make it for now.
    pub fn value(&self, id: &str, period: i64, window: &Window) -> Result<Found, PortError> {
        let series = match self.complete(id)? {
            Ok(series) => series,
            Err(why) => return Ok(Err(why)),
        };
        let newest = series.within(period, window).max_by(|one, other| one.0.total_cmp(&other.0));
        Ok(match newest {
            None => Err(nothing_over(period)),
            Some((_, number)) => number.value().filter(|value| value.is_finite()).ok_or_else(|| NO_VALID_VALUES.to_owned()),
        })
    }

    /// The values of a result whose period is over within the window, oldest first.
    ///
    /// # Errors
    /// CloudWatch could not make them for now.
    pub fn values(&self, id: &str, period: i64, window: &Window) -> Result<metrics::Series, PortError> {
        let series = match self.complete(id)? {
            Ok(series) => series,
            Err(why) => return Ok(Err(why)),
        };
        let mut points: Vec<&(f64, Number)> = series.within(period, window).collect();
        points.sort_by(|one, other| one.0.total_cmp(&other.0));
        Ok(match i64::try_from(points.len()) {
            Ok(0) => Err(nothing_over(period)),
            Ok(count) if count <= POINTS => finite(points.iter().filter_map(|(_, number)| number.value()).collect()),
            _ => Err(format!("query returns {} values: leave out its period, which is shorter than the steps", points.len())),
        })
    }

    /// The points of a result, or why it has none.
    fn complete(&self, id: &str) -> Result<Result<&Series, String>, PortError> {
        let series = match self.results.get(id).map(|all| all.values().collect::<Vec<_>>()).as_deref() {
            None | Some([]) => return Ok(Err(self.without(NO_VALUES, &[]))),
            Some([one]) => *one,
            Some(_) => return Ok(Err(self.without(SEVERAL_VALUES, &[]))),
        };
        match series.status.as_str() {
            "InternalError" => {
                let reason = self.without("CloudWatch could not make a value", &series.messages);
                Err(PortError::Retry { request: NAME, reason })
            }
            "Forbidden" => Ok(Err(self.without("CloudWatch does not let this role read the metric", &series.messages))),
            "PartialData" => Ok(Err(self.without("CloudWatch has only a part of the data", &series.messages))),
            _ if series.points.is_empty() => Ok(Err(self.without(NO_VALUES, &series.messages))),
            _ => Ok(Ok(series)),
        }
    }

    /// Why there is no value, with what CloudWatch says about it.
    fn without(&self, why: &str, messages: &[Message]) -> String {
        let told: Vec<String> = messages.iter().chain(&self.messages).map(|one| format!("{}: {}", one.code, one.value)).collect();
        if told.is_empty() { why.to_owned() } else { format!("{why}: {}", said(&told.join("; "), &[])) }
    }
}
