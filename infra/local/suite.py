#!/usr/bin/env python3
"""`make test`, `make test-fast`, `make simulate` and `make survey`: build the tests, run them side by side, and say what took
longest.

The tests in memory are run by cargo-nextest, each in a process of its own; .config/nextest.toml says how. The suite on the local
cloud has one cloud for all its tests, waits more than it computes, and runs beside them; its output comes when they are done.
"""

import json
import os
import re
import subprocess
import sys
import time
import xml.etree.ElementTree as xml
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import run  # noqa: E402
from keelway_local import environment  # noqa: E402
from keelway_local.common import ROOT, Problem, say  # noqa: E402

CLOUD = ROOT / "infra" / "local" / "cloud.py"
MUTANTS = ROOT / "infra" / "local" / "mutants.py"
# The executables whose tests need neither a socket nor a process. They are named and not their packages: cargo would then choose
# other features, and build everything a second time.
IN_MEMORY = ("--test=keelway-domain", "--test=wire", "--test=engine", "--test=world", "--test=conformance", "--test=model",
             "--test=scale")
SLOWEST = 10
# So many tests more than there are processors run at a time: those with a git host wait for a third of their time and more.
WAITING = 2
# `make test` plays at most so many seeds of each simulation: people and continuous integration run the same. `make simulate` plays
# all (docs/decisions/0108).
TESTED_SEEDS = "1000"
# Of each test that failed, so many lines are said again at the very end, where a log that somebody cuts still has them.
FAILURE_LINES = 6
FAILURE_WIDTH = 400
# A line of the suite on the local cloud: `test lanes::thawed ... ok <2.1s>`.
CLOUD_TEST = re.compile(r"^test (\S.*?) \.\.\. \w+ <([0-9.]+)s>$", re.MULTILINE)
# What it says of a test that failed: `---- lanes::thawed ----` and the lines below.
CLOUD_FAILURE = re.compile(r"^---- (\S.*?) ----\n(.*?)(?=^---- |^test result)", re.MULTILINE | re.DOTALL)


def report():
    """What nextest writes of its last run."""
    return run.target().parent / "nextest" / "default" / "junit.xml"


def nextest(*words, **variables):
    """A command of cargo-nextest; its exit code. It gives way to whatever else runs: the suite on the local cloud waits for
    answers."""
    # A run that does not come so far has no report, and not that of the run before.
    report().unlink(missing_ok=True)
    program = environment.ensure("test").parent / "cargo-nextest"
    threads = f"--test-threads={(os.cpu_count() or 2) + WAITING}"
    return subprocess.run([str(program), "nextest", *words, threads], cwd=ROOT, env={**os.environ, **variables}, preexec_fn=lambda: os.nice(10)).returncode


class Cloud:
    """The suite on the local cloud, with its output in a file."""

    def __init__(self, executable):
        self.log = run.target().parent / "cloud-tests.log"
        self._out = open(self.log, "wb")
        variables = {"KEELWAY_CLOUD_PY": str(CLOUD), "KEELWAY_VENV_PYTHON": str(environment.ensure("cloud"))}
        # cargo runs tests in their package's folder.
        self._process = subprocess.Popen([executable], cwd=ROOT / "tests" / "cloud", env={**os.environ, **variables}, stdin=subprocess.DEVNULL,
                                         stdout=self._out, stderr=subprocess.STDOUT)

    def follow(self):
        """Prints everything it says until it ends; whether every test passed."""
        with open(self.log, "rb") as log:
            while True:
                ended = self._process.poll() is not None
                sys.stdout.buffer.write(log.read())
                sys.stdout.buffer.flush()
                if ended:
                    return self._process.returncode == 0
                time.sleep(0.2)

    def stop(self):
        if self._process.poll() is None:
            self._process.terminate()
            self._process.wait()
        self._out.close()

    def times(self):
        return [("cloud", name, float(seconds)) for name, seconds in CLOUD_TEST.findall(self.log.read_text(errors="replace"))]

    def failures(self):
        """(test, what it said) of every test that failed; of a suite that ended without a result, its last lines."""
        log = self.log.read_text(errors="replace")
        if self._process.returncode == 0:
            return []
        failed = CLOUD_FAILURE.findall(log)
        return [(f"cloud {name}", said) for name, said in failed] or [("cloud", "\n".join(log.splitlines()[-FAILURE_LINES:]))]


def cases():
    """(executable, test) of every test that nextest ran."""
    if not report().exists():
        return []
    return [(suite.get("name").removeprefix("keelway-"), case)
            for suite in xml.parse(report()).getroot().iter("testsuite") for case in suite.iter("testcase")]


def times():
    """(executable, test, seconds) of every test that nextest ran."""
    return [(executable, case.get("name"), float(case.get("time"))) for executable, case in cases()]


def failures():
    """(test, what it said) of every test that nextest saw fail."""
    return [(f"{executable} {case.get('name')}", failed.text or "") for executable, case in cases()
            for failed in case if failed.tag in ("failure", "error")]


def tell_failures(failed):
    """The tests that failed, each with the beginning of what it said."""
    for test, said in failed:
        say(f"FAILED  {test}")
        lines = [line for line in said.split("stack backtrace:")[0].splitlines() if line.strip()]
        for line in lines[:FAILURE_LINES]:
            say(f"        {line[:FAILURE_WIDTH]}")


def tell(all_times):
    """The slowest suites, which are the modules of an executable, and the slowest tests."""
    suites = {}
    for executable, test, seconds in all_times:
        suite = f"{executable} {test.split('::')[0]}" if "::" in test else executable
        suites[suite] = suites.get(suite, 0) + seconds
    say(f"\nthe slowest suites (seconds of their tests, which run side by side)")
    for suite, seconds in sorted(suites.items(), key=lambda entry: -entry[1])[:SLOWEST]:
        say(f"{seconds:8.1f}  {suite}")
    say("the slowest tests")
    for executable, test, seconds in sorted(all_times, key=lambda entry: -entry[2])[:SLOWEST]:
        say(f"{seconds:8.1f}  {executable} {test}")


def everything():
    """Every test; whether all passed."""
    began = time.monotonic()
    cloud = Cloud(run.build_tests()["cloud"])
    variables = {"KEELWAY_CLOUD_PY": str(CLOUD), "KEELWAY_VENV_PYTHON": str(environment.ensure("cloud")),
                 "KEELWAY_MOST_SEEDS": os.environ.get("KEELWAY_MOST_SEEDS", TESTED_SEEDS)}
    try:
        in_memory = nextest("run", "--workspace", **variables) == 0
        say("\nthe suite on the local cloud")
        on_cloud = cloud.follow()
    finally:
        cloud.stop()
    tell(times() + cloud.times())
    tell_failures(failures() + cloud.failures())
    say(f"every test took {time.monotonic() - began:.0f} s: {'passed' if in_memory and on_cloud else 'FAILED'}")
    return in_memory and on_cloud


def fast():
    """The tests in memory, with fewer seeds; whether all passed."""
    few = {name: os.environ.get(name, count) for name, count in
           {"KEELWAY_MOST_SEEDS": "150", "KEELWAY_MODEL_SEEDS": "100", "PROPTEST_CASES": "32"}.items()}
    return nextest("run", "--profile", "fast", "--workspace", *IN_MEMORY, **few) == 0


def simulate():
    """Plays every seed of each simulation; whether the invariants held."""
    held = nextest("run", "--workspace", "--test=conformance", "-E", "test(/every_seed/)") == 0
    tell(times())
    tell_failures(failures())
    return held


def survey():
    """Looks for each planted fault from the first seed on, and for each mutant of the pure cores; whether every one was found."""
    planted = nextest("run", "--workspace", "--test=conformance", "-E", "test(/planted|plants/)", KEELWAY_SURVEY_PLANTS="1") == 0
    return subprocess.run([sys.executable, str(MUTANTS)], cwd=ROOT).returncode == 0 and planted


VERBS = {"all": everything, "fast": fast, "simulate": simulate, "survey": survey}

if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in VERBS:
        sys.exit(f"usage: suite.py {'|'.join(VERBS)}")
    try:
        sys.exit(0 if VERBS[sys.argv[1]]() else 1)
    except Problem as problem:
        sys.exit(f"error: {problem}")
    except KeyboardInterrupt:
        sys.exit(130)
