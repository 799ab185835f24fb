//! `pipeline history`: promotions that are over; and `pipeline pull-requests`: those that are open.

use super::Address;
use crate::api::Api;
use crate::args::{Format, PipelineHistory, PipelineShow};
use crate::commands::get;
use crate::commands::pages::{PAGES, is_last};
use crate::error::CliError;
use crate::output::{say, say_data};
use crate::table::Table;
use crate::terminal::{Look, look};
use crate::words::{age, between, revision, short_ids};
use keelway_domain::time::Timestamp;
use keelway_wire::http::promotions::{HistoryPage, OpenPullRequests, PastPromotion, PromotionState};
use serde_json::json;

/// Prints what is over, newest first.
///
/// # Errors
/// As the API answers.
pub async fn history(api: &Api, what: &PipelineHistory) -> Result<(), CliError> {
    let of = Address::of(&what.of.name, &what.of.namespace);
    let path: Vec<&str> = of.path().into_iter().chain(["history"]).collect();
    let limit = usize::try_from(what.limit).unwrap_or(usize::MAX);
    let page_size = limit.min(100).to_string();
    let (mut all, mut key, mut now) = (vec![], String::new(), None);
    for _ in 0..PAGES {
        let page: HistoryPage = api.get(&path, &[("pageSize", page_size.as_str()), ("nextPageKey", key.as_str())]).await?;
        now = Timestamp::parse(&page.now);
        all.extend(page.promotions);
        all.retain(|past| what.environment.as_ref().is_none_or(|wanted| past.environment == *wanted));
        key = page.next_page_key;
        if is_last(&key) || all.len() >= limit {
            break;
        }
    }
    all.truncate(limit);
    let format = what.output.format;
    if format.is_data() {
        return say_data(&json!({"promotions": all}), format);
    }
    let empty = format!("no promotion of {of} is over yet; what is on its way: keelway pipeline status {of}");
    get::print(&if format == Format::Wide { wide(&all) } else { table(&all, now) }, format, &empty)
}

fn table(all: &[PastPromotion], now: Option<Timestamp>) -> Table {
    let mut table = Table::new(&["AGE", "ENVIRONMENT", "REVISION", "PHASE", "TOOK", "RUN", "WHAT"]);
    for past in all {
        let promotion = &past.promotion;
        table.row(vec![
            age(&past.at, now),
            past.environment.clone(),
            revision(&promotion.revision),
            promotion.phase.clone(),
            between(Some(&promotion.since), Some(&past.at)),
            promotion.run.to_string(),
            what(promotion),
        ]);
    }
    table
}

/// How it ended, and by what it was carried out.
fn what(promotion: &PromotionState) -> String {
    let by = match (&promotion.pull_request, &promotion.keptn_context) {
        (Some(request), _) => Some(format!("pull request {}", request.number)),
        (None, Some(context)) => Some(format!("sequence {}", short_ids(&[context]).concat())),
        (None, None) => None,
    };
    let message = Some(promotion.message.clone()).filter(|message| !message.is_empty());
    message.into_iter().chain(by).collect::<Vec<_>>().join("; ")
}

fn wide(all: &[PastPromotion]) -> Table {
    let mut table = Table::new(&[
        "AT",
        "ENVIRONMENT",
        "REVISION",
        "PHASE",
        "REASON",
        "SINCE",
        "RUN",
        "ATTEMPTS",
        "APPROVED BY",
        "PULL REQUEST",
        "CONTEXT",
        "MESSAGE",
    ]);
    for PastPromotion { environment, at, promotion } in all {
        let by: Vec<&str> = promotion.approvals.iter().map(|actor| actor.by.as_str()).collect();
        table.row(vec![
            at.clone(),
            environment.clone(),
            promotion.revision.clone(),
            promotion.phase.clone(),
            promotion.reason.clone(),
            promotion.since.clone(),
            promotion.run.to_string(),
            promotion.attempts.to_string(),
            by.join(","),
            promotion.pull_request.as_ref().map(|request| request.url.clone()).unwrap_or_default(),
            promotion.keptn_context.clone().unwrap_or_default(),
            promotion.message.clone(),
        ]);
    }
    table
}

/// Prints the open pull requests. Their addresses are for copying: they are not cut.
///
/// # Errors
/// As the API answers.
pub async fn pull_requests(api: &Api, what: &PipelineShow) -> Result<(), CliError> {
    let of = Address::of(&what.of.name, &what.of.namespace);
    let path: Vec<&str> = of.path().into_iter().chain(["pull-requests"]).collect();
    let open: OpenPullRequests = api.get(&path, &[]).await?;
    let format = what.output.format;
    if format.is_data() {
        return say_data(&open, format);
    }
    if open.pull_requests.is_empty() {
        eprintln!("no pull request of {of} is open; what it waits for: keelway pipeline explain {of}");
        return Ok(());
    }
    let wide = format == Format::Wide;
    let head = if wide {
        vec!["ENVIRONMENT", "REVISION", "NUMBER", "STATE", "URL", "BRANCH", "REPOSITORY"]
    } else {
        vec!["ENVIRONMENT", "REVISION", "STATE", "URL"]
    };
    let mut table = Table::new(&head);
    for one in &open.pull_requests {
        let state = match (one.closing, one.request.mergeable) {
            (true, _) => "closing",
            (_, Some(false)) => "conflicts",
            (_, Some(true)) => "mergeable",
            (_, None) => "open",
        };
        let (environment, url) = (one.environment.clone(), one.request.url.clone());
        table.row(if wide {
            let number = one.request.number.to_string();
            vec![environment, one.revision.clone(), number, state.into(), url, one.request.branch.clone(), one.repository.clone()]
        } else {
            vec![environment, revision(&one.revision), state.into(), url]
        });
    }
    say(&table.render(&Look { width: None, ..look() }))
}
