"""The second act of `make run`: examples/promotions on a git host that runs on this machine.

What happens next comes from `keelway pipeline status`: a person who reads it would do the same.
"""

import json
import os
import secrets
import shlex
import shutil
import subprocess
import sys
import time
import urllib.request

from keelway_local.common import ROOT, Problem, say

EXAMPLE = ROOT / "examples" / "promotions"
REPOSITORY = "shop/podinfo"
NAMESPACE, PIPELINE = "shop", "podinfo"
HOST = "git.example.com"
FIRST = "6.5.0"
# What somebody sets in dev, one after the other. The second one comes while the first one is on its way to production.
VERSIONS = ("6.6.0", "6.6.1")
PATIENCE_SECONDS = int(os.environ.get("KEELWAY_RUN_SECONDS", "300"))
LOOK_SECONDS = 0.3


class Host:
    """The git host, and what people do there."""

    def __init__(self, url, directory):
        self.url, self.directory = url, directory

    def ask(self, method, path, body=None, user="anna"):
        data = json.dumps(body).encode() if body is not None else None
        request = urllib.request.Request(f"{self.url}/_host/{path}", data, method=method,
                                         headers={"content-type": "application/json", "x-user": user})
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=30) as answer:
            return json.loads(answer.read() or b"{}")

    def pulls(self):
        return self.ask("GET", f"repositories/{REPOSITORY}/pulls")


def keys(state):
    """Token of the host and secret of its webhooks. They stay the same, because functions remember secrets for minutes."""
    known = state.read("githost.json", {})
    if not known:
        known = {"token": secrets.token_hex(20), "webhook": secrets.token_hex(20)}
        state.write("githost.json", known)
    return known


def start_host(state, programs, token):
    """A fresh host for every run."""
    directory = state.path("githost")
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir()
    # The pipe stays open as long as this program runs: the host ends with it.
    host = subprocess.Popen([str(programs / "keelway-githost"), "--directory", str(directory)], stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, stderr=open(state.path("githost.log"), "w"), text=True,
                            env={**os.environ, "KEELWAY_GITHOST_TOKEN": token})
    line = host.stdout.readline()
    if not line:
        raise Problem(f"the git host did not start: {state.path('githost.log')} says why")
    return host, json.loads(line)


def manifest(state, api):
    """The GitHost: this host's address is known only now."""
    path = state.path("githost.yaml")
    path.write_text(f"""apiVersion: keelway.dev/v1
kind: GitHost
metadata: {{name: local}}
spec:
  host: {HOST}
  type: gitea
  api: {api}
  webhookSecretRef: {{name: webhook}}
""")
    return path


def host_with_repository(state, env, programs, cloud):
    """Host, repository and secrets: the host with its process, and its manifest."""
    known = keys(state)
    process, ready = start_host(state, programs, known["token"])
    host = Host(ready["url"], None)
    files = {str(path.relative_to(EXAMPLE / "repository")): path.read_text()
             for path in sorted((EXAMPLE / "repository").rglob("*.yaml"))}
    owner, name = REPOSITORY.split("/")
    made = host.ask("POST", "repositories", {
        "owner": owner, "name": name, "private": True, "files": files,
        "webhook": {"url": f"{env['KEELWAY_API'].rstrip('/')}/v1/webhooks/local", "secret": known["webhook"]}})
    host.directory = made["git"]
    cloud(state, "secret", f"{NAMESPACE}/git", json.dumps({"token": known["token"]}), "--stack", env["KEELWAY_STACK"])
    cloud(state, "secret", "--installation", "webhook", known["webhook"], "--stack", env["KEELWAY_STACK"])
    return process, host, manifest(state, ready["api"])


def set_version(host, version):
    """As somebody who pushes: dev gets a version."""
    path = "dev/podinfo.yaml"
    say(f"$ git commit -am 'dev: podinfo {version}' && git push")
    text = (EXAMPLE / "repository" / path).read_text().replace(f"version: {FIRST}", f"version: {version}")
    host.ask("POST", f"repositories/{REPOSITORY}/commits",
             {"branch": "main", "message": f"dev: podinfo {version}", "files": {path: text}})


class Story:
    """What a person sees, and does about it."""

    def __init__(self, env, host, keelway):
        self.env, self.host, self.keelway = env, host, keelway
        self.coming = list(VERSIONS)
        self.done, self.told = set(), None

    def status(self):
        text = self.keelway(self.env, "pipeline", "status", PIPELINE, "-p", NAMESPACE, "--output", "json", capture=True)
        return json.loads(text)

    def once(self, what):
        """Whether this is new."""
        new = what not in self.done
        self.done.add(what)
        return new

    def step(self):
        """Does what is to be done now; whether everything is over."""
        status = self.status()
        environments = {state["name"]: state for state in status["environments"]}
        line = " → ".join(describe(state) for state in status["environments"])
        if line != self.told:
            say(f"  {line}")
            self.told = line
        prod = environments["prod"]
        waiting = prod.get("waitingApproval")
        if waiting and self.once(("approve", waiting["revision"])):
            self.keelway(self.env, "pipeline", "approve", PIPELINE, "prod", waiting["revision"], "-p", NAMESPACE)
        promotion = prod.get("promotion") or {}
        if promotion.get("phase") == "created" and self.once(("request", promotion["revision"])):
            if self.coming:
                set_version(self.host, self.coming.pop(0))
            else:
                number = promotion["pullRequest"]["number"]
                say(f"  somebody merges pull request {number}: {promotion['pullRequest']['url']}")
                self.host.ask("POST", f"repositories/{REPOSITORY}/pulls/{number}/merge", {"method": "squash"})
        newest = VERSIONS[-1]
        return all(all(target.get("revision") == newest and target["ready"] for target in state["targets"])
                   for state in status["environments"])


def describe(state):
    """An environment in a few words."""
    running = sorted({target.get("revision") or "?" for target in state["targets"]})
    ready = all(target["ready"] for target in state["targets"])
    text = f"{state['name']} {'/'.join(running)}{'' if ready else ' (not ready)'}"
    promotion = state.get("promotion")
    if promotion and promotion["phase"] not in ("succeeded",):
        text += f" [{promotion['revision']}: {promotion['reason']}]"
    return text


class Prepared:
    """A pipeline whose environments all run the first version. Nothing is shown: this happens while the first act plays."""

    def __init__(self, state, env, programs, keelway, cloud):
        self.state, self.env, self.keelway = state, env, keelway
        self.process, self.host, registered = host_with_repository(state, env, programs, cloud)
        self.child = None
        try:
            self.words = ("apply", "-f", os.path.relpath(registered, ROOT), "-f", str((EXAMPLE / "pipeline.yaml").relative_to(ROOT)))
            self.applied = keelway(env, *self.words, capture=True)
            command = [sys.executable, str(EXAMPLE / "flux.py"), self.host.directory]
            with open(state.path("flux.log"), "w") as log:
                self.child = subprocess.Popen(command, cwd=ROOT, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
            self.story = Story(env, self.host, keelway)
            wait_until(lambda: all(target.get("revision") == FIRST for one in self.story.status()["environments"]
                                   for target in one["targets"]), time.monotonic() + PATIENCE_SECONDS, self.child, state)
        except BaseException:
            self.end()
            raise

    def end(self):
        for ended in filter(None, (self.child, self.process)):
            ended.terminate()
            ended.wait()


def run(prepared):
    state, env, keelway, host, child, story = (getattr(prepared, name) for name in ("state", "env", "keelway", "host", "child", "story"))
    say("")
    say("A pipeline over three environments, promoted by pull requests")
    say(f"a git host with {REPOSITORY}: {host.url} (git clone {host.directory})")
    say(f"$ keelway {shlex.join(prepared.words)}")
    say(prepared.applied.rstrip("\n"))
    deadline = time.monotonic() + PATIENCE_SECONDS
    try:
        set_version(host, story.coming.pop(0))
        wait_until(story.step, deadline, child, state)
        keelway(env, "pipeline", "status", PIPELINE, "-p", NAMESPACE)
        keelway(env, "pipeline", "history", PIPELINE, "-p", NAMESPACE)
        for pull in host.pulls():
            comments = "".join(f" — “{comment['body']}”" for comment in pull["comments"])
            say(f"  pull request {pull['number']}: {pull['title']}: {pull['state']}{comments}")
    finally:
        prepared.end()


def wait_until(found, deadline, flux, state):
    while not found():
        if flux.poll() is not None:
            raise Problem(f"the program that plays Flux ended: {state.path('flux.log')} says why")
        if time.monotonic() > deadline:
            raise Problem(f"the promotions did not end within {PATIENCE_SECONDS} s: `keelway pipeline status {PIPELINE} "
                          f"-p {NAMESPACE}` shows where they stand, `make logs` what the functions logged")
        time.sleep(LOOK_SECONDS)
