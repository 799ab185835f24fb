//! What of `infra/template.yaml` costs money by itself, with the parameters' defaults.

use keelway_cloud_tests::Problem;
use serde_json::Value;
use std::path::Path;

/// The parts of the stack that are charged while nothing happens.
#[derive(Debug, PartialEq)]
pub struct Stack {
    /// The mappings of queues to functions, whose pollers ask without end.
    pub mappings: f64,
    /// The starts of functions by schedules, an hour: the sweep's.
    pub sweeps: f64,
    /// The observer's.
    pub looks: f64,
    /// The metrics of all alarms.
    pub alarm_metrics: f64,
    /// The dashboards.
    pub dashboards: f64,
    /// Whether the rule that gives every event to the function for webhooks is enabled in a new stack.
    pub webhooks: bool,
    /// How many days logs and records are kept.
    pub kept: (f64, f64),
}

impl Stack {
    /// Reads the template.
    pub fn read() -> Result<Self, Problem> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../infra/template.yaml");
        let text = std::fs::read_to_string(&path).map_err(|error| Problem::of(&path.display().to_string(), error))?;
        let template: Value = serde_saphyr::from_str(&text).map_err(|error| Problem::of("infra/template.yaml", error))?;
        Template(template).stack()
    }
}

struct Template(Value);

impl Template {
    fn default(&self, parameter: &str) -> Option<&Value> {
        self.0["Parameters"][parameter].get("Default")
    }

    /// Of a reference to a parameter, the default; otherwise the value. References are plain text here.
    fn value<'a>(&'a self, given: &'a Value) -> &'a Value {
        given.as_str().and_then(|name| self.default(name)).unwrap_or(given)
    }

    /// Whether a condition `!Equals [!Ref Parameter, text]` holds by default.
    fn holds(&self, condition: &str) -> bool {
        let equal = &self.0["Conditions"][condition];
        equal[1].is_string() && self.value(&equal[0]) == &equal[1]
    }

    /// What `!If [condition, one, other]` is by default, or the value itself.
    fn chosen<'a>(&'a self, given: &'a Value) -> &'a Value {
        let branches = given.as_array().filter(|branches| branches.len() == 3);
        match branches.and_then(|branches| Some((branches[0].as_str()?, branches))) {
            Some((condition, branches)) => &branches[if self.holds(condition) { 1 } else { 2 }],
            None => given,
        }
    }

    /// Whether a rule, a mapping or a schedule is on.
    fn is_on(&self, properties: &Value) -> bool {
        *self.chosen(&properties["Enabled"]) != false && *self.chosen(&properties["State"]) != "DISABLED"
    }

    fn resources(&self, kind: &str) -> impl Iterator<Item = (&String, &Value)> {
        let all = self.0["Resources"].as_object().into_iter().flatten();
        let made = |one: &Value| one["Condition"].as_str().is_none_or(|condition| self.holds(condition));
        all.filter(move |(_, one)| one["Type"] == kind && made(one)).map(|(name, one)| (name, &one["Properties"]))
    }

    /// The events of functions of this type, with the names of their functions.
    fn events(&self, kind: &str) -> impl Iterator<Item = (&String, &Value)> {
        let of_functions = self.resources("AWS::Serverless::Function");
        let all = of_functions
            .flat_map(|(function, one)| one["Events"].as_object().into_iter().flatten().map(move |(_, event)| (function, event)));
        all.filter(move |(_, event)| event["Type"] == kind && self.is_on(&event["Properties"]))
            .map(|(name, event)| (name, &event["Properties"]))
    }

    /// How often an hour a function is started by its schedules.
    fn starts(&self, function: &str) -> Result<f64, Problem> {
        let own = self.events("Schedule").filter(|(name, _)| *name == function);
        own.map(|(_, event)| self.value(&event["Schedule"])).map(|rate| an_hour(rate.as_str().unwrap_or_default())).sum()
    }

    fn days(&self, parameter: &str) -> f64 {
        self.default(parameter).and_then(Value::as_f64).unwrap_or_default()
    }

    fn stack(&self) -> Result<Stack, Problem> {
        let mappings = self.resources("AWS::Lambda::EventSourceMapping").filter(|(_, one)| self.is_on(one)).count();
        let alarms = self.resources("AWS::CloudWatch::Alarm");
        let metrics: usize = alarms.map(|(_, alarm)| alarm["Metrics"].as_array().map_or(1, Vec::len)).sum();
        let mut rules = self.resources("AWS::Events::Rule").filter(|(_, rule)| self.is_on(rule));
        Ok(Stack {
            mappings: number(mappings + self.events("SQS").count()),
            sweeps: self.starts("SweepFunction")?,
            looks: self.starts("ObserverFunction")?,
            alarm_metrics: number(metrics),
            dashboards: number(self.resources("AWS::CloudWatch::Dashboard").count()),
            webhooks: rules.any(|(name, _)| name == "WebhooksRule"),
            kept: (self.days("LogRetentionDays"), self.days("RetentionDays")),
        })
    }
}

fn number(count: usize) -> f64 {
    crate::cost::number(count as u64)
}

/// `rate(5 minutes)`.
fn an_hour(rate: &str) -> Result<f64, Problem> {
    let inside = rate.strip_prefix("rate(").and_then(|rest| rest.strip_suffix(')'));
    let (every, unit) = inside.and_then(|inside| inside.split_once(' ')).unwrap_or_default();
    match (every.parse::<f64>(), unit.trim_end_matches('s')) {
        (Ok(every), "minute") => Ok(60.0 / every),
        (Ok(every), "hour") => Ok(1.0 / every),
        _ => Err(format!("{rate:?} is no rate that the bill understands").into()),
    }
}
