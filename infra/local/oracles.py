#!/usr/bin/env python3
"""`make test-oracles`: AWS's own artefacts beside the local cloud and the twins in memory, and GitHub's client for Rust.

The suite on the local cloud, the store's contract included, runs with the items of its tables in AWS's DynamoDB Local. Every event
that it puts on a bus is then given to AWS's event-ruler, with the pattern of every rule, and with what our own matchers say of it.
Both are from Maven Central, with the checksums of oracles/artifacts.txt. Arguments are those of the suite: `oracles.py store::`.

Before all that, unless arguments choose tests, octocrab talks to the strict git host. It is a workspace of its own
(docs/decisions/0113), and needs neither Java nor Maven.

The exit code is 0 only if everything ran and agreed; 1: something differs; 3: something could not be run here, and is named.
"""

import contextlib
import hashlib
import json
import os
import platform
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import run  # noqa: E402
from keelway_local import environment  # noqa: E402
from keelway_local.common import ROOT, Problem, Step, say, tail  # noqa: E402

HERE = Path(__file__).resolve().parent
FOLDER = ROOT / ".keelway" / "oracles"
OCTOCRAB = ROOT / "tests" / "githost" / "octocrab" / "Cargo.toml"
# Fetches each dependency of a project, and nothing that those depend on: the lock file names everything.
COPY = ["org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies", "-DexcludeTransitive=true"]
MAIN = "com.amazonaws.services.dynamodbv2.local.main.ServerRunner"
NOT_RUN = 3
READY_SECONDS = 120
# What DynamoDB Local has not, by the tests that need it.
SKIPPED = {
    "restored::": "DynamoDB Local has no backups",
    "store::write units are counted": "DynamoDB Local counts no units for the condition checks of a transaction",
}


class NotRun(Exception):
    """What is missing here."""


def java():
    """A Java that compiles a source file when it starts it."""
    found = os.path.join(os.environ["JAVA_HOME"], "bin", "java") if os.environ.get("JAVA_HOME") else shutil.which("java")
    wanted = "install a JDK, 17 or newer (Debian and Ubuntu: apt install openjdk-17-jdk-headless)"
    if not found or not os.access(found, os.X_OK):
        raise NotRun(f"there is no Java: {wanted}")
    listed = subprocess.run([found, "--list-modules"], capture_output=True, text=True)
    compilers = [line for line in listed.stdout.splitlines() if line.startswith("jdk.compiler@")]
    if not compilers or int(compilers[0].partition("@")[2].split(".")[0]) < 17:
        raise NotRun(f"{found} is no JDK of version 17 or newer: {wanted}")
    return found


def artifacts():
    """{set: the files of Maven Central that it needs} of the lock file, each fetched once and checked."""
    lines = [line.split() for line in (HERE / "oracles" / "artifacts.txt").read_text().splitlines() if line and not line.startswith("#")]
    here, sets = f"{platform.system()}-{platform.machine()}", {}
    for digest, kind, path in lines:
        if "-" not in kind or kind == here:
            sets.setdefault("native" if kind == here else kind, []).append((digest, path))
    for name, wanted in sets.items():
        missing = [path for digest, path in wanted if _digest(path) != digest]
        if missing:
            with Step(f"AWS's artefacts from Maven Central: {name}"):
                _fetch(missing)
        for digest, path in wanted:
            if _digest(path) != digest:
                raise Problem(f"{_kept(path)} is not what infra/local/oracles/artifacts.txt names: its SHA-256 is another one")
    return {name: [_kept(path) for _, path in wanted] for name, wanted in sets.items()}


def _kept(path):
    return FOLDER / Path(path).name


def _digest(path):
    kept = _kept(path)
    return hashlib.sha256(kept.read_bytes()).hexdigest() if kept.is_file() else None


def _fetch(paths):
    """Has Maven fetch them, with the mirrors and proxies of its settings."""
    maven = shutil.which("mvn")
    if not maven:
        raise NotRun("there is no Maven: install it (Debian and Ubuntu: apt install maven)")
    FOLDER.mkdir(parents=True, exist_ok=True)
    project, log = FOLDER / "pom.xml", FOLDER / "maven.log"
    project.write_text(
        "<project><modelVersion>4.0.0</modelVersion><groupId>keelway</groupId><artifactId>oracles</artifactId><version>1</version>"
        f"<dependencies>{''.join(map(_dependency, paths))}</dependencies></project>\n")
    with open(log, "wb") as out:
        done = subprocess.run([maven, "--batch-mode", "-f", str(project), *COPY, f"-DoutputDirectory={FOLDER}"], stdout=out, stderr=out)
    if done.returncode:
        raise Problem(f"Maven could not fetch everything: check the network, or name a mirror in its settings. The end of {log}:\n{tail(log)}")


def _dependency(path):
    *group, artifact, version, file = path.split("/")
    return (f"<dependency><groupId>{'.'.join(group)}</groupId><artifactId>{artifact}</artifactId><version>{version}</version>"
            f"<type>{file.rpartition('.')[2]}</type></dependency>")


@contextlib.contextmanager
def dynamodb(program, sets):
    """DynamoDB Local, in memory, on a port of its own; its URL."""
    if "native" not in sets:
        raise NotRun(f"DynamoDB Local has no SQLite for {platform.system()} on {platform.machine()}")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    log = FOLDER / "dynamodb.log"
    with open(log, "wb") as out:
        process = subprocess.Popen(
            [program, f"-Djava.library.path={FOLDER}", "-cp", os.pathsep.join(map(str, sets["dynamodb"])), MAIN, "-inMemory", "-sharedDb",
             "-disableTelemetry", "-port", str(port)], stdin=subprocess.DEVNULL, stdout=out, stderr=out)
    try:
        deadline = time.monotonic() + READY_SECONDS
        while not _listens(port):
            if process.poll() is not None or time.monotonic() > deadline:
                raise Problem(f"DynamoDB Local did not start; the end of {log}:\n{tail(log)}")
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


def _listens(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def suite(executable, url, arguments):
    """The suite on the local cloud, with its items in DynamoDB Local; whether it passed. Its events are in the folder
    afterwards."""
    for name in ("matches.jsonl", "own.jsonl"):
        (FOLDER / name).unlink(missing_ok=True)
    for name, why in SKIPPED.items():
        say(f"not run: {name}: {why}")
    skip = [word for name in SKIPPED for word in ("--skip", name)]
    variables = {"KEELWAY_CLOUD_PY": str(HERE / "cloud.py"), "KEELWAY_VENV_PYTHON": str(environment.ensure("cloud")),
                 "KEELWAY_DYNAMODB": url, "KEELWAY_ORACLES": str(FOLDER)}
    return subprocess.run([executable, *arguments, *skip], cwd=ROOT / "tests" / "cloud", env={**os.environ, **variables}).returncode == 0


def ruler(program, sets):
    """Whether event-ruler agrees with the local cloud and with our own matchers."""
    files = [str(FOLDER / name) for name in ("matches.jsonl", "own.jsonl") if (FOLDER / name).exists()]
    asked = subprocess.run([program, "-cp", os.pathsep.join(map(str, sets["ruler"])), str(HERE / "oracles" / "Ruler.java"), *files],
                           stdout=subprocess.PIPE, text=True)
    *lines, last = asked.stdout.splitlines() or [""]
    if asked.returncode or not last:
        raise Problem("event-ruler was not asked: the reason is above")
    for line in lines:
        say(line)
    found = json.loads(last)
    say(f"event-ruler: {found['patterns']} patterns, {found['events']} events, {found['different']} differences")
    return found["events"] > 0 and found["different"] == 0


def octocrab():
    """Whether what octocrab sends is accepted, and what the strict host answers is what octocrab reads."""
    target = {"CARGO_TARGET_DIR": str(run.target().parent / "octocrab")}
    return subprocess.run([os.environ.get("CARGO") or "cargo", "test", "--manifest-path", str(OCTOCRAB)], cwd=ROOT,
                          env={**os.environ, **target}).returncode == 0


def main(arguments):
    if not arguments and not octocrab():
        raise Problem("the strict git host is not as octocrab expects: the reason is above")
    program = java()
    sets = artifacts()
    executable = run.build_tests()["cloud"]
    with dynamodb(program, sets) as url:
        passed = suite(executable, url, arguments)
    agreed = ruler(program, sets)
    say(f"the suite on DynamoDB Local {'passed' if passed else 'FAILED'}; event-ruler {'agrees' if agreed else 'DIFFERS'}")
    return passed and agreed


if __name__ == "__main__":
    try:
        sys.exit(0 if main(sys.argv[1:]) else 1)
    except NotRun as missing:
        say(f"not run: {missing}")
        sys.exit(NOT_RUN)
    except Problem as problem:
        sys.exit(f"error: {problem}")
    except KeyboardInterrupt:
        sys.exit(130)
