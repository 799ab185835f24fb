//! `dead-letters` and `get invalid`: what could not be handled.

use super::delete;
use crate::api::{Api, Body};
use crate::args::{DeadLetters, Format, GetInvalid};
use crate::error::CliError;
use crate::output;
use crate::output::{say, say_data};
use crate::pages::{self, following};
use crate::table::Table;
use crate::table::print;
use keelway_wire::http::operations::{DeadLetter, InvalidPage};
use reqwest::Method;
use serde_json::json;

/// `dead-letters`
///
/// # Errors
/// A person's no, or the API's refusal.
pub async fn dead_letters(api: &Api, what: &DeadLetters) -> Result<(), CliError> {
    match what {
        DeadLetters::List { limit, output } => list(api, *limit as usize, output.format).await,
        DeadLetters::Show { id, output } => show(api, id, output.format).await,
        DeadLetters::Redrive(what) => {
            let ids =
                if what.all { all(api, usize::MAX).await?.into_iter().map(|letter| letter.id).collect() } else { what.ids.clone() };
            for id in &ids {
                let () = api.call(Method::POST, &["dead-letters", id, "redrive"], &[], Body::None).await?;
                say(&format!("{id}: sent again"))?;
            }
            if ids.is_empty() {
                eprintln!("{NONE}");
            } else {
                output::hint(&["a letter that is handled is no longer in: keelway dead-letters list".into()]);
            }
            Ok(())
        }
        DeadLetters::Drop { ids, yes } => {
            for id in ids {
                let asked = format!("Drop dead letter {id}? Its message is never handled.");
                delete::remove(api, &["dead-letters", id], (&format!("dead letter {id}"), &asked), *yes).await?;
            }
            Ok(())
        }
    }
}

const NONE: &str = "there are no dead letters";

async fn all(api: &Api, limit: usize) -> Result<Vec<DeadLetter>, CliError> {
    Ok(pages::read(api, &["dead-letters"], &[], limit).await?.items)
}

async fn list(api: &Api, limit: usize, format: Format) -> Result<(), CliError> {
    let letters = all(api, limit).await?;
    if format.is_data() {
        return say_data(&json!({"items": letters}), format);
    }
    let mut table = Table::new(&["ID", "ENGINE", "SENT", "RECEIVES", "NEXT REDRIVE", "REASON"]);
    for letter in letters {
        let next = letter.next_redrive.unwrap_or_else(|| if letter.truncated { "truncated" } else { "waits for a person" }.into());
        let reason = letter.reason.unwrap_or_default();
        table.row(vec![letter.id, letter.engine, letter.sent_at, letter.receives.to_string(), next, reason]);
    }
    print(table, format, NONE)
}

async fn show(api: &Api, id: &str, format: Format) -> Result<(), CliError> {
    let letter: DeadLetter = api.get(&["dead-letters", id], &[]).await?;
    if format.is_data() {
        return say_data(&letter, format);
    }
    let lines = [
        ("id", letter.id.clone()),
        ("engine", letter.engine.clone()),
        ("queue", letter.queue.clone()),
        ("sent", letter.sent_at.clone()),
        ("receives", letter.receives.to_string()),
        ("reason", letter.reason.clone().unwrap_or_default()),
        ("next redrive", letter.next_redrive.clone().unwrap_or_else(|| "none: it waits for a person".into())),
    ];
    for (name, value) in lines.iter().filter(|(_, value)| !value.is_empty()) {
        say(&format!("{name:<14}{value}"))?;
    }
    let text = letter.body.unwrap_or_default();
    let pretty = serde_json::from_str::<serde_json::Value>(&text).and_then(|json| serde_json::to_string_pretty(&json));
    say(&pretty.unwrap_or(text))
}

/// `get invalid`
///
/// # Errors
/// As the API answers.
pub async fn invalid(api: &Api, what: &GetInvalid) -> Result<(), CliError> {
    let (limit, format) = (what.limit as usize, what.output.format);
    let (mut found, mut next, mut day) = (vec![], Some(String::new()), what.day.clone().unwrap_or_default());
    while let Some(key) = next.filter(|_| found.len() < limit) {
        let query = [("day", day.as_str()), ("pageSize", "100"), ("nextPageKey", key.as_str())];
        let page: InvalidPage = api.get(&["invalid"], &query).await?;
        // The day may end between two pages.
        (next, day) = (following(&page), page.extra.day);
        found.extend(page.items);
    }
    found.truncate(limit);
    if format.is_data() {
        return say_data(&json!({"day": day, "items": found}), format);
    }
    let mut table = Table::new(&["ACCEPTED", "REASON", "TEXT"]);
    for one in found {
        let text = if format.is_wide() { one.text } else { one.text.chars().take(80).collect() };
        table.row(vec![one.at, one.reason, text]);
    }
    print(table, format, &format!("nothing was recorded as invalid on {day} (UTC); another day: --day YYYY-MM-DD"))
}
