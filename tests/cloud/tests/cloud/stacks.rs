//! Deploying: again changes nothing, and two stacks share an account and nothing else.

use crate::bed::Bed;
use keelway_cloud_tests::events::{Scope, fresh, history};
use keelway_cloud_tests::observer::Root;
use keelway_cloud_tests::problem::{ensure, same};
use keelway_cloud_tests::runner::Test;
use keelway_cloud_tests::{Ability, Outcome};
use serde_json::Map;

const SHIPYARD: &str = "apiVersion: spec.keptn.sh/0.2.3
kind: Shipyard
metadata: {name: shipyard-apart}
spec: {stages: [{name: dev, sequences: [{name: delivery, tasks: [{name: deploy}]}]}]}
";

pub fn tests() -> Vec<Test<Bed>> {
    vec![
        Test::new("stacks::deploying again changes nothing", again),
        Test::new("stacks::two stacks share nothing", apart).needs(&[Ability::Functions, Ability::Permissions]),
    ]
}

fn again(bed: &Bed) -> Outcome {
    let second = bed.second()?;
    let (stack, said) = bed.cloud.deploy(&second.stack.name(), &Bed::SECOND)?;
    same("the outputs", stack.outputs(), second.stack.outputs())?;
    ensure(said.contains("nothing to change"), || format!("a second deployment of the same changes something: {said}"))
}

fn apart(bed: &Bed) -> Outcome {
    let (one, two) = (&bed.stack, &bed.second()?.stack);
    for name in ["ApiUrl", "BusName", "TableName", "QueueUrl", "SchedulerGroupName", "SequencesFunctionName", "DeadLettersUrl"] {
        ensure(one.output(name) != two.output(name), || format!("both stacks have the {name} {}", one.output(name)))?;
    }
    let project = format!("apart-{}", &fresh()[24..]);
    two.wait(two.api().apply_project(&project, SHIPYARD))?;
    let missing = one.wait(one.api().get(&format!("/v1/project/{project}")))?;
    same("the project in the other stack", missing.status, 404)?;
    let context = fresh();
    two.put_event(&Scope::new(&project, "dev", "cart").trigger("delivery", &context, Map::new()))?;
    bed.second()?.observer.event(&context, "sh.keptn.event.deploy.triggered", 0)?;
    let partition = format!("C#{project}#{context}");
    ensure(!two.items(&partition, "")?.is_empty(), || "nothing in the stack's own table".into())?;
    // The other stack has had its time when it has handled what was sent later.
    let later = fresh();
    one.put_event(&history(&later))?;
    bed.observer.wait("a later event's handling", |observer| observer.done(&later, Root::Outside).pop())?;
    same("items in the other stack's table", one.items(&partition, "")?.len(), 0)?;
    same("messages handled by the other stack", bed.observer.lines(&context).len(), 0)
}
