//! Deployers that Keelway does not run itself, and what goes wrong while something is deployed: hooks that fail, deployers and
//! functions that are killed. All of it through template and binaries.

use crate::bed::{Bed, Second};
use crate::deployers::{Config, says, tail};
use crate::failures::kill_functions;
use crate::shell::Shell;
use keelway_cloud_tests::cloud::binaries;
use keelway_cloud_tests::patience::until;
use keelway_cloud_tests::problem::{ensure, same};
use keelway_cloud_tests::runner::Test;
use keelway_cloud_tests::{Ability, Outcome, Problem, Stack};
use keelway_domain::deployments::plan::Function;
use keelway_engine::aliases::{Aliases, Route};
use serde_json::{Value, json};
use std::collections::HashSet;
use std::path::Path;
use tempfile::TempDir;

pub fn tests() -> Vec<Test<Bed>> {
    let functions = &[Ability::Functions, Ability::Records];
    vec![
        Test::new("deployers::functions that are killed deploy a version once all the same", killed_functions).needs(&[
            Ability::Functions,
            Ability::Records,
            Ability::Processes,
        ]),
        Test::new("deployers::the policy of a hook that fails decides about the deployment", policies).needs(functions),
        Test::new(
            "deployers::a deployer of one's own carries out any strategy, with everything that the config says about it",
            wrapped,
        )
        .needs(functions),
        Test::new("deployers::a deployer around a strategy has Keelway carry it out, and taken back when it fails", carried)
            .needs(functions),
        Test::new("deployers::a deployer that is killed loses the attempt, and another one carries out the next", killed_deployer),
    ]
}

/// A folder that functions and commands of a test leave their traces in.
fn folder() -> Result<TempDir, Problem> {
    tempfile::tempdir().map_err(|error| Problem::of("a folder", error))
}

/// The lines of a file; none if there is no such file yet.
fn lines(path: &Path) -> Vec<String> {
    std::fs::read_to_string(path).unwrap_or_default().lines().map(str::to_owned).collect()
}

fn touch(path: &Path) -> Outcome {
    std::fs::write(path, "").map_err(|error| Problem::of(&path.display().to_string(), error))
}

/// Where an alias of a function points.
fn alias(stack: &Stack, function: &str, alias: &str) -> Result<Option<Route>, Problem> {
    let of = Function { name: function.into(), region: None };
    let found = stack.wait(stack.ports().find(&of, alias)).map_err(|error| Problem(error.to_string()))?;
    Ok(found.map(|found| found.route))
}

/// A hook of the configs `<policy>-<place>`: at its place, it refuses version 2, under `retry` only twice. It writes down its
/// calls.
const REFUSES: &str = "def handler(event, context):
    policy, place = event['config'].split('-')
    path = 'FOLDER/' + event['config'] + '-' + str(event['version'])
    with open(path, 'a') as calls:
        calls.write(event['id'] + '\\n')
    refused = event['version'] == 2 and event['hook'] == place and (policy != 'retry' or len(open(path).readlines()) < 3)
    return {'statusCode': 503 if refused else 200}
";

fn policies(bed: &Bed) -> Outcome {
    let (config, folder) = (Config::new(bed), folder()?);
    let (shop, hook) = (format!("deployed-{}", config.salt), format!("hook-{}", config.salt));
    let arn = config.function(&shop, &[&says("one"), &says("two")])?;
    config.function(&hook, &[&REFUSES.replace("FOLDER", &folder.path().display().to_string())])?;
    let apply = |config: &Config<'_>, policy: &str, place: &str, version: u32| {
        config.apply(&json!({
            "targets": [{"name": "main", "kind": "lambda-alias", "id": format!("{shop}:{}", config.name)}],
            "strategy": {"type": "Recreate", "recreateParams": {"timeoutSeconds": 120, place: {"failurePolicy": policy, "invoke": hook}}},
            "triggers": [{"type": "ConfigChange"}],
            "template": {"containers": [{"name": "app", "image": format!("{arn}:{version}")}]},
        }))
    };
    // An alias for each policy at each place.
    let all: Vec<(&str, &str, Config<'_>)> = ["Abort", "Retry", "Ignore"]
        .into_iter()
        .flat_map(|policy| ["pre", "mid", "post"].map(|place| (policy, place)))
        .map(|(policy, place)| (policy, place, config.named(&format!("{}-{place}", policy.to_lowercase()))))
        .collect();
    for (policy, place, config) in &all {
        apply(config, policy, place, 1)?;
    }
    for (_, _, config) in &all {
        let first = config.becomes(1, &["Complete", "Failed"])?;
        same(&format!("version 1 of {}", config.name), &first["status"], &json!("Complete"))?;
    }
    for (policy, place, config) in &all {
        apply(config, policy, place, 2)?;
    }
    for (policy, place, config) in &all {
        let (name, second) = (&config.name, config.becomes(2, &["Complete", "Failed"])?);
        let (status, version, least, told) = match *policy {
            "Abort" => ("Failed", "1", 1, ""),
            "Retry" => ("Complete", "2", 3, ""),
            _ => ("Complete", "2", 1, "it is ignored"),
        };
        same(&format!("version 2 of {name}"), &second["status"], &json!(status))?;
        same(&format!("the alias of {name}"), alias(config.stack, &shop, name)?, Some(Route::to(version)))?;
        for told in [&format!("hook {place} failed"), told] {
            ensure(tail(&second).contains(told), || format!("{told:?} is not told: {second}"))?;
        }
        let calls = lines(&folder.path().join(format!("{name}-2")));
        let ids: HashSet<&String> = calls.iter().collect();
        ensure(calls.len() >= least && ids.len() == 1, || format!("the calls of {name}: {calls:?}"))?;
    }
    Ok(())
}

/// A hook that writes down its call and then waits until it may go on.
const WAITS: &str = "import os, time

def handler(event, context):
    with open('FOLDER/' + event['hook'], 'a') as calls:
        calls.write(event['id'] + '\\n')
    while os.path.isdir('FOLDER') and not os.path.exists('FOLDER/go-' + event['hook']):
        time.sleep(0.05)
    return {'statusCode': 200}
";

fn killed_functions(bed: &Bed) -> Outcome {
    let Second { stack, observer } = bed.second()?;
    let (config, folder) = (Config::at(bed, stack), folder()?);
    let (shop, hook) = (format!("deployed-{}", config.salt), format!("hook-{}", config.salt));
    let arn = config.function(&shop, &[&says("one"), &says("two")])?;
    config.function(&hook, &[&WAITS.replace("FOLDER", &folder.path().display().to_string())])?;
    let spec = |version: u32, canary: &Value| {
        json!({
            "targets": [{"name": "main", "kind": "lambda-alias", "id": format!("{shop}:live")}],
            "strategy": {"type": "Canary", "canaryParams": canary}, "triggers": [{"type": "ConfigChange"}],
            "template": {"containers": [{"name": "app", "image": format!("{arn}:{version}")}]},
        })
    };
    let steps = json!([{"weight": 50, "bake": "1s"}]);
    config.apply(&spec(1, &json!({"timeoutSeconds": 600, "steps": steps})))?;
    config.becomes(1, &["Complete"])?;
    // A hook that takes longer than its function may run is called again.
    let hook = json!({"failurePolicy": "Retry", "invoke": hook});
    config.apply(&spec(2, &json!({"timeoutSeconds": 600, "steps": steps, "pre": hook, "post": hook})))?;
    for place in ["pre", "post"] {
        let calls = || lines(&folder.path().join(place));
        until(&format!("the hook {place}"), || Ok((!calls().is_empty()).then_some(())), || config.so_far())?;
        // In the middle of the step that calls it.
        let killed = kill_functions(&stack.output("DeployersFunctionName"));
        ensure(killed > 0, || "no process of the deployers was ended".into())?;
        kill_functions(&stack.output("DeploymentsFunctionName"));
        let before = calls().len();
        let found = || Ok((calls().len() > before).then_some(()));
        until(&format!("another call of the hook {place}"), found, || format!("{:?}", calls()))?;
        touch(&folder.path().join(format!("go-{place}")))?;
    }
    let second = config.becomes(2, &["Complete", "Failed"])?;
    same("version 2", (&second["status"], &second["attempt"]), (&json!("Complete"), &json!(1)))?;
    same("the alias", alias(stack, &shop, "live")?, Some(Route::to("2")))?;
    for place in ["pre", "post"] {
        let calls = lines(&folder.path().join(place));
        let ids: HashSet<&String> = calls.iter().collect();
        same(&format!("the ids of the hook {place}: {calls:?}"), ids.len(), 1)?;
    }
    // Told once, and nothing else told.
    let told = |what: &str| {
        let events = observer.events(&HashSet::from([config.namespace.clone()]));
        let is_it = |event: &Value| event["type"] == format!("dev.keelway.deployment.{what}") && event["data"]["version"] == 2;
        events.iter().filter(|seen| is_it(&seen.event)).count()
    };
    observer.wait("the event of the end", |_| (told("complete") > 0).then_some(()))?;
    for (what, times) in [("created", 1), ("pending", 1), ("running", 1), ("complete", 1), ("failed", 0), ("retried", 0)] {
        same(what, told(what), times)?;
    }
    Ok(())
}

/// Keelway would carry these strategies out itself, if they had no `customParams`.
fn wrapped(bed: &Bed) -> Outcome {
    let (config, folder, shell) = (Config::new(bed), folder()?, Shell(bed));
    let shop = format!("deployed-{}", config.salt);
    let arn = config.function(&shop, &[&says("one")])?;
    let path = |name: &str| folder.path().join(name).display().to_string();
    let script = format!(
        "cat > {}-$PARAM_WHICH; echo $DEPLOYMENT_CONFIG $DEPLOYMENT_VERSION > {}-$PARAM_WHICH",
        path("input"),
        path("variables")
    );
    let deployer = shell.deployer("own", &["-p", &config.namespace], &["sh", "-c", &script])?;
    let hook = json!({"failurePolicy": "Abort", "execNewPod": {"containerName": "app", "command": ["./check"]}});
    let all = [
        ("Recreate", "recreateParams", json!({"timeoutSeconds": 100, "mid": hook})),
        ("Rolling", "rollingParams", json!({"timeoutSeconds": 200, "maxSurge": "40%", "post": hook})),
        ("Canary", "canaryParams", json!({"timeoutSeconds": 300, "steps": [{"weight": 20, "bake": "5m"}], "pre": hook})),
    ];
    for (kind, field, params) in &all {
        let config = config.named(&kind.to_lowercase());
        let environment = json!([{"name": "WHICH", "value": kind}]);
        let custom = json!({"image": "deployer:1", "command": ["deploy"], "environment": environment});
        config.apply(&json!({
            "targets": [{"name": "main", "kind": "lambda-alias", "id": format!("{shop}:{}", config.name)}],
            "strategy": {"type": kind, *field: params, "customParams": custom}, "triggers": [{"type": "ConfigChange"}],
            "template": {"containers": [{"name": "app", "image": format!("{arn}:1")}]},
        }))?;
        let version = config.becomes(1, &["Complete", "Failed"])?;
        let who = (&version["status"], &version["deployer"], &version["starts"]);
        same(&format!("version 1 of {kind}"), who, (&json!("Complete"), &json!("own"), &json!(false)))?;
        same(&format!("the alias of {kind}"), alias(config.stack, &shop, &config.name)?, None)?;
        same(
            &format!("the variables of {kind}"),
            lines(Path::new(&path(&format!("variables-{kind}")))),
            vec![format!("{} 1", config.name)],
        )?;
        let input: Value = serde_json::from_str(&lines(Path::new(&path(&format!("input-{kind}")))).concat())
            .map_err(|error| Problem::of("what the command reads", error))?;
        let strategy = &input["deployment"]["snapshot"]["spec"]["strategy"];
        same("the strategy", (&strategy["type"], &strategy["customParams"]), (&json!(kind), &custom))?;
        for (name, value) in params.as_object().into_iter().flatten() {
            same(&format!("{name} of {kind}"), &strategy[*field][name], value)?;
        }
    }
    deployer.end()
}

/// The command of a deployer around a canary: a tenth, its own work, and the rest.
const AROUND: &str = "set -e
    keelway deploy --until 10%
    touch FOLDER/tenth-$DEPLOYMENT_VERSION
    while [ -d FOLDER ] && [ ! -e FOLDER/go-$DEPLOYMENT_VERSION ]; do sleep 0.1; done
    [ $DEPLOYMENT_VERSION != 3 ] || exit 7
    keelway deploy
    echo all of it
";

fn carried(bed: &Bed) -> Outcome {
    let (config, folder, shell) = (Config::new(bed), folder()?, Shell(bed));
    let (shop, hook) = (format!("deployed-{}", config.salt), format!("hook-{}", config.salt));
    let arn = config.function(&shop, &[&says("one"), &says("two"), &says("three")])?;
    config.function(&hook, &[&says("fine")])?;
    let hook = json!({"failurePolicy": "Abort", "invoke": hook});
    let mut strategy = json!({"type": "Canary", "canaryParams": {
        "timeoutSeconds": 600, "steps": [{"weight": 10, "bake": "1s"}, {"weight": 50}], "pre": hook, "post": hook,
    }});
    let spec = |version: u32, strategy: &Value| {
        json!({
            "targets": [{"name": "main", "kind": "lambda-alias", "id": format!("{shop}:live")}],
            "strategy": strategy, "triggers": [{"type": "ConfigChange"}],
            "template": {"containers": [{"name": "app", "image": format!("{arn}:{version}")}]},
        })
    };
    config.apply(&spec(1, &strategy))?;
    config.becomes(1, &["Complete"])?;
    strategy["customParams"] = json!({"image": "deployer:1"});
    let script = AROUND.replace("FOLDER", &folder.path().display().to_string());
    let script = script.replace("keelway deploy", &format!("{} deploy", binaries()?.join("keelway").display()));
    let deployer = shell.deployer("own", &["-p", &config.namespace], &["sh", "-c", &script])?;
    let tenth =
        |version: u32| Route { version: if version == 2 { "1" } else { "2" }.into(), canary: Some((version.to_string(), 10)) };
    for version in [2, 3] {
        config.apply(&spec(version, &strategy))?;
        let path = folder.path().join(format!("tenth-{version}"));
        until(&format!("the first part of {version}"), || Ok(path.exists().then_some(())), || config.so_far())?;
        same(&format!("the alias at the tenth of {version}"), alias(config.stack, &shop, "live")?, Some(tenth(version)))?;
        touch(&folder.path().join(format!("go-{version}")))?;
        if version == 2 {
            // The second part holds at its second step, as the strategy says.
            let holds = || Ok(config.so_far().contains("it holds until it is told to proceed").then_some(()));
            until("the step that holds", holds, || config.so_far())?;
            config.command("proceed", &json!({"by": "ann"}))?;
            let second = config.becomes(2, &["Complete", "Failed"])?;
            same("version 2", (&second["status"], &second["deployer"]), (&json!("Complete"), &json!("own")))?;
            for told in ["10 % of the requests", "every alias points to the new version", "all of it"] {
                ensure(tail(&second).contains(told), || format!("{told:?} is not told: {second}"))?;
            }
            same("the alias after version 2", alias(config.stack, &shop, "live")?, Some(Route::to("2")))?;
        }
    }
    let third = config.becomes(3, &["Complete", "Failed"])?;
    same("version 3", (&third["status"], &third["reason"]), (&json!("Failed"), &json!("DeployerFailed")))?;
    same("why", &third["message"], &json!("the deployer exited with 7: 10 % of the requests go to the new version"))?;
    same("the alias after version 3", alias(config.stack, &shop, "live")?, Some(Route::to("2")))?;
    deployer.end()
}

fn killed_deployer(bed: &Bed) -> Outcome {
    let (config, folder, shell) = (Config::new(bed), folder()?, Shell(bed));
    let apply = |version: u64| {
        config.apply(&json!({
            "strategy": {"type": "Recreate", "recreateParams": {"timeoutSeconds": 600}}, "triggers": [{"type": "ConfigChange"}],
            "template": {"containers": [{"name": "app", "image": format!("registry.test/cart@sha256:{version:064x}")}]},
        }))
    };
    // Writes down what it deploys, and then waits until it may go on.
    let script = "echo $DEPLOYMENT_NAME $DEPLOYMENT_ATTEMPT $0 >> FOLDER/calls
        while [ -d FOLDER ] && [ ! -e FOLDER/go ]; do sleep 0.1; done";
    let script = script.replace("FOLDER", &folder.path().display().to_string());
    let calls = || lines(&folder.path().join("calls"));
    let deployer = |name: &str| shell.deployer(name, &["-p", &config.namespace, "--lease", "5s"], &["sh", "-c", &script, name]);
    let first = deployer("first")?;
    apply(1)?;
    config.becomes(1, &["Running"])?;
    until("the command", || Ok((!calls().is_empty()).then_some(())), || format!("{:?}", calls()))?;
    // As a machine that goes away: it tells nobody.
    drop(first);
    let lost = config.becomes(1, &["Complete", "Failed"])?;
    same("version 1", (&lost["status"], &lost["reason"]), (&json!("Failed"), &json!("DeployerLost")))?;
    same("who had it", &lost["deployer"], &json!("first"))?;
    touch(&folder.path().join("go"))?;
    let second = deployer("second")?;
    config.command("retry", &json!({"by": "ann"}))?;
    let again = config.becomes(1, &["Complete"])?;
    same("the next attempt", (&again["attempt"], &again["deployer"]), (&json!(2), &json!("second")))?;
    apply(2)?;
    config.becomes(2, &["Complete"])?;
    same("the commands", calls(), vec!["cart-1 1 first".to_owned(), "cart-1 2 second".into(), "cart-2 1 second".into()])?;
    second.end()
}
