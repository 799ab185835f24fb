//! `token` and `audit`.

use super::find;
use super::login::grant;
use crate::api::{Api, Body};
use crate::args::{Audit, Format, Output, TokenVerb};
use crate::clock::now;
use crate::error::CliError;
use crate::output::{say, say_data};
use crate::pages::{self, List};
use crate::table::Table;
use crate::table::print;
use crate::words::{age, with_short_contexts};
use keelway_domain::time::Timestamp;
use keelway_wire::http::access::{AuditEntry, NewTokenRequest, RotateRequest, TokenAnswer, TokenState};
use reqwest::Method;
use serde_json::{Value, json};

/// `token`
///
/// # Errors
/// As the API answers.
pub async fn token(api: &Api, what: &TokenVerb) -> Result<(), CliError> {
    match what {
        TokenVerb::Create { name, scopes, projects, expires, note, output } => {
            let asked = NewTokenRequest {
                name: name.to_string(),
                scopes: scopes.iter().map(ToString::to_string).collect(),
                projects: projects.iter().map(ToString::to_string).collect(),
                expires: expires.clone(),
                note: note.clone(),
            };
            for project in projects {
                // It may be made before its project is.
                if let Some(slip) = find::slip(api, project.as_str()).await {
                    eprintln!("warning: {slip}; the token is made, and is of use once there is a project {project}");
                }
            }
            // What may have been made is not made again.
            let made: TokenAnswer = api.clone().without_retries().post(&["tokens"], &json!(asked)).await?;
            secret(&made, output)
        }
        TokenVerb::Rotate { name, overlap, output } => {
            let asked = RotateRequest { overlap: overlap.clone() };
            let made: TokenAnswer = api.clone().without_retries().post(&["tokens", name.as_str(), "rotate"], &json!(asked)).await?;
            secret(&made, output)
        }
        TokenVerb::List { output } => list(api, output.format).await,
        TokenVerb::Revoke { name } => {
            let _: Value = api.call(Method::DELETE, &["tokens", name.as_str()], &[], Body::None).await?;
            say(&format!("token {name} is revoked; what other instances remember of it ends within a minute"))
        }
    }
}

/// The secret alone on standard output, so that it can be put where it belongs; the rest is for people.
fn secret(made: &TokenAnswer, output: &Output) -> Result<(), CliError> {
    if output.format.is_data() {
        return say_data(made, output.format);
    }
    let TokenState { name, expires, overlap_until, .. } = &made.token;
    let expires = expires.as_ref().map_or_else(|| "does not expire".to_owned(), |at| format!("expires at {at}"));
    eprintln!("token {name}: {}; {expires}", grant(&made.token.grant));
    if let Some(until) = overlap_until {
        eprintln!("the secret before is valid until {until}");
    }
    eprintln!("the secret is shown only now; it is sent as KEELWAY_TOKEN:");
    say(&made.secret)
}

async fn list(api: &Api, format: Format) -> Result<(), CliError> {
    let tokens: Vec<TokenState> = pages::all(api, &["tokens"], &[]).await?;
    if format.is_data() {
        return say_data(&json!({"items": tokens}), format);
    }
    let wide = format.is_wide();
    let head: &[&'static str] = if wide {
        &["NAME", "MAY", "EXPIRES", "LAST USED", "CREATED", "BY", "ROTATED", "NOTE"]
    } else {
        &["NAME", "MAY", "EXPIRES", "LAST USED"]
    };
    let mut table = Table::new(head);
    for token in &tokens {
        let expires = if token.expired { "expired".to_owned() } else { token.expires.clone().unwrap_or_else(|| "never".into()) };
        let used = token.last_used.clone().unwrap_or_else(|| "never".into());
        let mut row = vec![token.name.clone(), grant(&token.grant), expires, used];
        if wide {
            let rotated = token.rotated.clone().unwrap_or_default();
            row.extend([token.created.clone(), token.by.clone(), rotated, token.note.clone()]);
        }
        table.row(row);
    }
    print(table, format, "there is no token besides the deployment's; make one: keelway token create NAME --scope read")
}

/// `audit`
///
/// # Errors
/// As the API answers.
pub async fn audit(api: &Api, what: &Audit) -> Result<(), CliError> {
    let project = what.project.as_ref().map(ToString::to_string).unwrap_or_default();
    let from = what.since.map(|length| {
        let millis = i64::try_from(length.as_millis()).unwrap_or(i64::MAX);
        Timestamp(now().0.saturating_sub(millis)).rfc3339()
    });
    let query = [
        ("token", what.by.as_deref().unwrap_or_default()),
        ("action", what.action.as_deref().unwrap_or_default()),
        ("project", &project),
        ("fromTime", from.as_deref().unwrap_or_default()),
    ];
    let List { items: entries, more, .. } = pages::read::<AuditEntry>(api, &["audit"], &query, what.limit.into()).await?;
    if entries.is_empty() {
        find::mistyped(api, Some(&project)).await?;
    }
    if what.output.format.is_data() {
        return say_data(&json!({"items": entries}), what.output.format);
    }
    shown(&entries, what.output.format)?;
    if more {
        eprintln!("there is more: --limit, --since, --by, --action or --project choose among it");
    }
    Ok(())
}

fn shown(entries: &[AuditEntry], format: Format) -> Result<(), CliError> {
    let wide = format.is_wide();
    let head: &[&'static str] = if wide {
        &["AT", "BY", "FROM", "ACTION", "PROJECT", "WHAT", "SAYS", "REQUEST", "STATUS"]
    } else {
        &["AGE", "BY", "ACTION", "PROJECT", "WHAT"]
    };
    let mut table = Table::new(head);
    for entry in entries {
        let known = [&entry.by, &entry.subject].into_iter().find(|name| !name.is_empty());
        let by = known.unwrap_or(&entry.token).clone();
        let what = if entry.what.is_empty() { entry.request.clone() } else { entry.what.clone() };
        table.row(if wide {
            let AuditEntry { at, address, action, project, note, request, status, .. } = entry.clone();
            vec![at, by, address, action, project, what, note, request, status.to_string()]
        } else {
            vec![age(&entry.at, Some(now())), by, entry.action.clone(), entry.project.clone(), with_short_contexts(&what)]
        });
    }
    print(table, format, "nothing was done, as far as this looks")
}
