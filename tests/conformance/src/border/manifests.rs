//! What both projects apply.

use super::{EVIL, OUR_CLUSTER, OUR_FUNCTION, OURS, THEIRS};
use crate::definitions::stages;
use crate::deployments::definition;
use keelway_domain::deployments::definition::{
    Action, Definition, FailurePolicy, Hook, ImageChange, ImageTag, LAMBDA_ALIAS, Tagged, Target as Alias, Trigger,
};
use keelway_domain::promotions::definition::{
    App, Approval, Compare, Definition as Pipeline, EnvironmentSpec, InFlight, PromotionSpec, Sequence, Strategy, Target,
};
use keelway_domain::shipyard::Shipyard;
use keelway_domain::time::Span;
use std::sync::{Arc, LazyLock};

/// The only one who approves promotions of the honest project: not the subject of that name at some provider.
const APPROVER: &str = "token:ann";

/// The honest project's process.
pub static OUR_SHIPYARD: LazyLock<Arc<Shipyard>> = LazyLock::new(|| {
    stages(
        "{name: dev, sequences: [{name: delivery, tasks: [{name: test}]}]}, \
         {name: live, sequences: [{name: delivery, tasks: [{name: approval, properties: {pass: manual, warning: automatic}}, \
           {name: deployment, properties: {deploymentConfig: api}}]}]}",
    )
});

/// The hostile project's process: `named` and `undo` name another project's config, the others leave that to whoever sends events.
pub static THEIR_SHIPYARD: LazyLock<Arc<Shipyard>> = LazyLock::new(|| {
    stages(
        "{name: dev, sequences: [\
           {name: bare, tasks: [{name: test}, {name: deployment}]}, \
           {name: back, tasks: [{name: rollback}]}, \
           {name: named, tasks: [{name: deployment, properties: {deploymentConfig: 'team-b:api'}}]}, \
           {name: undo, tasks: [{name: rollback, properties: {deploymentConfig: 'team-b:api'}}]}]}",
    )
});

/// A tag of the honest project's source.
pub fn tag() -> ImageTag {
    ImageTag { namespace: OURS.into(), name: "images".into(), tag: "stable".into() }
}

fn watches(containers: &[&str]) -> Trigger {
    let containers = containers.iter().map(|name| (*name).to_owned()).collect();
    Trigger::ImageChange(ImageChange { automatic: true, from: tag(), containers })
}

fn alias(function: &str) -> Alias {
    Alias { name: "live".into(), kind: LAMBDA_ALIAS.into(), id: format!("{function}:live"), region: None, account: None }
}

/// The honest project's config: an administrator of the installation stands behind it.
pub fn our_config() -> Definition {
    let triggers = vec![Trigger::ConfigChange, watches(&["web"])];
    Definition { targets: vec![alias(OUR_FUNCTION)], vouched: true, ..definition(triggers) }
}

/// A config of the hostile project, whose text has this number. It hands its image out as the other one's; every other time it
/// takes an image of theirs, too, and then waits until it may see one.
pub fn reaching_config(n: u64) -> Definition {
    let watched = n.is_multiple_of(2).then(|| watches(&["log"]));
    let mut reaching = definition([Trigger::ConfigChange].into_iter().chain(watched).collect());
    reaching.template["spec"]["containers"][0]["image"] = format!("{EVIL}{n}").into();
    reaching.strategy.timeout = Span::seconds(600);
    let action = Action::TagImages(vec![Tagged { container: "web".into(), to: tag() }]);
    reaching.strategy.hooks.post = Some(Hook { failure_policy: FailurePolicy::Abort, action });
    Definition { targets: vec![alias("team-a-shop")], vouched: true, ..reaching }
}

/// A config of the hostile project for a function: its own, which an administrator has applied, or another one.
pub fn moving_config(n: u64, own: bool) -> Definition {
    let mut moving = definition(vec![Trigger::ConfigChange]);
    moving.template["spec"]["containers"][0]["image"] = format!("{EVIL}{n}").into();
    Definition { targets: vec![alias(if own { "team-a-shop" } else { OUR_FUNCTION })], vouched: own, ..moving }
}

/// What runs in clusters.
pub fn app() -> App {
    App { api_version: "helm.toolkit.fluxcd.io/v2".into(), kind: "HelmRelease".into(), name: "shop".into() }
}

/// The honest project's config, as pipelines name it.
pub fn config_app() -> App {
    App { api_version: "keelway.dev/v1".into(), kind: "DeploymentConfig".into(), name: "api".into() }
}

/// A namespace of a cluster.
pub fn target(cluster: Option<&str>, namespace: &str) -> Target {
    Target { cluster: cluster.map(str::to_owned), namespace: namespace.into() }
}

fn by_sequence(project: Option<&str>, approval: Option<Approval>) -> PromotionSpec {
    let sequence = Sequence {
        project: project.map(str::to_owned),
        stage: Some("live".into()),
        service: "shop".into(),
        name: "delivery".into(),
    };
    let (manual, approval) = (approval.is_some(), approval.unwrap_or_default());
    PromotionSpec { manual, strategy: Strategy::Sequence(sequence), approval, windows: vec![] }
}

fn pipeline(app: App, (dev, live): (Vec<Target>, Target), promotion: PromotionSpec) -> Pipeline {
    let environment =
        |name: &str, targets| EnvironmentSpec { name: name.into(), targets, promotion: None, soak: None, evaluation: None };
    Pipeline {
        app,
        environments: vec![environment("dev", dev), environment("live", vec![live])],
        promotion: Some(promotion),
        in_flight: InFlight::Restart,
        compare: Compare::Exact,
        vouched: false,
    }
}

/// The honest project's pipeline: what its cluster runs in `dev` goes live by its own sequence, once `ann` has approved.
pub fn our_pipeline() -> Pipeline {
    let approval = Approval { approvers: vec![APPROVER.into()], ..Approval::default() };
    let targets = (vec![target(Some(OUR_CLUSTER), "dev")], target(Some(OUR_CLUSTER), "live"));
    pipeline(app(), targets, by_sequence(None, Some(approval)))
}

/// The hostile project's pipelines, by name: one has the other project's sequence carry it out, the others look at what is not
/// theirs.
pub fn their_pipelines() -> [(&'static str, Pipeline); 4] {
    let own = || target(None, "a-live");
    let named = || by_sequence(Some(OURS), None);
    let spy = |cluster: &str| pipeline(app(), (vec![target(Some(cluster), "vault")], own()), named());
    [
        ("reach", pipeline(app(), (vec![target(None, "a-dev")], own()), named())),
        ("spy", spy(OUR_CLUSTER)),
        ("rogue", spy(&format!("{THEIRS}/rogue"))),
        ("peek", pipeline(config_app(), (vec![target(None, OURS)], target(None, THEIRS)), named())),
    ]
}
