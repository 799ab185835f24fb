"""The tests that may find a mutant, the mutants that each test reaches, and the run of a test with a mutant."""

import json
import os
import re
import signal
import struct
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from ..common import Problem, Step
from . import build

# Each engine has a test that tells its cases, or one of them.
ENGINES = ["sequences", "promotions", "deployments", "webhooks", "evaluations"]
CASES = {engine: f"{engine}::every_case_holds" for engine in ENGINES}
SEEDED, UNSWEPT = "every_seed_keeps_the_invariants", "every_seed_comes_to_rest_without_sweeps"
# The simulations: the engine, the test, and the number of seeds for a mutant and for a plant.
SIMULATIONS = [
    ("sequences", f"sequences::{SEEDED}", 200, 3000),
    ("promotions", f"promotions::{SEEDED}", 200, 3000),
    ("promotions", f"promotions::{UNSWEPT}", 100, 1000),
    ("deployments", f"deployments::{SEEDED}", 200, 3000),
    ("deployments", f"deployments::{UNSWEPT}", 100, 1000),
    ("webhooks", f"webhooks::{SEEDED}", 200, 3000),
    ("evaluations", f"evaluations::{SEEDED}", 200, 3000),
    ("evaluations", f"evaluations::{UNSWEPT}", 100, 1000),
    ("delivery", f"delivery::{SEEDED}", 20, 600),
    ("border", f"border::{SEEDED}", 40, 500),
]
# Tests of conformance that tell all cases, repeat others in each order, or look for planted faults: what they would find, the
# others find sooner. And those that read the source, which is another one in the copy.
LEFT_OUT = re.compile(r"^mutants::|seed|survey|plant|fault_after|twice_is|fork_of|every_case|index_names|any_order|every_order|"
                      r"later_version|fifty_thousand")
# The folders that the tests' executables run in.
PACKAGES = {"keelway_domain": "shared/domain", "wire": "shared/wire", "conformance": "tests/conformance/tests", "model": "tests/model",
            "deployers": "tests/deployers"}
# Cases of what evaluations come to (`tests/cases/evaluation`, and random ones against a port of Keptn's code), and of what
# Keelway's own deployers do.
BESIDE = {"wire": re.compile("^evaluation::"), "model": re.compile("^judgements::"), "deployers": re.compile("")}
REACHED = build.WORK / "reached.json"
UNIT, CASE, SEEDS = "unit test", "case", "seeds"
# How many cases are tried one by one, before all cases of the engine are run in one process.
FEW = 3


@dataclass
class Test:
    """A test that may find a mutant."""
    kind: str
    name: str
    engine: str
    command: list
    variables: dict
    # The mutants that it reaches are learned from this many times fewer seeds.
    times: int = 1
    cpu: float = 0.0
    reached: set = field(default_factory=set)


@dataclass
class Ran:
    """The end of a process: whether it succeeded, its CPU time, its output."""
    well: bool
    cpu: float
    output: str


def run(command, variables, seconds):
    """Runs a test until it fails, for this many seconds of CPU time at most."""
    limits = 'ulimit -t "$1"; ulimit -v 6000000 2>/dev/null; shift; exec nice -n 19 "$@"'
    env = {**os.environ, "INSTA_UPDATE": "no", "INSTA_WORKSPACE_ROOT": str(build.COPY), "RUST_BACKTRACE": "0",
           "PROPTEST_CASES": "64", **variables}
    package = PACKAGES[Path(command[0]).name.rsplit("-", 1)[0]]
    process = subprocess.Popen(["sh", "-c", limits, "sh", str(max(2, round(seconds))), *command], cwd=build.COPY / package, env=env,
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    told, failed = [], False
    for line in process.stdout:
        told.append(line)
        if line.rstrip().endswith(b"... FAILED"):
            failed = True
            # Popen.kill would wait for the process, and lose its CPU time.
            os.kill(process.pid, signal.SIGKILL)
            break
    rest = process.stdout.read()
    process.stdout.close()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    output = b"".join([*told, rest]).decode(errors="replace")
    return Ran(process.returncode == 0 and not failed, usage.ru_utime + usage.ru_stime, output)


def _names(executable):
    listed = subprocess.run([executable, "--list", "--format", "terse"], stdout=subprocess.PIPE, text=True, check=True).stdout
    return [line.removesuffix(": test") for line in listed.splitlines() if line.endswith(": test")]


def all_tests(executables, plants):
    """Every test by itself; with more seeds if plants are looked for."""
    unit, conformance = executables["keelway-domain"], executables["conformance"]
    single = lambda name: ["--exact", name, "--test-threads", "1"]
    tests = [Test(UNIT, name, "", [unit, *single(name)], {}) for name in _names(unit)] if not plants else []
    for program, chosen in BESIDE.items():
        named = [name for name in _names(executables[program]) if chosen.search(name)]
        tests += [Test(CASE, name, "", [executables[program], *single(name)], {}) for name in named]
    tests += [Test(CASE, name, "", [conformance, *single(name)], {}) for name in _names(conformance) if not LEFT_OUT.search(name)]
    for engine, name in CASES.items():
        tests.append(Test(CASE, f"cases of {engine}", engine, [conformance, *single(name)], {}))
        for path in sorted((build.COPY / "tests" / "cases" / engine).rglob("*.yaml")):
            for case in re.split(r"^---\s*$", path.read_text(), flags=re.MULTILINE):
                found = re.search(r"^id: (\S+)", case, re.MULTILINE)
                if found and not re.search(r"^only: cloud", case, re.MULTILINE):
                    tests.append(Test(CASE, found[1], engine, [conformance, *single(name)], {"KEELWAY_CASE": found[1]}))
    for engine, name, few, many in SIMULATIONS:
        # Few seeds of every simulation come before many of one.
        for seeds in (few, many) if plants else (few,):
            label = f"{seeds} seeds of {name.split('::')[0]}{'' if 'sweep' not in name else ' without sweeps'}"
            tests.append(Test(SEEDS, label, engine, [conformance, *single(name)], {"KEELWAY_SEEDS": str(seeds)}, seeds // few))
    return tests


def learn(tests, executables, jobs):
    """Runs every test without a mutant, to learn its reach and its cost. Results for the same executables are stored."""
    made = {path: os.stat(path).st_mtime_ns for path in executables.values()}
    stored = json.loads(REACHED.read_text()) if REACHED.exists() else {}
    known = {name: entry for name, entry in stored.items() if made.get(entry[0]) == entry[1]}
    name = lambda test: f"{test.kind} {test.engine} {test.name}"

    def one(test):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "reached"
            fewer = {"KEELWAY_SEEDS": str(int(test.variables["KEELWAY_SEEDS"]) // test.times)} if test.kind == SEEDS else {}
            ran = run(test.command, {**test.variables, **fewer, "KEELWAY_MUTANT_REACHED": str(path)}, 3600)
            if not ran.well:
                raise Problem(f"{test.name} fails without any mutant:\n{ran.output[-2000:]}")
            data = path.read_bytes() if path.exists() else b""
        program = test.command[0]
        known[name(test)] = [program, made[program], ran.cpu, sorted({number for number, in struct.iter_unpack("<I", data)})]

    new = [test for test in tests if name(test) not in known]
    if new:
        with Step(f"what each of {len(new)} tests reaches"), ThreadPoolExecutor(jobs) as pool:
            list(pool.map(one, new))
        REACHED.write_text(json.dumps(known))
    for test in tests:
        _, _, cpu, reached = known[name(test)]
        test.cpu, test.reached = cpu * test.times, set(reached)
    return [test for test in tests if test.reached]


def find(number, tests):
    """The first of these tests that fails with a mutant, or None. Tests with a small reach come first; many tests share a
    process."""
    on = {"KEELWAY_MUTANT": str(number)}
    programs = dict.fromkeys(test.command[0] for test in tests)
    units = [test for test in tests if test.kind == UNIT]
    other = [test for test in tests if test.kind == CASE and not test.engine]
    others = [[test for test in other if test.command[0] == program] for program in programs]
    single = [test for test in tests if test.kind == CASE and "KEELWAY_CASE" in test.variables]
    whole = [test for test in tests if test.kind == CASE and test.engine and "KEELWAY_CASE" not in test.variables]
    few = single[:FEW] if len(single) > FEW + 2 else single
    tried = [[units], [[test] for test in few], [[test] for test in whole if len(single) > len(few)], others,
             [[test] for test in tests if test.kind == SEEDS]]
    for together in (group for groups in tried for group in groups if group):
        first = together[0]
        names = [test.command[2] for test in together]
        seconds = 2 + 8 * sum(test.cpu for test in together)
        ran = run([first.command[0], "--exact", *names, "--test-threads", "1"], {**first.variables, **on}, seconds)
        if not ran.well:
            failed = re.findall(r"^test (\S+) \.\.\. FAILED", ran.output, re.MULTILINE)
            # Without a name, the process has reached its limit or died.
            return next((test for test in together if test.command[2] in failed), first)
    return None
