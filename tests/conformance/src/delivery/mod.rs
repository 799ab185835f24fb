//! A delivery through all engines in the simulation: a sequence has a deployment config carry its task out, a deployer carries the
//! version out, its target is observed, a pipeline promotes what runs there, and the promotion triggers the sequence of the next
//! stage. All of it is one project on one table. In some seeds, clusters tell what runs in a stage; in some, configs follow tags.
//!
//! Each engine has a simulation of its own. What is looked for here is between them: what one engine may believe of another one,
//! and when.

mod acts;
mod check;
mod clusters;
mod deleted;
mod evaluated;
mod facts;
mod hand;
mod manifests;
mod plan;
mod planted;
mod rest;
mod scenario;
mod tags;
mod windows;

pub use planted::Plant;
pub use scenario::simulate;

use keelway_domain::names::ProjectName;
use keelway_engine::deployments::Address;

/// The project of the sequences and of the pipeline. Each stage's config is in a namespace of its own, which consents.
const PROJECT: &str = "shop";
/// The stages, which are the environments of the pipeline. A seed has the first two, or all.
const STAGES: [&str; 3] = ["dev", "staging", "live"];
/// The service, which is the name of each config.
const SERVICE: &str = "cart";
/// The only one who approves promotions.
const APPROVER: &str = "token:ann";

fn project(name: &str) -> ProjectName {
    ProjectName::new(name).unwrap_or_else(|error| panic!("{error}"))
}

/// The namespace of a stage's config.
fn namespace(stage: &str) -> String {
    format!("{PROJECT}-{stage}")
}

/// A stage's config.
fn config(stage: &str) -> Address {
    Address { namespace: namespace(stage), name: SERVICE.into() }
}

/// The pipeline.
fn pipeline() -> Address {
    Address { namespace: PROJECT.into(), name: "flow".into() }
}

/// What an image is to pipelines, by its number.
fn revision(n: u64) -> String {
    format!("sha256:{n:04}")
}

/// An image, by its number.
fn image(n: u64) -> String {
    format!("registry/{SERVICE}@{}", revision(n))
}
