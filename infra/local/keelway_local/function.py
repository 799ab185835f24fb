"""Functions that examples deploy: versions of a Python module, an alias and its URL; and packages of code in S3."""

import hashlib
import io
import json
import zipfile

from . import server
from .stack import client, local_url

# The role of these functions, without permissions.
ROLE = "keelway-example"


def _package(path):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        # Without times, so that the same module gives the same package and digest.
        archive.writestr(zipfile.ZipInfo("main.py"), path.read_text())
    return buffer.getvalue()


def _role(endpoint):
    iam = client("iam", endpoint)
    trust = {"Version": "2012-10-17", "Statement": [
        {"Effect": "Allow", "Principal": {"Service": "lambda.amazonaws.com"}, "Action": "sts:AssumeRole"}]}
    try:
        return iam.create_role(RoleName=ROLE, AssumeRolePolicyDocument=json.dumps(trust))["Role"]["Arn"]
    except iam.exceptions.EntityAlreadyExistsException:
        return iam.get_role(RoleName=ROLE)["Role"]["Arn"]


def _version(service, name, path, role, variables):
    """Publishes a module as a version; returns its ARN."""
    code = _package(path)
    try:
        made = service.update_function_code(FunctionName=name, ZipFile=code, Publish=True)
    except service.exceptions.ResourceNotFoundException:
        made = service.create_function(FunctionName=name, Runtime="python3.12", Handler="main.handler", Role=role, Publish=True,
                                       Code={"ZipFile": code}, Environment={"Variables": variables}, Timeout=30)
    return ":".join([*made["FunctionArn"].split(":")[:7], made["Version"]])


def publish(state, name, paths, alias=None, variables=None):
    """{"versions": their ARNs, "url": the URL of the alias}"""
    endpoint = server.endpoint(state)
    service = client("lambda", endpoint)
    role = _role(endpoint)
    versions = [_version(service, name, path, role, variables or {}) for path in paths]
    if not alias:
        return {"versions": versions}
    try:
        service.create_alias(FunctionName=name, Name=alias, FunctionVersion=versions[0].rpartition(":")[2])
        made = service.create_function_url_config(FunctionName=name, Qualifier=alias, AuthType="NONE")
    except service.exceptions.ResourceConflictException:
        made = service.get_function_url_config(FunctionName=name, Qualifier=alias)
    return {"versions": versions, "url": f"{local_url(made['FunctionUrl'], endpoint)}/"}


def package(state, bucket, paths):
    """Puts each module as a package into a bucket, under its file's name. [{"image", "version", "digest"}]"""
    service = client("s3", server.endpoint(state))
    service.create_bucket(Bucket=bucket)
    service.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})

    def put(path):
        code, key = _package(path), f"{path.stem}.zip"
        made = service.put_object(Bucket=bucket, Key=key, Body=code)
        return {"image": f"s3://{bucket}/{key}", "version": made["VersionId"], "digest": f"sha256:{hashlib.sha256(code).hexdigest()}"}

    return [put(path) for path in paths]
