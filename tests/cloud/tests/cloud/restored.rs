//! The table is restored from a backup, as `docs/deploy.md` says, on the second stack. It comes after all tests that use that
//! stack, because what they did since the backup would be forgotten.

use crate::bed::Bed;
use keelway_cloud_tests::events::{Scope, answer, fresh};
use keelway_cloud_tests::patience::until;
use keelway_cloud_tests::problem::{ensure, same};
use keelway_cloud_tests::raw::Raw;
use keelway_cloud_tests::runner::Test;
use keelway_cloud_tests::stack::Stack;
use keelway_cloud_tests::{Ability, Outcome, Problem};
use reqwest::Method;
use serde_json::{Map, Value, json};

const SHIPYARD: &str = "apiVersion: spec.keptn.sh/0.2.3
kind: Shipyard
metadata: {name: shipyard-restored}
spec: {stages: [{name: dev, sequences: [{name: delivery, tasks: [{name: deploy}]}]}]}
";
const MAPPINGS: &str = "/2015-03-31/event-source-mappings/";

pub fn tests() -> Vec<Test<Bed>> {
    let test = Test::new("restored::work goes on from the second of the backup, and waiting messages are handled", restored);
    vec![test.needs(&[Ability::Functions, Ability::Permissions]).last()]
}

fn restored(bed: &Bed) -> Outcome {
    let (second, raw) = (bed.second()?, bed.cloud.raw());
    let (stack, table) = (&second.stack, second.stack.output("TableName"));
    let project = format!("restored-{}", &fresh()[24..]);
    stack.wait(stack.api().apply_project(&project, SHIPYARD))?;
    let [before, after, meanwhile] = [fresh(), fresh(), fresh()];
    let trigger = |context: &str, service: &str| {
        stack.put_event(&Scope::new(&project, "dev", service).trigger("delivery", context, Map::new()))
    };
    let task = |context: &str| second.observer.event(context, "sh.keptn.event.deploy.triggered", 0);
    let pass = |context: &str| -> Outcome {
        let task = task(context)?;
        stack.put_event(&answer(&task.event, "started", "executor", Map::new()))?;
        stack.put_event(&answer(&task.event, "finished", "executor", Map::new()))
    };
    let finished = |context: &str| {
        let state = || stack.wait(stack.api().sequence(&project, context));
        let over = || Ok(state()?.filter(|state| state["state"] == "finished"));
        until("the end of a sequence", over, || format!("{:?}", state()))
    };
    trigger(&before, "carts")?;
    task(&before)?;
    let backup = dynamodb(stack, raw, "CreateBackup", json!({"TableName": table, "BackupName": "the-second"}))?;
    // What happens from here on is forgotten.
    pass(&before)?;
    finished(&before)?;
    trigger(&after, "payments")?;
    task(&after)?;
    // As the page says: what writes to the table is stopped first; messages wait.
    enable(stack, raw, false)?;
    trigger(&meanwhile, "web")?;
    dynamodb(stack, raw, "UpdateTable", json!({"TableName": table, "DeletionProtectionEnabled": false}))?;
    dynamodb(stack, raw, "DeleteTable", json!({"TableName": table}))?;
    let from = json!({"TargetTableName": table, "BackupArn": backup["BackupDetails"]["BackupArn"]});
    dynamodb(stack, raw, "RestoreTableFromBackup", from)?;
    let is_active = || {
        let described = dynamodb(stack, raw, "DescribeTable", json!({"TableName": table}))?;
        Ok((described["Table"]["TableStatus"] == "ACTIVE").then_some(()))
    };
    until("the restored table", is_active, || "it is not active".into())?;
    let expiry = json!({"AttributeName": "ttl", "Enabled": true});
    dynamodb(stack, raw, "UpdateTimeToLive", json!({"TableName": table, "TimeToLiveSpecification": expiry}))?;
    let recovery = json!({"PointInTimeRecoveryEnabled": true});
    dynamodb(stack, raw, "UpdateContinuousBackups", json!({"TableName": table, "PointInTimeRecoverySpecification": recovery}))?;

    let state = stack.wait(stack.api().sequence(&project, &before))?;
    let state = state.ok_or_else(|| Problem("the execution of the backup is not there".into()))?;
    same("the state of that second", &state["state"], &json!("started"))?;
    let later = stack.wait(stack.api().sequence(&project, &after))?;
    ensure(later.is_none(), || format!("what was triggered later is known: {later:?}"))?;

    enable(stack, raw, true)?;
    // The message that waited is handled, and the task that was open is answered again.
    task(&meanwhile)?;
    pass(&meanwhile)?;
    pass(&before)?;
    finished(&meanwhile)?;
    finished(&before).map(drop)
}

fn dynamodb(stack: &Stack, raw: &Raw, operation: &str, body: Value) -> Result<Value, Problem> {
    stack.wait(raw.json("dynamodb", &format!("DynamoDB_20120810.{operation}"), &body))
}

/// Has the functions take messages, or not; returns when all of them do as they are told.
fn enable(stack: &Stack, raw: &Raw, enabled: bool) -> Outcome {
    let outputs = stack.outputs().as_object().cloned().unwrap_or_default();
    for (_, function) in outputs.iter().filter(|(name, _)| name.ends_with("FunctionName")) {
        let path = format!("{MAPPINGS}?FunctionName={}", function.as_str().unwrap_or_default());
        let found = stack.wait(raw.ask(Method::GET, "lambda", &path, &Value::Null))?;
        for mapping in found["EventSourceMappings"].as_array().into_iter().flatten() {
            let path = format!("{MAPPINGS}{}", mapping["UUID"].as_str().unwrap_or_default());
            stack.wait(raw.ask(Method::PUT, "lambda", &path, &json!({"Enabled": enabled})))?;
            let wanted = if enabled { "Enabled" } else { "Disabled" };
            let state = || stack.wait(raw.ask(Method::GET, "lambda", &path, &Value::Null)).map(|mapping| mapping["State"].clone());
            until("a mapping's state", || Ok((state()? == wanted).then_some(())), || format!("{:?}", state()))?;
        }
    }
    Ok(())
}
