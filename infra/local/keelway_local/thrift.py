"""Runs inside the local cloud: spares it work that nobody needs. What it does is the same.

As in recorder.py, attributes of the emulator and of its server are replaced at start.

* a search of logs passes over the streams that are older than its range;
* a condition of a request to DynamoDB is parsed once for each text;
* to learn the name of a role that calls, nobody gathers its policies;
* what waits for the next invocation of a function waits, and does not look ten times a second.
"""

import contextlib
import functools
import queue
import socket
import socketserver
import time
import types

# What waits for a function looks at least so often whether it still has to.
PATIENCE_SECONDS = 10


def _quicken_log_searches():
    """Each invocation has a log stream of its own, and the emulator looks into each of them in every search, thousands within
    minutes. Most are older than what is searched for."""
    from ministack.services import cloudwatch_logs

    search = cloudwatch_logs._filter_log_events

    def recent(data):
        group = cloudwatch_logs._log_groups.get(cloudwatch_logs._resolve_log_group_name(data))
        start = data.get("startTime")
        if group is None or start is None or data.get("logStreamNames"):
            return search(data)
        names = [name for name, stream in list(group["streams"].items()) if (stream["lastEventTimestamp"] or 0) >= start]
        # Without a name, all would be searched.
        return search({**data, "logStreamNames": names or [""]})

    cloudwatch_logs._filter_log_events = recent


def _remember_conditions():
    """The emulator checks the grammar of each condition for each request; there are some dozens of them."""
    from ministack.services import dynamodb

    dynamodb._condition_syntax_error = functools.lru_cache(maxsize=4096)(dynamodb._condition_syntax_error)


def _know_roles_by_name():
    """Before it checks a request, the emulator resolves the caller with all its policies, and keeps the ARN. That of a role's
    session is in the session; whether it may do anything is checked later, as before."""
    from ministack.core import iam_evaluator
    from ministack.core.router import extract_access_key_id
    from ministack.services import sts

    resolve = iam_evaluator.request_caller_arn

    def arn(headers, query=None):
        session = sts._sessions.get(extract_access_key_id(headers or {}, query or {})) or {}
        known = str(session.get("Arn", ""))
        fresh = isinstance(session.get("Expiration"), (int, float)) and time.time() <= session["Expiration"]
        return known if ":assumed-role/" in known and fresh else resolve(headers, query)

    iam_evaluator.request_caller_arn = arn


class _Awaited(queue.Queue):
    """A queue whose `get` waits at least PATIENCE_SECONDS if it waits at all."""

    def get(self, block=True, timeout=None):
        return super().get(block, timeout and max(timeout, PATIENCE_SECONDS))


def _quieten_workers():
    """For every function that runs, two threads of the emulator look ten times a second whether there is something to do: with
    dozens of functions, that is a third of what it computes."""
    from ministack.core import lambda_runtime

    lambda_runtime.queue = types.SimpleNamespace(Queue=_Awaited, Empty=queue.Empty, Full=queue.Full)
    serve_forever = socketserver.BaseServer.serve_forever

    def serve(server, poll_interval=PATIENCE_SECONDS):
        serve_forever(server, max(poll_interval, PATIENCE_SECONDS))

    def end(server):
        server._BaseServer__shutdown_request = True
        # It looks as soon as somebody connects.
        with contextlib.suppress(OSError):
            socket.create_connection(server.server_address, PATIENCE_SECONDS).close()
        server._BaseServer__is_shut_down.wait()

    socketserver.BaseServer.serve_forever = serve
    socketserver.BaseServer.shutdown = end


def install():
    """Before the emulator begins."""
    _quicken_log_searches()
    _remember_conditions()
    _know_roles_by_name()
    _quieten_workers()
