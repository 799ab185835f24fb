#!/usr/bin/env python3
"""Plays Flux: watches a repository, "installs" what it finds there, and reports what runs where.

    flux.py <directory of the bare repository>

For every `*/podinfo.yaml` on main it takes the chart's version, needs a moment to install it, and reports the HelmRelease with its
condition Ready, as Flux would write it, with `keelway observe`. It knows nothing about promotions.
"""

import json
import re
import subprocess
import sys
import time

# How long an installation takes, and how often the repository is looked at.
INSTALL_SECONDS = 0.5
LOOK_SECONDS = 0.2


def git(directory, *words):
    return subprocess.run(["git", "-C", directory, *words], check=True, capture_output=True, text=True).stdout


def releases(directory, commit):
    """(namespace, version) of every release of a commit."""
    for path in git(directory, "ls-tree", "-r", "--name-only", commit).split():
        if path.endswith("/podinfo.yaml"):
            text = git(directory, "show", f"{commit}:{path}")
            namespace = re.search(r"^  namespace: (\S+)", text, re.M).group(1)
            yield namespace, re.search(r"^ +version: (\S+)", text, re.M).group(1).strip("\"'")


def report(namespace, installed, wanted, generation):
    """The object as the cluster would have it: what was installed last, and whether that is what is wanted."""
    ready = installed == wanted
    condition = {"type": "Ready", "status": "True" if ready else "False", "observedGeneration": generation,
                 "reason": "UpgradeSucceeded" if ready else "Progressing"}
    release = {
        "apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease",
        "metadata": {"name": "podinfo", "namespace": namespace, "generation": generation},
        "status": {"lastAppliedRevision": installed or "", "observedGeneration": generation, "conditions": [condition]},
    }
    subprocess.run(["keelway", "observe", "-f", "-"], input=json.dumps(release), text=True, check=True)


def main(directory):
    installed, generations, seen = {}, {}, None
    while True:
        commit = git(directory, "rev-parse", "main").strip()
        if commit != seen:
            for namespace, version in releases(directory, commit):
                if installed.get(namespace) == version:
                    continue
                generations[namespace] = generations.get(namespace, 0) + 1
                report(namespace, installed.get(namespace), version, generations[namespace])
                time.sleep(INSTALL_SECONDS)
                installed[namespace] = version
                report(namespace, version, version, generations[namespace])
            seen = commit
        time.sleep(LOOK_SECONDS)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
