//! Pull requests for promotions, on GitHub (and Enterprise), Gitea and Forgejo, GitLab and Bitbucket Server.
//!
//! There is no clone and no git binary. Repositories are read as archives, and files are written through the host's commit API.
//! [`Host`] has the operations; each may be repeated after any failure, because it first looks for what exists. The branch
//! identifies a pull request.

mod answer;
mod archive;
mod bitbucket;
mod client;
mod credentials;
mod error;
mod gitea;
mod github;
mod gitlab;
mod host;
mod http;
mod marker;
mod multipart;
mod propose;
mod repository;
mod scalar;
mod settle;
#[cfg(test)]
mod twin;
mod webhook;

pub use client::{Look, Merge, Request, State};
pub use credentials::Credentials;
pub use error::{HostError, Kind};
pub use host::Host;
pub use http::Patience;
pub use marker::{Edit, edit};
pub use propose::{BRANCHES, Change, Proposed};
pub use repository::{AddressError, Api, Form, Repository};
pub use settle::Closed;
pub use webhook::{BadSignature, SIGNATURES, WebhookAbout, webhook};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

fn base64(bytes: impl AsRef<[u8]>) -> String {
    STANDARD.encode(bytes)
}

/// Hosts wrap long base64.
fn unbase64(text: &str) -> Option<Vec<u8>> {
    STANDARD.decode(text.split_ascii_whitespace().collect::<String>()).ok()
}
