//! `strategy`: how a version is deployed.

use super::triggers::Around;
use super::{analysis, hooks};
use crate::manifest::finding::Report;
use crate::manifest::levels::{self, Level, strategies};
use crate::manifest::names::nearest;
use crate::manifest::tree::Node;
use crate::manifest::values::{duration, mapping, seconds, text, texts, whole, words};
use keelway_domain::deployments::definition::{Custom, Hooks, Strategy, StrategyKind, Texts, Weight};
use keelway_domain::deployments::variables::is_reserved;
use keelway_domain::time::Span;
use serde_json::{Map, Value};

/// How long a step may take, in seconds, if the manifest does not say.
pub const TIMEOUT: i64 = 600;
/// How long a deployer may take altogether, in seconds: six hours.
pub const DEADLINE: i64 = 21_600;
/// How many copies may be missing, or too many, while they are replaced.
const PART: &str = "25%";

/// The kinds, where their parameters stand, and which fields these have.
const KINDS: [(&str, StrategyKind, &str, &Level); 4] = [
    ("Rolling", StrategyKind::Rolling, "rollingParams", &strategies::ROLLING),
    ("Recreate", StrategyKind::Recreate, "recreateParams", &strategies::RECREATE),
    ("Canary", StrategyKind::Canary, "canaryParams", &strategies::CANARY),
    ("Custom", StrategyKind::Custom, "customParams", &strategies::CUSTOM),
];

/// The name of a kind, and of the field with its parameters.
pub fn names(kind: StrategyKind) -> (&'static str, &'static str) {
    KINDS.iter().find(|(_, known, ..)| *known == kind).map_or(("", ""), |(name, _, params, _)| (name, params))
}

/// The parameters of the kind at hand.
struct Params<'n> {
    node: Option<&'n Node>,
    path: String,
}

/// The strategy under a node; absent: Rolling, with its defaults.
pub fn read(parent: &Node, path: &str, around: &Around, report: &mut Report) -> Strategy {
    let Some((node, path)) = levels::mapping(parent, "strategy", &strategies::STRATEGY, path, report) else {
        let none = Params { node: None, path: String::new() };
        let deadline = Span::seconds(DEADLINE);
        return Strategy { deadline, ..rolling(&none, report) };
    };
    let kind = kind(node, &path, report);
    let custom = custom(node, kind, &path, report);
    let params = params(node, kind, &path, report);
    let mut strategy = match kind {
        StrategyKind::Rolling => rolling(&params, report),
        StrategyKind::Recreate | StrategyKind::Custom => blank(kind, timeout(&params, report)),
        StrategyKind::Canary => Strategy { steps: steps(node, &params, report), ..blank(kind, timeout(&params, report)) },
    };
    if kind != StrategyKind::Custom {
        strategy.params.insert("timeoutSeconds".into(), Value::from(strategy.timeout.0 / 1000));
        strategy.hooks = params.node.map(|node| hooks::read(node, &params.path, around, report)).unwrap_or_default();
    }
    let deadline = seconds(node, "activeDeadlineSeconds", &path, report).unwrap_or(DEADLINE);
    if Span::seconds(deadline) <= strategy.timeout {
        let timeout = strategy.timeout.0 / 1000;
        let at = node.get("activeDeadlineSeconds").or_else(|| params.node?.get("timeoutSeconds")).unwrap_or(node);
        let message = format!("is {deadline}, but one step may take {timeout} seconds (`timeoutSeconds`): write a longer deadline");
        report.error(at, format!("{path}.activeDeadlineSeconds"), message);
    }
    let analysis = analysis::read(node, kind, &path, report);
    let labels = texts(node, "labels", &path, report);
    let annotations = texts(node, "annotations", &path, report);
    let resources = mapping(node, "resources", &format!("{path}.resources"), report).map(Node::to_json);
    let resources =
        resources.filter(|resources| resources.as_object().is_some_and(|fields| !fields.is_empty())).unwrap_or_default();
    Strategy { deadline: Span::seconds(deadline), custom, analysis, labels, annotations, resources, ..strategy }
}

fn blank(kind: StrategyKind, timeout: Span) -> Strategy {
    Strategy {
        kind,
        timeout,
        deadline: Span::seconds(DEADLINE),
        custom: None,
        params: Map::new(),
        steps: vec![],
        analysis: None,
        hooks: Hooks::default(),
        labels: Texts::new(),
        annotations: Texts::new(),
        resources: Value::Null,
    }
}

fn kind(node: &Node, path: &str, report: &mut Report) -> StrategyKind {
    let given = text(node, "type", path, report).unwrap_or_default();
    if given.is_empty() {
        return StrategyKind::Rolling;
    }
    let names = KINDS.map(|(name, ..)| name);
    match KINDS.iter().find(|(name, ..)| *name == given) {
        Some((_, kind, ..)) => *kind,
        None => {
            let remedy = match nearest(&given, names) {
                Some(near) => format!("write `{near}`"),
                None => format!("write one of `{}`; a deployer of your own is `Custom`", names.join("`, `")),
            };
            let message = format!("{given:?} is not a type of strategies: {remedy}");
            report.error(node.get("type").unwrap_or(node), format!("{path}.type"), message);
            StrategyKind::Rolling
        }
    }
}

/// The parameters of the kind; those of another kind are findings.
fn params<'n>(node: &'n Node, kind: StrategyKind, path: &str, report: &mut Report) -> Params<'n> {
    let mut own = Params { node: None, path: path.to_owned() };
    for (name, known, field, part) in KINDS {
        let Some(at) = node.get(field).filter(|at| !at.is_null()) else { continue };
        if known == kind && kind != StrategyKind::Custom {
            if let Some((params, path)) = levels::mapping(node, field, part, path, report) {
                own = Params { node: Some(params), path };
            }
        } else if known == StrategyKind::Canary {
            let message = "is not used, and the whole traffic would change at once: write `type: Canary` beside it";
            report.error(at, format!("{path}.{field}"), message.into());
        } else if known != StrategyKind::Custom {
            let (type_, _) = names(kind);
            let message = format!("is not used: the strategy's type is `{type_}`; write `type: {name}`, or leave it out");
            report.warning(at, format!("{path}.{field}"), message);
        }
    }
    own
}

fn timeout(params: &Params, report: &mut Report) -> Span {
    let written = params.node.and_then(|node| seconds(node, "timeoutSeconds", &params.path, report));
    Span::seconds(written.unwrap_or(TIMEOUT))
}

fn rolling(params: &Params, report: &mut Report) -> Strategy {
    let mut strategy = blank(StrategyKind::Rolling, timeout(params, report));
    let mut put = |field: &str, value: Value| drop(strategy.params.insert(field.to_owned(), value));
    put("timeoutSeconds", Value::from(strategy.timeout.0 / 1000));
    for field in ["updatePeriodSeconds", "intervalSeconds"] {
        let written = params.node.and_then(|node| seconds(node, field, &params.path, report));
        put(field, written.unwrap_or(1).into());
    }
    let most = ["maxUnavailable", "maxSurge"].map(|field| {
        let written = params.node.and_then(|node| part(node, field, &params.path, report));
        let part = written.unwrap_or_else(|| PART.into());
        put(field, part.clone());
        part
    });
    let is_zero = |part: &Value| part.as_u64() == Some(0) || part.as_str().is_some_and(|text| text.trim_start_matches('0') == "%");
    if let (true, Some(node)) = (most.iter().all(is_zero), params.node) {
        let message = "is 0, as `maxSurge` is: nothing could ever be replaced; make one of them greater";
        report.error(node.get("maxUnavailable").unwrap_or(node), format!("{}.maxUnavailable", params.path), message.into());
    }
    strategy
}

/// A number of copies, or a part of them: `2`, `25%`.
fn part(node: &Node, field: &str, path: &str, report: &mut Report) -> Option<Value> {
    let written = text(node, field, path, report)?;
    let number = |digits: &str| digits.parse::<u32>().ok().filter(|_| digits.chars().all(|c| c.is_ascii_digit()));
    let value = match written.strip_suffix('%') {
        Some(percent) => number(percent).filter(|percent| *percent <= 100).map(|_| Value::from(written.clone())),
        None => number(&written).map(Value::from),
    };
    if value.is_none() {
        let message =
            format!("{written:?} is neither a number nor a percentage: write for example `1`, or `25%`, from `0%` to `100%`");
        report.error(node.get(field).unwrap_or(node), format!("{path}.{field}"), message);
    }
    value
}

fn steps(strategy: &Node, params: &Params, report: &mut Report) -> Vec<Weight> {
    let Some(node) = params.node else {
        levels::missing(strategy, &strategies::CANARY, "steps", &format!("{}.canaryParams", params.path), report);
        return vec![];
    };
    let mut steps: Vec<Weight> = vec![];
    for (node, path) in levels::entries(node, "steps", &strategies::STEP, &params.path, report) {
        let at = node.get("weight").unwrap_or(node);
        let weight = whole(node, "weight", &path, 1, report).map(|weight| u8::try_from(weight).unwrap_or(u8::MAX));
        let before = steps.last().map_or(0, |step| step.weight);
        match weight {
            Some(weight) if weight > 100 => {
                report.error(at, format!("{path}.weight"), "is above 100: write a percentage from 1 to 100".into());
            }
            Some(weight) if weight <= before => {
                let message = format!("is {weight}, after {before}: weights rise from step to step");
                report.error(at, format!("{path}.weight"), message);
            }
            _ => {}
        }
        let bake = duration(node, "bake", &path, report);
        if bake == Some(Span(0)) {
            let message = "is 0: write how long it stays at this weight; without `bake`, it stays until a person says to go on";
            report.error(node.get("bake").unwrap_or(node), format!("{path}.bake"), message.into());
        }
        steps.extend(weight.map(|weight| Weight { weight, bake }));
    }
    steps
}

/// `customParams`: required for Custom, where they may be empty; on the others, they wrap the deployer.
fn custom(node: &Node, kind: StrategyKind, path: &str, report: &mut Report) -> Option<Custom> {
    let Some((node, path)) = levels::mapping(node, "customParams", &strategies::CUSTOM, path, report) else {
        if kind == StrategyKind::Custom {
            let at = node.get("customParams").unwrap_or(node);
            let message =
                "is missing: describe your deployer, with `image`, `command` and `environment`, or write `customParams: {}`";
            report.error(at, format!("{path}.customParams"), message.into());
        }
        return None;
    };
    let image = text(node, "image", &path, report).unwrap_or_default();
    let command = words(node, "command", &path, report);
    let mut environment = Texts::new();
    for (variable, path) in levels::entries(node, "environment", &strategies::VARIABLE, &path, report) {
        let name = hooks::variable(variable, &path, report).filter(|name| {
            let reserved = is_reserved(name);
            if reserved {
                let message = format!("{name} changes how the deployer's programs start, or is Keelway's own: choose another name");
                report.error(variable.get("name").unwrap_or(variable), format!("{path}.name"), message);
            }
            !reserved
        });
        if let Some(at) = variable.get("valueFrom").filter(|at| !at.is_null()) {
            let message = "is not looked up here: write `value`, or have the deployer read it";
            report.error(at, format!("{path}.valueFrom"), message.into());
        }
        let value = text(variable, "value", &path, report).unwrap_or_default();
        environment.extend(name.map(|name| (name, value)));
    }
    Some(Custom { image, command, environment })
}
