//! Closes, reads and merges pull requests.

use crate::client::{Client, Look, Merge, Request, State};
use crate::error::{HostError, Kind};
use crate::propose::{BRANCHES, check_branch};
use crate::repository::Repository;

/// The result of closing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Closed {
    /// The pull request is closed.
    Closed,
    /// It was merged by this commit. Nothing was changed.
    Merged(String),
    /// There is no pull request.
    Absent,
}

/// Closes the pull requests of a branch with a comment, and deletes the branch. May be repeated: it comments once.
pub(crate) async fn close<C: Client>(
    client: &C,
    of: &Repository,
    (branch, number): (&str, Option<u64>),
    comment: &str,
) -> Result<Closed, HostError> {
    check_branch(branch)?;
    let known = match number {
        Some(number) => client.get(of, number).await?.filter(|request| request.branch == branch),
        None => None,
    };
    let requests = match known {
        Some(request) => vec![request],
        None => client.find(of, branch, None).await?,
    };
    let mut how = if requests.is_empty() { Closed::Absent } else { Closed::Closed };
    for request in requests {
        let state = if request.state == State::Open { close_one(client, of, &request, comment).await? } else { request.state };
        if let State::Merged { commit } = state {
            how = Closed::Merged(commit);
        }
    }
    if !matches!(how, Closed::Merged(_)) {
        client.delete_branch(of, branch).await?;
    }
    Ok(how)
}

async fn close_one<C: Client>(client: &C, of: &Repository, request: &Request, comment: &str) -> Result<State, HostError> {
    if !comment.trim().is_empty() {
        match client.comment_once(of, request.number, comment).await {
            // Closing is more important than the comment: credentials without the scope for comments must still close.
            Err(error) if error.kind == Kind::Forbidden => {
                tracing::warn!(request = request.url, %error, "closed without a comment")
            }
            commented => commented?,
        }
    }
    match client.close(of, request.number).await {
        Err(error) if error.kind != Kind::Refused => Err(error),
        done => {
            // Somebody may have merged it at this moment: the present state counts.
            let now = client.get(of, request.number).await?.map_or(State::Closed, |request| request.state);
            match (now, done) {
                (State::Open, Err(error)) => Err(error),
                (State::Open, Ok(())) => {
                    let message = format!("{}: {} is still open after it was closed", client.host(), request.url);
                    Err(HostError::new(Kind::Nonsense, message))
                }
                (state, _) => Ok(state),
            }
        }
    }
}

/// The changes of the pull requests of promotions.
pub(crate) async fn list<C: Client>(client: &C, of: &Repository, wanted: &[u64], mark: Option<&str>) -> Result<Look, HostError> {
    let mut look = client.list(of, wanted, mark).await?;
    if let Some(requests) = &mut look.requests {
        requests.retain(|request| request.branch.starts_with(BRANCHES));
    }
    Ok(look)
}

/// Merges a pull request that was read just now, if its newest commit is still this one.
pub(crate) async fn merge<C: Client>(client: &C, of: &Repository, request: &Request, head: &str) -> Result<Merge, HostError> {
    match &request.state {
        State::Merged { commit } => return Ok(Merge::Merged(commit.clone())),
        State::Closed => return Ok(Merge::Refused(format!("{} is closed", request.url))),
        State::Open if request.head != head => return Ok(Merge::HeadMoved),
        State::Open => {}
    }
    client.merge(of, request).await
}
