//! A git host with any of the four APIs.

use crate::bitbucket::Bitbucket;
use crate::client::{Client, Look, Merge, Request};
use crate::credentials::Credentials;
use crate::error::{HostError, Kind};
use crate::gitea::Gitea;
use crate::github::GitHub;
use crate::gitlab::GitLab;
use crate::http::{Http, Patience};
use crate::propose::{self, Change, Proposed};
use crate::repository::{Api, Form, Repository};
use crate::settle::{self, Closed};
use keelway_outgoing::Guard;

/// A git host with credentials. It keeps its connections, so use one for many operations. Each request has 5 seconds to connect and
/// 15 in total. The kind of a [`HostError`] says when another try makes sense; its message is for people.
#[derive(Debug)]
pub struct Host(Forms);

#[derive(Debug)]
enum Forms {
    GitHub(GitHub),
    Gitea(Gitea),
    GitLab(GitLab),
    Bitbucket(Bitbucket),
}

/// Calls an operation with the client of this host, because operations are written once for all clients.
macro_rules! with {
    ($host:expr, $client:ident => $operation:expr) => {
        match &$host.0 {
            Forms::GitHub($client) => $operation,
            Forms::Gitea($client) => $operation,
            Forms::GitLab($client) => $operation,
            Forms::Bitbucket($client) => $operation,
        }
    };
}

impl Host {
    /// Makes no request. Fails with [`Kind::Credentials`](crate::Kind) if the secret lacks what this form of host needs, and with
    /// [`Kind::Address`](crate::Kind) if the guard permits no requests to the address.
    pub fn new(api: &Api, credentials: &Credentials, guard: &Guard) -> Result<Self, HostError> {
        let http = Http::new(api, credentials, guard)?;
        Ok(Self(match api.form() {
            Form::GitHub => Forms::GitHub(GitHub(http)),
            Form::Gitea => Forms::Gitea(Gitea(http)),
            Form::GitLab => Forms::GitLab(GitLab(http)),
            Form::BitbucketServer => Forms::Bitbucket(Bitbucket(http)),
        }))
    }

    fn http(&mut self) -> &mut Http {
        match &mut self.0 {
            Forms::GitHub(GitHub(http))
            | Forms::Gitea(Gitea(http))
            | Forms::GitLab(GitLab(http))
            | Forms::Bitbucket(Bitbucket(http)) => http,
        }
    }

    /// The host with another number of repetitions.
    #[must_use]
    pub fn patient(mut self, patience: Patience) -> Self {
        self.http().be_patient(patience);
        self
    }

    /// The host with another name in messages: that of the manifest, not that of the API.
    #[must_use]
    pub fn called(mut self, host: &str) -> Self {
        self.http().be_called(host);
        self
    }

    /// Opens the pull request, unless its branch has one. Credentials without write access leave no trace. The branch starts at the
    /// newest commit of the base. Fails with [`Kind::NoMarker`](crate::Kind) and [`Kind::BaseMissing`](crate::Kind), which only a
    /// change of the repository or the pipeline can mend.
    pub async fn propose(&self, change: &Change) -> Result<Proposed, HostError> {
        let (mut tried, mut read) = (0, None);
        loop {
            // The try before may have left something.
            let first = change.first && tried == 0;
            let done = with!(self, client => propose::propose(client, change, first, &mut read).await);
            if !self.goes_on(done.as_ref().err(), &mut tried).await {
                return done;
            }
        }
    }

    /// Closes the pull request of a branch with one comment, and deletes the branch. A known `number` saves a search. A merged pull
    /// request is reported and left alone.
    pub async fn close(&self, of: &Repository, branch: &str, number: Option<u64>, comment: &str) -> Result<Closed, HostError> {
        let mut tried = 0;
        loop {
            let done = with!(self, client => settle::close(client, of, (branch, number), comment).await);
            if !self.goes_on(done.as_ref().err(), &mut tried).await {
                return done;
            }
        }
    }

    /// Whether to repeat an operation whose request or answer was lost: it finds what exists by now.
    async fn goes_on(&self, error: Option<&HostError>, tried: &mut u32) -> bool {
        *tried += 1;
        let patience = with!(self, client => client.0.patience());
        if *tried >= patience.tries || error.is_none_or(|error| error.kind != Kind::Transient) {
            return false;
        }
        patience.wait(*tried).await;
        true
    }

    /// The pull requests whose branch begins with [`BRANCHES`](crate::BRANCHES) and that have changed since the look that returned
    /// the mark, in any state. Usually one request, however many are open, because the list has the last changed first. GitHub and
    /// GitLab answer that nothing has changed, which does not count against GitHub's rate limit. Without a mark, the list is read
    /// until the wanted numbers were seen. Bitbucket Server lists the open ones ([`Look::every`]).
    pub async fn list(&self, of: &Repository, wanted: &[u64], mark: Option<&str>) -> Result<Look, HostError> {
        with!(self, client => settle::list(client, of, wanted, mark).await)
    }

    /// One pull request. `None`: the number does not exist in the repository itself.
    pub async fn get(&self, of: &Repository, number: u64) -> Result<Option<Request>, HostError> {
        with!(self, client => client.get(of, number).await)
    }

    /// Merges a pull request that was read just now, if its newest commit is `head`. The host checks this, too.
    pub async fn merge(&self, of: &Repository, request: &Request, head: &str) -> Result<Merge, HostError> {
        with!(self, client => settle::merge(client, of, request, head).await)
    }
}
