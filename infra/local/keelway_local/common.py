"""Shared by all commands: errors in one sentence, progress on stderr, the state directory, the identity of processes."""

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
TEMPLATE = ROOT / "infra" / "template.yaml"
REGION = os.environ.get("KEELWAY_LOCAL_REGION", "us-east-1")
# For the emulator, these are the root user of the account. They are valid on this machine only.
CREDENTIALS = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}


class Problem(Exception):
    """An error a person can act on: one sentence that says what happened and what to do."""


def say(text):
    """Prints a line of progress to stderr; results go to stdout. The line is written at once, because threads print, too."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


class Step:
    """Shows that a long step is under way: its elapsed seconds on a terminal, a line every ten seconds elsewhere."""

    def __init__(self, title):
        self.title = title
        self.detail = ""
        self._done = threading.Event()

    def __enter__(self):
        self._start = time.monotonic()
        self._live = sys.stderr.isatty()
        if not self._live:
            say(f"{self.title} ...")
        self._thread = threading.Thread(target=self._tick, daemon=True)
        self._thread.start()
        return self

    def elapsed(self):
        return time.monotonic() - self._start

    def _tick(self):
        while not self._done.wait(1 if self._live else 10):
            text = f"{self.title} ... {self.elapsed():.0f} s {self.detail}".rstrip()
            if self._live:
                print(f"\r\033[K{text[:110]}", end="", file=sys.stderr, flush=True)
            else:
                say(text)

    def __exit__(self, kind, *_):
        self._done.set()
        self._thread.join()
        if self._live:
            print("\r\033[K", end="", file=sys.stderr)
        if kind is None:
            say(f"{self.title}: {self.elapsed():.1f} s {self.detail}".rstrip())


def write_private(path, text):
    """Replaces a file atomically, readable by its owner only."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w") as file:
            file.write(text)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


class State:
    """The directory in which one local cloud keeps its process id, endpoint, token, outputs and logs."""

    def __init__(self, directory):
        self.dir = Path(directory).expanduser().resolve()

    def path(self, name):
        self.dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        return self.dir / name

    def read(self, name, default=None):
        try:
            return json.loads((self.dir / name).read_text())
        except FileNotFoundError:
            return default
        except ValueError as error:
            raise Problem(f"{self.dir / name} is damaged ({error}): remove {self.dir} and start again") from None

    def write(self, name, value):
        write_private(self.path(name), json.dumps(value, indent=2) + "\n")

    def remove(self, name):
        (self.dir / name).unlink(missing_ok=True)


def started_at(pid):
    """When the process began, as the system words it, or None if there is no such process.

    A pid alone does not say which process it is: pids are used again.
    """
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return None if fields[0] == "Z" else fields[19]
    except FileNotFoundError:
        if Path("/proc/self/stat").exists():
            return None
    except (OSError, IndexError):
        return None
    answer = subprocess.run(["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True)
    return answer.stdout.strip() or None


def is_running(record):
    """Whether the process of this {pid, started} record is still that process."""
    return bool(record) and bool(record.get("pid")) and started_at(record["pid"]) == record.get("started")


def tail(path, lines=12):
    """The last lines of a file, or a remark that there are none."""
    try:
        return "\n".join(Path(path).read_text(errors="replace").splitlines()[-lines:]) or "(empty)"
    except OSError as error:
        return f"({error.strerror})"
