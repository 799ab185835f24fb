//! The rules of the template take what the engines need, and nothing else.

use crate::template::{members, template};
use serde_json::{Value, json};

/// Whether an event fits a pattern: of the operators of EventBridge, exact values and `prefix`. In a list of objects, one of them
/// has to fit.
fn fits(pattern: &Value, event: &Value) -> bool {
    if let Some(list) = event.as_array() {
        return list.iter().any(|one| fits(pattern, one));
    }
    match pattern {
        Value::Object(fields) => fields.iter().all(|(name, wanted)| fits(wanted, &event[name])),
        Value::Array(values) => values.iter().any(|wanted| {
            let prefix = wanted["prefix"].as_str();
            wanted == event || prefix.is_some_and(|prefix| event.as_str().is_some_and(|text| text.starts_with(prefix)))
        }),
        other => panic!("no pattern: {other}"),
    }
}

/// Events as AWS's documentation shows them, with the variables that Keelway sets.
#[test]
fn the_rules_take_the_ends_of_what_keelway_started_and_of_nothing_else() {
    let template = template();
    let taken = |event: &Value| -> Vec<String> {
        let rules = members(&template["Resources"]).filter(|(_, resource)| resource["Type"] == "AWS::Events::Rule");
        let on_default_bus = rules.filter(|(_, rule)| rule["Properties"]["EventBusName"].is_null());
        let fitting = on_default_bus.filter(|(_, rule)| fits(&rule["Properties"]["EventPattern"], event));
        fitting.map(|(name, _)| name.to_owned()).collect()
    };
    let variable = |name: &str| json!([{"name": "STAGE", "value": "prod"}, {"name": name, "value": "1"}]);
    let task = |status: &str, name: &str| {
        json!({"detail-type": "ECS Task State Change", "source": "aws.ecs", "detail": {"lastStatus": status, "desiredStatus": status,
            "overrides": {"containerOverrides": [{"name": "proxy"}, {"name": "deploy", "environment": variable(name)}]}}})
    };
    let build = |name: &str| {
        json!({"detail-type": "CodeBuild Build State Change", "source": "aws.codebuild", "detail": {"build-status": "SUCCEEDED",
            "additional-information": {"environment": {"environment-variables": variable(name)}}}})
    };
    // What the engine reads the attempt from.
    for known in keelway_domain::deployments::runner::VARIABLES {
        let taken_by = |event: &Value| taken(event).len();
        let expected = usize::from(known == "DEPLOYMENT_ATTEMPT");
        assert_eq!((taken_by(&task("STOPPED", known)), taken_by(&build(known))), (expected, expected), "{known}");
    }
    assert_eq!(taken(&task("STOPPED", "DEPLOYMENT_ATTEMPT")), ["TasksRule"]);
    assert_eq!(taken(&task("RUNNING", "DEPLOYMENT_ATTEMPT")), ["TasksRule"]);
    assert_eq!(taken(&build("DEPLOYMENT_ATTEMPT")), ["BuildsRule"]);
    let none: [&str; 0] = [];
    assert_eq!(taken(&task("PENDING", "DEPLOYMENT_ATTEMPT")), none);
    assert_eq!((taken(&task("STOPPED", "PATH")), taken(&build("PATH"))), (vec![], vec![]));
}

/// Executors may put events on the bus, too: what they call a task's trigger deploys nothing.
#[test]
fn only_tasks_that_the_engine_triggers_reach_deployments() {
    let template = template();
    let pattern = &template["Resources"]["DeploymentsRule"]["Properties"]["EventPattern"];
    assert_eq!(pattern["source"], json!([keelway_domain::event::SOURCE]));
}

/// What `keelway doctor` asks for are the rules of the template, and all of them.
#[test]
fn the_rules_that_are_checked_are_the_templates() {
    let template = template();
    let short = |name: &Value| name.as_str().unwrap().trim_start_matches("${AWS::StackName}-").to_owned();
    let mut rules: Vec<(String, bool)> = vec![];
    for (_, resource) in members(&template["Resources"]) {
        let properties = &resource["Properties"];
        // What a parameter switches off is no fault when it is off.
        let switched = !properties["State"].is_null() || !resource["Condition"].is_null();
        if resource["Type"] == "AWS::Events::Rule" && !switched {
            rules.push((short(&properties["Name"]), !properties["EventBusName"].is_null()));
        }
        let events = members(&properties["Events"]).filter(|(_, event)| event["Type"] == "Schedule");
        rules.extend(events.map(|(_, event)| (short(&event["Properties"]["Name"]), false)));
    }
    let mut checked = keelway_engine::checks::RULES.map(|(name, on_bus)| (name.to_owned(), on_bus)).to_vec();
    rules.sort();
    checked.sort();
    assert_eq!(checked, rules);
}
