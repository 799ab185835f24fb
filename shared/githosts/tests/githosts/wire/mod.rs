//! The requests that each form of host gets, one by one, and what their answers mean.

mod bitbucket;
mod double;
mod errors;
mod gitea;
mod github;
mod github_settle;
mod gitlab;
mod guarded;
