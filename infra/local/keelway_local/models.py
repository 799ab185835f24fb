"""Runs inside the local cloud: checks the requests of the functions, and the answers, with the service models of AWS.

The models are those of botocore, from which the SDKs are made: which members a request has, which of them it must have, their
types, lengths, patterns and values. Each finding is kept with the function, the operation, the place in the request or the answer,
and what is wrong there.
"""

import json
import os
import re
from datetime import datetime
from urllib.parse import unquote

from .counted import Counted
from .shapes import Shapes, wire_name

# The services that functions use, with their names in botocore. Any other service is a finding.
SERVICES = ("dynamodb", "sqs", "events", "scheduler", "secretsmanager", "lambda", "ecs", "codebuild", "ecr", "monitoring")
# Those that botocore calls otherwise than their requests do.
MODELS = {"monitoring": "cloudwatch"}
# Errors of all operations, which their models do not list.
COMMON = {
    "AccessDeniedException", "AccessDenied", "ValidationException", "ValidationError", "ThrottlingException", "SerializationException",
    "UnrecognizedClientException", "ExpiredTokenException", "InternalFailure", "ServiceUnavailable", "InvalidParameterValue",
}


def _without_empty(part, *names):
    for name in names:
        if not part.get(name):
            part.pop(name, None)


def _lambda(answer):
    # AWS returns the image of a function with its code, not with its configuration.
    answer.pop("ImageUri", None)
    if answer.get("StateReasonCode") == "Updating":
        del answer["StateReasonCode"]
    if not (answer.get("RuntimeVersionConfig") or {}).get("RuntimeVersionArn"):
        answer.pop("RuntimeVersionConfig", None)
    _without_empty(answer, "StateReasonCode", "LastUpdateStatusReasonCode")


def _ecs(answer):
    for task in [*answer.get("tasks", ()), answer.get("task")]:
        _without_empty(task or {}, "stopCode")


def _codebuild(answer):
    for build in [*answer.get("builds", ()), answer.get("build")]:
        _without_empty(build or {}, "sourceVersion")
        # The artifacts of a project have a type, those of a build do not.
        ((build or {}).get("artifacts") or {}).pop("type", None)


def _cloudwatch(answer):
    # In AWS's JSON protocol, times are seconds since 1970.
    for result in answer.get("MetricDataResults", ()):
        result["Timestamps"] = [_seconds(at) for at in result.get("Timestamps", ())]


def _seconds(at):
    return datetime.fromisoformat(at).timestamp() if isinstance(at, str) else at


# Members of the emulator's answers that AWS leaves out, or writes in another way.
MENDS = {"lambda": _lambda, "ecs": _ecs, "codebuild": _codebuild, "monitoring": _cloudwatch}


class Operation:
    """One operation of a service, with the checks of its parts."""

    def __init__(self, model, of_requests, of_answers):
        self.name, self._status = model.name, model.http.get("responseCode", 200)
        self._input, self._output = self._parts(model.input_shape, of_requests), self._parts(model.output_shape, of_answers)
        self.errors = {}
        for shape in model.error_shapes:
            error = shape.metadata.get("error", {})
            check = of_answers.structure(shape, [name for name in shape.members if name.lower() not in ("message", "type")])
            self.errors[error.get("code", shape.name)] = self.errors[shape.name] = (error.get("httpStatusCode"), check)

    @staticmethod
    def _parts(shape, shapes):
        """(check of the body, checks of the other parts by place). A body of raw bytes has no check."""
        if shape is None:
            return None
        places, body = {}, []
        for name, member in shape.members.items():
            place = member.serialization.get("location", "body")
            if place == "body":
                body.append(name)
            else:
                required = name in shape.required_members
                places.setdefault(place, {})[wire_name(name, member)] = (shapes.check(member), required, member.type_name)
        payload = shape.serialization.get("payload")
        if payload:
            inner = shape.members[payload]
            return (None if inner.type_name == "blob" else shapes.check(inner)), places
        return shapes.structure(shape, body), places

    def request(self, body, labels, query, tell):
        """Checks a request: body, path parameters and query."""
        if self._input is None:
            return
        check, places = self._input
        # Numbers and lists in a query are text, so only the names of the members are checked.
        _elsewhere(places.get("uri", {}), labels, "path", tell)
        _elsewhere(places.get("querystring", {}), query, "query", tell)
        if check:
            check(_json(body, tell), "", tell)

    def answer(self, status, headers, body, tell):
        """Checks an answer, or an error."""
        if status >= 300:
            return self._error(status, headers, body, tell)
        # The status of an invocation depends on its type.
        if status != self._status and self.name != "Invoke":
            tell("", f"status {status} and not {self._status}")
        if self._output and self._output[0]:
            check = self._output[0]
            check(_without_nulls(_json(body, tell)), "", tell)

    def _error(self, status, headers, body, tell):
        answer = _json(body, tell)
        if not isinstance(answer, dict):
            return tell("", "an error that is no structure")
        named = headers.get("x-amzn-errortype") or answer.get("__type") or answer.get("code") or ""
        name = named.split(":")[0].split("#")[-1]
        if name in self.errors:
            wanted, check = self.errors[name]
            if wanted and status != wanted:
                tell("", f"{name} with status {status} and not {wanted}")
            known = {key: part for key, part in answer.items() if key.lower() not in ("message", "__type", "type", "code")}
            check(_without_nulls(known), f"{name}", tell)
        elif name not in COMMON:
            tell("", f"the model has no error {name or 'without a name'}")


def _elsewhere(checks, values, place, tell):
    for name, value in values.items():
        check, _, kind = checks.get(name, (None, False, ""))
        if check is None:
            tell(f"{place}.{name}", "the model has no such member")
        elif kind == "string":
            check(value, f"{place}.{name}", tell)
    for name, (_, required, _) in checks.items():
        if required and name not in values:
            tell(f"{place}.{name}", "missing")


def _json(body, tell):
    try:
        return json.loads(body or b"{}")
    except ValueError:
        tell("", "not JSON")
        return {}


def _without_nulls(value):
    """An answer as SDKs read it: null means absent."""
    if isinstance(value, dict):
        return {name: _without_nulls(part) for name, part in value.items() if part is not None}
    return [_without_nulls(part) for part in value] if isinstance(value, list) else value


def _mended(service, path, answer):
    if service not in MENDS:
        return answer
    status, headers, body = answer
    if status >= 300 or path.endswith("/invocations") or not isinstance(body, (bytes, str)):
        return answer
    try:
        parsed = json.loads(body)
    except ValueError:
        return answer
    if isinstance(parsed, dict):
        MENDS[service](parsed)
    return status, {name: value for name, value in headers.items() if name.lower() != "content-length"}, json.dumps(parsed).encode()


LABEL = re.compile(r"(\{[^}]+\})")


def _route(part):
    """The pattern of a part of a path: `{Name}` is one step of it, and `{Name+}` any number."""
    if not part.startswith("{"):
        return re.escape(part)
    return f"(?P<{part[1:-2]}>.+)" if part.endswith("+}") else f"(?P<{part[1:-1]}>[^/]+)"


class Service:
    """A service's operations: by the header that names one, or by method and path."""

    def __init__(self, name):
        from botocore.loaders import Loader
        from botocore.model import ServiceModel

        name = MODELS.get(name, name)
        self.model = ServiceModel(Loader().load_service_model(name, "service-2"), name)
        self._shapes, self._made, self._routes = (Shapes(), Shapes(of_answers=True)), {}, []
        self.prefix = self.model.metadata.get("targetPrefix")
        self.content = f"application/x-amz-json-{self.model.metadata.get('jsonVersion')}" if self.prefix else "application/json"
        if not self.prefix:
            for operation in self.model.operation_names:
                http = self.model.operation_model(operation).http
                path = http["requestUri"].partition("?")[0]
                self._routes.append((http["method"], re.compile(f"{''.join(map(_route, re.split(LABEL, path)))}/?"), operation))

    def find(self, method, path, headers):
        """(the operation, its path parameters). The operation is None if the model does not have it."""
        if self.prefix:
            prefix, _, name = headers.get("x-amz-target", "").rpartition(".")
            return (self._operation(name) if prefix == self.prefix and name in self.model.operation_names else None), {}
        for wanted, pattern, name in self._routes:
            if wanted == method and (found := pattern.fullmatch(path)):
                return self._operation(name), {label: unquote(value) for label, value in found.groupdict().items()}
        return None, {}

    def _operation(self, name):
        if name not in self._made:
            self._made[name] = Operation(self.model.operation_model(name), *self._shapes)
        return self._made[name]


class Checker:
    """Checks the requests of roles. Other requests are ignored."""

    def __init__(self, directory):
        self._services = {}
        self._checked = Counted(os.path.join(directory, "checked.json"), "function", "role", "service", "operation")
        self._found = Counted(os.path.join(directory, "findings.json"),
                              "function", "role", "service", "operation", "kind", "path", "what")

    def check(self, session_arn, service, request, answer):
        """`request`: (method, path, headers, body, query); `answer`: (status, headers, body). An exception in a check is a
        finding, too."""
        try:
            self._check(session_arn, service, request, answer)
        except Exception as error:  # noqa: BLE001
            self._found.note("", session_arn.partition(":assumed-role/")[2].partition("/")[0], service, request[1], "check", "", repr(error))

    def _check(self, session_arn, service, request, answer):
        role, _, session = session_arn.partition(":assumed-role/")[2].partition("/")
        method, path, headers, body, query = request
        operation, kind = None, "request"

        def tell(place, what):
            self._found.note(session, role, service, operation.name if operation else f"{method} {path}", kind, place.lstrip("."), what)

        if service not in SERVICES:
            return tell("", "no model of this service is known here")
        if service not in self._services:
            self._services[service] = Service(service)
        known = self._services[service]
        operation, labels = known.find(method, path, headers)
        if operation is None:
            return tell("", f"the model has no such operation {headers.get('x-amz-target', '')}".rstrip())
        self._checked.note(session, role, service, operation.name)
        if body and headers.get("content-type", "").split(";")[0] != known.content and operation.name != "Invoke":
            tell("", f"content type {headers.get('content-type')} and not {known.content}")
        operation.request(body, labels, {name: values[0] for name, values in (query or {}).items()}, tell)
        kind = "answer"
        status, answered, text = answer
        operation.answer(status, {name.lower(): value for name, value in answered.items()}, text, tell)


def install(directory):
    """Begins to check the requests and answers of the emulator's services."""
    from ministack import app
    from ministack.core.router import extract_access_key_id
    from ministack.services import sts

    checker = Checker(directory)

    def checked(service, handler):
        async def handle(method, path, headers, body, query):
            answer = _mended(service, path, await handler(method, path, headers, body, query))
            key = extract_access_key_id(headers, query)
            session = str((sts._sessions.get(key) or {}).get("Arn", "")) if key else ""
            if ":assumed-role/" in session and isinstance(answer[2], (bytes, str)):
                checker.check(session, service, (method, path, headers, body, query), answer)
            return answer

        return handle

    app.SERVICE_HANDLERS.update({service: checked(service, handler) for service, handler in list(app.SERVICE_HANDLERS.items())})


def summary(checked, findings, stack=None):
    """{checked, findings} of a stack's functions, or of every role."""
    def of_stack(rows):
        return [row for row in rows if not stack or re.match(rf"{re.escape(stack)}-[A-Za-z]+Role-", row["role"])]

    return {"checked": of_stack(checked), "findings": of_stack(findings)}
