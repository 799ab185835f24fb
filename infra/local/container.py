#!/usr/bin/env python3
"""`make test-container`: the suite on the local cloud, with the cloud in a container of its own (tests/container.md).

The image is built of the Containerfile beside this. Arguments are those of the suite: `container.py store::`.

The exit code is 0 if every test passed; 1: something failed; 3: something could not be run here, and is named.
"""

import contextlib
import hashlib
import os
import platform
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import run  # noqa: E402
from keelway_local import engine, environment  # noqa: E402
from keelway_local.common import ROOT, Problem, Step, say, tail  # noqa: E402

HERE = Path(__file__).resolve().parent
FOLDER = ROOT / ".keelway" / "container"
CONTAINERFILE = HERE / "Containerfile"
# The files that the Containerfile copies.
COPIED = ("requirements.txt", "cloud.py", "launch.py", "keelway_local/*.py")
IMAGE = "localhost/keelway-cloud"
RELEASE = "trixie"
BASE = f"docker.io/library/debian:{RELEASE}-slim"
# The name of the same base image, if debootstrap makes it because no registry is reachable.
OWN_BASE = f"localhost/keelway-debian:{RELEASE}"
MIRROR = "http://deb.debian.org/debian"
# Limits on files and processes, where the defaults of podman do not work.
LIMIT = 4096
NOT_RUN = 3
READY_SECONDS = 60
# Where machines keep the certificates that pip is told to use.
CERTIFICATES = ("PIP_CERT", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE")


class NotRun(Exception):
    """The reason why the suite cannot run here."""


# --- the API ---

def podman_settings():
    """Variables for podman. On a machine without cgroups v2 they replace the defaults, which do not work there."""
    if "CONTAINERS_CONF" in os.environ or Path("/sys/fs/cgroup/cgroup.controllers").exists():
        return {}
    runtime = next((name for name in ("runc", "crun") if shutil.which(name)), None)
    if not runtime:
        raise NotRun("podman has nothing that runs containers: install runc (Debian and Ubuntu: apt install runc)")
    # The default limits of podman exceed what root may set without all capabilities.
    hard = {"nofile": resource.getrlimit(resource.RLIMIT_NOFILE)[1], "nproc": resource.getrlimit(resource.RLIMIT_NPROC)[1]}
    limits = [f"{name}={most}:{most}" for name, of in hard.items() for most in [min(of, LIMIT) if of > 0 else LIMIT]]
    file = FOLDER / "containers.conf"
    file.write_text(f'[containers]\ndefault_ulimits = [{", ".join(map(repr, limits))}]\n'
                    f'[engine]\nruntime = "{runtime}"\ncgroup_manager = "cgroupfs"\nevents_logger = "file"\n')
    return {"CONTAINERS_CONF": str(file)}


def podman_of_this_machine():
    """The path of podman, which can serve the API itself. Only on Linux: elsewhere its containers run in a machine with another
    network."""
    return shutil.which("podman") if platform.system() == "Linux" and not os.environ.get("DOCKER_HOST") else None


@contextlib.contextmanager
def api():
    """(the API, the directory that tests and container share, a pipe for the id of the process group of the tests: one line with
    the id, and one with 0 at its end). Nothing is left over at the end, even if this process is killed."""
    named = os.environ.get("DOCKER_HOST")
    if named and not engine.is_local(named):
        raise NotRun(f"DOCKER_HOST is {named}: tests share a directory and the loopback address with their container, so name a Docker API of this "
                     f"machine (unix://… or tcp://127.0.0.1:…)")
    found, looked = engine.find()
    if not found and not podman_of_this_machine():
        raise NotRun(_missing(looked))
    if found and platform.system() != "Linux" and found.kind() == "podman":
        raise NotRun("podman's machine has a loopback address of its own: use Docker Desktop here, with host networking on (tests/container.md)")
    settings = {} if found else podman_settings()
    folder = tempfile.mkdtemp(prefix="keelway-container-")
    # In the directory of podman's socket.
    shared = os.path.join(folder, "tmp")
    words = [shared, found.url] if found else [shared, f"unix://{folder}/podman.sock", "--serve"]
    keeper = subprocess.Popen([sys.executable, __file__, "--guard", folder, *words], env={**os.environ, **settings}, stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True, start_new_session=True)
    try:
        if keeper.stdout.readline().strip() != "ready":
            raise NotRun(f"no Docker API answers, and `podman system service` does not start; the end of {FOLDER / 'podman.log'}:\n"
                         f"{tail(FOLDER / 'podman.log')}")
        yield engine.Engine(words[1]), shared, keeper.stdin
    finally:
        keeper.stdin.close()
        keeper.wait()


def _missing(looked):
    places = "; ".join(f"{url}: {why}" for url, why in looked.items())
    if os.environ.get("DOCKER_HOST"):
        return f"no Docker API answers where DOCKER_HOST says ({places})"
    what = ("start Docker Desktop with host networking on" if platform.system() == "Darwin" else
            "install podman (Debian and Ubuntu: apt install podman runc), or start Docker")
    return f"there is no Docker API, and no podman: {what}. Looked at {places}"


def guard(folder, shared, url, serve):
    """Runs in a session of its own: serves podman's API if asked to, waits until the parent ends, and removes what the parent left
    over."""
    found, service = engine.Engine(url), None
    os.mkdir(shared)
    if serve:
        with open(FOLDER / "podman.log", "wb") as log:
            service = subprocess.Popen(["podman", "system", "service", "--time", "0", url], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(name, signal.SIG_IGN)
    try:
        deadline = time.monotonic() + READY_SECONDS
        while found.why_not() and time.monotonic() < deadline and not (service and service.poll() is not None):
            time.sleep(0.05)
        if not found.why_not():
            print("ready", flush=True)
            told = sys.stdin.read().split()
            if told and told[-1] != "0":
                _end_group(int(told[-1]))
            _clean(found, shared)
    finally:
        if service:
            service.terminate()
            service.wait()
        shutil.rmtree(folder, ignore_errors=True)


def _end_group(group):
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGTERM)


def _clean(found, shared):
    """Removes what the tests have left over. They usually remove their container and their files themselves, but a process that
    outlives them may be creating more: removal ends when nothing was found twice, a second apart."""
    looks, deadline = 0, time.monotonic() + READY_SECONDS
    while looks < 2 and time.monotonic() < deadline:
        try:
            left = found.labelled(shared)
            for container in left:
                found.remove(container)
        except (OSError, Problem) as error:
            left = []
            say(f"containers of {shared}: {error}")
        files = os.path.exists(shared)
        shutil.rmtree(shared, ignore_errors=True)
        looks = 0 if left or files else looks + 1
        time.sleep(1 if looks < 2 else 0)


# --- the image ---

class Command:
    """The command line of podman or Docker, for builds."""

    def __init__(self, found):
        name = found.kind()
        program = shutil.which(name)
        if not program:
            raise NotRun(f"{found.url} is an API of {name}, and the command {name}, which builds the image, is not installed")
        self._start = [program, "--url" if name == "podman" else "--host", found.url]
        # A build takes its limits from the command, not from the API.
        self._env = {**os.environ, "DOCKER_BUILDKIT": "1", **(podman_settings() if name == "podman" else {})}

    def __call__(self, *words, log=subprocess.DEVNULL):
        """Runs a command; returns whether it succeeded."""
        return subprocess.run([*self._start, *words], env=self._env, stdin=subprocess.DEVNULL, stdout=log, stderr=log).returncode == 0

    def has(self, image):
        return self("image", "inspect", image)

    def tags(self):
        listed = subprocess.run([*self._start, "images", "--format", "{{.Repository}}:{{.Tag}}", IMAGE], env=self._env, capture_output=True, text=True)
        return listed.stdout.split()


def image(command):
    """The image of this code. It is built if it does not exist; images of earlier code are removed."""
    base = _base(command)
    files = [CONTAINERFILE, *sorted(path for pattern in COPIED for path in HERE.glob(pattern))]
    digest = hashlib.sha256(base.encode())
    for file in files:
        digest.update(f"{file.name} {file.stat().st_size}\n".encode() + file.read_bytes())
    wanted = f"{IMAGE}:{digest.hexdigest()[:12]}"
    if not command.has(wanted):
        _build(command, base, wanted)
    for old in set(command.tags()) - {wanted}:
        command("image", "rm", old)
    return wanted


def _build(command, base, wanted):
    log = FOLDER / "build.log"
    secrets = {"ca": next((os.environ[name] for name in CERTIFICATES if os.path.isfile(os.environ.get(name, ""))), None),
               "pip": os.environ.get("PIP_CONFIG_FILE")}
    words = [word for name, path in secrets.items() if path and os.path.isfile(path) for word in ("--secret", f"id={name},src={path}")]
    with Step(f"building the image {wanted} (once for each change of infra/local)"), open(log, "wb") as out:
        words += ["--tag", wanted, "--file", str(CONTAINERFILE), str(HERE)]
        if not command("build", "--network", "host", "--build-arg", f"BASE={base}", *words, log=out):
            raise Problem(f"the image was not built; the end of {log}:\n{tail(log)}")


def _base(command):
    """The base image: the named one, one of a registry, or one that debootstrap makes of Debian's packages."""
    named, log = os.environ.get("KEELWAY_CONTAINER_BASE"), FOLDER / "pull.log"
    wanted = named or BASE
    for one in (wanted,) if named else (wanted, OWN_BASE):
        if command.has(one):
            return one
    with Step(f"fetching {wanted} (once)"), open(log, "wb") as out:
        if command("pull", wanted, log=out):
            return wanted
    why = f"{wanted} cannot be fetched ({tail(log, 1)})"
    if named:
        raise NotRun(why)
    if platform.system() != "Linux":
        raise NotRun(f"{why}: name an image of Debian or Ubuntu with KEELWAY_CONTAINER_BASE")
    program = shutil.which("debootstrap", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if not program or os.getuid() != 0:
        lacks = "" if program else "install debootstrap (Debian and Ubuntu: apt install debootstrap), and "
        raise NotRun(f"{why}, and it is not made of Debian's packages here: {lacks}run this as root, or name an image of Debian or Ubuntu with "
                     f"KEELWAY_CONTAINER_BASE")
    _debootstrap(command, program)
    return OWN_BASE


def _debootstrap(command, program):
    log, mirror = FOLDER / "debootstrap.log", os.environ.get("KEELWAY_DEBIAN_MIRROR") or MIRROR
    with Step(f"making {OWN_BASE} of Debian's packages (once)"), open(log, "wb") as out, tempfile.TemporaryDirectory(dir=FOLDER) as folder:
        root = Path(folder) / "root"
        made = subprocess.run([program, "--variant=minbase", RELEASE, str(root), mirror], stdin=subprocess.DEVNULL, stdout=out, stderr=out)
        if made.returncode:
            raise Problem(f"debootstrap failed; name a mirror with KEELWAY_DEBIAN_MIRROR if {mirror} is not reached. The end of {log}:\n{tail(log)}")
        archive = Path(folder) / "root.tar"
        subprocess.run(["tar", "--create", "--one-file-system", "--file", str(archive), "--directory", str(root), "."], check=True)
        if not command("import", str(archive), OWN_BASE, log=out):
            raise Problem(f"the image {OWN_BASE} was not made; the end of {log}:\n{tail(log)}")


# --- the suite ---

def functions():
    """Variables with the functions for the container: packages, if the binaries of this build are not for Linux."""
    if platform.system() == "Linux":
        return {}
    packages = run.target().parent / "lambda"
    if missing := [name for name in run.functions() if not (packages / f"keelway-{name}" / "bootstrap.zip").is_file()]:
        raise NotRun(f"the container runs programs for Linux: run `make package` first, {', '.join(missing)} is not in {packages}")
    return {"KEELWAY_TEST_FUNCTIONS": str(packages)}


def suite(executable, found, shared, name, tell, arguments):
    """Runs the suite with its cloud in a container; returns whether it passed."""
    variables = {"KEELWAY_CLOUD_PY": str(HERE / "cloud.py"), "KEELWAY_VENV_PYTHON": str(environment.ensure("cloud")), "TMPDIR": shared,
                 "DOCKER_HOST": found.url, "KEELWAY_TEST_CONTAINER": "1", "KEELWAY_TEST_IMAGE": name, **functions()}
    env = {key: value for key, value in os.environ.items() if key not in ("AWS_ENDPOINT_URL", "TESTCONTAINERS_COMMAND")}
    # In a process group, which is ended as a whole: what the tests have started must not outlive them.
    process = subprocess.Popen([executable, *arguments], cwd=ROOT / "tests" / "cloud", env={**env, **variables}, stdin=subprocess.DEVNULL,
                               start_new_session=True)
    try:
        print(process.pid, file=tell, flush=True)
        return process.wait() == 0
    finally:
        _end_group(process.pid)
        process.wait()
        print(0, file=tell, flush=True)


def main(arguments):
    FOLDER.mkdir(parents=True, exist_ok=True)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    functions()
    with api() as (found, shared, tell):
        name = image(Command(found))
        executable = run.build_tests()["cloud"]
        passed = suite(executable, found, shared, name, tell, arguments)
    say(f"the suite with its cloud in a container of {name} {'passed' if passed else 'FAILED'}")
    return passed


if __name__ == "__main__":
    if sys.argv[1:2] == ["--guard"]:
        guard(*sys.argv[2:5], "--serve" in sys.argv[5:])
        sys.exit()
    try:
        sys.exit(0 if main(sys.argv[1:]) else 1)
    except NotRun as missing:
        say(f"not run: {missing}")
        sys.exit(NOT_RUN)
    except Problem as problem:
        sys.exit(f"error: {problem}")
    except KeyboardInterrupt:
        sys.exit(130)
