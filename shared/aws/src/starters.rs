//! The operations of ECS and CodeBuild that start deployers, each as a signed request.

use crate::Aws;
use crate::error::{refused, retry};
use crate::functions::read;
use crate::signed::{Ask, Signed};
use keelway_domain::json::canonical;
use keelway_engine::ports::PortError;
use keelway_engine::starters::{Runner, Starters};
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

    async fn start(&self, runner: Runner, request: &Value) -> Result<String, PortError> {
        let (operation, place) = match runner {
            Runner::Ecs => (RUN_TASK, "/tasks/0/taskArn"),
            Runner::CodeBuild => (START_BUILD, "/build/arn"),
        };
        let answer = self.operate(&operation, request).await?;
        if let Some(arn) = answer.pointer(place).and_then(Value::as_str) {
            return Ok(arn.to_owned());
        }
        // ECS reports the lack of capacity for a task in a successful answer.
        let reason =
            answer.pointer("/failures/0/reason").and_then(Value::as_str).unwrap_or("the answer names nothing that was started");
        let busy = ["RESOURCE:", "AGENT", "EMPTY CAPACITY PROVIDER"].iter().any(|busy| reason.starts_with(busy));
        if busy { Err(retry(operation.name, reason)) } else { Err(refused(operation.name, reason)) }
    }

    async fn look(&self, runner: Runner, request: &Value) -> Result<Value, PortError> {
        let operation = match runner {
            Runner::Ecs => DESCRIBE_TASKS,
            Runner::CodeBuild => BATCH_GET_BUILDS,
        };
        self.operate(&operation, request).await
    }

    async fn stop(&self, runner: Runner, request: &Value) -> Result<(), PortError> {
        let operation = match runner {
            Runner::Ecs => STOP_TASK,
            Runner::CodeBuild => STOP_BUILD,
        };
        self.operate(&operation, request).await.map(drop)
    }
}

impl Starters for Aws {
    async fn start(&self, runner: Runner, request: &Value) -> Result<String, PortError> {
        self.inner.signed.start(runner, request).await
    }
    async fn look(&self, runner: Runner, request: &Value) -> Result<Value, PortError> {
        self.inner.signed.look(runner, request).await
    }
    async fn stop(&self, runner: Runner, request: &Value) -> Result<(), PortError> {
        self.inner.signed.stop(runner, request).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signed::tests::answering;
    use serde_json::json;

    async fn start(runner: Runner, status: u16, body: &'static str) -> (Result<String, PortError>, [String; 3]) {
        let (signed, seen) = answering(status, &[], body);
        let started = signed.start(runner, &json!({"cluster": "main"})).await;
        let seen = seen.lock().unwrap();
        let [request] = &seen[..] else { panic!("{} requests", seen.len()) };
        let body = String::from_utf8(request.body().bytes().unwrap().to_vec()).unwrap();
        let target = request.headers().get("x-amz-target").unwrap().to_owned();
        (started, [request.uri().to_owned(), target, body])
    }

    #[tokio::test]
    async fn a_task_and_a_build_are_started() {
        let body = r#"{"tasks":[{"taskArn":"arn:aws:ecs:eu-central-1:1:task/main/8f","lastStatus":"PROVISIONING"}],"failures":[]}"#;
        let (started, sent) = start(Runner::Ecs, 200, body).await;
        assert_eq!(started, Ok("arn:aws:ecs:eu-central-1:1:task/main/8f".into()));
        let target = "AmazonEC2ContainerServiceV20141113.RunTask";
        assert_eq!(sent, ["https://ecs.eu-central-1.amazonaws.com/", target, r#"{"cluster":"main"}"#]);
        let body =
            r#"{"build":{"id":"deploy:1","arn":"arn:aws:codebuild:eu-central-1:1:build/deploy:1","buildStatus":"IN_PROGRESS"}}"#;
        let (started, sent) = start(Runner::CodeBuild, 200, body).await;
        assert_eq!(started, Ok("arn:aws:codebuild:eu-central-1:1:build/deploy:1".into()));
        assert_eq!(sent[..2], ["https://codebuild.eu-central-1.amazonaws.com/", "CodeBuild_20161006.StartBuild"]);
    }

    #[tokio::test]
    async fn a_task_and_a_build_are_asked_for() {
        for (runner, target) in [
            (Runner::Ecs, "AmazonEC2ContainerServiceV20141113.DescribeTasks"),
            (Runner::CodeBuild, "CodeBuild_20161006.BatchGetBuilds"),
        ] {
            let (signed, seen) = answering(200, &[], r#"{"tasks":[]}"#);
            assert_eq!(signed.look(runner, &json!({"ids": ["deploy:1"]})).await, Ok(json!({"tasks": []})));
            let seen = seen.lock().unwrap();
            let body = String::from_utf8(seen[0].body().bytes().unwrap().to_vec()).unwrap();
            assert_eq!((seen[0].headers().get("x-amz-target"), body.as_str()), (Some(target), r#"{"ids":["deploy:1"]}"#));
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
            let error = start(Runner::Ecs, status, body).await.0.unwrap_err();
            assert_eq!(error.passes(), passing, "{status} {body}: {error}");
        }
    }
}
