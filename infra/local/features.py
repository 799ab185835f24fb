#!/usr/bin/env python3
"""Checks that programs and tests share their builds: a package that `make run` builds must have the same features in the tests.

Cargo builds a package anew for every set of features, and everything that depends on it as well. What the tests alone ask for is
asked for by tests/features, too, which is built along with the programs. This says what to change there when the two have drifted
apart.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FEATURES = "keelway-test-features"
CARGO = os.environ.get("CARGO") or "cargo"
# A package in cargo's tree, and a heading over some of its dependencies. Each level is four characters wide.
PACKAGE = re.compile(r"(?P<indent>[-|` ]*)(?P<name>\S+) v(?P<version>\S+)(?P<more>[^\t]*)\t(?P<features>\S*)(?: \(\*\))?$")
HEADING = re.compile(r"(?P<indent>[| ]*)\[(?P<kind>build|dev)-dependencies\]$")


def programs():
    """The packages of `make run`: the command, the git host and the functions."""
    functions = sorted(found.parent.name for found in (ROOT / "functions").glob("*/Cargo.toml"))
    return ["keelway", "keelway-githost", *(f"keelway-{name}" for name in functions)]


def cargo(*words):
    done = subprocess.run([CARGO, *words], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(f"error: `cargo {' '.join(words)}` failed: the reason is above")
    return done.stdout


def sides(edges, *selection):
    """{(name, version, whether it is for the machine that builds): features} of all packages in a selection."""
    host = re.search(r"^host: (\S+)$", cargo("-vV"), re.MULTILINE)[1]
    # With a named target, cargo lists a package for the target and the same one for build scripts separately.
    tree = cargo("tree", "--target", host, "--charset", "ascii", "-e", edges, "-f", "{p}\t{f}", *selection)
    found, path = {}, []
    for line in filter(None, tree.splitlines()):
        if heading := HEADING.match(line):
            path[len(heading["indent"]) // 4]["build"] = heading["kind"] == "build"
            continue
        package = PACKAGE.match(line)
        if not package:
            sys.exit(f"error: cargo's tree has a line that this program does not know: {line!r}")
        del path[len(package["indent"]) // 4:]
        # Procedural macros, what a build script needs, and what either needs in turn.
        for_build = "(proc-macro)" in package["more"] or bool(path and (path[-1]["for_build"] or path[-1]["build"]))
        path.append({"for_build": for_build, "build": False})
        features = set(filter(None, package["features"].split(",")))
        found[package["name"], package["version"], for_build] = features
    return found


def differences():
    """The necessary changes of tests/features, one sentence each."""
    run = sides("normal,build", *(word for name in [*programs(), FEATURES] for word in ("-p", name)))
    # A feature in tests/features must also be used by another package.
    tests = sides("normal,build,dev", "--workspace", "--exclude", FEATURES)
    for key, features in sorted(run.items()):
        (name, version, for_build), wanted = key, tests.get(key)
        table = "build-dependencies" if for_build else "dependencies"
        if name == FEATURES:
            continue
        if wanted is None:
            yield f"[{table}] take out whatever brings {name} {version}: without it, neither programs nor tests need it"
            continue
        if wanted - features:
            yield f"[{table}] {name} {version}: add {quoted(wanted - features)}"
        if features - wanted:
            yield f"[{table}] {name} {version}: take out {quoted(features - wanted)}"


def quoted(features):
    return ", ".join(f'"{feature}"' for feature in sorted(features))


def main():
    found = list(differences())
    if found:
        lines = "\n  ".join(found)
        sys.exit(f"error: `make run` builds with other features than `make test`, which builds anew what differs, and all that depends on it."
                 f"\nIn tests/features/Cargo.toml:\n  {lines}")


if __name__ == "__main__":
    main()
