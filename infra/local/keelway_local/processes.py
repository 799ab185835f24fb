"""Background processes of a state directory: started once, remembered, and ended by `make down`."""

import os
import signal
import subprocess
import time

from .common import Problem, is_running, say, started_at, tail

FILE = "executors.json"
# The variable that shows whether a running process serves this stack or an earlier one.
SERVES = "KEELWAY_API"


def ensure(state, commands, env, directory):
    """Starts each named command that does not run; returns the number of started ones."""
    known = state.read(FILE, {})
    serves = env.get(SERVES)
    for name, record in list(known.items()):
        if record["serves"] != serves or record["command"] != commands.get(name) or not is_running(record):
            _end({name: known.pop(name)})
    logs = state.path("executors")
    logs.mkdir(exist_ok=True)
    fresh = {}
    for name, command in commands.items():
        if name in known:
            continue
        with open(logs / f"{name}.log", "a") as log:
            child = subprocess.Popen(command, cwd=directory, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                     start_new_session=True)
        known[name] = {"pid": child.pid, "started": started_at(child.pid), "command": command, "serves": serves}
        state.write(FILE, known)
        fresh[name] = child
    _check(fresh, logs)
    return len(fresh)


def _check(fresh, logs):
    """Reports a command that ends at once; otherwise a delivery would wait for it for ever."""
    time.sleep(0.3 if fresh else 0)
    for name, child in fresh.items():
        if child.poll() is not None:
            raise Problem(f"executor {name} ended at once with code {child.returncode}; the end of its log:\n"
                          f"{tail(logs / f'{name}.log', 5)}")


def _end(records):
    """Ends processes: SIGTERM, a pause to finish their work, SIGKILL. Returns how many ran."""
    running = {name: record for name, record in records.items() if is_running(record)}
    for record in running.values():
        os.kill(record["pid"], signal.SIGTERM)
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline and any(map(is_running, running.values())):
        time.sleep(0.05)
    for name, record in running.items():
        if is_running(record):
            say(f"executor {name} did not end by itself")
            os.killpg(record["pid"], signal.SIGKILL)
    return len(running)


def stop_all(state):
    """Ends all processes that `ensure` has started."""
    ended = _end(state.read(FILE, {}))
    state.remove(FILE)
    return ended
