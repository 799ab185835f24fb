"""Starts and stops the emulator; stops only what it started."""

import fcntl
import os
import re
import secrets
import signal
import socket
import subprocess
import time
import urllib.request

from . import engine, environment
from .common import CREDENTIALS, REGION, Problem, Step, is_running, say, started_at, tail, write_private

# In seconds. Starting takes a while on a busy machine; after this time it counts as failed.
READY_SECONDS = 300
PASSED_ON = ("PATH", "HOME", "LANG", "LC_ALL", "SSL_CERT_FILE", "SSL_CERT_DIR", "KEELWAY_DYNAMODB", "KEELWAY_ORACLES")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _taken(port):
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
            return False
        except OSError:
            return True


def _process_environment(state, port):
    # Functions inherit the emulator's environment, so it gets no KEELWAY_ or AWS_ variable of the shell.
    scratch = state.path("tmp")
    scratch.mkdir(exist_ok=True)
    passed = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    return {
        **passed, **CREDENTIALS,
        "BIND_HOST": "127.0.0.1", "GATEWAY_PORT": str(port), "MINISTACK_HOST": "127.0.0.1",
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}", "MINISTACK_REGION": REGION, "AUTH": "true",
        "LAMBDA_EXECUTOR": "local", "LAMBDA_ACCOUNT_CONCURRENCY": "1000", "LOG_LEVEL": "INFO",
        # As AWS does, it repeats an asynchronous invocation that failed after one minute, and after two more.
        "LAMBDA_ASYNC_RETRY_BASE_SECONDS": "60", "LAMBDA_ASYNC_RETRY_MAX_SECONDS": "120",
        # Git hosts, clusters and identity providers of a local cloud are on this machine. No template sets this.
        "KEELWAY_LOOPBACK": "true",
        "TMPDIR": str(scratch), "KEELWAY_RECORDED": str(state.path("recorded.json")), "PYTHONUNBUFFERED": "1",
    }


def _answers(endpoint):
    try:
        # Requests to loopback must not use the proxy of the shell.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(f"{endpoint}/_ministack/health", timeout=2) as answer:
            return answer.status == 200
    except OSError:
        return False


def _spawn(state, port):
    log = state.path("cloud.log")
    with open(log, "w") as out:
        child = subprocess.Popen(
            [str(environment.python()), str(environment.LOCAL / "launch.py")], cwd=state.dir, stdin=subprocess.DEVNULL,
            stdout=out, stderr=out, env=_process_environment(state, port), start_new_session=True)
    record = {"endpoint": f"http://127.0.0.1:{port}", "port": port, "pid": child.pid, "started": started_at(child.pid)}
    state.write("cloud.json", record)
    deadline = time.monotonic() + READY_SECONDS
    while time.monotonic() < deadline:
        if child.poll() is not None:
            state.remove("cloud.json")
            return None, f"it ended with code {child.returncode}"
        if _answers(record["endpoint"]):
            return record, None
        time.sleep(0.1)
    stop(state)
    return None, f"no answer within {READY_SECONDS} s"


def token(state):
    """The API token of this state directory: random, made once, readable by its owner only."""
    path = state.path("token")
    if not path.exists():
        write_private(path, secrets.token_urlsafe(32) + "\n")
    return path.read_text().strip()


def _wanted(port):
    """The port of the argument or the variable. None: a free one."""
    name, value = ("--port", port) if port is not None else ("KEELWAY_PORT", os.environ.get("KEELWAY_PORT") or None)
    if value is None:
        return None
    if not (re.fullmatch("[0-9]{1,5}", str(value)) and 1 <= int(value) <= 65535):
        raise Problem(f"{name} is {str(value)!r}: give a port from 1 to 65535, or leave it out for a free one")
    return int(value)


def start(state, port=None):
    """Starts the cloud unless it runs; returns the record of the running one."""
    wanted = _wanted(port)
    environment.ensure()
    with open(state.path(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        record = state.read("cloud.json")
        if is_running(record) and _answers(record["endpoint"]):
            if wanted and wanted != record["port"]:
                raise Problem(f"the local cloud of {state.dir} runs on port {record['port']}, not on {wanted}: "
                              f"stop it first (make down), or leave the port out")
            return record
        if wanted and _taken(wanted):
            raise Problem(f"port {wanted} is taken: choose another with KEELWAY_PORT, or leave it out for a free one")
        state.remove("outputs.json")
        with Step("starting the local cloud") as step:
            for attempt in range(3):
                # Between choosing a free port and listening on it, another process may take it.
                record, trouble = _spawn(state, wanted or free_port())
                if record or wanted or "already in use" not in tail(state.path("cloud.log"), 5):
                    break
            if not record:
                raise Problem(f"the local cloud did not start ({trouble}); the end of {state.dir / 'cloud.log'}:\n"
                              f"{tail(state.dir / 'cloud.log')}")
            step.detail = record["endpoint"]
    token(state)
    return record


def serve(state, port=None):
    """Starts the cloud and waits until it ends; returns its exit code. The first process of a container runs this."""
    record = start(state, port)
    signal.signal(signal.SIGTERM, lambda *_: os.killpg(record["pid"], signal.SIGTERM))
    # The record is also read outside of the container, where these ids belong to other processes.
    state.write("cloud.json", {key: record[key] for key in ("endpoint", "port")})
    while True:
        # The first process also inherits the orphans of functions.
        pid, status = os.wait()
        if pid == record["pid"]:
            state.remove("cloud.json")
            return os.waitstatus_to_exitcode(status)


def stop(state):
    """Ends what `start` has started, with the processes of functions and the container, if there is one. Returns whether anything
    ran."""
    container = _stop_container(state)
    record = state.read("cloud.json")
    state.remove("cloud.json")
    if not record or not record.get("pid"):
        return container
    if not is_running(record):
        say(f"the local cloud of {state.dir} was not running")
        return False
    # start_new_session made it the leader of a group that holds it and its functions, nothing else.
    os.killpg(record["pid"], signal.SIGTERM)
    deadline = time.monotonic() + 10
    while is_running(record) and time.monotonic() < deadline:
        _reap(record["pid"])
        time.sleep(0.05)
    try:
        os.killpg(record["pid"], signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass
    _reap(record["pid"])
    return True


def _stop_container(state):
    record = state.read("container.json")
    if not record:
        return False
    try:
        ended = engine.end_container(record)
        state.remove("container.json")
        return ended
    except Problem as problem:
        say(problem)
        return False


def _reap(pid):
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        pass


def endpoint(state):
    """The endpoint of the cloud with this state directory. Raises Problem if it does not run."""
    record = state.read("cloud.json")
    if not record:
        raise Problem(f"no local cloud in {state.dir}: start it with `make up`")
    if record.get("pid") and not is_running(record):
        raise Problem(f"the local cloud of {state.dir} has ended: start it with `make up`; "
                      f"the end of its log:\n{tail(state.dir / 'cloud.log', 5)}")
    return record["endpoint"]
