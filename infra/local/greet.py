"""The third act of `make run`: examples/greeter, a function behind an alias that Keelway deploys itself.

While versions come and go, somebody calls the service again and again and says what it answers. How a version ended comes from
`keelway rollout status`.
"""

import json
import os
import subprocess
import threading
import time
import urllib.error
import urllib.request

from keelway_local.common import ROOT, Problem, say

EXAMPLE = ROOT / "examples" / "greeter"
NAMESPACE, CONFIG, ALIAS = "greetings", "greeter", "live"
# What the stack has to allow Keelway: the template's parameters.
PARAMETERS = {"DeployedFunctions": "arn:aws:lambda:*:*:function:greeter*",
              "HookFunctions": "arn:aws:lambda:*:*:function:greeter-smoke"}
# Each release, and what is wrong with it.
RELEASES = {"1.0.0": None, "1.1.0": None, "1.2.0": ('"en": ', '"eng": '), "1.2.1": None}
FIRST, GOOD, BAD, MENDED = RELEASES
PATIENCE_SECONDS = int(os.environ.get("KEELWAY_RUN_SECONDS", "300"))
LOOK_SECONDS = 0.2


def publish(state, cloud, stack):
    """Publishes every release as a version of the function, and the hook. {release: ARN of its version}, and the service's URL."""
    files = []
    for release, fault in RELEASES.items():
        text = (EXAMPLE / "greeter.py").read_text().replace(f'RELEASE = "{FIRST}"', f'RELEASE = "{release}"')
        path = state.path(f"greeter-{release}.py")
        path.write_text(text.replace(*fault) if fault else text)
        files.append(str(path))
    service = json.loads(cloud(state, "function", CONFIG, *files, "--alias", ALIAS, "--stack", stack))
    cloud(state, "function", "greeter-smoke", str(EXAMPLE / "smoke.py"), "--variable", f"SERVICE_URL={service['url']}",
          "--stack", stack)
    return dict(zip(RELEASES, service["versions"])), service["url"]


class Caller:
    """Calls the service until it is told to stop, and says each answer that differs from the one before."""

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
            with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(self.url, timeout=30) as answer:
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
    """The config as a person sees it, and what is done about it."""

    def __init__(self, state, env, versions, keelway):
        self.state, self.env, self.versions, self.keelway = state, env, versions, keelway

    def latest(self):
        """Number of the latest version; 0 if there is none."""
        text = self.keelway(self.env, "get", "deploymentconfigs", "-n", NAMESPACE, "--output", "json", capture=True)
        return next((config["latestVersion"] for config in json.loads(text)["deploymentConfigs"] if config["name"] == CONFIG), 0)

    def apply(self, release):
        """As whoever released it: the template names the new version."""
        path = self.state.path("greeter.yaml")
        text = (EXAMPLE / "greeter.yaml").read_text()
        path.write_text(text.replace(text.rpartition("image: ")[2].strip(), self.versions[release]))
        self.keelway(self.env, "apply", "-f", os.path.relpath(path, ROOT))

    def follow(self, after, programs):
        """`rollout status` of the version that comes after this one. Its exit code says how it ended."""
        self.until(lambda: self.latest() > after, f"a version after {after}")
        words = ["rollout", "status", CONFIG, "-n", NAMESPACE, "--revision", str(after + 1)]
        say(f"$ keelway {' '.join(words)}")
        return subprocess.run([str(programs / "keelway"), *words], cwd=ROOT, env=self.env).returncode == 0

    def until(self, found, what):
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not found():
            if time.monotonic() > deadline:
                raise Problem(f"{what} did not come within {PATIENCE_SECONDS} s: `keelway rollout history {CONFIG} -n {NAMESPACE}` shows "
                              f"what there was, `make logs` what the functions logged")
            time.sleep(LOOK_SECONDS)


def expect(good, what):
    if not good:
        raise Problem(f"{what}: `keelway rollout history {CONFIG} -n {NAMESPACE}` shows more, `make logs` what the functions logged")


def prepare(state, env, keelway, cloud):
    """Publishes the releases and has the first one deployed. Nothing is shown: this happens while the second act plays."""
    versions, url = publish(state, cloud, env["KEELWAY_STACK"])
    story = Story(state, env, versions, lambda env, *words, **_: keelway(env, *words, capture=True))
    keelway(env, "apply", "-f", str((EXAMPLE / "project.yaml").relative_to(ROOT)), "-f",
            str((EXAMPLE / "shipyard.yaml").relative_to(ROOT)), capture=True)
    before = story.latest()
    if before:
        # An earlier run may have ended before it resumed them.
        keelway(env, "set", "triggers", CONFIG, "-n", NAMESPACE, "--resume", capture=True)
    story.apply(FIRST)
    story.until(lambda: story.latest() > before, "the first version")
    return Story(state, env, versions, keelway), url


def run(prepared, programs):
    say("")
    say("A function behind an alias, deployed as a canary")
    story, url = prepared
    env, keelway = story.env, story.keelway
    at = story.latest()
    with Caller(url) as caller:
        expect(story.follow(at - 1, programs), f"{FIRST} was not deployed")
        story.apply(GOOD)
        expect(story.follow(at, programs), f"{GOOD} was not deployed")
        story.until(lambda: caller.last and GOOD in caller.last, f"an answer of {GOOD}")
        story.apply(BAD)
        expect(not story.follow(at + 1, programs), f"{BAD} was deployed, though it does not answer")
        expect(story.follow(at + 2, programs), "the rollback failed")
        story.until(lambda: caller.last and GOOD in caller.last, f"an answer of {GOOD} after the rollback")
        keelway(env, "set", "triggers", CONFIG, "-n", NAMESPACE, "--resume")
        keelway(env, "trigger", "delivery", "--project", NAMESPACE, "--service", CONFIG, "--image", story.versions[MENDED], "--watch")
        story.until(lambda: caller.last and MENDED in caller.last, f"an answer of {MENDED}")
    keelway(env, "rollout", "history", CONFIG, "-n", NAMESPACE, "--limit", "5")
