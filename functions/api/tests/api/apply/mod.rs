//! `POST /v1/apply`: what manifests may name, who vouches for it, and how much there may be.

mod border;
mod border_deployments;
mod border_promotions;
pub mod border_stored;
pub mod manifests;
mod quotas;
mod vouched;
