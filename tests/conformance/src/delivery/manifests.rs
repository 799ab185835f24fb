//! What is applied: a shipyard, the stages' configs and a pipeline through them.

use super::{APPROVER, SERVICE, STAGES, namespace};
use crate::definitions::stages;
use crate::deployments::definition;
use crate::promotions::judge::LATE;
use keelway_domain::border::{Act, Consent, Consents};
use keelway_domain::deployments::definition::{AutoRollback, Concurrency, Definition, Starter, Trigger};
use keelway_domain::promotions::definition::{
    App, Approval, Compare, Definition as Pipeline, EnvironmentSpec, EvaluationSpec, InFlight, PromotionSpec, Sequence, Strategy,
    Target,
};
use keelway_domain::shipyard::Shipyard;
use keelway_domain::time::Span;
use keelway_domain::windows::{Kind, When, Window};
use keelway_world::rng::Rng;
use std::sync::Arc;

/// The alarm that every config watches that watches one.
pub const ALARM: &str = "errors";

/// When stages that close do so, for eight minutes.
const CLOSES: &str = "*/20 * * * *";

/// The window in which nothing is promoted, where there is one.
pub fn closed() -> Window {
    let when = When::Recurring { schedule: CLOSES.into(), duration: Span::minutes(8) };
    Window { kind: Kind::Deny, when, zone: None, reason: None }
}

/// What a stage's sequences are.
#[derive(Debug, Clone, Copy)]
pub struct Stage {
    /// A test follows the deployment.
    pub tested: bool,
    /// A person lets the deployment begin.
    pub approved: bool,
    /// What failed is rolled back by a sequence.
    pub undone: bool,
    /// Of what waits for the stage, only the newest stays.
    pub supersede: bool,
    /// The whole sequence takes at most half an hour.
    pub hurried: bool,
    /// Its deployment names a config that does not exist.
    pub misled: bool,
    /// Nothing begins in it for some minutes, again and again.
    pub closes: bool,
}

/// Draws the sequences of a stage.
pub fn stage(rng: &mut Rng, place: usize) -> Stage {
    Stage {
        tested: rng.chance(50.0),
        approved: place > 0 && rng.chance(25.0),
        undone: rng.chance(40.0),
        supersede: rng.chance(20.0),
        hurried: rng.chance(15.0),
        misled: rng.chance(4.0),
        closes: false,
    }
}

/// The shipyard with these stages.
pub fn shipyard(all: &[Stage]) -> Arc<Shipyard> {
    let mut text = vec![];
    for (stage, name) in all.iter().zip(STAGES) {
        let config = format!("{}:{SERVICE}", namespace(name));
        let of = if stage.misled { format!("{}:nobody", namespace(name)) } else { config.clone() };
        let mut tasks = vec![format!("{{name: deployment, properties: {{deploymentConfig: '{of}'}}}}")];
        if stage.approved {
            tasks.insert(0, "{name: approval, properties: {pass: manual}}".into());
        }
        if stage.tested {
            tasks.push("{name: test, startDeadline: 2m, timeout: 5m}".into());
        }
        let more = [(stage.supersede, ", supersede: true"), (stage.hurried, ", timeout: 30m")];
        let more: String = more.into_iter().filter_map(|(has, text)| has.then_some(text)).collect();
        let mut sequences = vec![format!("{{name: delivery, tasks: [{}]{more}}}", tasks.join(", "))];
        if stage.undone {
            let on = format!("{{event: {name}.delivery.finished, selector: {{match: {{result: fail}}}}}}");
            let task = format!("{{name: rollback, properties: {{deploymentConfig: '{config}'}}}}");
            sequences.push(format!("{{name: rollback, triggeredOn: [{on}], tasks: [{task}]}}"));
        }
        let windows =
            if stage.closes { format!("windows: [{{kind: deny, schedule: '{CLOSES}', duration: 8m}}], ") } else { String::new() };
        text.push(format!("{{name: {name}, {windows}sequences: [{}]}}", sequences.join(", ")));
    }
    stages(&text.join(", "))
}

/// Draws a stage's config.
pub fn config(rng: &mut Rng) -> Definition {
    let mut config = definition(vec![if rng.chance(70.0) { Trigger::Manual } else { Trigger::ConfigChange }]);
    config.strategy.timeout = *rng.pick(&[Span::seconds(90), Span::seconds(600)]);
    config.strategy.deadline = *rng.pick(&[Span::seconds(120), Span::seconds(1800)]);
    config.concurrency = *rng.pick(&[Concurrency::Queue, Concurrency::Supersede]);
    if rng.chance(40.0) {
        config.auto_rollback = Some(AutoRollback { on_failure: true, alarms: vec![ALARM.into()], bake: Span::minutes(5) });
    }
    if rng.chance(30.0) {
        config.deployer = Some(Starter::Ecs(Default::default()));
    }
    config
}

/// What the namespaces of the configs consent to.
pub fn consents() -> Consents {
    Consents(vec![Consent { to: vec![super::PROJECT.into()], may: vec![Act::Deploy, Act::Observe], names: vec![] }])
}

/// The config, as pipelines name it.
pub fn app() -> App {
    App { api_version: "keelway.dev/v1".into(), kind: "DeploymentConfig".into(), name: SERVICE.into() }
}

/// A stage's config as a target.
pub fn target(stage: &str) -> Target {
    Target { cluster: None, namespace: namespace(stage) }
}

/// Draws the pipeline through these stages: each one by its own sequence, after an approval or without one.
pub fn pipeline(rng: &mut Rng, stages: usize) -> Pipeline {
    let mut environments = vec![];
    for (place, name) in STAGES.iter().take(stages).enumerate() {
        let sequence = Sequence { project: None, stage: None, service: SERVICE.into(), name: "delivery".into() };
        let manual = rng.chance(30.0);
        let approvers = if manual { vec![APPROVER.into()] } else { vec![] };
        let promotion = PromotionSpec {
            manual,
            strategy: Strategy::Sequence(sequence),
            approval: Approval { approvers, ..Approval::default() },
            windows: vec![],
        };
        let soak = (place + 1 < stages && rng.chance(15.0)).then_some(Span::minutes(2));
        let promotion = (place > 0).then_some(promotion);
        environments.push(EnvironmentSpec { name: (*name).into(), targets: vec![target(name)], promotion, soak, evaluation: None });
    }
    Pipeline {
        app: app(),
        environments,
        promotion: None,
        in_flight: *rng.pick(&[InFlight::Restart, InFlight::Restart, InFlight::Finish]),
        compare: Compare::Exact,
        vouched: false,
    }
}

/// What evaluations come to.
const VERDICTS: [&str; 7] = ["pass", "pass", "warning", "fail", "errored", "unevaluated", LATE];

/// In most pipelines with a soak time, what soaks is evaluated. What was drawn decides, so that the other seeds stay as they were.
/// Returns what the evaluations come to, by stage.
pub fn evaluate(pipeline: &mut Pipeline, drawn: u64) -> Vec<(String, String)> {
    let soaking = pipeline.environments.iter_mut().filter(|environment| environment.soak.is_some());
    let evaluated = soaking.filter(|_| !drawn.is_multiple_of(5)).enumerate().map(|(n, environment)| {
        let drawn = drawn / 5 + n as u64;
        environment.evaluation = Some(EvaluationSpec { service: SERVICE.into(), stage: None, strict: drawn.is_multiple_of(2) });
        (environment.name.clone(), VERDICTS[(drawn / 2) as usize % VERDICTS.len()].to_owned())
    });
    evaluated.collect()
}
