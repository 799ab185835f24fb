//! The template's alarms, what the runbook says of them, and the tests that show them.

use crate::template::{members, repository, template};
use keelway_engine::trouble::{DEAD_LETTERS, Kind};
use keelway_lambda::config::ENGINES;
use serde_json::{Value, json};
use std::collections::BTreeSet;

fn alarms(template: &Value) -> impl Iterator<Item = (&str, &Value)> {
    members(&template["Resources"]).filter(|(_, resource)| resource["Type"] == "AWS::CloudWatch::Alarm")
}

/// The cells of a table below a heading of a page, without its head.
fn table(page: &str, heading: &str) -> Vec<Vec<String>> {
    let text = std::fs::read_to_string(repository().join(page)).unwrap();
    let (_, section) = text.split_once(&format!("\n{heading}\n")).unwrap_or_else(|| panic!("{page} has no {heading}"));
    let rows = section.lines().skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|')).skip(2);
    let cells = |row: &str| row.split('|').map(|cell| cell.trim().to_owned()).collect::<Vec<_>>();
    rows.map(|row| cells(row.trim_start_matches('|'))).collect()
}

/// What stands between backquotes.
fn quoted(cell: &str) -> BTreeSet<String> {
    cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// The alarm and the trouble of each row.
fn named(rows: &[Vec<String>]) -> BTreeSet<(String, String)> {
    let only = |cell: &str| quoted(cell).into_iter().next().unwrap_or_default();
    rows.iter().map(|row| (only(&row[1]).replace("<stack>-", ""), only(&row[2]))).collect()
}

/// Each failure raises an alarm of the template, each trouble and each alarm is in the runbook, and a test shows each.
#[test]
fn the_runbook_knows_every_alarm_and_every_trouble() {
    let template = template();
    let raised: BTreeSet<String> = alarms(&template)
        .map(|(_, alarm)| alarm["Properties"]["AlarmName"].as_str().unwrap().replace("${AWS::StackName}-", ""))
        .collect();
    let runbook = table("docs/operations.md", "## Runbook");
    let rows = named(&runbook);
    assert_eq!(rows.iter().map(|(alarm, _)| alarm.clone()).collect::<BTreeSet<_>>(), raised);
    let troubles: BTreeSet<String> = rows.iter().filter(|(alarm, _)| alarm == "trouble").map(|(_, kind)| kind.clone()).collect();
    assert_eq!(troubles, Kind::ALL.map(|kind| kind.as_str().to_owned()).into());
    let shown = table("tests/README.md", "## Failures and their alarms");
    assert_eq!(named(&shown), rows);
    let failures = |rows: &[Vec<String>]| rows.iter().map(|row| row[0].clone()).collect::<Vec<_>>();
    assert_eq!(failures(&shown), failures(&runbook));
    for row in &shown {
        let tests = quoted(&row[3]);
        assert!(!tests.is_empty() || row[3].contains("AWS"), "nothing shows {row:?}");
        for test in tests {
            let (file, name) = test.split_once(' ').unwrap_or_else(|| panic!("{test} is no file and name of a test"));
            let text = std::fs::read_to_string(repository().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
            assert!(text.contains(&format!("fn {name}(")) || text.contains(&format!("::{name}\"")), "{file} has no test {name}");
        }
    }
}

#[test]
fn one_alarm_looks_at_what_every_function_reports() {
    let template = template();
    let trouble = &template["Resources"]["TroubleAlarm"]["Properties"];
    assert_eq!((&trouble["Namespace"], &trouble["MetricName"]), (&json!("Keelway"), &json!("Trouble")));
    assert_eq!(trouble["Dimensions"], json!([{"Name": "Stack", "Value": "AWS::StackName"}]));
    assert_eq!((&trouble["Threshold"], &trouble["TreatMissingData"]), (&json!(0), &json!("notBreaching")));
    // Longer than from one sweep to the next, so that the alarm lasts as long as the trouble.
    assert!(trouble["Period"].as_u64() > Some(300));
    // The price of an alarm is by metric.
    assert!(alarms(&template).all(|(_, alarm)| alarm["Properties"]["Metrics"].is_null()));
}

/// Nobody else would tell that no sweep runs.
#[test]
fn a_sweep_that_does_not_run_is_no_good_sweep() {
    let template = template();
    let sweep = &template["Resources"]["SweepAlarm"]["Properties"];
    assert_eq!((&sweep["TreatMissingData"], &sweep["Statistic"]), (&json!("breaching"), &json!("Minimum")));
    assert_eq!(sweep["Period"], json!(["SweepsByDefault", 900, 86400]));
    let default = &template["Conditions"]["SweepsByDefault"];
    assert_eq!(*default, json!(["SweepRate", template["Parameters"]["SweepRate"]["Default"]]));
}

/// The sweep finds the queue and the metrics of an engine by their names.
#[test]
fn queues_and_their_functions_are_named_after_the_stack_and_the_engine() {
    let template = template();
    let names = |kind: &str, name: &str| -> BTreeSet<String> {
        let resources = members(&template["Resources"]).filter(|(_, resource)| resource["Type"] == kind);
        resources.map(|(_, resource)| resource["Properties"][name].as_str().unwrap().to_owned()).collect()
    };
    let expected: BTreeSet<String> =
        ENGINES.into_iter().chain([DEAD_LETTERS]).map(|engine| format!("${{AWS::StackName}}-{engine}")).collect();
    assert_eq!(names("AWS::SQS::Queue", "QueueName"), expected, "each queue is looked at");
    assert!(names("AWS::Serverless::Function", "FunctionName").is_superset(&expected));
}
