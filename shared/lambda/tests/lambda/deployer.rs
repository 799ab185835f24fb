//! The policy for whoever deploys has what the template's resources need, and names the stack wherever AWS lets it.

use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;

fn file(name: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../infra").join(name)).unwrap()
}

fn template() -> Value {
    serde_saphyr::from_str(&file("template.yaml")).unwrap()
}

/// Of the policy that every deployment needs, and of the one for a domain.
fn statements() -> Vec<Value> {
    let read = |name: &str| serde_json::from_str::<Value>(&file(name)).unwrap()["Statement"].as_array().unwrap().clone();
    [read("deployer-policy.json"), read("deployer-domain-policy.json")].concat()
}

fn texts(list: &Value) -> impl Iterator<Item = &str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str)
}

/// What CloudFormation needs to create, read and delete a resource of this type.
fn needed(resource: &str) -> &'static [&'static str] {
    match resource {
        "AWS::DynamoDB::Table" => &[
            "dynamodb:CreateTable",
            "dynamodb:DeleteTable",
            "dynamodb:DescribeTable",
            "dynamodb:UpdateContinuousBackups",
            "dynamodb:UpdateTimeToLive",
        ],
        "AWS::Events::EventBus" => {
            &["events:CreateEventBus", "events:DeleteEventBus", "events:DescribeEventBus", "events:PutPermission"]
        }
        "AWS::Events::Rule" => {
            &["events:DeleteRule", "events:DescribeRule", "events:PutRule", "events:PutTargets", "events:RemoveTargets"]
        }
        "AWS::SQS::Queue" => &["sqs:CreateQueue", "sqs:DeleteQueue", "sqs:GetQueueAttributes"],
        "AWS::SQS::QueuePolicy" => &["sqs:SetQueueAttributes"],
        "AWS::Scheduler::ScheduleGroup" => {
            &["scheduler:CreateScheduleGroup", "scheduler:DeleteScheduleGroup", "scheduler:GetScheduleGroup"]
        }
        "AWS::IAM::Role" => &[
            "iam:CreateRole",
            "iam:DeleteRole",
            "iam:DeleteRolePolicy",
            "iam:GetRole",
            "iam:PassRole",
            "iam:PutRolePolicy",
            "iam:UpdateAssumeRolePolicy",
        ],
        "AWS::IAM::Policy" => &["iam:DeleteRolePolicy", "iam:GetRolePolicy", "iam:PutRolePolicy"],
        "AWS::Logs::LogGroup" => {
            &["logs:CreateLogGroup", "logs:DeleteLogGroup", "logs:DescribeLogGroups", "logs:PutRetentionPolicy"]
        }
        "AWS::CloudWatch::Alarm" => &["cloudwatch:DeleteAlarms", "cloudwatch:DescribeAlarms", "cloudwatch:PutMetricAlarm"],
        "AWS::CloudWatch::Dashboard" => &["cloudwatch:DeleteDashboards", "cloudwatch:GetDashboard", "cloudwatch:PutDashboard"],
        // With the mappings of its queues, its URL and its schedule, each with a permission.
        "AWS::Serverless::Function" => &[
            "events:PutRule",
            "lambda:AddPermission",
            "lambda:CreateEventSourceMapping",
            "lambda:CreateFunction",
            "lambda:CreateFunctionUrlConfig",
            "lambda:DeleteEventSourceMapping",
            "lambda:DeleteFunction",
            "lambda:DeleteFunctionUrlConfig",
            "lambda:GetFunction",
            "lambda:PutFunctionConcurrency",
            "lambda:PutFunctionRecursionConfig",
            "lambda:RemovePermission",
            "lambda:UpdateFunctionCode",
            "lambda:UpdateFunctionConfiguration",
        ],
        "AWS::Lambda::Permission" => &["lambda:AddPermission", "lambda:RemovePermission"],
        // With what they are made of: an integration, a route, a stage, a mapping.
        kind if kind.starts_with("AWS::ApiGatewayV2::") => {
            &["apigateway:DELETE", "apigateway:GET", "apigateway:PATCH", "apigateway:POST", "apigateway:PUT"]
        }
        "AWS::Route53::RecordSet" => &["route53:ChangeResourceRecordSets", "route53:GetChange", "route53:GetHostedZone"],
        other => panic!(
            "the policy knows nothing of {other}: add what CloudFormation needs for it, here and in infra/deployer-policy.json"
        ),
    }
}

#[test]
fn whoever_deploys_may_do_what_the_template_needs() {
    let statements = statements();
    let allowed: BTreeSet<&str> = statements.iter().flat_map(|statement| texts(&statement["Action"])).collect();
    let template = template();
    for (name, resource) in template["Resources"].as_object().unwrap() {
        let kind = resource["Type"].as_str().unwrap();
        let missing: Vec<_> = needed(kind).iter().filter(|action| !allowed.contains(**action)).collect();
        assert!(missing.is_empty(), "{name}, {kind}: the policy lacks {missing:?}");
    }
    assert!(!allowed.iter().any(|action| action.contains('*')), "every action is named: {allowed:?}");
}

#[test]
fn the_policy_names_the_stack_wherever_it_can() {
    // What AWS does not restrict to a resource, or what is not the stack's own.
    let elsewhere =
        ["Templates", "Transform", "Packages", "QueuesOfFunctions", "TagsOfMappings", "ListOfLogs", "Domain", "RecordOfDomain"];
    for statement in statements() {
        let id = statement["Sid"].as_str().unwrap();
        for resource in texts(&statement["Resource"]).filter(|resource| !resource.contains("aws-sam-cli-managed-default")) {
            assert!(resource.contains("STACK") || elsewhere.contains(&id), "{id}: {resource}");
        }
    }
}

/// A managed policy holds at most 6,144 characters, without blanks.
#[test]
fn the_policy_fits() {
    let text = file("deployer-policy.json")
        .replace("STACK", &"s".repeat(51))
        .replace("ACCOUNT", "123456789012")
        .replace("REGION", "ap-southeast-2");
    let size = text.chars().filter(|c| !c.is_whitespace()).count();
    assert!(size <= 6144, "{size} characters");
}
