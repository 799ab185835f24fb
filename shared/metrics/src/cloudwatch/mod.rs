//! Amazon CloudWatch: `GetMetricData` for the queries of an evaluation, many in one request.

mod answer;
mod array;
mod batch;
mod line;
mod math;
mod parsed;
mod text;
mod window;

pub use parsed::{MetricQuery, parse};
pub use window::Window;

use crate::said::said;
use crate::{Found, NO_VALUES};
use answer::Answers;
use batch::{Batch, batches};
use keelway_domain::evaluation::CloudWatch;
use keelway_engine::metrics::{Credentialed, Series};
use keelway_engine::ports::PortError;

/// The most pages that are read. The newest values are on the first ones.
const PAGES: usize = 10;

/// The values of queries over a window, in their order.
///
/// # Errors
/// CloudWatch is busy or does not answer, or the credentials do not suffice.
pub async fn measure(aws: &impl Credentialed, of: &CloudWatch, texts: &[&str], window: &Window) -> Result<Vec<Found>, PortError> {
    let length = window.length();
    each(aws, of, texts, (window, length), |answers, id, query| answers.value(id, query.period.unwrap_or(length), window)).await
}

/// The values of queries for each step of a window, which begins and ends with one. A query that names a period has its own.
///
/// # Errors
/// As [`measure`]'s.
pub async fn series(
    aws: &impl Credentialed,
    of: &CloudWatch,
    texts: &[&str],
    window: &Window,
    step: i64,
) -> Result<Vec<Series>, PortError> {
    if window.length() < step {
        return Ok(vec![Err(answer::nothing_over(step)); texts.len()]);
    }
    each(aws, of, texts, (window, step), |answers, id, query| answers.values(id, query.period.unwrap_or(step), window)).await
}

/// Asks about all queries in as few requests as they fit into, and reads the answers. `period`: of queries that name none.
async fn each<T: Clone>(
    aws: &impl Credentialed,
    of: &CloudWatch,
    texts: &[&str],
    (window, period): (&Window, i64),
    answered: impl Fn(&Answers, &str, &MetricQuery) -> Result<Result<T, String>, PortError>,
) -> Result<Vec<Result<T, String>>, PortError> {
    let read: Vec<Result<MetricQuery, String>> = texts.iter().map(|text| parse(text)).collect();
    let why = |read: &Result<_, String>| read.as_ref().err().map_or_else(|| NO_VALUES.to_owned(), |why| said(why, &[]));
    let mut found: Vec<Result<T, String>> = read.iter().map(|read| Err(why(read))).collect();
    let queries = read.iter().enumerate().filter_map(|(place, read)| Some((place, read.as_ref().ok()?)));
    let mut waiting = batches(queries);
    waiting.reverse();
    while let Some(batch) = waiting.pop() {
        match ask(aws, of, &batch, (window, period)).await? {
            Ok(answers) => {
                for (place, query, id) in batch.ids() {
                    if let Some(found) = found.get_mut(place) {
                        *found = answered(&answers, &id, query)?;
                    }
                }
            }
            // One query that cannot be read has the whole request refused, so each is asked by itself.
            Err(_) if batch.len() > 1 => waiting.extend(batch.alone().into_iter().rev()),
            Err(words) => {
                for (place, ..) in batch.ids() {
                    if let Some(found) = found.get_mut(place) {
                        *found = Err(said(&words, &[]));
                    }
                }
            }
        }
    }
    Ok(found)
}

/// Asks for everything in a batch, page by page.
async fn ask(
    aws: &impl Credentialed,
    of: &CloudWatch,
    batch: &Batch<'_>,
    (window, period): (&Window, i64),
) -> Result<Result<Answers, String>, PortError> {
    let mut request = batch.request(window, period);
    let mut answers = Answers::default();
    for _ in 0..PAGES {
        let page = match aws.metric_data(of, &request).await? {
            Ok(page) => page,
            Err(words) => return Ok(Err(words)),
        };
        let next = answers.add(&page)?;
        match next {
            Some(token) => request["NextToken"] = token,
            None => break,
        }
    }
    Ok(Ok(answers))
}
