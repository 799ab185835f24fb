"""Runs inside the local cloud: records which role has requested which action, and corrects differences between the emulator and
AWS.

The emulator checks every signed request in one function. It is wrapped here, at start, by replacing module attributes;
the installed package is not changed. On top of what it checks:

* numbers from parameters are numbers, and a new schedule is checked as one of its own group;
* a role that a stack makes keeps its permissions boundary, which the emulator would forget;
* requests about aliases, tasks and builds are checked under the action and the resource that AWS checks;
* an invocation's log lines are logged with that invocation, however busy the machine is;
* a function that a rule starts is started again if it fails;
* a page of a query ends with the item that reaches 1 MB;
* a batch call needs the permission of the single call (sqs:SendMessageBatch is allowed by sqs:SendMessage), as on AWS;
* what a service does in a role's name is evaluated too and noted as `implied`: Lambda's poller reading and deleting
  messages, the function's log lines, iam:PassRole of a schedule's role, the scheduler's sending, Lambda's reading of a
  package of code. AWS refuses these
  without permission; the emulator does them anyway, so a missing permission shows under `denied` only.
"""

import functools
import json
import os
import re
import select
import threading
import time

from .counted import Counted

SINGLE = {
    "sqs:SendMessageBatch": "sqs:SendMessage",
    "sqs:DeleteMessageBatch": "sqs:DeleteMessage",
    "sqs:ChangeMessageVisibilityBatch": "sqs:ChangeMessageVisibility",
}


class Recorder:
    """Counts the actions of each role session: allowed, denied, or implied by another request."""

    def __init__(self, path):
        self._rows = Counted(path, "function", "role", "action", "resource", "verdict")

    def note(self, session_arn, action, resource, verdict):
        """`verdict`: allowed, denied or implied. Only role sessions are counted."""
        if ":assumed-role/" not in session_arn:
            return
        role, _, session = session_arn.partition(":assumed-role/")[2].partition("/")
        self._rows.note(session or role, role, action, resource, verdict)


def _session_arn(access_key):
    from ministack.services import sts

    return str((sts._sessions.get(access_key) or {}).get("Arn", ""))


def _wrap_requests(recorder):
    from ministack.core import iam_evaluator as iam

    inner = iam.enforce

    def enforce(access_key_id, iam_action, service, region, resource_arn="*", service_context=None):
        action = SINGLE.get(iam_action, iam_action)
        result = inner(access_key_id, action, service, region, resource_arn=resource_arn,
                       service_context=service_context)
        session = _session_arn(access_key_id or "")
        if session and not isinstance(result, iam.AuthError):
            recorder.note(session, action, resource_arn, "denied" if result is not None else "allowed")
        return result

    iam.enforce = enforce


_asked = {}


def _evaluate(recorder, role_arn, session, action, resource, keys=None):
    """Records an action that a service performs with the role, after a check of the role's policies (every 5 s at most)."""
    from ministack.core import iam_evaluator as iam

    asked = (role_arn, session, action, resource)
    if _asked.get(asked, 0) > time.monotonic() - 5:
        return
    _asked[asked] = time.monotonic()
    account, role = role_arn.split(":")[4], role_arn.rsplit("/", 1)[-1]
    arn = f"arn:aws:sts::{account}:assumed-role/{role}/{session}"
    context = iam.EvalContext(
        principal_arn=arn, principal_type="AssumedRole", principal_account=account, action=action,
        resource_arn=resource, region=resource.split(":")[3],
        service_context={key.lower(): value for key, value in (keys or {}).items()})
    from ministack.services import iam as roles

    bounds = iam._permissions_boundary(roles._roles, role, account)
    verdict = iam.evaluate(context, iam._gather_role_policies(role, account), *bounds)
    recorder.note(arn, action, resource, "implied" if verdict.decision == "Allow" else "denied")


def _evaluate_as_caller(recorder, action, resource, keys=None):
    """The same for the role that sent the request. Requests of people are ignored."""
    from ministack.core import iam_evaluator as iam

    caller = iam.caller_arn()
    if ":assumed-role/" in caller:
        account, rest = caller.split(":")[4], caller.partition(":assumed-role/")[2]
        role, _, session = rest.partition("/")
        _evaluate(recorder, f"arn:aws:iam::{account}:role/{role}", session, action, resource, keys)


def _tell_where_from(records, messages):
    """AWS tells a function from which queue SQS has moved a dead letter. The emulator has this, but does not pass it on."""
    sources = {message["id"]: (message.get("sys") or {}).get("DeadLetterQueueSourceArn") for message in messages}
    for record in records:
        if source := sources.get(record["messageId"]):
            record["attributes"]["DeadLetterQueueSourceArn"] = source


def _wrap_lambda(recorder):
    from ministack.services import lambda_svc

    run_batch, execute = lambda_svc._run_sqs_batch, lambda_svc._execute_function

    def batch(esm, func_rec, event, messages, *rest):
        _tell_where_from(event["Records"], messages)
        config = func_rec.get("config") or func_rec
        for action in ("sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"):
            _evaluate(recorder, config["Role"], config["FunctionName"], action, esm["EventSourceArn"])
        return run_batch(esm, func_rec, event, messages, *rest)

    def invoke(func, *rest, **named):
        config = func.get("config") or func
        account, region = config["FunctionArn"].split(":")[4], config["FunctionArn"].split(":")[3]
        group = (config.get("LoggingConfig") or {}).get("LogGroup") or f"/aws/lambda/{config['FunctionName']}"
        for action in ("logs:CreateLogStream", "logs:PutLogEvents"):
            _evaluate(recorder, config["Role"], config["FunctionName"], action,
                      f"arn:aws:logs:{region}:{account}:log-group:{group}:log-stream:local")
        return execute(func, *rest, **named)

    lambda_svc._run_sqs_batch, lambda_svc._execute_function = batch, invoke


def _mend_schedule_group():
    """The emulator checks a new schedule as one of the group `default`, whatever group the request names."""
    from ministack.core import iam_actions

    inner = iam_actions.extract_resource_arn

    def extract(service, method, path, headers, body, *rest):
        arn = inner(service, method, path, headers, body, *rest)
        if service == "scheduler" and ":schedule/default/" in arn and body:
            group = json.loads(body).get("GroupName") or "default"
            arn = arn.replace(":schedule/default/", f":schedule/{group}/")
        return arn

    iam_actions.extract_resource_arn = extract


def _alias_action(method, path):
    """The action of a request about one alias; None for any other request."""
    parts = [part for part in path.split("/") if part]
    if parts[-2:-1] != ["aliases"]:
        return None
    return {"GET": "GetAlias", "PUT": "UpdateAlias", "DELETE": "DeleteAlias"}.get(method)


def _task_or_build(service, data, region, account):
    """The resource that AWS checks a request to ECS or CodeBuild with; None if the emulator's is the same."""
    if service == "ecs":
        named = data.get("taskDefinition") or data.get("task") or (data.get("tasks") or [None])[0]
        if not named or named.startswith("arn:"):
            return named
        kind = "task-definition" if "taskDefinition" in data else f"task/{data.get('cluster', 'default')}"
        return f"arn:aws:ecs:{region}:{account}:{kind}/{named}"
    build = data.get("id") or (data.get("ids") or [None])[0]
    return build and f"arn:aws:codebuild:{region}:{account}:project/{build.split(':')[0]}"


def _mend_deployers():
    """The emulator checks every request about an alias as ListAliases, and every request about a version as one about its function.
    It checks tasks by their cluster, for which AWS has a condition key, and builds without their project."""
    from ministack.core import iam_actions

    action, resource, context = (
        iam_actions._lambda_action, iam_actions.extract_resource_arn, iam_actions.request_tag_context)

    def extract(service, method, path, headers, body, query, region, account):
        arn = resource(service, method, path, headers, body, query, region, account)
        qualifier = (query or {}).get("Qualifier")
        if service == "lambda" and qualifier:
            return f"{arn}:{qualifier[0] if isinstance(qualifier, list) else qualifier}"
        if service in ("ecs", "codebuild"):
            return _task_or_build(service, json.loads(body or b"{}"), region, account) or arn
        return arn

    def keys(service, iam_action, body, params):
        found = context(service, iam_action, body, params)
        cluster = json.loads(body or b"{}").get("cluster") if service == "ecs" else None
        if cluster:
            from ministack.core.responses import get_account_id, get_region

            named = cluster.startswith("arn:")
            arn = cluster if named else f"arn:aws:ecs:{get_region()}:{get_account_id()}:cluster/{cluster}"
            return {**found, "ecs:cluster": arn}
        return found

    iam_actions._lambda_action = lambda method, path: _alias_action(method, path) or action(method, path)
    iam_actions.extract_resource_arn, iam_actions.request_tag_context = extract, keys


def _mend_boundaries():
    """The emulator applies a permissions boundary, but ignores it when a stack creates or changes the role."""
    from ministack.services import iam
    from ministack.services.cloudformation import provisioners

    handlers = provisioners._RESOURCE_HANDLERS["AWS::IAM::Role"]
    create, update = handlers["create"], handlers["update"]

    def bounded(made, properties):
        iam._roles[made[0]]["PermissionsBoundary"] = properties.get("PermissionsBoundary")
        return made

    def create_role(logical, properties, *rest):
        return bounded(create(logical, properties, *rest), properties)

    def update_role(physical, old, properties, *rest, **named):
        return bounded(update(physical, old, properties, *rest, **named), properties)

    handlers.update(create=create_role, update=update_role)


def _remember_policies():
    """The emulator parses each policy of a role anew for each request of the role; here once for each text."""
    from ministack.core import iam_evaluator as iam

    parse = iam.parse_policy_document
    parse_text = functools.lru_cache(maxsize=1024)(parse)
    iam.parse_policy_document = lambda document: parse_text(document) if isinstance(document, str) else parse(document)


def _mend_numbers():
    """A number from a parameter of the template reaches the emulator's poller as text, which stops the poller for ever."""
    from ministack.services import lambda_svc

    inner = lambda_svc._sqs_esm_concurrency

    def concurrency(esm, *rest):
        for holder, key in ((esm, "BatchSize"), (esm.get("ScalingConfig") or {}, "MaximumConcurrency")):
            if isinstance(holder.get(key), str):
                holder[key] = int(holder[key])
        return inner(esm, *rest)

    lambda_svc._sqs_esm_concurrency = concurrency


def _mend_rules():
    """The emulator repeats an asynchronous invocation that failed, but not if a rule asked for it."""
    from ministack.services import eventbridge, lambda_svc

    def dispatch(arn, payload):
        function, config, _ = lambda_svc._get_func_record_for_ref(arn)
        if function and config:
            lambda_svc.invoke_async_with_retry(lambda_svc._execution_record_for_config(function, config), json.loads(payload))

    eventbridge._dispatch_to_lambda = dispatch


def _wrap_scheduler(recorder):
    from ministack.services import eventbridge, scheduler

    create, send = scheduler._create_schedule, eventbridge._invoke_target

    def create_schedule(name, body):
        if role := (body.get("Target") or {}).get("RoleArn"):
            _evaluate_as_caller(recorder, "iam:PassRole", role, {"iam:PassedToService": "scheduler.amazonaws.com"})
        return create(name, body)

    def invoke_target(target, event, rule, *rest, **named):
        if event.get("Source") == "aws.scheduler" and target.get("RoleArn") and ":sqs:" in target.get("Arn", ""):
            _evaluate(recorder, target["RoleArn"], "scheduler", "sqs:SendMessage", target["Arn"])
        return send(target, event, rule, *rest, **named)

    scheduler._create_schedule, eventbridge._invoke_target = create_schedule, invoke_target


def _wrap_tasks(recorder):
    """The caller of RunTask passes the roles of the task definition to ECS."""
    from ministack.services import ecs

    run = ecs._ACTION_MAP["RunTask"]

    def run_task(data):
        definition = ecs._task_defs.get(ecs._resolve_td_key(data.get("taskDefinition", ""))) or {}
        for role in filter(None, (definition.get("taskRoleArn"), definition.get("executionRoleArn"))):
            _evaluate_as_caller(recorder, "iam:PassRole", role, {"iam:PassedToService": "ecs-tasks.amazonaws.com"})
        return run(data)

    ecs._ACTION_MAP["RunTask"] = run_task


def _wrap_packages(recorder):
    """Lambda reads a package of code with the permissions of the caller that updates a function."""
    from ministack.services import lambda_svc

    update = lambda_svc._update_code

    def update_code(name, data):
        if "S3Bucket" in data:
            action = "s3:GetObjectVersion" if "S3ObjectVersion" in data else "s3:GetObject"
            _evaluate_as_caller(recorder, action, f"arn:aws:s3:::{data['S3Bucket']}/{data['S3Key']}")
        return update(name, data)

    lambda_svc._update_code = update_code


class _Output:
    """The output of a function's process in lines, which is read by a thread (so that the pipe does not fill) and at each
    answer."""

    def __init__(self, stream, lines):
        self._stream, self._lines, self._rest, self._lock = stream, lines, b"", threading.Lock()

    def read(self, wait_millis):
        """Queues the available lines; returns whether to continue."""
        ready = select.poll()
        ready.register(self._stream, select.POLLIN)
        if wait_millis and not ready.poll(wait_millis):
            return True
        with self._lock:
            # The other reader may have been faster; then its lines are queued by now.
            if not ready.poll(0):
                return wait_millis > 0
            chunk = os.read(self._stream.fileno(), 65536)
            *whole, self._rest = (self._rest + chunk).split(b"\n")
            for line in whole:
                if not self._lines.full():
                    self._lines.put_nowait(line.decode(errors="replace"))
            return bool(chunk)


def _mend_logs():
    """The emulator waits 5 to 50 ms for the lines of an invocation; later lines would belong to the next invocation, or to none.

    A function has printed its lines when it answers, so at the answer they are in its pipe and need no waiting.
    """
    from ministack.core import lambda_runtime

    making = threading.Lock()

    def output(stream, lines):
        with making:
            if not hasattr(lines, "keelway_output"):
                lines.keelway_output = _Output(stream, lines)
            return lines.keelway_output

    def pump(_, stream, lines):
        try:
            while output(stream, lines).read(wait_millis=1000):
                pass
        finally:
            stream.close()

    def drain(worker, **_):
        try:
            while worker._proc and output(worker._proc.stdout, worker._stderr_queue).read(wait_millis=0):
                pass
        except (OSError, ValueError):
            # The process has ended. Its output is in the queue.
            pass
        return worker._drain_stderr()

    lambda_runtime.ProvidedWorker._pump_output = pump
    lambda_runtime.ProvidedWorker._drain_stderr_bounded = drain


def _mend_pages():
    """The emulator ends a page before the item with which it exceeds 1 MB. AWS ends it after that item."""
    from ministack.services import dynamodb

    def page(items, limit, table, index_name=None):
        taken, size = [], 0
        for item in items:
            taken.append(item)
            size += dynamodb._item_size_bytes(dynamodb._apply_index_projection(item, table, index_name) if index_name else item)
            if (limit is not None and len(taken) >= int(limit)) or size >= dynamodb._DDB_PAGE_SIZE_BYTES:
                return taken, True
        return taken, False

    dynamodb._paginate_evaluated_items = page


def install(path):
    """Begins to record to the file `path`."""
    recorder = Recorder(path)
    _wrap_requests(recorder)
    _wrap_lambda(recorder)
    _wrap_scheduler(recorder)
    _wrap_tasks(recorder)
    _wrap_packages(recorder)
    _mend_schedule_group()
    _mend_deployers()
    _mend_boundaries()
    _mend_numbers()
    _remember_policies()
    _mend_rules()
    _mend_logs()
    _mend_pages()


def summary(rows, stack=None):
    """{function: {role, allowed, implied, denied: {action: {resource: count}}}} of recorded rows.

    With a stack's name only its functions, named as their packages are, so that they compare with what the template
    allows.
    """
    result = {}
    for row in rows:
        if stack:
            if not re.match(rf"{re.escape(stack)}-[A-Za-z]+Role-", row["role"]):
                continue
            row = {**row, "function": row["function"].replace(f"{stack}-", "keelway-", 1)}
        entry = result.setdefault(row["function"], {"role": row["role"], "allowed": {}, "implied": {}, "denied": {}})
        entry[row["verdict"]].setdefault(row["action"], {})[row["resource"]] = row["count"]
    return result
