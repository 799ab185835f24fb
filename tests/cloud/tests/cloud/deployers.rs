//! The deployers that Keelway runs itself, through template and binaries: aliases of real functions that answer over HTTP, hooks,
//! tasks, builds.

use crate::bed::Bed;
use crate::deployments::gone;
use crate::shell::Shell;
use keelway_cloud_tests::events::fresh;
use keelway_cloud_tests::patience::until;
use keelway_cloud_tests::problem::{ensure, same};
use keelway_cloud_tests::runner::Test;
use keelway_cloud_tests::{Ability, Outcome, Problem, Stack};
use keelway_engine::deployments::keys;
use keelway_engine::item::Item;
use keelway_engine::ports::{Condition, Store, Write};
use serde_json::{Value, json};

pub fn tests() -> Vec<Test<Bed>> {
    let needs = &[Ability::Functions, Ability::Records];
    vec![
        Test::new("deployers::a task and a build are started, and their ends found without events", tasks_and_builds).needs(needs),
        Test::new("deployers::an alias moves at once and as a canary, and back when a hook fails or somebody says so", aliases)
            .needs(needs),
        Test::new(
            "deployers::a canary is judged by a metric store, taken back with the numbers, and goes on by other objectives",
            judged,
        )
        .needs(needs),
        Test::new("deployers::a container image becomes a version of the function", image).needs(needs),
        Test::new("deployers::a package of code that is pushed becomes a version, and nothing else than what was pushed", package)
            .needs(needs),
    ]
}

/// A config in a namespace of its own, and what it deploys.
#[derive(Clone)]
pub struct Config<'a> {
    bed: &'a Bed,
    pub stack: &'a Stack,
    pub namespace: String,
    pub name: String,
    /// What the names of its functions end in.
    pub salt: String,
}

/// A function that says this.
pub fn says(text: &str) -> String {
    format!("def handler(event, context):\n    return {{'statusCode': 200, 'body': '{text}'}}\n")
}

/// A hook that refuses a version of a config at one of its places.
const HOOK: &str = "def handler(event, context):
    refused = event['hook'] == 'post' and event['version'] == 3
    return {'statusCode': 503 if refused or not event['id'] else 200, 'body': 'of ' + event['name']}
";

impl<'a> Config<'a> {
    pub fn new(bed: &'a Bed) -> Self {
        Self::at(bed, &bed.stack)
    }

    /// A config of this stack.
    pub fn at(bed: &'a Bed, stack: &'a Stack) -> Self {
        let salt = fresh()[24..].to_owned();
        Self { bed, stack, namespace: format!("deployers-{salt}"), name: "cart".into(), salt }
    }

    /// Another config of the same namespace.
    pub fn named(&self, name: &str) -> Self {
        Self { name: name.into(), ..self.clone() }
    }

    /// `/v1/deploymentConfigs/<this>/<rest>`
    fn path(&self, rest: &str) -> String {
        format!("/v1/deploymentConfigs/{}:{}/{rest}", self.namespace, self.name)
    }

    /// Makes a function, or its next versions, of these modules. Returns its ARN.
    pub fn function(&self, name: &str, modules: &[&str]) -> Result<String, Problem> {
        let made = self.bed.cloud.function(&self.stack.name(), name, modules)?;
        let arn = made["versions"][0].as_str().unwrap_or_default();
        Ok(arn.rsplit_once(':').map_or(arn, |(function, _)| function).to_owned())
    }

    pub fn apply(&self, spec: &Value) -> Outcome {
        let metadata = json!({"name": self.name, "namespace": self.namespace});
        self.apply_manifest(
            &json!({"apiVersion": "apps.openshift.io/v1", "kind": "DeploymentConfig", "metadata": metadata, "spec": spec}),
        )
    }

    fn apply_manifest(&self, manifest: &Value) -> Outcome {
        self.stack.wait(self.stack.api().apply(None, &manifest.to_string()))?.fine("apply").map(drop)
    }

    /// An artifact source `images` that a webhook tells about.
    fn apply_source(&self) -> Outcome {
        self.apply_manifest(&json!({"apiVersion": "keelway.dev/v1", "kind": "ArtifactSource",
            "metadata": {"name": "images", "namespace": self.namespace}, "spec": {"webhook": {"secret": "registry"}}}))
    }

    fn status(&self) -> Result<Value, Problem> {
        self.stack.wait(self.stack.api().get(&self.path("status")))?.fine("status")
    }

    pub fn command(&self, command: &str, body: &Value) -> Outcome {
        self.stack.wait(self.stack.api().post(&self.path(command), body))?.fine(command).map(drop)
    }

    /// Waits until the latest version has this number and a status of these.
    pub fn becomes(&self, version: u64, statuses: &[&str]) -> Result<Value, Problem> {
        let found = || {
            let latest = self.status()?["latest"].clone();
            let status = latest["status"].as_str().unwrap_or_default();
            Ok((latest["version"] == version && statuses.contains(&status)).then_some(latest))
        };
        until(&format!("version {version} of {} {statuses:?}", self.name), found, || self.so_far())
    }

    /// Waits until the latest version's log or message has a text.
    fn tells(&self, version: u64, text: &str) -> Result<Value, Problem> {
        let found = || {
            let latest = self.status()?["latest"].clone();
            let told = [tail(&latest), message(&latest)].iter().any(|told| told.contains(text));
            Ok((latest["version"] == version && told).then_some(latest))
        };
        until(&format!("version {version} that tells {text:?}"), found, || self.so_far())
    }

    pub fn so_far(&self) -> String {
        self.status().map_or_else(|error| error.0, |state| state.to_string())
    }

    /// A URL at which an alias of a function answers.
    fn url(&self, function: &str, alias: &str) -> Result<String, Problem> {
        let (path, body) = (format!("/2021-10-31/functions/{function}/url?Qualifier={alias}"), json!({"AuthType": "NONE"}));
        let url = self.stack.wait(self.bed.cloud.raw().rest("lambda", &path, &body))?;
        let id = url["FunctionUrl"].as_str().and_then(|url| url.split(['/', '.']).nth(2)).unwrap_or_default();
        Ok(format!("{}/_aws/lambda-url/{id}/", self.bed.cloud.endpoint))
    }
}

/// What a function's URL answers.
fn answers(bed: &Bed, url: &str) -> Result<String, Problem> {
    bed.stack.wait(async {
        let answer = keelway_cloud_tests::raw::client().get(url).send().await.map_err(|error| Problem::of(url, error))?;
        answer.text().await.map_err(|error| Problem::of(url, error))
    })
}

pub fn tail(version: &Value) -> &str {
    version["progress"]["tail"].as_str().unwrap_or_default()
}

fn message(version: &Value) -> &str {
    version["progress"]["message"].as_str().unwrap_or_default()
}

fn aliases(bed: &Bed) -> Outcome {
    let config = Config::new(bed);
    let (shop, hook) = (format!("deployed-{}", config.salt), format!("hook-{}", config.salt));
    let arn = config.function(&shop, &[&says("one"), &says("two"), &says("three")])?;
    config.function(&hook, &[HOOK])?;
    let spec = |strategy: &Value, version: u32| {
        json!({
            "targets": [{"name": "main", "kind": "lambda-alias", "id": format!("{shop}:live")}],
            "strategy": strategy, "triggers": [{"type": "ConfigChange"}],
            "template": {"containers": [{"name": "app", "image": format!("{arn}:{version}")}]},
        })
    };
    // The hook after it points a tag to what was deployed, though that was once deleted at its source.
    config.apply_source()?;
    let stack = &bed.stack;
    let first = format!("{arn}:1");
    let deleted = Item::new(keys::image(&config.namespace, "images", &first)).with("at", 1);
    stack.wait(stack.ports().write(&Write::Put(deleted, Condition::Always))).map_err(|error| Problem(error.to_string()))?;
    let tag = json!([{"containerName": "app", "to": {"kind": "ImageStreamTag", "name": "images:deployed"}}]);
    let recreate = json!({"type": "Recreate", "recreateParams": {"timeoutSeconds": 120,
        "post": {"failurePolicy": "Abort", "tagImages": tag}}});
    config.apply(&spec(&recreate, 1))?;
    config.becomes(1, &["Complete"])?;
    same("whether the image is gone", &gone(stack, &config.namespace, "images", &first)?, &false)?;
    let url = config.url(&shop, "live")?;
    same("the alias after the first version", answers(bed, &url)?.as_str(), "one")?;
    // A tenth, then half, then all. That a part of the requests goes to another version is Lambda's work.
    let canary = json!({"type": "Canary", "canaryParams": {
        "timeoutSeconds": 120, "steps": [{"weight": 10, "bake": "1s"}, {"weight": 50, "bake": "1s"}],
        "pre": {"failurePolicy": "Abort", "invoke": hook}, "post": {"failurePolicy": "Abort", "invoke": hook},
    }});
    config.apply(&spec(&canary, 2))?;
    let second = config.becomes(2, &["Complete", "Failed"])?;
    same("version 2", &second["status"], &json!("Complete"))?;
    for step in ["hook pre: done", "10 % of the requests", "50 % of the requests", "100 % of the requests", "hook post: done"] {
        ensure(tail(&second).contains(step), || format!("{step:?} is not told: {second}"))?;
    }
    same("the alias after the canary", answers(bed, &url)?.as_str(), "two")?;
    // The hook after the last step refuses version 3.
    config.apply(&spec(&canary, 3))?;
    let third = config.becomes(3, &["Complete", "Failed"])?;
    same("version 3", (&third["status"], &third["reason"]), (&json!("Failed"), &json!("DeployerFailed")))?;
    for told in ["100 % of the requests", "hook post failed"] {
        ensure(tail(&third).contains(told), || format!("{told:?} is not told: {third}"))?;
    }
    same("the alias after a hook that failed", answers(bed, &url)?.as_str(), "two")?;
    // Nothing refuses it now, and it turns out to be bad.
    config.apply(&spec(&recreate, 3))?;
    config.command("instantiate", &json!({"force": true, "by": "ann"}))?;
    config.becomes(4, &["Complete"])?;
    same("the alias at a bad release", answers(bed, &url)?.as_str(), "three")?;
    config.command("rollback", &json!({"notes": "three is broken"}))?;
    config.becomes(5, &["Complete"])?;
    same("the alias after a rollback", answers(bed, &url)?.as_str(), "two")
}

/// The only figures are the numbers of the versions: 2 is twice as much as 1.
fn judged(bed: &Bed) -> Outcome {
    let (config, shell) = (Config::new(bed), Shell(bed));
    let shop = format!("deployed-{}", config.salt);
    let arn = config.function(&shop, &[&says("one"), &says("two")])?;
    let named = |api: &str, kind: &str, spec: Value| {
        let metadata = json!({"name": config.namespace, "namespace": config.namespace});
        json!({"apiVersion": api, "kind": kind, "metadata": metadata, "spec": spec})
    };
    config.apply_manifest(&json!({"apiVersion": "keelway.dev/v1", "kind": "Project", "metadata": {"name": config.namespace}}))?;
    let stages = json!({"stages": [{"name": "live", "sequences": []}]});
    config.apply_manifest(
        &json!({"apiVersion": "spec.keptn.sh/0.2.3", "kind": "Shipyard", "metadata": {"name": config.namespace}, "spec": stages}),
    )?;
    let (metrics, store) = shell.figures("examples/greeter/figures.txt")?;
    config.apply_manifest(&named("keelway.dev/v1", "MetricsSource", json!({"prometheus": {"url": store}})))?;
    let file = |name: &str, content: &Value| {
        let path = std::env::temp_dir().join(format!("{}-{name}", config.salt));
        std::fs::write(&path, content.to_string()).map_err(|error| Problem::of(name, error))?;
        shell.fine(&["resource", "add", &path.to_string_lossy(), "--as", name, "-p", &config.namespace]).map(drop)
    };
    let objectives = |criteria: &str| {
        json!({"spec_version": "1.0", "total_score": {"pass": "90%"},
            "objectives": [{"sli": "errors", "pass": [{"criteria": [criteria]}]}]})
    };
    file("sli.yaml", &json!({"spec_version": "1.0", "indicators": {"errors": "$VERSION", "invocations": "100"}}))?;
    file("slo.yaml", &objectives("<=+50%"))?;
    let spec = |n: u32| {
        json!({
            "targets": [{"name": "main", "kind": "lambda-alias", "id": format!("{shop}:live")}],
            "strategy": {"type": "Canary", "canaryParams": {"timeoutSeconds": 120, "steps": [{"weight": 10, "bake": "1s"}]},
                "analysis": {"interval": "1s"}},
            "triggers": [{"type": "ConfigChange"}],
            "template": {"containers": [{"name": "app", "image": format!("{arn}:{n}")}]},
        })
    };
    config.apply(&spec(1))?;
    config.becomes(1, &["Complete"])?;
    config.apply(&spec(2))?;
    let failed = config.becomes(2, &["Complete", "Failed"])?;
    let why = "the analysis failed at 10 %: main: errors is 2, 1 before, not <=+50% (1.5)";
    same("version 2", (&failed["status"], message(&failed).contains(why)), (&json!("Failed"), true))?;
    let measured = &failed["progress"]["analysis"];
    same("the window", (&measured["result"], &measured["samples"]), (&json!("fail"), &json!(100.0)))?;
    let url = config.url(&shop, "live")?;
    same("the alias after it", answers(bed, &url)?.as_str(), "one")?;
    file("slo.yaml", &objectives("<=+150%"))?;
    config.command("retry", &json!({}))?;
    config.becomes(2, &["Complete"])?;
    drop(metrics);
    same("the alias in the end", answers(bed, &url)?.as_str(), "two")
}

fn image(bed: &Bed) -> Outcome {
    let config = Config::new(bed);
    let shop = format!("deployed-{}", config.salt);
    config.function(&shop, &[&says("one")])?;
    let image = format!("000000000000.dkr.ecr.us-east-1.amazonaws.com/deployed-shop@sha256:{:064x}", 7);
    config.apply(&json!({
        "targets": [{"name": "main", "kind": "lambda-alias", "id": format!("{shop}:live")}],
        "strategy": {"type": "Recreate", "recreateParams": {"timeoutSeconds": 120}}, "triggers": [{"type": "ConfigChange"}],
        "template": {"containers": [{"name": "app", "image": image}]},
    }))?;
    // Whether it can be called depends on what is in the image, and there is none.
    config.tells(1, &format!("published {shop}:2")).map(drop)
}

fn package(bed: &Bed) -> Outcome {
    let config = Config::new(bed);
    let (shop, bucket) = (format!("deployed-{}", config.salt), format!("deployed-{}", config.salt));
    config.function(&shop, &[&says("none")])?;
    let release = |key: &str, text: &str| Ok::<_, Problem>(bed.cloud.packages(&bucket, &[(key.into(), &says(text))])?[0].clone());
    let (one, two) = (release("one", "one")?, release("two", "two")?);
    let push = |image: &str, digest: &Value| {
        let path = format!("/v1/artifacts/{}/images", config.namespace);
        let body = json!({"tag": "stable", "image": image, "digest": digest});
        config.stack.wait(config.stack.api().post(&path, &body))?.fine("push").map(drop)
    };
    config.apply_source()?;
    config.apply(&json!({
        "targets": [{"name": "main", "kind": "lambda-alias", "id": format!("{shop}:live")}],
        "strategy": {"type": "Recreate", "recreateParams": {"timeoutSeconds": 120}},
        "triggers": [{"type": "ImageChange", "imageChangeParams": {"automatic": true, "containerNames": ["app"],
            "from": {"kind": "ImageStreamTag", "name": "images:stable"}}}],
        "template": {"containers": [{"name": "app"}]},
    }))?;
    let image = |release: &Value| release["image"].as_str().unwrap_or_default().to_owned();
    push(&image(&one), &one["digest"])?;
    config.becomes(1, &["Complete"])?;
    let url = config.url(&shop, "live")?;
    same("the alias after the first push", answers(bed, &url)?.as_str(), "one")?;
    // A version of the object, which something else has taken the place of by now.
    let other = release("two", "other")?;
    push(&format!("{}?versionId={}", image(&two), two["version"].as_str().unwrap_or_default()), &two["digest"])?;
    config.becomes(2, &["Complete"])?;
    same("the alias after the second push", answers(bed, &url)?.as_str(), "two")?;
    // Its key leads to another package than the digest says.
    push(&image(&two), &two["digest"])?;
    let third = config.becomes(3, &["Complete", "Failed"])?;
    same("version 3", &third["status"], &json!("Failed"))?;
    let digest = other["digest"].as_str().and_then(|digest| digest.split(':').nth(1)).unwrap_or_default();
    ensure(third["message"].as_str().is_some_and(|why| why.contains(digest)), || format!("the digest is not told: {third}"))?;
    same("the alias after the third push", answers(bed, &url)?.as_str(), "two")
}

fn ecs(bed: &Bed, operation: &str, body: &Value) -> Result<Value, Problem> {
    bed.stack.wait(bed.cloud.raw().json("ecs", &format!("AmazonEC2ContainerServiceV20141113.{operation}"), body))
}

/// The local cloud keeps tasks and builds without running them, and tells nobody what becomes of them.
fn tasks_and_builds(bed: &Bed) -> Outcome {
    let (by_task, by_build) = (Config::new(bed), Config::new(bed));
    let (cluster, family) = (format!("deployer-{}", by_task.salt), format!("deployer-{}", by_task.salt));
    let role = bed.stack.wait(bed.cloud.raw().create_role(&cluster, "ecs-tasks.amazonaws.com"))?;
    let container = json!({"name": "deploy", "image": "deploy", "essential": true});
    ecs(bed, "CreateCluster", &json!({"clusterName": cluster}))?;
    ecs(bed, "RegisterTaskDefinition", &json!({"family": family, "taskRoleArn": role, "containerDefinitions": [container]}))?;
    let project = format!("deployer-{}", by_build.salt);
    let made = json!({"name": project, "serviceRole": role, "source": {"type": "NO_SOURCE"}, "artifacts": {"type": "NO_ARTIFACTS"},
        "environment": {"type": "LINUX_CONTAINER", "image": "i", "computeType": "BUILD_GENERAL1_SMALL"}});
    bed.stack.wait(bed.cloud.raw().json("codebuild", "CodeBuild_20161006.CreateProject", &made))?;
    let spec = |deployer: &Value, n: u32| {
        json!({"deployer": deployer, "triggers": [{"type": "ConfigChange"}], "strategy": {"type": "Recreate"},
            "template": {"containers": [{"name": "app", "image": format!("shop@sha256:{n:064x}")}]}})
    };
    by_build.apply(&spec(&json!({"codeBuild": {"projectName": project}}), 1))?;
    let task = json!({"ecs": {"cluster": cluster, "taskDefinition": format!("{family}:1"), "launchType": "EC2", "waitFor": "exit",
        "overrides": {"containerOverrides": [{"name": "deploy"}]}}});
    by_task.apply(&spec(&task, 1))?;
    let version = by_task.tells(1, "carries it out")?;
    let arn = message(&version).split(' ').next().unwrap_or_default();
    let described = ecs(bed, "DescribeTasks", &json!({"cluster": cluster, "tasks": [arn]}))?["tasks"][0].clone();
    let variables = described["overrides"]["containerOverrides"][0]["environment"].clone();
    let value = |name: &str| {
        let found = variables.as_array().into_iter().flatten().find(|variable| variable["name"] == name);
        found.map_or(Value::Null, |variable| variable["value"].clone())
    };
    same("the version", (value("DEPLOYMENT_NAMESPACE"), value("DEPLOYMENT_NAME")), (json!(by_task.namespace), json!("cart-1")))?;
    let callback = value("DEPLOYMENT_CALLBACK");
    ensure(callback.as_str().is_some_and(|url| url.starts_with("https://")), || format!("the API's address is {callback}"))?;
    // Its end: told by no event.
    ecs(bed, "StopTask", &json!({"cluster": cluster, "task": arn}))?;
    by_task.becomes(1, &["Complete"])?;
    by_build.becomes(1, &["Complete"])?;
    // The next one is told to stop.
    by_task.apply(&spec(&task, 2))?;
    by_task.tells(2, "carries it out")?;
    by_task.command("cancel", &json!({"by": "ann"}))?;
    let ended = by_task.becomes(2, &["Complete", "Failed"])?;
    let listed = ecs(bed, "ListTasks", &json!({"cluster": cluster, "desiredStatus": "STOPPED"}))?;
    let stopped = ecs(bed, "DescribeTasks", &json!({"cluster": cluster, "tasks": listed["taskArns"]}))?.to_string();
    ensure(stopped.contains("the deployment is to stop"), || format!("nobody stopped the task: {ended} {stopped}"))
}
