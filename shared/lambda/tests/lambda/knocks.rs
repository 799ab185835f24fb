//! Queues that nobody polls: whoever may send to one may start its function, and every rule that sends to one does.

use crate::template::{allowed, items, members, template};
use keelway_engine::webhooks::PLACES;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;

/// The functions on queues, with the properties of their queue's pollers, by the names of the queues.
fn on_queues(template: &Value) -> impl Iterator<Item = (String, &Value, &Value)> {
    let functions = members(&template["Resources"]).filter(|(_, one)| one["Type"] == "AWS::Serverless::Function");
    functions.filter_map(|(_, function)| {
        let properties = &function["Properties"];
        let poller = properties["Events"].get("Queue")?;
        let name = properties["FunctionName"].as_str()?.trim_start_matches("${AWS::StackName}-");
        Some((name.to_owned(), properties, &poller["Properties"]))
    })
}

/// The part of a function's name after the stack's, from its ARN.
fn function(arn: &Value) -> Option<&str> {
    Some(arn.as_str()?.split_once(":function:${AWS::StackName}-")?.1)
}

#[test]
fn one_queue_is_polled_unless_a_parameter_says_otherwise() {
    let template = template();
    assert_eq!(template["Parameters"]["RareEngines"]["Default"], "knock");
    assert_eq!(template["Conditions"]["PollsRareEngines"], json!(["RareEngines", "poll"]));
    let always: Vec<String> =
        on_queues(&template).filter(|(.., poller)| poller.get("Enabled").is_none()).map(|(name, ..)| name).collect();
    assert_eq!(always, ["sequences"]);
    for (name, function, poller) in on_queues(&template).filter(|(name, ..)| name != "sequences") {
        assert_eq!(poller["Enabled"], json!(["PollsRareEngines", true, false]), "{name}");
        // The pollers' limit, and that of knocks.
        let most = &poller["ScalingConfig"]["MaximumConcurrency"];
        if name != "dead-letters" {
            let reserved = json!(["HasApiReservedConcurrency", most, "AWS::NoValue"]);
            assert_eq!(function["ReservedConcurrentExecutions"], reserved, "{name}");
        }
    }
    let knocks = &template["Globals"]["Function"]["Environment"]["Variables"]["KEELWAY_KNOCKS"];
    assert_eq!(*knocks, json!(["PollsRareEngines", "false", "true"]));
}

/// The batch of a poller, and that of a knock.
#[test]
fn a_knock_takes_as_many_messages_as_a_poller() {
    let mut seen = 0;
    for (name, _, poller) in on_queues(&template()).filter(|(name, ..)| !["sequences", "dead-letters"].contains(&name.as_str())) {
        let main = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../functions/{name}/src/main.rs"));
        let source = std::fs::read_to_string(main).unwrap();
        let taking = source.split_once(".taking(").map_or("10", |(_, rest)| rest.split_once(')').unwrap().0);
        let taking = if taking == "PLACES" { PLACES } else { taking.parse().unwrap() };
        assert_eq!(poller["BatchSize"].as_u64(), Some(taking as u64), "{name}");
        seen += 1;
    }
    assert_eq!(seen, 7);
}

#[test]
fn who_sends_to_a_queue_that_nobody_polls_may_knock_there() {
    let template = template();
    let roles: Vec<&str> = members(&template["Resources"])
        .filter(|(name, one)| one["Type"] == "AWS::IAM::Role" && *name != "SchedulerRole")
        .map(|(name, _)| name)
        .collect();
    let mut senders = 0;
    for role in roles {
        let may = allowed(&template, role);
        let on = |wanted: &str| -> BTreeSet<String> {
            let named = may.iter().filter(|(action, _)| *action == wanted);
            named.filter_map(|(_, on)| on.as_str().map(str::to_owned)).collect()
        };
        let sends: BTreeSet<String> = on("sqs:SendMessage")
            .iter()
            .filter_map(|queue| queue.strip_suffix("Queue.Arn").map(str::to_lowercase))
            .filter(|engine| engine != "sequences")
            .collect();
        let knocks: BTreeSet<String> =
            on("lambda:InvokeFunction").iter().filter_map(|arn| function(&json!(arn)).map(str::to_owned)).collect();
        // The sweep looks at the dead letters, which services send.
        let expected: BTreeSet<String> =
            sends.iter().cloned().chain((role == "SweepRole").then(|| "dead-letters".to_owned())).collect();
        assert_eq!(knocks, expected, "{role}");
        let waits = on("sqs:SendMessage").contains("SequencesQueue.Arn");
        assert!(sends.is_empty() || waits, "{role}: a knock waits in the queue of sequences for its time");
        senders += usize::from(!sends.is_empty());
    }
    assert_eq!(senders, 10);
}

#[test]
fn a_rule_that_sends_to_a_queue_that_nobody_polls_knocks() {
    let template = template();
    let resources = || members(&template["Resources"]);
    let mut seen = 0;
    for (name, rule) in resources().filter(|(_, one)| one["Type"] == "AWS::Events::Rule") {
        let targets: Vec<&Value> = items(&rule["Properties"]["Targets"]).collect();
        let engine = targets[0]["Arn"].as_str().unwrap().trim_end_matches("Queue.Arn").to_lowercase();
        let knock = targets.get(1).map(|target| &target["Fn::If"]);
        if engine == "sequences" {
            assert_eq!(knock, None);
            continue;
        }
        let knock = knock.unwrap_or_else(|| panic!("{name} does not knock"));
        assert_eq!(
            (&knock[0], &knock[1], function(&knock[2]["Arn"])),
            (&json!("PollsRareEngines"), &json!("AWS::NoValue"), Some(&*engine))
        );
        assert_eq!(knock[2]["Input"], r#"{"keelway":"knock"}"#, "{name}: the message is in the queue");
        let (source, of) = (format!("{name}.Arn"), format!("{engine}Function"));
        let allowed = resources().filter(|(_, one)| one["Type"] == "AWS::Lambda::Permission").any(|(_, one)| {
            let function = one["Properties"]["FunctionName"].as_str().unwrap_or_default();
            one["Properties"]["SourceArn"] == source && function.eq_ignore_ascii_case(&of)
        });
        assert!(allowed, "{name} may not start the function");
        seen += 1;
    }
    assert_eq!(seen, 8);
}
