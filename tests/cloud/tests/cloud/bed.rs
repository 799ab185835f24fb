//! What all tests share: a cloud, a stack, somebody who watches it; and a second stack for tests that break things.

use keelway_cloud_tests::browser::{self, Browsers};
use keelway_cloud_tests::cloud::binaries;
use keelway_cloud_tests::events::fresh;
use keelway_cloud_tests::observer::Observer;
use keelway_cloud_tests::patience::until;
use keelway_cloud_tests::{Ability, Cloud, Outcome, Problem, Stack};
use serde_json::json;
use std::sync::OnceLock;

/// One per process.
pub struct Bed {
    pub cloud: Cloud,
    pub stack: Stack,
    pub observer: Observer,
    second: OnceLock<Result<Second, Problem>>,
    browsers: OnceLock<Result<Browsers, Problem>>,
    functions: bool,
}

/// A stack whose queue is impatient and whose history is short: for what goes wrong.
pub struct Second {
    pub stack: Stack,
    pub observer: Observer,
}

/// Not longer, so that roles' names stay within their limit.
fn name(ordinal: &str) -> String {
    format!("keelway-{ordinal}{}", std::process::id() % 100_000)
}

impl Bed {
    pub fn make() -> Result<Self, Problem> {
        let cloud = Cloud::start()?;
        let (stack, _) = cloud.deploy(&name("one"), &Self::FIRST)?;
        let observer = Observer::start(&stack, cloud.raw())?;
        for function in ["PromotionsFunctionName", "AttemptsFunctionName"] {
            observer.read(function, cloud.raw());
        }
        let functions = answers(&stack);
        if !functions && cloud.can(Ability::Records) {
            return Err(format!("the API of the local cloud's stack does not answer at {}: see its log", stack.api().url).into());
        }
        Ok(Self { cloud, stack, observer, second: OnceLock::new(), browsers: OnceLock::new(), functions })
    }

    pub fn can(&self, ability: Ability) -> bool {
        match ability {
            Ability::Functions => self.functions,
            Ability::Browser => browser::wanted(),
            _ => self.cloud.can(ability),
        }
    }

    /// Parameters of the first stack: what its deployers may deploy, run and call, and that webhooks may reach this machine.
    pub const FIRST: [(&'static str, &'static str); 9] = [
        ("DeployedFunctions", "arn:aws:lambda:*:*:function:deployed-*"),
        // The last is that of the examples: the sweep asks about it if it runs after they are applied.
        (
            "DeployedRepositories",
            "arn:aws:ecr:*:*:repository/deployed-*,arn:aws:ecr:*:*:repository/*/cart,arn:aws:ecr:*:*:repository/shop/carts",
        ),
        ("DeployedPackages", "arn:aws:s3:::deployed-*"),
        ("HookFunctions", "arn:aws:lambda:*:*:function:hook-*"),
        ("DeployerTasks", "arn:aws:ecs:*:*:task-definition/deployer-*"),
        ("DeployerClusters", "arn:aws:ecs:*:*:cluster/deployer-*"),
        ("DeployerTaskRoles", "arn:aws:iam::*:role/deployer-*"),
        ("DeployerBuilds", "arn:aws:codebuild:*:*:project/deployer-*"),
        ("WebhookAllowedHosts", "127.0.0.1"),
    ];

    /// Parameters of the second stack.
    pub const SECOND: [(&'static str, &'static str); 4] = [
        ("MaxReceives", "5"),
        ("RetentionDays", "1"),
        ("DeployedFunctions", "arn:aws:lambda:*:*:function:deployed-*"),
        ("HookFunctions", "arn:aws:lambda:*:*:function:hook-*"),
    ];

    /// Stores a secret that manifests of a namespace name, as the page about deploying says.
    pub fn secret(&self, namespace: &str, name: &str, text: &str) -> Outcome {
        let name = format!("{}/{namespace}/{name}", self.stack.name());
        let body = json!({"Name": name, "SecretString": text, "ClientRequestToken": fresh()});
        self.stack.wait(self.cloud.raw().json("secretsmanager", "secretsmanager.CreateSecret", &body)).map(drop)
    }

    /// The second stack, deployed for the first who asks.
    pub fn second(&self) -> Result<&Second, Problem> {
        let make = || {
            let (stack, _) = self.cloud.deploy(&name("two"), &Self::SECOND)?;
            // A message whose function died comes back after this. Longer than a function usually takes, so that nobody gets a
            // message that another one is still busy with, and shorter than the template's six times that.
            for queue in ["QueueUrl", "DeploymentsQueueUrl", "DeployersQueueUrl"] {
                stack.tune(&stack.output(queue), &[("VisibilityTimeout", "12")])?;
            }
            let observer = Observer::start(&stack, self.cloud.raw())?;
            Ok(Second { stack, observer })
        };
        self.second.get_or_init(make).as_ref().map_err(Clone::clone)
    }

    /// The second stack if somebody asked for it.
    pub fn second_if_made(&self) -> Option<&Second> {
        self.second.get().and_then(|second| second.as_ref().ok())
    }

    /// Browsers, started for the first who asks.
    pub fn browsers(&self) -> Result<&Browsers, Problem> {
        self.browsers.get_or_init(|| Browsers::start(self.cloud.handle())).as_ref().map_err(Clone::clone)
    }

    /// Ends everything.
    pub fn close(&self) {
        if let Some(Ok(browsers)) = self.browsers.get() {
            browsers.stop();
        }
        self.observer.leave();
        if let Some(second) = self.second_if_made() {
            second.observer.leave();
        }
        self.cloud.stop();
    }

    /// Copies the cloud's log to beside the build, where it outlives this process.
    pub fn keep_logs(&self) {
        let Ok(directory) = binaries() else { return };
        let to = directory.join("cloud-tests.log");
        let log = self.cloud.state().join("cloud.log");
        if log.exists() && std::fs::copy(&log, &to).is_ok() {
            println!("\nthe local cloud's log: {}", to.display());
        }
    }
}

fn answers(stack: &Stack) -> bool {
    let ask = || stack.wait(stack.api().get("/v1/metadata"));
    let fine = || Ok(ask().is_ok_and(|reply| reply.status == 200 && reply.body.is_object()).then_some(()));
    until("an answer of the API", fine, || format!("{:?}", ask())).map_err(|problem| eprintln!("{problem}")).is_ok()
}
