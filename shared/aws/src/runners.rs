//! The operations of ECS and CodeBuild that start deployers, each as a signed request.

use crate::Aws;
use crate::aliases::read;
use crate::error::{refused, retry};
use crate::signed::{Ask, Signed};
use keelway_domain::deployments::definition::Starter;
use keelway_domain::deployments::runner::{Look, Which};
use keelway_domain::json::canonical;
use keelway_engine::ports::PortError;
use keelway_engine::runners::Runners;
use keelway_wire::aws::runs;
use serde_json::Value;
use std::time::Duration;

/// An operation of a service.
struct Operation {
    name: &'static str,
    service: &'static str,
    headers: &'static [(&'static str, &'static str)],
}

const RUN_TASK: Operation = Operation {
    name: "ecs.RunTask",
    service: "ecs",
    headers: &[("content-type", "application/x-amz-json-1.1"), ("x-amz-target", "AmazonEC2ContainerServiceV20141113.RunTask")],
};
const DESCRIBE_TASKS: Operation = Operation {
    name: "ecs.DescribeTasks",
    service: "ecs",
    headers: &[
        ("content-type", "application/x-amz-json-1.1"),
        ("x-amz-target", "AmazonEC2ContainerServiceV20141113.DescribeTasks"),
    ],
};
const STOP_TASK: Operation = Operation {
    name: "ecs.StopTask",
    service: "ecs",
    headers: &[("content-type", "application/x-amz-json-1.1"), ("x-amz-target", "AmazonEC2ContainerServiceV20141113.StopTask")],
};
const START_BUILD: Operation = Operation {
    name: "codebuild.StartBuild",
    service: "codebuild",
    headers: &[("content-type", "application/x-amz-json-1.1"), ("x-amz-target", "CodeBuild_20161006.StartBuild")],
};
const BATCH_GET_BUILDS: Operation = Operation {
    name: "codebuild.BatchGetBuilds",
    service: "codebuild",
    headers: &[("content-type", "application/x-amz-json-1.1"), ("x-amz-target", "CodeBuild_20161006.BatchGetBuilds")],
};
const STOP_BUILD: Operation = Operation {
    name: "codebuild.StopBuild",
    service: "codebuild",
    headers: &[("content-type", "application/x-amz-json-1.1"), ("x-amz-target", "CodeBuild_20161006.StopBuild")],
};

impl Signed {
    async fn operate(&self, operation: &Operation, request: &Value) -> Result<Value, PortError> {
        let ask = Ask {
            name: operation.name,
            service: operation.service,
            region: None,
            method: "POST",
            path: "/".into(),
            headers: operation.headers,
            body: canonical(request),
            patience: Duration::from_secs(10),
        };
        read(operation.name, &self.ask(&ask).await?)
    }

    async fn start(&self, starter: &Starter, which: &Which<'_>) -> Result<String, PortError> {
        let (operation, place) = match starter {
            Starter::Ecs(_) => (RUN_TASK, "/tasks/0/taskArn"),
            Starter::CodeBuild(_) => (START_BUILD, "/build/arn"),
        };
        let answer = self.operate(&operation, &runs::start(starter, which)).await?;
        if let Some(arn) = answer.pointer(place).and_then(Value::as_str) {
            return Ok(arn.to_owned());
        }
        // ECS reports the lack of capacity for a task in a successful answer.
        let reason =
            answer.pointer("/failures/0/reason").and_then(Value::as_str).unwrap_or("the answer names nothing that was started");
        let busy = ["RESOURCE:", "AGENT", "EMPTY CAPACITY PROVIDER"].iter().any(|busy| reason.starts_with(busy));
        if busy { Err(retry(operation.name, reason)) } else { Err(refused(operation.name, reason)) }
    }

    async fn look(&self, starter: &Starter, arn: &str) -> Result<Look, PortError> {
        let operation = match starter {
            Starter::Ecs(_) => DESCRIBE_TASKS,
            Starter::CodeBuild(_) => BATCH_GET_BUILDS,
        };
        let answer = self.operate(&operation, &runs::look(starter, arn)).await?;
        Ok(runs::seen(starter, &answer))
    }

    async fn stop(&self, starter: &Starter, arn: &str) -> Result<(), PortError> {
        let operation = match starter {
            Starter::Ecs(_) => STOP_TASK,
            Starter::CodeBuild(_) => STOP_BUILD,
        };
        self.operate(&operation, &runs::stop(starter, arn)).await.map(drop)
    }
}

impl Runners for Aws {
    async fn start(&self, starter: &Starter, which: &Which<'_>) -> Result<String, PortError> {
        self.inner.signed.start(starter, which).await
    }
    async fn look(&self, starter: &Starter, arn: &str) -> Result<Look, PortError> {
        self.inner.signed.look(starter, arn).await
    }
    async fn stop(&self, starter: &Starter, arn: &str) -> Result<(), PortError> {
        self.inner.signed.stop(starter, arn).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signed::tests::answering;
    use keelway_domain::address::Address;
    use serde_json::json;

    fn task() -> Starter {
        let containers = json!({"containerOverrides": [{"name": "deploy"}]});
        Starter::Ecs(json!({"cluster": "main", "overrides": containers}).as_object().unwrap().clone())
    }

    fn build() -> Starter {
        Starter::CodeBuild(json!({"projectName": "deploy"}).as_object().unwrap().clone())
    }

    async fn start(starter: &Starter, status: u16, body: &'static str) -> (Result<String, PortError>, [String; 3]) {
        let (signed, seen) = answering(status, &[], body);
        let of = Address::new("shop", "cart");
        let which = Which { of: &of, n: 1, attempt: 1, callback: "" };
        let started = signed.start(starter, &which).await;
        let seen = seen.lock().unwrap();
        let [request] = &seen[..] else { panic!("{} requests", seen.len()) };
        let body = String::from_utf8(request.body().bytes().unwrap().to_vec()).unwrap();
        assert_eq!(body, canonical(&runs::start(starter, &which)));
        let target = request.headers().get("x-amz-target").unwrap().to_owned();
        (started, [request.uri().to_owned(), target, body])
    }

    #[tokio::test]
    async fn a_task_and_a_build_are_started() {
        let body = r#"{"tasks":[{"taskArn":"arn:aws:ecs:eu-central-1:1:task/main/8f","lastStatus":"PROVISIONING"}],"failures":[]}"#;
        let (started, sent) = start(&task(), 200, body).await;
        assert_eq!(started, Ok("arn:aws:ecs:eu-central-1:1:task/main/8f".into()));
        let target = "AmazonEC2ContainerServiceV20141113.RunTask";
        assert_eq!(sent[..2], ["https://ecs.eu-central-1.amazonaws.com/", target]);
        assert!(sent[2].starts_with(r#"{"clientToken":"cart-1-1-"#), "{}", sent[2]);
        let body =
            r#"{"build":{"id":"deploy:1","arn":"arn:aws:codebuild:eu-central-1:1:build/deploy:1","buildStatus":"IN_PROGRESS"}}"#;
        let (started, sent) = start(&build(), 200, body).await;
        assert_eq!(started, Ok("arn:aws:codebuild:eu-central-1:1:build/deploy:1".into()));
        assert_eq!(sent[..2], ["https://codebuild.eu-central-1.amazonaws.com/", "CodeBuild_20161006.StartBuild"]);
    }

    #[tokio::test]
    async fn a_task_and_a_build_are_asked_for() {
        for (starter, target, body) in [
            (task(), "AmazonEC2ContainerServiceV20141113.DescribeTasks", r#"{"cluster":"main","tasks":["a"]}"#),
            (build(), "CodeBuild_20161006.BatchGetBuilds", r#"{"ids":["a"]}"#),
        ] {
            let (signed, seen) = answering(200, &[], r#"{"tasks":[]}"#);
            assert_eq!(signed.look(&starter, "a").await, Ok(Look::Missing));
            let seen = seen.lock().unwrap();
            assert_eq!((seen[0].headers().get("x-amz-target"), seen[0].body().bytes()), (Some(target), Some(body.as_bytes())));
        }
    }

    #[tokio::test]
    async fn what_other_answers_mean() {
        for (status, body, passing) in [
            (200, r#"{"tasks":[],"failures":[{"arn":"a","reason":"RESOURCE:MEMORY"}]}"#, true),
            (200, r#"{"tasks":[],"failures":[{"arn":"a","reason":"MISSING"}]}"#, false),
            (400, r#"{"__type":"ClientException","message":"TaskDefinition is inactive"}"#, false),
            (400, r#"{"__type":"com.amazonaws#ThrottlingException","message":"Rate exceeded"}"#, true),
            (500, "{}", true),
        ] {
            let error = start(&task(), status, body).await.0.unwrap_err();
            assert_eq!(error.passes(), passing, "{status} {body}: {error}");
        }
    }
}
