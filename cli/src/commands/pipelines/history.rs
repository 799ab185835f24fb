//! `pipeline history`: promotions that are over, and commands; and `pipeline pull-requests`: those that are open.

use crate::address::Address;
use crate::api::Api;
use crate::args::{PipelineHistory, PipelineShow};
use crate::error::CliError;
use crate::output::{one_line, say, say_data};
use crate::pages::Pages;
use crate::table::Table;
use crate::table::print;
use crate::terminal::{Look, look};
use crate::words::{age, between, revision, short_ids};
use keelway_domain::time::Timestamp;
use keelway_wire::http::promotions::{OpenPullRequests, PastCommand, PastPromotion, PromotionState};
use serde_json::{Value, json};

/// Prints what is over, newest first.
///
/// # Errors
/// As the API answers.
pub async fn history(api: &Api, what: &PipelineHistory) -> Result<(), CliError> {
    let of = Address::of(&what.of.name, what.of.project.project.as_ref());
    let path: Vec<&str> = of.path().into_iter().chain(["history"]).collect();
    let limit = usize::try_from(what.limit).unwrap_or(usize::MAX);
    let (mut all, mut commands, mut now) = (vec![], vec![], None);
    let wanted = |environment: Option<&String>| what.environment.is_none() || environment == what.environment.as_ref();
    let mut pages = Pages::<PastPromotion>::of(api, &path, &[], limit);
    while all.len() + commands.len() < limit
        && let Some(page) = pages.next().await?
    {
        now = Timestamp::parse(&page.extra.now);
        all.extend(page.items.into_iter().filter(|past| wanted(Some(&past.environment))));
        commands.extend(page.extra.commands.into_iter().filter(|past| wanted(past.environment.as_ref())));
    }
    let lines = merged(all, commands, limit);
    let format = what.output.format;
    if format.is_data() {
        let items: Vec<Value> = lines
            .iter()
            .map(|line| match line {
                Line::Promotion(past) => json!(past),
                Line::Command(past) => json!(past),
            })
            .collect();
        return say_data(&json!({"items": items}), format);
    }
    let empty =
        format!("no promotion of {of} is over yet, and nobody gave a command; what is on its way: keelway pipeline status {of}");
    print(if format.is_wide() { wide(&lines) } else { table(&lines, now) }, format, &empty)
}

/// A line of the history.
enum Line {
    Promotion(Box<PastPromotion>),
    Command(PastCommand),
}

/// Both together, newest first, at most `limit`. At the same time, what a command has ended comes before the command.
fn merged(promotions: Vec<PastPromotion>, commands: Vec<PastCommand>, limit: usize) -> Vec<Line> {
    let mut lines: Vec<Line> =
        promotions.into_iter().map(|past| Line::Promotion(Box::new(past))).chain(commands.into_iter().map(Line::Command)).collect();
    let at = |line: &Line| match line {
        Line::Promotion(past) => Timestamp::parse(&past.at),
        Line::Command(past) => Timestamp::parse(&past.at),
    };
    lines.sort_by_key(|line| std::cmp::Reverse(at(line)));
    lines.truncate(limit);
    lines
}

/// What a command's line has in the column of promotions' phases.
const COMMAND: &str = "command";

fn table(all: &[Line], now: Option<Timestamp>) -> Table {
    let mut table = Table::new(&["AGE", "ENVIRONMENT", "REVISION", "PHASE", "TOOK", "RUN", "WHAT"]);
    for line in all {
        let past = match line {
            Line::Promotion(past) => past,
            Line::Command(past) => {
                table.row(vec![
                    age(&past.at, now),
                    past.environment.clone().unwrap_or_default(),
                    past.revision.as_deref().map(revision).unwrap_or_default(),
                    COMMAND.to_owned(),
                    String::new(),
                    String::new(),
                    asked(past),
                ]);
                continue;
            }
        };
        let promotion = &past.promotion;
        table.row(vec![
            age(&past.at, now),
            past.environment.clone(),
            revision(&promotion.revision),
            promotion.phase.clone(),
            took(past),
            promotion.run.to_string(),
            what(promotion),
        ]);
    }
    table
}

/// How long it took until it was done; it stays in its environment until the next one comes, which counts for nothing. What ends
/// only then took until then.
fn took(past: &PastPromotion) -> String {
    let promotion = &past.promotion;
    let until = promotion.done_at.as_deref().or_else(|| (!promotion.completed).then_some(past.at.as_str()));
    between(Some(&promotion.since), until)
}

/// What was asked, by whom, and why.
fn asked(past: &PastCommand) -> String {
    let by = if past.by.is_empty() { String::new() } else { format!(" by {}", past.by) };
    let why = if past.message.is_empty() { String::new() } else { format!(": {}", past.message) };
    format!("{}{by}{why}", past.command)
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

fn wide(all: &[Line]) -> Table {
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
    for line in all {
        let PastPromotion { environment, at, promotion } = match line {
            Line::Promotion(past) => &**past,
            Line::Command(past) => {
                let mut cells = vec![String::new(); 12];
                cells[..4].clone_from_slice(&[
                    past.at.clone(),
                    past.environment.clone().unwrap_or_default(),
                    past.revision.clone().unwrap_or_default(),
                    COMMAND.to_owned(),
                ]);
                cells[11] = asked(past);
                table.row(cells);
                continue;
            }
        };
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
    let of = Address::of(&what.of.name, what.of.project.project.as_ref());
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
    let wide = format.is_wide();
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
    say(&table.render(&Look { width: None, ..look() }))?;
    for one in &open.pull_requests {
        if let Some((at, error)) = one.request.look.as_ref().and_then(|look| Some((&look.at, look.error.as_ref()?))) {
            eprintln!("the last look at pull request {}, at {at}, failed: {}", one.request.number, one_line(error, 400));
        }
    }
    Ok(())
}
