//! Webhook subscriptions that nothing reaches, and messages that failed too often.

use super::wait::{FAILING, Part, at};
use crate::Api;
use crate::fence::problem::Answer;
use keelway_domain::access::Need;
use keelway_domain::names::ProjectName;
use keelway_engine::protocol::{Inbox, letters};
use keelway_engine::webhooks::{Address, Applied};
use keelway_wire::http::WaitItem;

/// Dead letters that are read: each is a whole message.
const LETTERS: u32 = 5;

/// The webhook subscriptions that are disabled, or that nothing has reached for a while.
pub(crate) async fn webhooks(api: &Api, among: Option<&[ProjectName]>) -> Answer<Part> {
    let all = api.webhooks().subscriptions().await?;
    let is_seen = |of: &Address| among.is_none_or(|among| among.iter().any(|one| *one.as_str() == *of.namespace));
    let seen: Vec<&(Address, Applied)> = all.readable.iter().filter(|(of, _)| is_seen(of)).collect();
    let items = seen.iter().filter_map(|(of, applied)| subscription(of, applied)).collect();
    Ok(Part { found: !seen.is_empty(), items, cut: false })
}

fn subscription(of: &Address, applied: &Applied) -> Option<WaitItem> {
    let (reason, message, since, needs) = match (&applied.off, applied.failing) {
        (Some(off), _) => (off.reason.clone(), off.message(), off.at, Some(Need::Administer.to_string())),
        (None, Some(since)) => ("unreachable".to_owned(), "nothing has reached the receiver".to_owned(), since, None),
        (None, None) => return None,
    };
    Some(WaitItem {
        group: FAILING.into(),
        engine: "webhook".into(),
        reason,
        message,
        project: of.namespace.clone(),
        name: of.name.clone(),
        since: since.rfc3339(),
        needs,
        ..WaitItem::default()
    })
}

/// The newest dead letters.
pub(crate) async fn letters(api: &Api) -> Answer<Part> {
    let (found, next) = letters::list(api.engine().ports(), None, LETTERS).await?;
    let item = |letter: letters::Stored| WaitItem {
        group: FAILING.into(),
        engine: "message".into(),
        reason: "deadLetter".into(),
        message: letter.reason.unwrap_or_else(|| format!("a message of {} failed {} times", letter.engine, letter.receives)),
        name: letter.id,
        since: letter.sent.rfc3339(),
        until: at(letter.next),
        needs: Some(Need::Administer.to_string()),
        ..WaitItem::default()
    };
    Ok(Part { found: !found.is_empty(), items: found.into_iter().map(item).collect(), cut: next.is_some() })
}
