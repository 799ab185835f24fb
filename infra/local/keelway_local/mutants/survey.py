"""Runs every mutant with the tests that reach it, and every plant with the cases and simulations that do; reports the results."""

import json
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

from ..common import Problem, Step, say
from . import build, lists, trial

# The share of mutants to be found, without equivalent ones and those that do not compile.
GOAL = 0.95
RESULTS = build.WORK / "results.json"
SURVIVED, UNREACHED = "survived", "not reached"


def _order(test):
    return ((trial.UNIT, trial.CASE, trial.SEEDS).index(test.kind), len(test.reached), test.cpu)


def _tests_of(file, tests, plants):
    """The tests that may find something in a file, in the order of trying: those of an engine need no other engine's seeds."""
    engines = {engine for engine, *_ in trial.SIMULATIONS}
    # What judges an evaluation has a folder of its own beside the engine's.
    parts = file.replace("/evaluation/", "/evaluations/").split("/")
    engine = next((part for part in parts if part in engines), None)
    fits = lambda test: plants or test.kind != trial.SEEDS or engine in (None, test.engine)
    first = lambda test: (test.times, test.kind == trial.SEEDS and test.engine != engine, *_order(test))
    return sorted(filter(fits, tests), key=first)


def _sort(works, tests, jobs, title, plants=False):
    """{number: the test that finds it, SURVIVED or UNREACHED}. `works`: mutants or plants, with the test that found each last."""
    done, fresh, counted, lock = {}, {}, Counter(), threading.Lock()

    def one(work):
        thing, known = work
        mine = [test for test in _tests_of(thing.file, tests, plants) if thing.number in test.reached]
        again = [test for test in mine if test.name == known]
        # The test that found it last comes first.
        found = trial.find(thing.number, again) or trial.find(thing.number, [test for test in mine if test not in again])
        with lock:
            done[thing.number] = found or (SURVIVED if mine else UNREACHED)
            counted[found.kind if found else done[thing.number]] += 1
            fresh[str(thing)] = _noted(done[thing.number])
            if len(done) % 50 == 0 or len(done) == len(works):
                _remember(fresh)
            if not found:
                say(f"  {done[thing.number]}: {thing}")
            step.detail = f"{len(done)} of {len(works)}: {', '.join(f'{count} {kind}' for kind, count in counted.items())}"

    with Step(title) as step, ThreadPoolExecutor(jobs) as pool:
        list(pool.map(one, works))
    return done


def _remembered():
    return json.loads(RESULTS.read_text()) if RESULTS.exists() else {}


def _remember(found):
    RESULTS.write_text(json.dumps({**_remembered(), **found}, indent=0))


def mutants(copy, executables, chosen, jobs, only_survivors):
    """Whether every mutant of the chosen files is found, or listed as equivalent."""
    listed, before = lists.equivalent(), _remembered()
    wanted = [mutant for mutant in copy.viable() if not chosen or any(word in mutant.file for word in chosen)]
    # A mutant that was found last time counts as found, and is not run again.
    works = [mutant for mutant in wanted if not only_survivors or before.get(str(mutant), {}).get("found") is None]
    tests = trial.learn(trial.all_tests(executables, plants=False), executables, jobs)
    done = _sort([(mutant, before.get(str(mutant), {}).get("by")) for mutant in works], tests, jobs, f"{len(works)} mutants")
    found = {mutant.key: before.get(str(mutant)) for mutant in wanted}
    found |= {mutant.key: _noted(done[mutant.number]) for mutant in works}
    survivors = [mutant for mutant in wanted if not found[mutant.key]["found"] and mutant.key not in listed]
    stale = [f"{mutant} is found by {found[mutant.key]['by']}" for mutant in wanted
             if found[mutant.key]["found"] and mutant.key in listed]
    everything = {mutant.key for mutant in copy.viable()}
    stale += [f"{' '.join(map(str, key))}\n      names no mutant that compiles" for key in listed if key not in everything]
    _tell(copy, wanted, found, listed)
    for mutant in survivors:
        print(f"  {found[mutant.key]['by']}: {mutant}")
    for line in stale:
        print(f"  equivalent.yaml: {line}")
    count = sum(bool(found[mutant.key]["found"]) for mutant in wanted)
    score = count / max(1, count + len(survivors))
    print(f"score: {count} of {count + len(survivors)} are found, {score:.1%}")
    return not survivors and not stale and score >= GOAL


def _noted(found):
    """The stored result of a mutant or plant."""
    return {"found": None, "by": found} if isinstance(found, str) else {"found": found.kind, "by": found.name}


def _tell(copy, wanted, found, listed):
    """A line for each folder, and two for all."""
    folder = lambda mutant: mutant.file.removeprefix(f"{build.DOMAIN}/").split("/")[0].removesuffix(".rs")
    for name in sorted({folder(mutant) for mutant in wanted}):
        mine = [mutant for mutant in wanted if folder(mutant) == name]
        left = sum(not found[mutant.key]["found"] and mutant.key not in listed for mutant in mine)
        print(f"  {name}: {len(mine)} mutants, {left} left")
    kinds = Counter(found[mutant.key]["found"] or found[mutant.key]["by"] for mutant in wanted)
    print(f"{len(copy.mutants)} mutants, of which {len(copy.mutants) - len(copy.viable())} do not compile and "
          f"{sum(mutant.key in listed for mutant in wanted)} are listed as equivalent")
    print(f"{len(wanted)} were run: " + ", ".join(f"{count} {kind}" for kind, count in kinds.most_common()))


def plants(copy, executables, chosen, jobs):
    """Whether every plant of the chosen engines is found by a case or a simulation."""
    works = [plant for plant in copy.plants if not chosen or any(word in f"{plant.engine} {plant.name}" for word in chosen)]
    if not works:
        return True
    before = _remembered()
    tests = trial.learn(trial.all_tests(executables, plants=True), executables, jobs)
    known = [(plant, before.get(str(plant), {}).get("by")) for plant in works]
    done = _sort(known, tests, jobs, f"{len(works)} plants", plants=True)
    missed = 0
    for plant in works:
        found = done[plant.number]
        by = found if isinstance(found, str) else found.name
        missed += isinstance(found, str)
        print(f"  {plant.engine} {plant.name}: {by}")
    print(f"plants: {len(works) - missed} of {len(works)} are found by a case or a simulation")
    return not missed


def run(chosen, jobs, kinds, only_survivors):
    """Whether all is found."""
    copy, executables = build.prepared()
    well = True
    if "plants" in kinds:
        well = plants(copy, executables, chosen, jobs)
    if "mutants" in kinds:
        well = mutants(copy, executables, chosen, jobs, only_survivors) and well
    return well


def main(chosen, jobs, kinds, only_survivors):
    """The exit code."""
    try:
        return 0 if run(chosen, jobs, kinds, only_survivors) else 1
    except Problem as problem:
        say(f"error: {problem}")
        return 2
