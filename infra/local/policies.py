"""Scans the policies for what they should not allow, and for actions and resources that do not fit together; part of `make lint`.

It reads infra/*.json and the roles of infra/template.yaml, and uses no network. What it finds is mended, or stands with its reason
in policy-exceptions.txt; an exception that nothing needs any more is a finding, too.
"""

import json
import re
import sys
from pathlib import Path

from parliament import analyze_policy_string

from keelway_local import template as template_file
from keelway_local.common import TEMPLATE

ACCOUNT, REGION, STACK = "123456789012", "eu-central-1", "keelway"
EXCEPTIONS = Path(__file__).with_name("policy-exceptions.txt")
POLICIES = ["boundary.json", "deployer-policy.json", "deployer-domain-policy.json"]


def arn(service, resource):
    return f"arn:aws:{service}:{REGION}:{ACCOUNT}:{resource}"


# Examples of what parameters hold.
PARAMETERS = {
    "DeployedFunctions": arn("lambda", "function:shop-*"), "DeployedRepositories": arn("ecr", "repository/shop/carts"),
    "DeployedPackages": "arn:aws:s3:::releases/*", "HookFunctions": arn("lambda", "function:hook-*"),
    "MetricsRoles": "arn:aws:iam::210987654321:role/metrics",
    "DeployerTasks": arn("ecs", "task-definition/deploy:*"), "DeployerClusters": arn("ecs", "cluster/main"),
    "DeployerTaskRoles": f"arn:aws:iam::{ACCOUNT}:role/deploy", "DeployerBuilds": arn("codebuild", "project/deploy"),
    "SecretsKeyArn": arn("kms", "key/12345678-1234-1234-1234-123456789012"), "SchedulerGroup": STACK,
    "AWS::Partition": "aws", "AWS::Region": REGION, "AWS::AccountId": ACCOUNT, "AWS::StackName": STACK,
}
# The ARNs of what the template makes, by type.
MADE = {
    "AWS::DynamoDB::Table": arn("dynamodb", f"table/{STACK}"), "AWS::SQS::Queue": arn("sqs", f"{STACK}-queue"),
    "AWS::Events::EventBus": arn("events", f"event-bus/{STACK}"), "AWS::Events::Rule": arn("events", f"rule/{STACK}/{STACK}-rule"),
    "AWS::IAM::Role": f"arn:aws:iam::{ACCOUNT}:role/{STACK}-role",
    "AWS::Logs::LogGroup": arn("logs", f"log-group:/aws/lambda/{STACK}-function:*"),
}


def plain(value, resources):
    """The value with examples in place of what CloudFormation fills in."""
    if isinstance(value, list):
        return [plain(one, resources) for one in value]
    if not isinstance(value, dict):
        return value
    if "Ref" in value:
        return PARAMETERS[value["Ref"]]
    if "Fn::GetAtt" in value:
        return MADE[resources[value["Fn::GetAtt"][0]]["Type"]]
    if "Fn::Sub" in value:
        def filled(match):
            name = match[1].removesuffix(".Arn")
            return PARAMETERS[name] if name in PARAMETERS else MADE[resources[name]["Type"]]
        return re.sub(r"\$\{([^}]+)\}", filled, value["Fn::Sub"])
    if "Fn::If" in value:
        return plain(value["Fn::If"][1], resources)
    return {key: plain(one, resources) for key, one in value.items()}


def statements():
    """(policy and statement, statement) of everything that is attached to a role or a person."""
    for name in POLICIES:
        text = TEMPLATE.with_name(name).read_text()
        for word, example in {"STACK": STACK, "REGION": REGION, "ACCOUNT": ACCOUNT, "ZONE": "Z0123456789", "DEPLOYED": "shop"}.items():
            text = text.replace(word, example)
        for statement in json.loads(text)["Statement"]:
            yield f"{name} {statement['Sid']}", statement
    resources = template_file.load()["Resources"]
    for name, resource in resources.items():
        if resource["Type"] not in ("AWS::IAM::Role", "AWS::IAM::Policy"):
            continue
        properties = resource["Properties"]
        for policy in plain(properties.get("Policies") or [{k: properties[k] for k in ("PolicyName", "PolicyDocument")}], resources):
            for statement in policy["PolicyDocument"]["Statement"]:
                yield f"template.yaml {name}/{policy['PolicyName']}", statement


def exceptions():
    """{(policy, statement, issue): reason}"""
    lines = (line.strip() for line in EXCEPTIONS.read_text().splitlines())
    parted = (line.partition(": ") for line in lines if line and not line.startswith("#"))
    return {tuple(where.split()): reason for where, _, reason in parted}


def main():
    known, used, count = exceptions(), set(), 0
    found = [f"policy-exceptions.txt: {' '.join(where)} has no reason" for where, reason in known.items() if not reason]
    for where, statement in statements():
        count += 1
        document = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
        for finding in analyze_policy_string(document).findings:
            key = (*where.split(), finding.issue)
            used.add(key)
            if key not in known:
                found.append(f"{' '.join(key)}: {finding.detail}")
    found += [f"policy-exceptions.txt: nothing needs {' '.join(where)} any more" for where in known if where not in used]
    print("\n".join(found) or f"{count} statements of policies: nothing found, {len(known)} exceptions")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
