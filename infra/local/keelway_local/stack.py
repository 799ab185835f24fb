"""Deploys infra/template.yaml into an endpoint, as CloudFormation does it on AWS: code in a bucket, a change set."""

import concurrent.futures
import copy
import hashlib
import ipaddress
import json
import os
import re
import shlex
import socket
import tempfile
import time
import zipfile
from pathlib import Path
from urllib.parse import urlsplit

import boto3
import botocore.config
import botocore.exceptions

from . import server, template as template_file
from .common import CREDENTIALS, REGION, ROOT, TEMPLATE, Problem, Step, say

BOUNDARY = TEMPLATE.with_name("boundary.json")

# After so many seconds a deployment counts as lost. On a busy machine it takes a minute.
SETTLED_SECONDS = 900

CAPABILITIES = ["CAPABILITY_IAM", "CAPABILITY_NAMED_IAM", "CAPABILITY_AUTO_EXPAND"]


def client(service, endpoint):
    """A client of the local endpoint, without the profile and proxy of the shell."""
    return boto3.client(
        service, endpoint_url=endpoint, region_name=REGION, aws_access_key_id=CREDENTIALS["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=CREDENTIALS["AWS_SECRET_ACCESS_KEY"],
        config=botocore.config.Config(proxies={}, s3={"addressing_style": "path"}, retries={"max_attempts": 2}))


def check_loopback(endpoint, allow_remote):
    """Refuses to deploy to another machine, unless told to."""
    host = urlsplit(endpoint).hostname or ""
    try:
        local = ipaddress.ip_address(host).is_loopback
    except ValueError:
        local = host == "localhost"
    if not (local or allow_remote):
        raise Problem(f"{endpoint} is not on this machine: use a loopback address, or add --allow-remote if you mean it")


def _package(directory, name):
    """The zip of a function: a finished package (<name>/bootstrap.zip), or one of a plain binary (<name>), kept until the binary
    changes."""
    ready, binary = Path(directory) / name / "bootstrap.zip", Path(directory) / name
    if ready.is_file():
        return ready
    if not binary.is_file():
        raise Problem(f"there is no function {name} in {directory}: build it with `cargo build --workspace "
                      f"--bins --tests` (or `make package`)")
    # It bears the time of its binary.
    made, changed = Path(directory) / "packages" / f"{name}.zip", binary.stat().st_mtime_ns
    if made.exists() and made.stat().st_mtime_ns == changed:
        return made
    made.parent.mkdir(exist_ok=True)
    # A fixed date, so that the same binary gives the same zip. Level 1, because the copy stays on the same disk.
    info = zipfile.ZipInfo("bootstrap", (2020, 1, 1, 0, 0, 0))
    info.external_attr = 0o755 << 16
    # Another process may make the same one: it gets its name when it is complete.
    with tempfile.NamedTemporaryFile(dir=made.parent, delete=False) as file, zipfile.ZipFile(file, "w") as archive:
        archive.writestr(info, binary.read_bytes(), zipfile.ZIP_DEFLATED, 1)
    os.utime(file.name, ns=(changed, changed))
    os.replace(file.name, made)
    return made


def _upload(s3, bucket, directory, names, step):
    """{package: key in the bucket}. Packages in the bucket are not sent again."""
    step.detail = "(packages)"

    def upload(name):
        body = _package(directory, name).read_bytes()
        key = f"functions/{name}/{hashlib.sha256(body).hexdigest()}.zip"
        if not _exists(s3, bucket, key):
            s3.put_object(Bucket=bucket, Key=key, Body=body)
        return name, key

    # A few at a time, to limit the memory.
    with concurrent.futures.ThreadPoolExecutor(max_workers=4) as pool:
        return dict(pool.map(upload, dict.fromkeys(names)))


def _exists(s3, bucket, key):
    try:
        s3.head_object(Bucket=bucket, Key=key)
        return True
    except botocore.exceptions.ClientError:
        return False


def _with_code(template, bucket, keys):
    """The template with the location of each function's code, like the result of `aws cloudformation package`."""
    filled = copy.deepcopy(template)
    for logical, package in template_file.functions(template).items():
        filled["Resources"][logical]["Properties"]["CodeUri"] = {"Bucket": bucket, "Key": keys[package]}
    return json.dumps(filled)


def _describe(cloudformation, name):
    try:
        return cloudformation.describe_stacks(StackName=name)["Stacks"][0]
    except botocore.exceptions.ClientError as error:
        if "does not exist" in str(error):
            return None
        raise


def _failure(cloudformation, name):
    """Why a deployment has failed: the failed resources, with the messages of the service."""
    events = cloudformation.describe_stack_events(StackName=name)["StackEvents"]
    lines = [f"  {event['LogicalResourceId']}: {event.get('ResourceStatusReason', 'no reason given')}"
             for event in events if event["ResourceStatus"].endswith("_FAILED")]
    return "\n".join(lines[:8]) or "  (no resource says why)"


def _looks(what):
    """Goes on as long as what is waited for may take: a stack of the emulator could stay in progress for ever."""
    deadline = time.monotonic() + SETTLED_SECONDS
    while time.monotonic() < deadline:
        yield
        time.sleep(0.1)
    raise Problem(f"{what} has not ended within {SETTLED_SECONDS} s: see cloud.log in the state directory")


def _change_set(cloudformation, name, url, parameters, exists):
    """Makes the change set; None if there is nothing to change."""
    label = f"keelway-{time.time_ns()}"
    cloudformation.create_change_set(
        StackName=name, ChangeSetName=label, ChangeSetType="UPDATE" if exists else "CREATE", TemplateURL=url,
        Capabilities=CAPABILITIES,
        Parameters=[{"ParameterKey": key, "ParameterValue": value} for key, value in sorted(parameters.items())])
    for _ in _looks(f"the change set of stack {name}"):
        made = cloudformation.describe_change_set(StackName=name, ChangeSetName=label)
        if made["Status"] == "CREATE_COMPLETE":
            return label
        if made["Status"] == "FAILED":
            reason = made.get("StatusReason", "")
            cloudformation.delete_change_set(StackName=name, ChangeSetName=label)
            if "didn't contain changes" in reason or "No updates" in reason:
                return None
            raise Problem(f"the change set of stack {name} was refused: {reason}")


def _execute(cloudformation, name, label):
    cloudformation.execute_change_set(StackName=name, ChangeSetName=label)
    for _ in _looks(f"the deployment of stack {name}"):
        stack = _describe(cloudformation, name)
        status = stack["StackStatus"] if stack else "DELETE_COMPLETE"
        if status in ("CREATE_COMPLETE", "UPDATE_COMPLETE"):
            return stack
        if not status.endswith("_IN_PROGRESS") or status == "REVIEW_IN_PROGRESS":
            raise Problem(f"the deployment of stack {name} ended as {status}; undeploy it, mend the cause and try "
                          f"again:\n{_failure(cloudformation, name)}")


def local_url(url, endpoint):
    """A function URL on this machine: the emulator serves the host names of AWS under a path."""
    host = urlsplit(url).hostname or ""
    if host.endswith(".on.aws"):
        return f"{endpoint}/_aws/lambda-url/{host.split('.')[0]}"
    return url.rstrip("/")


def _reachable(url, endpoint):
    """A queue URL with the host and port of the local endpoint."""
    path = urlsplit(url).path
    return f"{endpoint}{path}" if path else url


def _architecture():
    return "arm64" if os.uname().machine in ("arm64", "aarch64") else "x86_64"


def _boundary(name, endpoint):
    """The permissions boundary of the stack's roles. On AWS, an administrator creates it and limits what may be deployed; here,
    everything may be."""
    account = client("sts", endpoint).get_caller_identity()["Account"]
    # Deployments may be in any region and account.
    text = "".join(line.replace("REGION", "*").replace("ACCOUNT", "*") if "DEPLOYED" in line else line
                   for line in BOUNDARY.read_text().splitlines(keepends=True))
    for word, value in {"STACK": name, "REGION": REGION, "ACCOUNT": account, "DEPLOYED": "*"}.items():
        text = text.replace(word, value)
    iam, arn = client("iam", endpoint), f"arn:aws:iam::{account}:policy/{name}-boundary"
    try:
        iam.create_policy(PolicyName=f"{name}-boundary", PolicyDocument=text)
    except iam.exceptions.EntityAlreadyExistsException:
        versions = iam.list_policy_versions(PolicyArn=arn)["Versions"]
        now = next(version["VersionId"] for version in versions if version["IsDefaultVersion"])
        if iam.get_policy_version(PolicyArn=arn, VersionId=now)["PolicyVersion"]["Document"] != json.loads(text):
            # A policy has five versions at most.
            for version in versions:
                if version["VersionId"] != now:
                    iam.delete_policy_version(PolicyArn=arn, VersionId=version["VersionId"])
            iam.create_policy_version(PolicyArn=arn, PolicyDocument=text, SetAsDefault=True)
    return arn


def _delete_boundary(name, endpoint):
    iam, account = client("iam", endpoint), client("sts", endpoint).get_caller_identity()["Account"]
    arn = f"arn:aws:iam::{account}:policy/{name}-boundary"
    try:
        for version in iam.list_policy_versions(PolicyArn=arn)["Versions"]:
            if not version["IsDefaultVersion"]:
                iam.delete_policy_version(PolicyArn=arn, VersionId=version["VersionId"])
        iam.delete_policy(PolicyArn=arn)
    except iam.exceptions.NoSuchEntityException:
        pass


def deploy(state, name, functions, parameters, endpoint=None):
    """Deploys and returns the outputs, which are kept in the state directory under the stack's name."""
    endpoint = endpoint or server.endpoint(state)
    template = template_file.load()
    s3, cloudformation = client("s3", endpoint), client("cloudformation", endpoint)
    secret = server.token(state)
    values = {"ApiTokenSha256": hashlib.sha256(secret.encode()).hexdigest(), "Architecture": _architecture(),
              # All requests come from one address here.
              "TokenRequests": "0", "AddressRequests": "0",
              # There is no concurrency pool to protect here, and measurements need more.
              "ApiReservedConcurrency": "none",
              # Each execution at the same time is a process of this machine.
              "SequencesConcurrency": "10",
              "RolesBoundaryArn": _boundary(name, endpoint), **parameters}
    unknown = sorted(set(values) - set(template["Parameters"]))
    if unknown:
        raise Problem(f"the template has no parameter {', '.join(unknown)}: it has "
                      f"{', '.join(template['Parameters'])}")
    bucket = f"{name}-code".lower()
    with Step(f"deploying stack {name}") as step:
        s3.create_bucket(Bucket=bucket)
        keys = _upload(s3, bucket, functions, template_file.functions(template).values(), step)
        step.detail = "(change set)"
        stack = _describe(cloudformation, name)
        exists = bool(stack) and stack["StackStatus"] != "REVIEW_IN_PROGRESS"
        # From the bucket, as `sam deploy` does it: in a request, a template has at most 51,200 bytes.
        s3.put_object(Bucket=bucket, Key="template.json", Body=_with_code(template, bucket, keys).encode())
        label = _change_set(cloudformation, name, f"{endpoint}/{bucket}/template.json", values, exists)
        if label:
            step.detail = "(resources)"
            stack = _execute(cloudformation, name, label)
        step.detail = "" if label else "(nothing to change)"
    outputs = {output["OutputKey"]: output["OutputValue"] for output in stack["Outputs"]}
    outputs["ApiUrl"] = local_url(outputs["ApiUrl"], endpoint)
    for key in [key for key in outputs if key.endswith("Url") and key != "ApiUrl"]:
        outputs[key] = _reachable(outputs[key], endpoint)
    outputs.update(StackName=name, Endpoint=endpoint, Region=REGION)
    state.write("outputs.json", {**state.read("outputs.json", {}), name: outputs})
    return outputs


def store_secret(state, name, text):
    """Stores a secret, or its new text."""
    secrets = client("secretsmanager", server.endpoint(state))
    try:
        secrets.create_secret(Name=name, SecretString=text)
    except secrets.exceptions.ResourceExistsException:
        secrets.put_secret_value(SecretId=name, SecretString=text)


def undeploy(state, name, endpoint=None):
    """Deletes the stack, and the table that a deleted stack leaves behind (this is a test world)."""
    endpoint = endpoint or server.endpoint(state)
    cloudformation, dynamodb = client("cloudformation", endpoint), client("dynamodb", endpoint)
    with Step(f"deleting stack {name}"):
        if _describe(cloudformation, name):
            cloudformation.delete_stack(StackName=name)
            for _ in _looks(f"the deletion of stack {name}"):
                stack = _describe(cloudformation, name)
                if not stack or stack["StackStatus"] == "DELETE_COMPLETE":
                    break
                if stack["StackStatus"] == "DELETE_FAILED":
                    raise Problem(f"stack {name} could not be deleted:\n{_failure(cloudformation, name)}")
        if name in dynamodb.list_tables()["TableNames"]:
            dynamodb.update_table(TableName=name, DeletionProtectionEnabled=False)
            dynamodb.delete_table(TableName=name)
        _delete_boundary(name, endpoint)
    state.write("outputs.json", {key: value for key, value in state.read("outputs.json", {}).items() if key != name})


def outputs(state, name=None):
    """The outputs of one deployed stack; the only one if no name is given."""
    stacks = state.read("outputs.json", {})
    if name is None and len(stacks) == 1:
        name = next(iter(stacks))
    if name not in stacks:
        there = f"there are {', '.join(sorted(stacks))}" if stacks else "nothing is deployed: run `make up`"
        raise Problem(f"no stack {name or '(none named)'} in {state.dir}: {there}")
    return stacks[name]


def _listens(endpoint):
    at = urlsplit(endpoint)
    try:
        with socket.create_connection((at.hostname, at.port or {"http": 80, "https": 443}[at.scheme]), timeout=2):
            return True
    except OSError:
        return False


def environment(state, name=None):
    """What a shell, an executor or a test needs to use the stack."""
    out = outputs(state, name)
    # The outputs outlive the cloud, and a shell with them would ask what is not there.
    if not _listens(out["Endpoint"]):
        raise Problem(f"the stack {out['StackName']} is down: nothing answers at {out['Endpoint']}; start it with `make up`")
    return {
        "KEELWAY_API": out["ApiUrl"], "KEELWAY_TOKEN": server.token(state), "KEELWAY_BUS": out["BusName"],
        "KEELWAY_INSTALLATION": out.get("Installation", ""), "KEELWAY_TABLE": out["TableName"], "KEELWAY_SEQUENCES_QUEUE_URL": out["QueueUrl"],
        "AWS_ENDPOINT_URL": out["Endpoint"], "AWS_REGION": REGION, "AWS_DEFAULT_REGION": REGION, **CREDENTIALS,
    }


def _quoted_inside(text):
    """Text as it stands between a shell's double quotes."""
    return re.sub(r'([\\"$`])', r"\\\1", text)


def exports(state, name=None):
    """What a shell evaluates: the variables, and a PATH on which the build's `keelway` comes first."""
    lines = [f"export {key}={shlex.quote(value)}" for key, value in environment(state, name).items()]
    target = Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target").resolve()
    return "\n".join([*lines, f'export PATH="{_quoted_inside(str(target / "debug"))}:$PATH"'])


def logs(state, function, seconds, name=None):
    """Prints what the functions logged, oldest first; `function` is a package name without `keelway-`, or all."""
    out = outputs(state, name)
    reader = client("logs", out["Endpoint"])
    kinds = [function] if function else ["api", "sequences", "sweep", "dead-letters"]
    since = int((time.time() - seconds) * 1000)
    lines = []
    for kind in kinds:
        pages = reader.get_paginator("filter_log_events").paginate(
            logGroupName=f"/aws/lambda/{out['StackName']}-{kind}", startTime=since)
        try:
            lines += [(event["timestamp"], kind, event["message"]) for page in pages for event in page["events"]]
        except reader.exceptions.ResourceNotFoundException:
            say(f"{kind} has logged nothing yet")
    for _, kind, message in sorted(lines, key=lambda line: line[0]):
        print(f"{kind}: {message.rstrip()}")
