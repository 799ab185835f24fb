#!/usr/bin/env python3
"""Mutation testing of the pure cores (shared/domain), and mistakes planted in the cores and the engines: part of `make survey`.

A mutant is a small change: `<` becomes `<=`, a function returns a default value, an arm of a `match` is gone. The list is that of
cargo-mutants. That program builds once for each mutant, though, which takes minutes here, and there are thousands of mutants. This
one builds a single copy with all of them in it, each behind a switch that a test's process reads when it starts. Each mutant is run
with the tests that reach it: unit tests, then cases, then seeds of its engine's simulation. docs/decisions/0069 says more.

    infra/local/mutants.py                  everything
    infra/local/mutants.py sequences        mutants and plants of files and engines with these words in their names
    infra/local/mutants.py --plants         plants only; --mutants: mutants only
    infra/local/mutants.py --survivors      mutants that no test found the last time, and new ones
    infra/local/mutants.py --jobs 1         one process; otherwise two
"""

import argparse
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from keelway_local import environment  # noqa: E402
from keelway_local.common import Problem  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", help="parts of the names of files, engines or plants")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--plants", action="store_true")
    parser.add_argument("--mutants", action="store_true")
    parser.add_argument("--survivors", action="store_true")
    given = parser.parse_args()
    try:
        python = environment.ensure("mutants")
    except Problem as problem:
        sys.exit(f"error: {problem}")
    if Path(sys.prefix).resolve() != python.parents[1].resolve():
        os.execv(python, [str(python), __file__, *sys.argv[1:]])
    # It needs the environment.
    from keelway_local.mutants import survey
    named = [kind for kind in ("plants", "mutants") if getattr(given, kind)]
    kinds = named or (["mutants"] if given.survivors else ["plants", "mutants"])
    sys.exit(survey.main(given.words, given.jobs, kinds, given.survivors))


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
