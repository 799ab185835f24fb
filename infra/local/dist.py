"""make dist: makes the files of a release: the command for Linux on x86-64 and arm64, the packages and template of the stack for
both, and checksums.

    python3 infra/local/dist.py                    build everything, and pack it into target/dist
    python3 infra/local/dist.py --pack BUILT       pack what BUILT holds: <architecture>/keelway and <architecture>/lambda/<function>/bootstrap.zip

The archives of the same files are the same bytes: names are sorted, and no time, owner or machine is in them.
"""

import argparse
import gzip
import hashlib
import io
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
# Architecture -> Rust's target for the command, with the oldest glibc that it needs, and how `make package` calls the architecture.
ARCHITECTURES = {
    "x86_64": ("x86_64-unknown-linux-gnu.2.28", "x86-64"),
    "arm64": ("aarch64-unknown-linux-gnu.2.28", "arm64"),
}
# The files that deploy the stack without this repository, with their paths in it.
STACK_FILES = [
    "LICENSE",
    "docs/deploy.md",
    "docs/operations.md",
    "docs/security.md",
    "infra/boundary.json",
    "infra/deploy.sh",
    "infra/deployer-domain-policy.json",
    "infra/deployer-policy.json",
    "infra/template.yaml",
]
HOW = """Keelway {version}, the stack for {arch}. It needs the AWS SAM CLI (pip install aws-sam-cli), and nothing to build.

    export KEELWAY_TOKEN=$(openssl rand -hex 32)      # keep it: only its SHA-256 leaves this machine
    SAM=sam ARCH={package_arch} infra/deploy.sh deploy
    SAM=sam infra/deploy.sh undeploy

docs/deploy.md describes the settings. In place of `make deploy`, which it speaks of, run infra/deploy.sh as above.
"""


def version() -> str:
    for line in (REPOSITORY / "Cargo.toml").read_text().splitlines():
        if line.startswith("version = "):
            return line.split('"')[1]
    sys.exit("error: Cargo.toml names no version")


def run(*words: str, **environment: str) -> None:
    print("$", " ".join(words), flush=True)
    done = subprocess.run(words, cwd=REPOSITORY, env={**os.environ, **environment})
    if done.returncode != 0:
        sys.exit(f"error: {words[0]} ended with {done.returncode}")


def build(built: Path, tools: Path) -> None:
    """Builds the command and the functions for every architecture."""
    path = f"{tools}{os.pathsep}{os.environ['PATH']}"
    if shutil.which("rustup"):
        run("rustup", "target", "add", *(target.rsplit(".", 2)[0] for target, _ in ARCHITECTURES.values()))
    target_directory = Path(os.environ.get("CARGO_TARGET_DIR", REPOSITORY / "target"))
    for arch, (target, package_arch) in ARCHITECTURES.items():
        run("cargo-zigbuild", "zigbuild", "--release", "--package", "keelway", "--target", target, PATH=path)
        (built / arch).mkdir(parents=True, exist_ok=True)
        shutil.copy2(target_directory / target.rsplit(".", 2)[0] / "release" / "keelway", built / arch / "keelway")
        run("make", "package", f"ARCH={package_arch}", PATH=path)
        shutil.rmtree(built / arch / "lambda", ignore_errors=True)
        shutil.copytree(target_directory / "lambda", built / arch / "lambda", ignore=lambda _, names: [n for n in names if n == "bootstrap"])


def archive(to: Path, top: str, files: dict[str, tuple[bytes, int]]) -> None:
    """Writes a reproducible .tar.gz. `files`: name -> content and mode."""
    with to.open("wb") as raw, gzip.GzipFile("", "wb", 9, raw, mtime=0) as zipped:
        with tarfile.open(fileobj=zipped, mode="w", format=tarfile.USTAR_FORMAT) as tar:
            for name, (content, mode) in sorted(files.items()):
                entry = tarfile.TarInfo(f"{top}/{name}")
                entry.size, entry.mode = len(content), mode
                tar.addfile(entry, io.BytesIO(content))


def pack(built: Path, to: Path) -> list[Path]:
    """Packs the builds; returns the written files."""
    to.mkdir(parents=True, exist_ok=True)
    of = version()
    license_text = (REPOSITORY / "LICENSE").read_bytes()
    made = []
    for arch, (_, package_arch) in ARCHITECTURES.items():
        command = built / arch / "keelway"
        # The command lies beside the functions, because it was built for the same target.
        packages = sorted((built / arch / "lambda").glob("keelway-*/bootstrap.zip"))
        if not command.is_file() or not packages:
            sys.exit(f"error: {built / arch} holds no keelway, or no lambda/<function>/bootstrap.zip: build them first")
        name = f"keelway-{of}-linux-{arch}"
        archive(to / f"{name}.tar.gz", name, {"keelway": (command.read_bytes(), 0o755), "LICENSE": (license_text, 0o644)})
        stack = f"keelway-{of}-stack-{arch}"
        files = {file: ((REPOSITORY / file).read_bytes(), 0o755 if file.endswith(".sh") else 0o644) for file in STACK_FILES}
        files |= {f"target/lambda/{package.parent.name}/bootstrap.zip": (package.read_bytes(), 0o644) for package in packages}
        files["README.txt"] = (HOW.format(version=of, arch=arch, package_arch=package_arch).encode(), 0o644)
        archive(to / f"{stack}.tar.gz", stack, files)
        made += [to / f"{name}.tar.gz", to / f"{stack}.tar.gz"]
    sums = "".join(f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in sorted(made))
    (to / "SHA256SUMS").write_text(sums)
    return [*sorted(made), to / "SHA256SUMS"]


def main() -> None:
    options = argparse.ArgumentParser(description="Builds and packs a release.")
    options.add_argument("--pack", type=Path, metavar="BUILT", help="pack what is there, and build nothing")
    options.add_argument("--to", type=Path, default=REPOSITORY / "target" / "dist", help="where the archives go (target/dist)")
    options.add_argument("--tools", type=Path, help="directory of cargo-lambda and cargo-zigbuild")
    given = options.parse_args()
    built = given.pack or REPOSITORY / "target" / "dist" / "built"
    if given.pack is None:
        if given.tools is None:
            sys.exit("error: --tools is missing: run this as make dist")
        build(built, given.tools)
    for file in pack(built, given.to):
        print(f"{file.stat().st_size:>12,}  {file}")


if __name__ == "__main__":
    main()
