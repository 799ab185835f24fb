"""Copies the repository, writes mutants and plants into the copy, and builds the tests there without those that do not compile."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

from ..common import ROOT, Problem, Step, say
from . import lists, schemata

WORK = ROOT / "target" / "mutants"
COPY = WORK / "source"
DOMAIN = Path("shared/domain/src")
# The unit tests are an integration test of the domain here, and not of a package of their own: optimised, because they run
# thousands of times. The last three judge evaluations and canaries.
TESTS = ("keelway-domain", "conformance", "wire", "model", "deployers")
UNIT_PACKAGE = "tests/domain"
UNIT_TESTS = '\n[[test]]\nname = "keelway-domain"\npath = "src/lib.rs"\n'
ROUNDS = 20


def target():
    return Path(os.environ.get("KEELWAY_MUTANTS_TARGET") or WORK / "target").resolve()


def tracked():
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True)
    names = [name for name in listed.stdout.decode().split("\0") if name and (ROOT / name).is_file()]
    return [name for name in names if not Path(name).is_relative_to(UNIT_PACKAGE)]


def mutated(name):
    """Whether a file is part of the pure cores, and no test."""
    path = Path(name)
    return path.suffix == ".rs" and path.is_relative_to(DOMAIN) and path.name != "tests.rs" and "tests" not in path.parts


class Copy:
    """The copy of the repository with all mutants in it."""

    def __init__(self, plants):
        self.plants = plants
        self.without = set()
        known = WORK / "not-viable.json"
        if known.exists():
            self.without = {tuple(key) for key in json.loads(known.read_text())}
        self.known = known
        self.mutants, self.spans = [], {}

    def write(self):
        """Writes the files that have changed."""
        names = tracked()
        self.mutants, self.spans, first = [], {}, 1
        for name in names:
            source = (ROOT / name).read_bytes()
            here = [plant for plant in self.plants if plant.file == name]
            if mutated(name) or here:
                crate = "crate" if Path(name).is_relative_to(DOMAIN) else "keelway_domain"
                file = schemata.File(name, source, self.without, here, first, mutated(name), f"{crate}::mutant::on")
                source, first = self._rewrite(file, first)
            self._put(name, self._adapted(name, source))
        count = max([first, *(plant.number for plant in self.plants)]) + 1
        module = (Path(__file__).parent / "mutant.rs").read_text()
        module = module.replace("const COUNT: usize = 1;", f"const COUNT: usize = {count};")
        self._put(str(DOMAIN / "mutant.rs"), module.encode())
        written = {*names, str(DOMAIN / "mutant.rs"), "Cargo.lock"}
        for path in COPY.rglob("*"):
            name = str(path.relative_to(COPY))
            if path.is_file() and name not in written:
                path.unlink()

    def _rewrite(self, file, first):
        try:
            schemata.place(file.plants, file.source)
            text, spans = file.rewrite()
        except ValueError as error:
            raise Problem(f"tests/mutants/plants: {error}") from None
        self.mutants += file.mutants
        self.spans[file.name] = spans
        return text, first + len(file.mutants)

    @staticmethod
    def _adapted(name, source):
        if name == "Cargo.toml":
            # Lints do not apply to mutants.
            return re.sub(rb"(\[workspace\.lints\.\w+\]\n)[^\[]*", rb"\1\n", source.replace(f'"{UNIT_PACKAGE}", '.encode(), b""))
        if name == "shared/domain/Cargo.toml":
            return source + UNIT_TESTS.encode()
        if name == str(DOMAIN / "lib.rs"):
            return source + b"\npub mod mutant;\n"
        return source

    @staticmethod
    def _put(name, data):
        path = COPY / name
        if not path.exists() or path.read_bytes() != data:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)

    def build(self):
        """Removes mutants that do not compile until the rest does; {name of a test executable: its path}."""
        for _ in range(ROUNDS):
            self.write()
            errors, _ = self._cargo("check", "--test", TESTS[0])
            if not errors:
                break
            self._take_out(errors)
        errors, executables = self._cargo("test", "--no-run", *(word for name in TESTS for word in ("--test", name)))
        if errors:
            shown = "\n".join(error["rendered"] for error in errors[:5])
            raise Problem(f"the copy with mutants does not build; if a plant is the reason, mend it:\n{shown}")
        return executables

    def _cargo(self, verb, *words):
        cargo = os.environ.get("CARGO") or shutil.which("cargo") or "cargo"
        command = [cargo, verb, "--workspace", *words, "--message-format=json", "--quiet"]
        with Step(f"cargo {verb} of the copy with {len(self.mutants) - len(self.without)} mutants"):
            # The debug information of so many branches would take gigabytes.
            env = {**os.environ, "CARGO_TARGET_DIR": str(target()), "CARGO_INCREMENTAL": "0", "CARGO_PROFILE_DEV_DEBUG": "false"}
            done = subprocess.run(command, cwd=COPY, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        told = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        errors = [line["message"] for line in told if line["reason"] == "compiler-message" and line["message"]["level"] == "error"]
        errors = [error for error in errors if error["spans"]]
        if done.returncode and not errors:
            raise Problem(f"cargo {verb} failed in {COPY}:\n{done.stderr[-3000:]}")
        built = [line for line in told if line["reason"] == "compiler-artifact" and line["executable"]]
        executables = {line["target"]["name"]: line["executable"] for line in built}
        return errors, executables

    def _take_out(self, errors):
        by_number = {mutant.number: mutant for mutant in self.mutants}
        before = len(self.without)
        for error in errors:
            numbers = self._blamed(error)
            if not numbers:
                raise Problem(f"no mutant is to blame, so the copy is wrong:\n{error['rendered']}")
            for number in numbers:
                if number not in by_number:
                    raise Problem(f"a plant does not compile:\n{error['rendered']}")
                self.without.add(by_number[number].key)
        say(f"  {len(self.without) - before} mutants do not compile")
        WORK.mkdir(parents=True, exist_ok=True)
        self.known.write_text(json.dumps(sorted(self.without), indent=0))

    def _blamed(self, error):
        """The mutants in the smallest text around the place that the compiler names."""
        places = sorted(error["spans"], key=lambda span: not span["is_primary"])
        for place in places:
            spans = self.spans.get(place["file_name"], [])
            around = [(end - begin, numbers) for begin, end, numbers in spans
                      if begin <= place["byte_start"] and place["byte_end"] <= end]
            if around:
                return min(around)[1]
        for place in places:
            inside = [numbers for begin, end, numbers in self.spans.get(place["file_name"], [])
                      if place["byte_start"] <= begin and end <= place["byte_end"]]
            if inside:
                return [number for numbers in inside for number in numbers]
        return []

    def viable(self):
        return [mutant for mutant in self.mutants if mutant.key not in self.without]


def prepared():
    """The copy, built; and its test executables."""
    plants = lists.plants()
    copy = Copy(plants)
    return copy, copy.build()
