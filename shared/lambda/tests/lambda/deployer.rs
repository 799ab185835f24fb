//! The policy for whoever deploys has what the template's resources need, and names the stack wherever AWS lets it.

use serde_json::{Value, json};
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
            "iam:PutRolePermissionsBoundary",
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
    let elsewhere = ["Lists", "Packages", "QueuesOfFunctions", "TagsOfMappings", "Domain", "ChangesOfRecords"];
    for statement in statements() {
        let id = statement["Sid"].as_str().unwrap();
        for resource in texts(&statement["Resource"]).filter(|resource| !resource.contains("aws-sam-cli-managed-default")) {
            let others = ["arn:aws:route53:::hostedzone/ZONE", "arn:aws:cloudformation:REGION:aws:transform/Serverless-2016-10-31"];
            let named = resource.contains("STACK") || others.contains(&resource);
            assert!(named || elsewhere.contains(&id), "{id}: {resource}");
        }
    }
}

const BOUNDARY: &str = "arn:aws:iam::ACCOUNT:policy/STACK-boundary";

/// Without this, whoever deploys makes a role that may do everything, and runs a function with it.
#[test]
fn whoever_deploys_makes_bounded_roles_only() {
    let bounded = json!({"StringEquals": {"iam:PermissionsBoundary": BOUNDARY}});
    let mut seen = BTreeSet::new();
    for statement in statements() {
        for action in texts(&statement["Action"]).filter(|action| action.starts_with("iam:")) {
            match action {
                "iam:CreateRole" | "iam:PutRolePolicy" | "iam:PutRolePermissionsBoundary" => {
                    assert_eq!(statement["Condition"], bounded, "{action}");
                    seen.insert(action.to_owned());
                }
                "iam:PassRole" => {
                    let to_functions = json!({"StringEquals": {"iam:PassedToService": "lambda.amazonaws.com"}});
                    assert_eq!(statement["Condition"], to_functions, "{action}");
                }
                // These take rights away, or decide who assumes a role that is bounded.
                "iam:DeleteRole" | "iam:DeleteRolePolicy" | "iam:UpdateAssumeRolePolicy" | "iam:UpdateRole" => {}
                // Among them, whatever would widen the boundary or take it off.
                other => assert!(other.starts_with("iam:Get") || other.starts_with("iam:List"), "{other}"),
            }
        }
    }
    assert_eq!(seen.len(), 3, "{seen:?}");
}

#[test]
fn every_role_has_the_boundary() {
    let template = template();
    let roles = template["Resources"].as_object().unwrap().iter().filter(|(_, one)| one["Type"] == "AWS::IAM::Role");
    let mut count = 0;
    for (name, role) in roles {
        let boundary = &role["Properties"]["PermissionsBoundary"];
        assert_eq!(*boundary, json!(["HasRolesBoundary", "RolesBoundaryArn", "AWS::NoValue"]), "{name}");
        count += 1;
    }
    // Each function names one of them, so that SAM makes none of its own.
    let functions = template["Resources"].as_object().unwrap().iter().filter(|(_, one)| one["Type"] == "AWS::Serverless::Function");
    for (name, function) in functions {
        let role = function["Properties"]["Role"].as_str().unwrap().trim_end_matches(".Arn");
        assert_eq!(template["Resources"][role]["Type"], "AWS::IAM::Role", "{name}");
    }
    assert!(count > 1, "{count}");
}

/// The actions that anything in here allows.
fn actions(value: &Value) -> BTreeSet<&str> {
    let own = value["Effect"].as_str().into_iter().flat_map(|_| texts(&value["Action"]));
    let lists = value.as_array().into_iter().flatten();
    let members = value.as_object().into_iter().flat_map(|object| object.values());
    own.chain(lists.chain(members).flat_map(actions)).collect()
}

/// A role may do what both its policies and the boundary allow.
#[test]
fn the_boundary_allows_what_the_roles_do_and_nothing_else() {
    let (template, boundary) = (template(), serde_json::from_str::<Value>(&file("boundary.json")).unwrap());
    let resources = template["Resources"].as_object().unwrap().values();
    let with_policies = resources.filter(|one| one["Type"] == "AWS::IAM::Role" || one["Type"] == "AWS::IAM::Policy");
    let needed: Vec<Value> =
        with_policies.map(|one| json!([one["Properties"]["Policies"], one["Properties"]["PolicyDocument"]])).collect();
    let needed: BTreeSet<&str> = needed.iter().flat_map(actions).collect();
    assert_eq!(actions(&boundary), needed);
    for statement in boundary["Statement"].as_array().unwrap() {
        let id = statement["Sid"].as_str().unwrap();
        for resource in texts(&statement["Resource"]) {
            let named = resource.contains("STACK") || resource.contains("DEPLOYED");
            // Keys of other accounts may be used through Secrets Manager only; metrics and traces belong to no resource.
            assert!(named || ["KeysOfSecrets", "Metrics", "MetricsOfPrometheus", "Traces"].contains(&id), "{id}: {resource}");
        }
        if texts(&statement["Action"]).any(|action| action == "iam:PassRole") {
            let service = statement["Condition"]["StringEquals"]["iam:PassedToService"].as_str();
            assert!(matches!(service, Some("scheduler.amazonaws.com" | "ecs-tasks.amazonaws.com")), "{id}: {service:?}");
        }
    }
}

/// A managed policy holds at most 6,144 characters, without blanks.
#[test]
fn the_policies_fit() {
    for name in ["deployer-policy.json", "deployer-domain-policy.json", "boundary.json"] {
        let text =
            file(name).replace("STACK", &"s".repeat(51)).replace("ACCOUNT", "123456789012").replace("REGION", "ap-southeast-2");
        let size = text.chars().filter(|c| !c.is_whitespace()).count();
        assert!(size <= 6144, "{name}: {size} characters");
    }
}
