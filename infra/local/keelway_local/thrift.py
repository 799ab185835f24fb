"""Runs inside the local cloud: spares it work that nobody needs. What it does is the same.

As in recorder.py, attributes of the emulator and of its server are replaced at start.

* a search of logs passes over the streams that have nothing in its range;
* what waits for the next invocation of a function waits, and does not look ten times a second.
"""

import contextlib
import queue
import socket
import socketserver
import types

# What waits for a function looks at least so often whether it still has to.
PATIENCE_SECONDS = 10


def _quicken_log_searches():
    """Each invocation has a log stream of its own, and the emulator makes a generator for each of them in every search, thousands
    within minutes. Most have nothing in the range."""
    from ministack.services import cloudwatch_logs

    ranged = cloudwatch_logs._stream_event_range

    def some(events, stream_name, start, end):
        return ranged(events, stream_name, start, end) if start < end else ()

    cloudwatch_logs._stream_event_range = some


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
    _quieten_workers()
