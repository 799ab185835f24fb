#!/usr/bin/env python3
"""`make test-keptn`: Keptn's own clients against a stack, as their users run them.

Both are built here: an executor on Keptn's Go library, with the library from the Go module proxy, and Keptn's command line, from
the proxy or from the checkout of github.com/keptn/keptn that KEPTN_CHECKOUT names. KEPTN_CLI names a program instead, for example
one of the releases at https://github.com/keptn/keptn/releases. Its home is a folder of its own, so that it changes nothing of the
user's.

The stack is that of KEELWAY_API and KEELWAY_TOKEN if they are set, otherwise one on a local cloud that is started for this and
ended afterwards.

The exit code is 0 only if everything ran and worked; 1: something did not work; 3: something could not be run here, and is named.
"""

import base64
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
import uuid
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import run  # noqa: E402
from keelway_local.common import ROOT, Problem, State, say  # noqa: E402

SOURCE = ROOT / "tests" / "keptn" / "executor"
SHIPYARD = ROOT / "tests" / "keptn" / "shipyard.yaml"
# The commit of Keptn 1.4.5, as the proxy can be asked for it.
RELEASE = "318a3d5416a693617c3577f12b1984c183940f65"
NOT_RUN = 3
# Nothing here takes long; this is for a machine that is busy with other things.
PATIENCE_SECONDS = int(os.environ.get("KEELWAY_RUN_SECONDS", "120"))
# The watcher of Keptn's command line ends after so long; it asks every 5 s.
WATCH_SECONDS = 12


class Failed(Exception):
    """Something of the session did not work."""


def build_executor(into):
    """The executor, built with the library from the module proxy; None without Go."""
    go = shutil.which("go")
    if not go:
        return None
    program = into / "executor"
    say("building the executor on Keptn's Go library (the first time takes minutes) ...")
    built = subprocess.run([go, "build", "-o", str(program), "."], cwd=SOURCE)
    if built.returncode:
        raise Problem("the executor was not built: the reason is above")
    return program


def build_cli(into):
    """Keptn's command line, and why there is none."""
    named, checkout, go = os.environ.get("KEPTN_CLI"), os.environ.get("KEPTN_CHECKOUT"), shutil.which("go")
    if named:
        return shutil.which(named), f"KEPTN_CLI does not name a program: {named}"
    if checkout:
        source = Path(checkout) / "cli"
        if not (source / "go.mod").exists():
            return None, f"KEPTN_CHECKOUT does not name a checkout of github.com/keptn/keptn: there is no {source / 'go.mod'}"
    else:
        # `go install` refuses it, because its go.mod replaces modules: it has to be the main module.
        got = subprocess.run([go, "mod", "download", "-json", f"github.com/keptn/keptn/cli@{RELEASE}"], text=True, capture_output=True, cwd=into)
        if got.returncode:
            reason = json.loads(got.stdout or "{}").get("Error") or got.stderr
            return None, (f"the Go module proxy does not have it ({' '.join(reason.split())}): name a checkout of github.com/keptn/keptn with "
                          "KEPTN_CHECKOUT, or version 1.4.5 from https://github.com/keptn/keptn/releases with KEPTN_CLI")
        source = into / "cli"
        shutil.copytree(json.loads(got.stdout)["Dir"], source)
        # Modules are kept read-only, and the folder is deleted at the end.
        subprocess.run(["chmod", "-R", "u+w", str(source)], check=True)
    program = into / "keptn"
    say("building Keptn's command line ...")
    built = subprocess.run([go, "build", "-o", str(program), "."], cwd=source)
    return (None, "it was not built: the reason is above") if built.returncode else (str(program), "")


class Session:
    """The clients, where they run, and what was seen of them."""

    def __init__(self, env, folder, cli, executor):
        self.folder, self.cli, self.executor = folder, cli, executor
        home = folder / "home"
        home.mkdir()
        url = env["KEELWAY_API"].rstrip("/")
        self.env = {**env, "HOME": str(home), "KEPTNCONFIG": "", "KEPTN_API_ENDPOINT": url, "KEPTN_API_TOKEN": env["KEELWAY_TOKEN"],
                    "LOCATION": "local", "HEALTH_ENDPOINT_ENABLED": "false", "LOG_LEVEL": "info",
                    "PUBSUB_TOPIC": "sh.keptn.event.deployment.triggered,sh.keptn.event.release.triggered"}
        self.worked, self.failed = 0, []

    def keptn(self, *words, code=0, has="", answers=()):
        """A command of Keptn's; what it printed. `code`: what it must end with, `has`: what it must print, `answers`: what is typed
        after which question. The command forgets what is typed before it asks."""
        shown = f"keptn {shlex.join(words)}".replace(self.env["KEPTN_API_TOKEN"], "TOKEN")
        running = subprocess.Popen([self.cli, *words], cwd=self.folder, env=self.env, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT)
        late = threading.Timer(PATIENCE_SECONDS, running.kill)
        late.start()
        printed, left = "", list(answers)
        for line in running.stdout:
            printed += line
            if left and left[0][0] in line:
                running.stdin.write(f"{left.pop(0)[1]}\n")
                running.stdin.flush()
        ended = running.wait()
        late.cancel()
        return self.told(shown, ended == code and has in printed, f"{printed}it ended with code {ended}")

    def told(self, what, right, printed):
        if right:
            self.worked += 1
            say(f"ok      {what}")
        else:
            self.failed.append(what)
            say(f"FAILED  {what}\n{printed}")
        return printed

    def until(self, what, found):
        """What `found` finds, which takes the engine and the executor a moment."""
        end = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < end:
            if value := found():
                return value
            time.sleep(1)
        raise Failed(f"{what}: not within {PATIENCE_SECONDS} s")

    def api(self, path, body=None, method=None):
        """An answer of the API."""
        request = urllib.request.Request(f"{self.env['KEPTN_API_ENDPOINT']}{path}", data=body and json.dumps(body).encode(), method=method,
                                         headers={"x-token": self.env["KEPTN_API_TOKEN"], "content-type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE_SECONDS) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            raise Failed(f"{path}: {error.code} {error.read().decode()}") from error

    def state(self, project, context):
        return next(iter(self.api(f"/v1/sequence/{project}?keptnContext={context}")["states"]), {})


def context_of(printed):
    """The context that a command prints as `ID of Keptn context: …`."""
    words = [line.split(":", 1)[1].strip() for line in printed.splitlines() if "Keptn context" in line and ":" in line]
    if not words:
        raise Failed(f"no context in: {printed}")
    return words[-1]


def files(folder):
    shutil.copy(SHIPYARD, folder / "shipyard.yaml")
    (folder / "slo.yaml").write_text("spec_version: '1.0'\n")
    (folder / "load.jmx").write_text("<jmeterTestPlan/>\n")


def before_the_delivery(session, project):
    session.keptn("set", "config", "AutomaticVersionCheck", "false")
    session.keptn("set", "config", "KubeContextCheck", "false")
    session.keptn("auth", f"--endpoint={session.env['KEPTN_API_ENDPOINT']}", f"--api-token={session.env['KEPTN_API_TOKEN']}",
                  has="Successfully authenticated")
    session.keptn("status")
    session.keptn("version")
    session.keptn("create", "project", project, "--shipyard=shipyard.yaml", has="created successfully")
    session.keptn("create", "project", project, "--shipyard=shipyard.yaml", code=1, has="exists already")
    session.keptn("get", "projects", has=project)
    session.keptn("get", "project", project, has=project)
    session.keptn("get", "stages", f"--project={project}", has="production")
    session.keptn("create", "service", "carts", f"--project={project}", has="created successfully")
    session.keptn("get", "services", f"--project={project}", has="carts")
    for words in (["--resource=slo.yaml"], ["--all-stages", "--resource=slo.yaml"], ["--stage=dev", "--resource=slo.yaml"],
                  ["--stage=dev", "--service=carts", "--resource=load.jmx", "--resourceUri=jmeter/load.jmx"]):
        session.keptn("add-resource", f"--project={project}", *words, has="successful")


def deliver(session, project, tag):
    return context_of(session.keptn("trigger", "delivery", f"--project={project}", "--service=carts", f"--image=localhost:5000/carts:{tag}",
                                    "--watch", f"--watch-time={WATCH_SECONDS}", has="sh.keptn.event.dev.delivery.triggered"))


def open_approval(session, project, context):
    """The id of the approval that a context waits for."""
    def found():
        waits = [each.get("waits") or {} for each in session.state(project, context).get("executions", [])]
        return next((wait["id"] for wait in waits if wait.get("reason") == "approval"), None)
    return session.until("an approval", found)


def delivery(session, project):
    """One delivery is approved by its id and fails in production, one by its service; then control, and events."""
    context = deliver(session, project, "1.0.0")
    approval = open_approval(session, project, context)
    session.keptn("get", "event", "approval.triggered", f"--project={project}", "--stage=production", has=approval)
    session.keptn("send", "event", "approval.finished", f"--project={project}", "--stage=production", f"--id={approval}")
    session.until("the end", lambda: session.state(project, context).get("state") == "finished")
    session.keptn("get", "event", "sh.keptn.event.production.delivery.finished", f"--project={project}", f"--keptn-context={context}", has="no such chart")
    session.keptn("get", "event", "evaluation.finished", f"--keptn-context={context}")
    context = deliver(session, project, "1.1.0")
    open_approval(session, project, context)
    session.keptn("send", "event", "approval.finished", f"--project={project}", "--stage=production", "--service=carts",
                  answers=[("Select the option", "1"), ("(a)pprove", "a")])
    session.until("the end", lambda: session.state(project, context).get("state") == "finished")


def after_the_delivery(session, project):
    session.keptn("trigger", "sequence", "wait", f"--project={project}", "--service=carts", "--stage=dev", has="Triggering sequence wait")
    # The command does not print the context.
    started = session.until("its start", lambda: session.api(f"/v1/sequence/{project}?name=wait")["states"])
    context = started[0]["shkeptncontext"]
    for word in ("pause", "resume", "abort"):
        session.keptn(word, "sequence", f"--project={project}", f"--keptn-context={context}")
    session.until("the abort", lambda: session.state(project, context).get("state") == "aborted")
    session.keptn("trigger", "evaluation", f"--project={project}", "--stage=dev", "--service=carts", "--timeframe=5m")
    evaluation = session.until("the evaluation", lambda: session.api(f"/v1/sequence/{project}?name=evaluation")["states"])
    session.keptn("abort", "sequence", f"--project={project}", f"--keptn-context={evaluation[0]['shkeptncontext']}")
    event = {"type": "sh.keptn.events.problem", "source": "session", "specversion": "1.0", "contenttype": "application/json",
             "data": {"project": project, "service": "carts"}}
    (session.folder / "event.json").write_text(json.dumps(event))
    session.keptn("send", "event", "--file=event.json")
    began = time.monotonic()
    session.keptn("configure", "monitoring", "prometheus", f"--project={project}", "--service=carts", has="nothing was configured")
    session.told("configure monitoring does not wait 30 s", time.monotonic() - began < 25, "it waited")
    for words in (["create", "secret", "s", "--from-literal=a=b"], ["update", "secret", "s", "--from-literal=a=b"], ["get", "secrets"],
                  ["delete", "secret", "s"]):
        session.keptn(*words, code=1, has="Keelway keeps no secrets")


def end(session, project):
    session.keptn("update", "project", project, "--git-remote-url=https://git.invalid/r.git", "--git-user=u", "--git-token=t")
    session.until("the last abort", lambda: all(state["state"] in run.OVER for state in session.api(f"/v1/sequence/{project}?pageSize=100")["states"]))
    session.keptn("delete", "service", "carts", f"--project={project}", has="is deleted")
    session.keptn("delete", "project", project, has="is deleted")
    session.keptn("delete", "project", project, code=1, has="does not exist")


def with_cli(session, project):
    before_the_delivery(session, project)
    with (session.folder / "executor.log").open("w") as log:
        executor = subprocess.Popen([str(session.executor)], env=session.env, stdout=log, stderr=subprocess.STDOUT)
        try:
            delivery(session, project)
            session.told("the executor ran until the end", executor.poll() is None, (session.folder / "executor.log").read_text())
        finally:
            executor.terminate()
            executor.wait()
    after_the_delivery(session, project)


def library(session, project):
    """Every call of the library once."""
    done = subprocess.run([str(session.executor), "calls", project], env=session.env, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    for line in done.stdout.splitlines():
        word, _, call = line.partition(" ")
        if word in ("ok", "FAILED"):
            session.told(f"library: {call}", word == "ok", "")
    session.told("library: every call", done.returncode == 0, done.stdout)


def library_alone(session, project):
    """The same without Keptn's command line, in a project that is made and deleted here."""
    session.api("/v1/project", {"name": project, "shipyard": base64.b64encode(SHIPYARD.read_bytes()).decode()})
    data = {"project": project, "stage": "dev", "service": "carts"}
    event = {"type": "sh.keptn.event.dev.wait.triggered", "source": "session", "specversion": "1.0", "data": data}
    context = session.api("/v1/event", event)["keptnContext"]
    session.until("its start", lambda: session.state(project, context).get("state"))
    library(session, project)
    session.api(f"/v1/sequence/{project}/{context}/control", {"state": "abort", "stage": ""})
    session.until("the abort", lambda: session.state(project, context).get("state") == "aborted")
    session.api(f"/v1/project/{project}", method="DELETE")


def play(env):
    """The session; whether everything worked, and what was not run."""
    project = f"keptn-{uuid.uuid4().hex[:8]}"
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        executor = build_executor(folder)
        not_run = [] if executor else ["Keptn's clients: there is no Go here; install it as https://go.dev/doc/install says"]
        if not executor:
            return True, not_run
        cli, without = build_cli(folder)
        if not cli:
            not_run.append(f"Keptn's command line: {without}")
        files(folder)
        session = Session(env, folder, cli, executor)
        try:
            if cli:
                with_cli(session, project)
                library(session, project)
                end(session, project)
            else:
                library_alone(session, project)
        except Failed as failed:
            session.failed.append(str(failed))
            log = folder / "executor.log"
            say(f"FAILED  {failed}\n{log.read_text() if log.exists() else ''}")
        say(f"{session.worked} worked, {len(session.failed)} failed{''.join(chr(10) + '  ' + one for one in session.failed)}")
        return not session.failed, not_run


def main():
    if os.environ.get("KEELWAY_API") and os.environ.get("KEELWAY_TOKEN"):
        fine, not_run = play(dict(os.environ))
    elif not shutil.which("go"):
        fine, not_run = True, ["Keptn's clients: there is no Go here; install it as https://go.dev/doc/install says"]
    else:
        state = State(os.environ.get("KEELWAY_KEPTN_STATE") or ROOT / ".keelway" / "keptn")
        try:
            fine, not_run = play(run.up(state))
        finally:
            run.down(state)
    for one in not_run:
        say(f"not run: {one}")
    sys.exit(0 if fine and not not_run else NOT_RUN if fine else 1)


if __name__ == "__main__":
    try:
        main()
    except Problem as problem:
        sys.exit(f"error: {problem}")
    except KeyboardInterrupt:
        sys.exit(130)
