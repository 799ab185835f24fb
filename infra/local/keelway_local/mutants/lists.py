"""tests/mutants: the lists of equivalent mutants, and of planted mistakes."""

from pathlib import Path

import yaml

from ..common import ROOT, Problem
from .schemata import Plant

FOLDER = ROOT / "tests" / "mutants"
EQUIVALENT = FOLDER / "equivalent.yaml"


def _read(path):
    try:
        return yaml.safe_load(Path(path).read_text()) or []
    except yaml.YAMLError as error:
        raise Problem(f"{path} cannot be read: {error}") from None


def equivalent():
    """{key of a mutant: why it is equivalent}"""
    found = {}
    for entry in _read(EQUIVALENT):
        try:
            text = " ".join(str(entry["text"]).split())
            key = (entry["file"], entry["function"], text, str(entry["replacement"]), entry.get("index", 0))
            if not entry["why"] or key in found:
                raise Problem(f"{EQUIVALENT.name}: {key} needs one entry with a reason (`why`)")
            found[key] = entry["why"]
        except KeyError as error:
            raise Problem(f"{EQUIVALENT.name}: an entry has no {error}: {entry}") from None
    return found


def plants():
    """All planted mistakes. Their numbers follow those of the mutants."""
    found = []
    for path in sorted((FOLDER / "plants").glob("*.yaml")):
        for entry in _read(path):
            change = (entry["find"].rstrip("\n"), entry["replace"].rstrip("\n"))
            found.append(Plant(path.stem, entry["name"], entry["file"], change, entry["wrong"], entry["rule"]))
    names = [(plant.engine, plant.name) for plant in found]
    if len(set(names)) != len(names):
        raise Problem("tests/mutants/plants: two plants of an engine have one name")
    for number, plant in enumerate(found, 20_001):
        plant.number = number
    return found
