"""Deploys infra/template.yaml into an endpoint, as CloudFormation does it on AWS: code in a bucket, a change set."""

import concurrent.futures
import copy
import hashlib
import io
import ipaddress
import json
import os
import re
import shlex
import socket
import subprocess
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


def _stripped(binary):
    """The binary without debug information, a quarter of its size. Unchanged if no `strip` supports it."""
    with tempfile.TemporaryDirectory() as directory:
        smaller = Path(directory) / "bootstrap"
        try:
            done = subprocess.run(["strip", "--strip-debug", "-o", str(smaller), str(binary)], capture_output=True)
            return smaller.read_bytes() if done.returncode == 0 else binary.read_bytes()
        except OSError:
            return binary.read_bytes()


def _package(directory, name):
    """The zip of a function, from a plain binary (<name>) or a finished package (<name>/bootstrap.zip)."""
    ready, binary = Path(directory) / name / "bootstrap.zip", Path(directory) / name
    if ready.is_file():
        return ready.read_bytes()
    if not binary.is_file():
        raise Problem(f"there is no function {name} in {directory}: build it with `cargo build --workspace "
                      f"--bins --tests` (or `make package`)")
    buffer = io.BytesIO()
    # A fixed date, so that the same binary gives the same zip. Level 1, because the copy stays on the same disk.
    info = zipfile.ZipInfo("bootstrap", (2020, 1, 1, 0, 0, 0))
    info.external_attr = 0o755 << 16
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(info, _stripped(binary), zipfile.ZIP_DEFLATED, 1)
    return buffer.getvalue()


def _fingerprint(directory, name):
    for path in (Path(directory) / name / "bootstrap.zip", Path(directory) / name):
        if path.is_file():
            status = path.stat()
            return [str(path), status.st_size, status.st_mtime_ns]
    return None


def _upload(s3, bucket, directory, names, state, step):
    """{package: key in the bucket}. Unchanged binaries are not packaged again, and packages in the bucket are not sent again."""
    known = state.read("uploads.json", {})
    step.detail = "(packages)"

    def upload(name):
        mark = _fingerprint(directory, name)
        kept, old = state.path(f"packages/{name}.zip"), known.get(name)
        if not (mark and old and old["mark"] == mark and kept.is_file()):
            body = _package(directory, name)
            kept.parent.mkdir(exist_ok=True)
            kept.write_bytes(body)
            old = {"mark": mark, "key": f"functions/{name}/{hashlib.sha256(body).hexdigest()}.zip"}
        if not _exists(s3, bucket, old["key"]):
            s3.put_object(Bucket=bucket, Key=old["key"], Body=kept.read_bytes())
        return name, old

    # Other processes strip and compress: a few at a time, to limit the memory.
    with concurrent.futures.ThreadPoolExecutor(max_workers=4) as pool:
        uploaded = dict(pool.map(upload, dict.fromkeys(names)))
    state.write("uploads.json", {**known, **uploaded})
    return {name: one["key"] for name, one in uploaded.items()}


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


def _change_set(cloudformation, name, url, parameters, exists):
    """Makes the change set; None if there is nothing to change."""
    label = f"keelway-{time.time_ns()}"
    cloudformation.create_change_set(
        StackName=name, ChangeSetName=label, ChangeSetType="UPDATE" if exists else "CREATE", TemplateURL=url,
        Capabilities=CAPABILITIES,
        Parameters=[{"ParameterKey": key, "ParameterValue": value} for key, value in sorted(parameters.items())])
    while True:
        made = cloudformation.describe_change_set(StackName=name, ChangeSetName=label)
        if made["Status"] == "CREATE_COMPLETE":
            return label
        if made["Status"] == "FAILED":
            reason = made.get("StatusReason", "")
            cloudformation.delete_change_set(StackName=name, ChangeSetName=label)
            if "didn't contain changes" in reason or "No updates" in reason:
                return None
            raise Problem(f"the change set of stack {name} was refused: {reason}")
        time.sleep(0.1)


def _execute(cloudformation, name, label):
    cloudformation.execute_change_set(StackName=name, ChangeSetName=label)
    while True:
        stack = _describe(cloudformation, name)
        status = stack["StackStatus"] if stack else "DELETE_COMPLETE"
        if status in ("CREATE_COMPLETE", "UPDATE_COMPLETE"):
            return stack
        if not status.endswith("_IN_PROGRESS") or status == "REVIEW_IN_PROGRESS":
            raise Problem(f"the deployment of stack {name} ended as {status}; undeploy it, mend the cause and try "
                          f"again:\n{_failure(cloudformation, name)}")
        time.sleep(0.1)


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
        keys = _upload(s3, bucket, functions, template_file.functions(template).values(), state, step)
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
            while (stack := _describe(cloudformation, name)) and stack["StackStatus"] != "DELETE_COMPLETE":
                if stack["StackStatus"] == "DELETE_FAILED":
                    raise Problem(f"stack {name} could not be deleted:\n{_failure(cloudformation, name)}")
                time.sleep(0.1)
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
