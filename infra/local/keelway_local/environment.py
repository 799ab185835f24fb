"""The Python environments: made on first use, and again when their lock files change.

Each is made of a lock file, which names every package and the hash of each of its files: what an index serves later under the same
version is not installed. `make lock` makes the lock files of the short requirements*.in beside them.
"""

import fcntl
import hashlib
import os
import subprocess
import sys
from pathlib import Path

from .common import ROOT, Problem, Step, tail

LOCAL = Path(__file__).resolve().parents[1]
KINDS = {
    "cloud": ("venv", "requirements.txt"),
    "lint": ("venv-lint", "requirements-lint.txt"),
    "scan": ("venv-scan", "requirements-scan.txt"),
    "package": ("venv-package", "requirements-package.txt"),
    "deploy": ("venv-deploy", "requirements-deploy.txt"),
    "test": ("venv-test", "requirements-test.txt"),
    "mutants": ("venv-mutants", "requirements-mutants.txt"),
    "lock": ("venv-lock", "requirements-lock.txt"),
}


def directory(kind="cloud"):
    """The directory of the environment. KEELWAY_VENVS is the directory of all of them."""
    base = Path(os.environ.get("KEELWAY_VENVS") or ROOT / ".keelway")
    return base / KINDS[kind][0]


def python(kind="cloud"):
    return directory(kind) / "bin" / "python"


def _make(target, requirements, log):
    with open(log, "w") as out:
        made = subprocess.run([sys.executable, "-m", "venv", "--clear", str(target)], stdout=out, stderr=out)
        if made.returncode:
            raise Problem(
                f"Python cannot make a virtual environment ({tail(log, 1)}): install its venv module "
                f"(Debian and Ubuntu: apt install python3-venv) and run this again")
        installed = subprocess.run(
            [str(target / "bin" / "python"), "-m", "pip", "install", "--disable-pip-version-check", "--no-input",
             "--only-binary", ":all:", "--no-deps", "--require-hashes", "-r", str(requirements)],
            stdout=out, stderr=out)
        if installed.returncode:
            raise Problem(
                f"the packages of {requirements.relative_to(ROOT)} cannot be installed: check the network, or the "
                f"proxy and index settings of pip; the whole output is in {log}\n{tail(log, 4)}")


def ensure(kind="cloud"):
    """The Python of the environment, made first if needed."""
    if sys.version_info < (3, 10):
        raise Problem(f"Python {sys.version.split()[0]} is too old: install Python 3.10 or later, "
                      f"and name it with PYTHON=/path/to/python3 if it is not the first python3 found")
    target, requirements = directory(kind), LOCAL / KINDS[kind][1]
    wanted = hashlib.sha256(requirements.read_bytes() + sys.version.encode()).hexdigest()
    stamp = target / "keelway-stamp"

    def made():
        try:
            return stamp.read_text() == wanted and python(kind).exists()
        except FileNotFoundError:
            return False

    if made():
        # In an image, the folder belongs to another user.
        return python(kind)
    target.parent.mkdir(parents=True, exist_ok=True)
    # Two processes may arrive at the same time: one makes the environment, the other waits for it.
    with open(target.parent / f".{target.name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made():
            with Step(f"making the Python environment {target.name} (once)"):
                _make(target, requirements, target.parent / f"{target.name}.log")
                stamp.write_text(wanted)
    return python(kind)
