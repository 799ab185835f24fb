//! The client against a real Gitea or Forgejo, when `KEELWAY_TEST_GITEA_URL` and `KEELWAY_TEST_GITEA_TOKEN` name one:
//!
//! `KEELWAY_TEST_GITEA_URL=http://127.0.0.1:3000 KEELWAY_TEST_GITEA_TOKEN=… cargo test -p keelway-githosts gitea::`
//!
//! Each test makes a private repository of its own for the token's user, and deletes it at its end. tests/README.md says how to
//! start a Gitea.

mod flows;
mod place;
