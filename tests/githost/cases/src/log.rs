//! The purpose of logged requests, and the requests that a fault hits.

use keelway_domain::time::Span;
use keelway_githost::{Action, Call, Fault, Form};
use keelway_world::promotions::host::{Trouble, Verb, Word};

/// The purpose of a request that writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// To open a pull request.
    Open,
    /// To close one.
    Close(u64),
    /// To merge one.
    Merge(u64),
    /// To comment on one.
    Comment(u64),
    /// To write a branch or its files.
    Branch,
}

/// The purpose of a request. `None`: it only reads.
pub(crate) fn purpose(call: &Call) -> Option<Purpose> {
    if call.method == "GET" {
        return None;
    }
    let path = call.path.split('?').next().unwrap_or_default();
    let parts: Vec<&str> = path.rsplit('/').take(3).collect();
    let number = |text: &str| text.parse::<u64>().ok();
    let of = |text: &str| ["pulls", "merge_requests", "pull-requests", "issues"].contains(&text);
    Some(match parts.as_slice() {
        [last, ..] if of(last) => Purpose::Open,
        ["merge", n, list] if of(list) => number(n).map_or(Purpose::Branch, Purpose::Merge),
        ["decline", n, list] if of(list) => number(n).map_or(Purpose::Branch, Purpose::Close),
        ["comments" | "notes", n, list] if of(list) => number(n).map_or(Purpose::Branch, Purpose::Comment),
        [n, list, ..] if of(list) => number(n).map_or(Purpose::Branch, Purpose::Close),
        _ => Purpose::Branch,
    })
}

/// The fault in the requests of a verb. `None`: no request is affected.
pub(crate) fn fault(form: Form, verb: Verb, trouble: &Trouble, seconds: impl Fn(Span) -> u64) -> Option<Fault> {
    let (method, path) = match (verb, form) {
        (Verb::Open, Form::GitHub | Form::Gitea) => ("POST", "*/pulls"),
        (Verb::Open, Form::GitLab) => ("POST", "*/merge_requests"),
        (Verb::Open, Form::Bitbucket) => ("POST", "*/pull-requests"),
        (Verb::Close, Form::GitHub | Form::Gitea) => ("PATCH", "*/pulls/*"),
        (Verb::Close, Form::GitLab) => ("PUT", "*/merge_requests/*"),
        (Verb::Close, Form::Bitbucket) => ("POST", "*/decline"),
        (Verb::Merge, _) => ("write", "*/merge"),
        (Verb::Look, _) => ("*", "*"),
        (Verb::Tell | Verb::Trigger | Verb::Abort, _) => return None,
    };
    let action = match trouble {
        // Bitbucket Server's status for a merge that is not possible now.
        Trouble::Status(405) if (verb, form) == (Verb::Merge, Form::Bitbucket) => status(409),
        Trouble::Status(code) => status(*code),
        Trouble::Limited { .. } => Action::RateLimit { retry_after: seconds(trouble.after().unwrap_or(Span(0))), secondary: true },
        Trouble::Word(Word::Lost) => Action::Lose,
        Trouble::Word(Word::Nonsense) => Action::Html,
        Trouble::Word(Word::Refused | Word::Killed | Word::Unexpected) => return None,
    };
    Some(Fault::next(method, path, action))
}

fn status(status: u16) -> Action {
    Action::Status { status, retry_after: None, body: None }
}
