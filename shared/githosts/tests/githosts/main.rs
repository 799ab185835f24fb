//! The clients of git hosts: request by request, against the strict host, and against a real Gitea.

mod gitea;
mod strict;
mod wire;
