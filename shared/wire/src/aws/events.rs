//! Events of ECR, CloudWatch, ECS and CodeBuild, as rules of the account's own bus put them on a queue. They are no CloudEvents:
//! only AWS may use a source that begins with `aws.`, so what such an envelope says, AWS says.

use super::{attempt, build, task, text};
use crate::cloudevent::{CloudEventError, refused};
use keelway_domain::deployments::notice::{Alarm, Image, Notice, Run};
use keelway_domain::deployments::registry::Repository;
use keelway_domain::time::Timestamp;
use serde_json::Value;

/// Reads the envelope of a service's event. `now` stands for a time that is absent or unreadable. `None`: it is of no service of
/// AWS.
///
/// # Errors
/// A service that is not listened to, or what is missing.
pub fn notice(envelope: &Value, now: Timestamp) -> Option<Result<Notice, CloudEventError>> {
    let service = envelope["source"].as_str().filter(|source| source.starts_with("aws."))?;
    Some(of_service(service, envelope, now))
}

fn of_service(service: &str, envelope: &Value, now: Timestamp) -> Result<Notice, CloudEventError> {
    let (Some(_), Some(ty)) = (envelope["id"].as_str(), envelope["detail-type"].as_str()) else {
        return refused("id", "is missing, or `detail-type`: an event of AWS has both");
    };
    let detail = &envelope["detail"];
    if !detail.is_object() {
        return refused("detail", "is not a JSON object");
    }
    let at = envelope["time"].as_str().and_then(Timestamp::parse).unwrap_or(now);
    match (service, ty) {
        ("aws.ecr", _) => image(envelope, at),
        ("aws.cloudwatch", _) => alarm(detail, at),
        ("aws.ecs", "ECS Task State Change") => Ok(of_task(detail).map_or(Notice::Other, Notice::Run)),
        ("aws.codebuild", "CodeBuild Build State Change") => Ok(of_build(detail).map_or(Notice::Other, Notice::Run)),
        ("aws.ecs" | "aws.codebuild", _) => Ok(Notice::Other),
        _ => refused("source", format!("is {service:?}: events of this service are not listened to")),
    }
}

/// An image was pushed or deleted. Account and region are the envelope's.
fn image(envelope: &Value, at: Timestamp) -> Result<Notice, CloudEventError> {
    let text = |of: &Value, name: &str| of[name].as_str().map(str::to_owned);
    let detail = &envelope["detail"];
    let named = |name: &str| text(detail, name);
    let (Some(action), Some(name), Some(digest)) = (named("action-type"), named("repository-name"), named("image-digest")) else {
        return refused("detail", "must have action-type, repository-name and image-digest");
    };
    let deleted = match (named("result").as_deref(), action.as_str()) {
        (Some("SUCCESS"), "PUSH") => false,
        (Some("SUCCESS"), "DELETE") => true,
        _ => return Ok(Notice::Other),
    };
    let repository = Repository { account: text(envelope, "account"), region: text(envelope, "region"), name };
    Ok(Notice::Image(Image { repository, digest, tag: named("image-tag"), deleted, at }))
}

fn alarm(detail: &Value, at: Timestamp) -> Result<Notice, CloudEventError> {
    let (Some(name), Some(state)) = (detail["alarmName"].as_str(), detail["state"]["value"].as_str()) else {
        return refused("detail", "must have alarmName and state.value");
    };
    Ok(Notice::Alarm(Alarm { name: name.to_owned(), on: state == "ALARM", at }))
}

fn of_task(detail: &Value) -> Option<Run> {
    let ((of, n, attempt), became) = task(detail)?;
    Some(Run { of, n, attempt, arn: text(detail, "taskArn").to_owned(), became, log: String::new() })
}

fn of_build(detail: &Value) -> Option<Run> {
    let more = &detail["additional-information"];
    let (of, n, attempt) = attempt(&more["environment"]["environment-variables"])?;
    let became = build(text(detail, "build-status"))?;
    let log = text(&more["logs"], "deep-link").to_owned();
    Some(Run { of, n, attempt, arn: text(detail, "build-id").to_owned(), became, log })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const NOW: Timestamp = Timestamp(1_795_222_266_686);

    fn read(source: &str, ty: &str, detail: Value) -> Result<Notice, String> {
        let envelope = json!({"version": "0", "id": "13cde686", "detail-type": ty, "source": source, "account": "123456789012",
            "time": "2019-11-16T01:54:34Z", "region": "us-west-2", "resources": [], "detail": detail});
        notice(&envelope, NOW).unwrap().map_err(|error| error.to_string())
    }

    fn ecr(action: &str, result: &str) -> Value {
        json!({"result": result, "repository-name": "shop", "image-digest": "sha256:7f", "action-type": action, "image-tag": "latest"})
    }

    #[test]
    fn an_image_is_of_the_account_and_region_that_the_bus_names() {
        let repository = Repository { account: Some("123456789012".into()), region: Some("us-west-2".into()), name: "shop".into() };
        let at = Timestamp::parse("2019-11-16T01:54:34Z").unwrap();
        let image = |deleted| {
            Notice::Image(Image {
                repository: repository.clone(),
                digest: "sha256:7f".into(),
                tag: Some("latest".into()),
                deleted,
                at,
            })
        };
        for (action, deleted) in [("PUSH", false), ("DELETE", true)] {
            let mut detail = ecr(action, "SUCCESS");
            detail["account"] = "999999999999".into();
            assert_eq!(read("aws.ecr", "ECR Image Action", detail), Ok(image(deleted)));
        }
        assert_eq!(read("aws.ecr", "ECR Image Action", ecr("PUSH", "FAILURE")), Ok(Notice::Other));
        assert_eq!(read("aws.ecr", "ECR Image Action", ecr("REPLICATE", "SUCCESS")), Ok(Notice::Other));
    }

    #[test]
    fn an_alarm_is_on_or_off() {
        let at = Timestamp::parse("2019-11-16T01:54:34Z").unwrap();
        for (state, on) in [("ALARM", true), ("OK", false), ("INSUFFICIENT_DATA", false)] {
            let detail = json!({"alarmName": "errors", "state": {"value": state}});
            let alarm = Notice::Alarm(Alarm { name: "errors".into(), on, at });
            assert_eq!(read("aws.cloudwatch", "CloudWatch Alarm State Change", detail), Ok(alarm));
        }
    }

    #[test]
    fn what_lacks_something_is_refused() {
        for (source, detail, why) in [
            ("aws.ecr", json!({"action-type": "PUSH"}), "detail: must have action-type, repository-name and image-digest"),
            ("aws.cloudwatch", json!({"alarmName": "errors"}), "detail: must have alarmName and state.value"),
            ("aws.cloudwatch", json!("text"), "detail: is not a JSON object"),
            ("aws.s3", json!({}), "source: is \"aws.s3\": events of this service are not listened to"),
        ] {
            assert_eq!(read(source, "x", detail), Err(why.into()));
        }
        let nameless = notice(&json!({"source": "aws.ecr", "detail": {}}), NOW).unwrap().unwrap_err();
        assert_eq!(nameless.to_string(), "id: is missing, or `detail-type`: an event of AWS has both");
    }

    #[test]
    fn tasks_and_builds_of_others_are_passed_over() {
        assert_eq!(read("aws.ecs", "ECS Task State Change", json!({"lastStatus": "STOPPED"})), Ok(Notice::Other));
        assert_eq!(read("aws.ecs", "ECS Deployment State Change", json!({})), Ok(Notice::Other));
        let of_nobody = json!({"build-status": "FAILED", "additional-information": {"environment": {}}});
        assert_eq!(read("aws.codebuild", "CodeBuild Build State Change", of_nobody), Ok(Notice::Other));
    }

    #[test]
    fn others_than_aws_are_not_heard_here() {
        for source in [json!("keelway"), json!("xaws.ecr"), json!(null)] {
            assert_eq!(
                notice(
                    &json!({"id": "1", "detail-type": "ECR Image Action", "source": source, "detail": ecr("PUSH", "SUCCESS")}),
                    NOW
                ),
                None
            );
        }
    }
}
