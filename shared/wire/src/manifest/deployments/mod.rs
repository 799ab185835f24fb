//! `kind: DeploymentConfig` and `kind: ArtifactSource`.
//!
//! A DeploymentConfig is read in the form of `apps.openshift.io/v1` and `v1`, and in the form of the proposal that came before
//! them: `id`, `template` (`strategy`, `controllerTemplate`) and `triggers`. Keelway's additions stand under `spec`, in the
//! proposal's form at the top:
//!
//! * `targets: [{name, kind, id, region, account}]`: where it is deployed; the id of a `lambda-alias` is `<function>:<alias>`.
//! * `strategy.type: Canary` with `strategy.canaryParams: {steps: [{weight, bake}], timeoutSeconds, pre, post}`. Weights rise, from
//!   1 to 100 percent; a step without `bake` holds until a person says to go on.
//! * `strategy.analysis` for `Canary` and `Rolling`: objectives that judge each step by metrics.
//! * `invoke: <Lambda function>` as the action of a hook.
//! * `concurrency: supersede | queue`, `resume: explicit | onNewerImage`, `onDrift: tell | restore | adopt`, `autoRollback:
//! {onFailure, alarms, bake}`.
//! * `deployer: {ecs: {…}}` with the parameters of `RunTask`, or `{codeBuild: {…}}` with those of `StartBuild`.
//!
//! `bake` is a duration like `5m`; everything that ends in `Seconds` is a whole number of seconds.

mod additions;
mod analysis;
mod artifacts;
mod config;
mod containers;
mod hooks;
mod render;
mod spec;
mod strategy;
mod triggered;
mod triggers;

pub use artifacts::{ArtifactSourceManifest, read as artifact_source};
pub use config::{DeploymentConfigManifest, RollbackStanza, read as deployment_config};
pub use render::render;
pub use triggered::with_triggered_images;
