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

use crate::Found;
use crate::said::said;
use answer::Answers;
use batch::{Batch, batches};
use keelway_domain::evaluation::CloudWatch;
use keelway_engine::metrics::Credentialed;
use keelway_engine::ports::PortError;

/// The most pages that are read. The newest values are on the first ones.
const PAGES: usize = 10;

/// The values of queries over a window, in their order.
///
/// # Errors
/// CloudWatch is busy or does not answer, or the credentials do not suffice.
pub async fn measure(aws: &impl Credentialed, of: &CloudWatch, texts: &[&str], window: &Window) -> Result<Vec<Found>, PortError> {
    let read: Vec<Result<MetricQuery, String>> = texts.iter().map(|text| parse(text)).collect();
    let mut found: Vec<Found> = read.iter().map(|read| Err(read.as_ref().err().cloned().unwrap_or_default())).collect();
    let queries = read.iter().enumerate().filter_map(|(place, read)| Some((place, read.as_ref().ok()?)));
    let mut waiting = batches(queries);
    waiting.reverse();
    while let Some(batch) = waiting.pop() {
        match ask(aws, of, &batch, window).await? {
            Ok(answers) => {
                for (place, query, id) in batch.ids() {
                    if let Some(found) = found.get_mut(place) {
                        *found = answers.value(&id, query.period, window)?;
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
    window: &Window,
) -> Result<Result<Answers, String>, PortError> {
    let mut request = batch.request(window);
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
