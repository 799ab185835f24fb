"""The third act of `make run`: examples/greeter, a function behind an alias that Keelway deploys itself.

A release is a package of code in S3. Pushing one is a signed request that says to which package the tag points now. While versions
come and go, somebody calls the service again and again and says what it answers. How a version ended comes from
`keelway rollout status`.

Metrics name versions of the function, and figures.txt names releases: as soon as Keelway says which version a release has become,
its figures are in the metric store.

Two speak at the same time here, the caller and the command that is followed. Both do so through `say`, line by line.
"""

import hashlib
import hmac
import json
import os
import re
import secrets
import shlex
import subprocess
import threading
import time
import urllib.error
import urllib.request

from keelway_local.common import ROOT, Problem, say

EXAMPLE = ROOT / "examples" / "greeter"
NAMESPACE, CONFIG, ALIAS = "greetings", "greeter", "live"
# The source of the packages, the tag that the config watches, and the bucket.
SOURCE, TAG, BUCKET = "greeter", "stable", "greeter-releases"
# The parameters of the template that give Keelway the necessary permissions.
PARAMETERS = {"DeployedFunctions": "arn:aws:lambda:*:*:function:greeter*",
              "DeployedPackages": f"arn:aws:s3:::{BUCKET}/*",
              "HookFunctions": "arn:aws:lambda:*:*:function:greeter-smoke"}
# The releases, with the fault of each.
RELEASES = {"1.0.0": None, "1.1.0": None, "1.2.0": ('"en": ', '"eng": '), "1.2.1": None}
FIRST, GOOD, BAD, MENDED = RELEASES
PATIENCE_SECONDS = int(os.environ.get("KEELWAY_RUN_SECONDS", "300"))
LOOK_SECONDS = 0.2


def figures(state):
    """The file with the figures of the versions that are known."""
    path = state.path("greeter-figures.txt")
    path.touch()
    return path


def of_figures(state, example):
    """The manifest of an example's metric store, at the port where it is played; its path."""
    port, path = state.read("figures.json", {})["port"], state.path(f"metrics-{example.name}.yaml")
    path.write_text((example / "evaluation" / "metrics.yaml").read_text().replace("127.0.0.1:9464", f"127.0.0.1:{port}"))
    return os.path.relpath(path, ROOT)


def opened(request):
    """The answer of a server on this machine, without the proxy of the shell."""
    return urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=30)


def build(state, cloud, stack):
    """Builds every release into a package, and makes the function, its alias and the hook. {release: its package}, and the
    service's URL."""
    files = []
    for release, fault in RELEASES.items():
        text = (EXAMPLE / "greeter.py").read_text().replace(f'RELEASE = "{FIRST}"', f'RELEASE = "{release}"')
        path = state.path(f"greeter-{release}.py")
        path.write_text(text.replace(*fault) if fault else text)
        files.append(str(path))
    packages = json.loads(cloud(state, "package", BUCKET, *files))
    service = json.loads(cloud(state, "function", CONFIG, files[0], "--alias", ALIAS, "--stack", stack))
    cloud(state, "function", "greeter-smoke", str(EXAMPLE / "smoke.py"), "--variable", f"SERVICE_URL={service['url']}",
          "--stack", stack)
    return dict(zip(RELEASES, packages)), service["url"]


class Registry:
    """The build system: tells Keelway to which package a tag points, signed with the key in the secret of the source."""

    def __init__(self, state, env, cloud):
        self.api, self.installation = env["KEELWAY_API"].rstrip("/"), env["KEELWAY_INSTALLATION"]
        # The key does not change, because functions cache secrets for minutes.
        known = state.read("registry.json", {}) or {"key": secrets.token_hex(20)}
        state.write("registry.json", known)
        self.key = known["key"]
        text = json.dumps({"keys": [{"id": "build", "key": self.key}]})
        cloud(state, "secret", f"{NAMESPACE}/registry", text, "--stack", env["KEELWAY_STACK"])

    def push(self, package):
        path = f"/v1/artifacts/{NAMESPACE}/{SOURCE}"
        body = json.dumps({"tag": TAG, "image": package["image"], "digest": package["digest"]}).encode()
        now, nonce = str(int(time.time())), secrets.token_hex(16)
        text = "\n".join(["keelway-signature-v2", self.installation, "POST", path, "", now, nonce, hashlib.sha256(body).hexdigest()])
        signature = hmac.new(self.key.encode(), text.encode(), hashlib.sha256).hexdigest()
        headers = {"content-type": "application/json", "x-keelway-key": "build", "x-keelway-timestamp": now, "x-keelway-nonce": nonce,
                   "x-keelway-signature": f"sha256={signature}"}
        try:
            opened(urllib.request.Request(f"{self.api}{path}", body, headers)).close()
        except urllib.error.HTTPError as error:
            raise Problem(f"the push of {package['image']} was refused: {error.code} {error.read().decode()}") from error


class Caller:
    """Calls the service until it is told to stop, and prints each answer that differs from the last one."""

    def __init__(self, url):
        self.url, self.last, self._stop = url, None, threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        self._thread.join()

    def _call(self):
        try:
            with opened(self.url) as answer:
                return f"{answer.status} {answer.read().decode()}"
        except urllib.error.HTTPError as error:
            return f"{error.code} (the service is broken)"

    def _run(self):
        while not self._stop.wait(LOOK_SECONDS):
            told = self._call()
            if told != self.last:
                say(f"  GET {self.url}: {told}")
                self.last = told


class Story:
    """The config: its status, and commands for it."""

    def __init__(self, env, packages, registry, keelway, measured):
        self.env, self.packages, self.registry, self.keelway, self.measured = env, packages, registry, keelway, measured

    def show(self, programs, *words):
        """Runs a command beside the caller and says its lines; its exit code.

        With the terminal for itself, a command may draw its lines again in their place, and that is where the caller's would stand
        by then. In a pipe, it prints what changes.
        """
        say(f"$ keelway {shlex.join(words)}")
        with subprocess.Popen([str(programs / "keelway"), *words], cwd=ROOT, env=self.env, encoding="utf-8", errors="replace",
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as command:
            for line in command.stdout:
                say(line.rstrip("\n"))
        return command.returncode

    def config(self):
        text = self.keelway(self.env, "get", "deploymentconfigs", "-p", NAMESPACE, "--output", "json", capture=True)
        return next((config for config in json.loads(text)["items"] if config["name"] == CONFIG), {})

    def latest(self):
        """Number of the latest version; 0 if there is none."""
        return self.config().get("latestVersion", 0)

    def push(self, release, quiet=False):
        """Pushes a release: the tag points to the new package."""
        package = self.packages[release]
        if not quiet:
            say(f"POST /v1/artifacts/{NAMESPACE}/{SOURCE}, signed by the build: {TAG} is {package['image']}")
        self.registry.push(package)

    def number(self, release):
        """The version of the function that a release has become, if the latest version of the config deploys it; or None."""
        latest = self.config().get("latest") or {}
        deploys = any(self.packages[release]["digest"] in image for image in latest.get("images", {}).values())
        told = latest.get("progress", {}).get("targets", {}).get(ALIAS, {}).get("message", "")
        # Before the first step, a target is at the version that it had.
        found = re.search(r"^at Lambda version (\S+)$" if latest.get("status") == "Complete" else r"requests go to Lambda version (\S+)$", told)
        return found[1] if deploys and found else None

    def measure(self, release):
        """The metric store learns the figures of a release when the function has a version of it."""
        self.until(lambda: self.number(release), f"the version of release {release}")
        named, version = f'release="{release}"', f'version="{self.number(release)}"'
        figures = [line for line in (EXAMPLE / "figures.txt").read_text().splitlines() if named in line]
        others = [line for line in self.measured.read_text().splitlines() if version not in line]
        self.measured.write_text("\n".join([*others, *(line.replace(named, f"{named},{version}") for line in figures), ""]))

    def follow(self, after, programs, release=None):
        """`rollout status` of the version after this one. The exit code tells the result."""
        self.until(lambda: self.latest() > after, f"a version after {after}")
        if release:
            self.measure(release)
        return self.show(programs, "rollout", "status", CONFIG, "-p", NAMESPACE, "--revision", str(after + 1)) == 0

    def until(self, found, what):
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not found():
            if time.monotonic() > deadline:
                raise Problem(f"{what} did not come within {PATIENCE_SECONDS} s: `keelway rollout history {CONFIG} -p {NAMESPACE}` shows "
                              f"what there was, `make logs` what the functions logged")
            time.sleep(LOOK_SECONDS)


def expect(good, what):
    if not good:
        raise Problem(f"{what}: `keelway rollout history {CONFIG} -p {NAMESPACE}` shows more, `make logs` what the functions logged")


def prepare(state, env, keelway, cloud):
    """Builds the releases and deploys the first one. It prints nothing, because it runs during the second act."""
    packages, url = build(state, cloud, env["KEELWAY_STACK"])
    registry = Registry(state, env, cloud)
    story = Story(env, packages, registry, lambda env, *words, **_: keelway(env, *words, capture=True), figures(state))
    before = story.latest()
    folder = EXAMPLE.relative_to(ROOT)
    keelway(env, "apply", "-f", str(folder), "-f", of_figures(state, EXAMPLE), capture=True)
    for name in ("slo.yaml", "sli.yaml"):
        keelway(env, "resource", "add", str(folder / "evaluation" / name), "-p", NAMESPACE, capture=True)
    story.push(FIRST, quiet=True)
    if before:
        # An earlier run may have ended before it resumed the triggers.
        keelway(env, "set", "triggers", CONFIG, "-p", NAMESPACE, "--resume", capture=True)
    story.until(lambda: story.latest() > before, "the first version")
    story.measure(FIRST)
    return Story(env, packages, registry, keelway, story.measured), url


def run(prepared, programs):
    say("")
    say("A function behind an alias, deployed as a canary")
    story, url = prepared
    env, keelway = story.env, story.keelway
    at = story.latest()
    with Caller(url) as caller:
        expect(story.follow(at - 1, programs), f"{FIRST} was not deployed")
        story.push(GOOD)
        expect(story.follow(at, programs, GOOD), f"{GOOD} was not deployed")
        story.until(lambda: caller.last and GOOD in caller.last, f"an answer of {GOOD}")
        story.push(BAD)
        expect(not story.follow(at + 1, programs, BAD), f"{BAD} was deployed, though its requests fail")
        # Why, as numbers.
        story.show(programs, "rollout", "history", CONFIG, "-p", NAMESPACE, "--revision", str(at + 2))
        expect(story.follow(at + 2, programs), "the rollback failed")
        story.until(lambda: caller.last and GOOD in caller.last, f"an answer of {GOOD} after the rollback")
        by_a_sequence(story, caller, programs)
    keelway(env, "rollout", "history", CONFIG, "-p", NAMESPACE, "--limit", "5")


def by_a_sequence(story, caller, programs):
    """The rollback has suspended the triggers: a push is deployed only by a sequence or a person's command."""
    story.push(MENDED)
    threading.Thread(target=story.measure, args=(MENDED,), daemon=True).start()
    words = ("trigger", "sequence", "delivery", "--project", NAMESPACE, "--stage", "production", "--service", CONFIG, "--watch")
    expect(story.show(programs, *words) == 0, f"the sequence that deploys {MENDED} failed")
    story.until(lambda: caller.last and MENDED in caller.last, f"an answer of {MENDED}")
    expect(story.show(programs, "set", "triggers", CONFIG, "-p", NAMESPACE, "--resume") == 0, "the triggers are not resumed")
