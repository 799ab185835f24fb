#!/usr/bin/env python3
"""`make run`, `make up` and `make down`: build, deploy, and play examples/shop, examples/promotions and examples/greeter with
commands a person could type.

While the deliveries run, `keelway watch` is the only one that writes to the terminal. Nothing here knows how a delivery ends: what
is shown and what is approved comes from `keelway get sequences`.
"""

import concurrent.futures
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import greet  # noqa: E402
import promote  # noqa: E402
from keelway_local import processes, server  # noqa: E402
from keelway_local.common import ROOT, Problem, State, say  # noqa: E402

CLOUD = Path(__file__).resolve().parent / "cloud.py"
STACK = os.environ.get("KEELWAY_STACK", "keelway")
EXAMPLE = ROOT / "examples" / "shop"
PROJECT = "shop"
STAGE = "staging"
OVER = {"finished", "aborted", "timedOut"}
# For so long a question stands on the screen before it is answered.
READING_SECONDS = 1
# A delivery of the example takes seconds; this is for a machine that is busy with other things.
PATIENCE_SECONDS = int(os.environ.get("KEELWAY_RUN_SECONDS", "300"))


def target():
    return Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target").resolve() / "debug"


def cargo_build(what, *selection, **options):
    cargo = shutil.which(os.environ.get("CARGO") or "cargo")
    if not cargo:
        raise Problem("there is no cargo: install Rust as https://rustup.rs says, open a new shell and run this again")
    say(f"building {what} (the first time takes minutes; cargo shows how far it is) ...")
    began = time.monotonic()
    built = subprocess.run([cargo, "build", *selection], cwd=ROOT, **options)
    if built.returncode:
        raise Problem("the build failed: the reason is above; mend it and run this again")
    say(f"building {what}: {time.monotonic() - began:.1f} s")
    return built.stdout


def functions():
    """The names of the functions: their folders."""
    return sorted(found.parent.name for found in (ROOT / "functions").glob("*/Cargo.toml"))


def with_features(*names):
    """Options that select these packages, and the dependencies' features that the tests need: so run and tests share what they
    build."""
    return [f"--package=keelway-{name}" for name in (*names, "test-features")]


def build():
    """What runs: the functions, the command and the git host. Nothing of it is built again for the tests."""
    cargo_build("the functions and the command", "--bins", "--package=keelway", *with_features("githost", *functions()))


def build_tests():
    """Everything, the tests included: {name of a test executable: its path}."""
    told = cargo_build("the tests", "--workspace", "--bins", "--tests", "--message-format=json-render-diagnostics",
                       stdout=subprocess.PIPE, text=True)
    artifacts = (json.loads(line) for line in told.splitlines() if line.startswith('{"reason":"compiler-artifact"'))
    return {artifact["target"]["name"]: artifact["executable"] for artifact in artifacts
            if artifact["profile"]["test"] and artifact["executable"]}


def build_release():
    """The functions as they go to AWS, and the empty one the bench compares them with."""
    cargo_build("the functions in release", "--release", *(f"--package=keelway-{name}" for name in (*functions(), "empty")))


def start_and_build(state):
    """The environment and the cloud come up while cargo works."""
    failed = []

    def start():
        try:
            server.start(state)
        except Problem as problem:
            failed.append(problem)
        except Exception as error:
            failed.append(Problem(f"the local cloud did not start ({type(error).__name__}: {error}): "
                                  f"its log, if it has one, is {state.dir / 'cloud.log'}"))

    thread = threading.Thread(target=start)
    thread.start()
    try:
        build()
    finally:
        thread.join()
    if failed:
        raise failed[0]


def cloud(state, *words):
    """A command of cloud.py; its stdout."""
    done = subprocess.run([sys.executable, str(CLOUD), *words, "--state", str(state.dir)], stdout=subprocess.PIPE,
                          text=True)
    if done.returncode:
        raise Problem(f"`cloud.py {words[0]}` failed: the reason is above")
    return done.stdout


def up(state):
    """The stack's environment, with the stack deployed."""
    start_and_build(state)
    parameters = [word for item in greet.PARAMETERS.items() for word in ("--parameter", "=".join(item))]
    cloud(state, "deploy", "--stack", STACK, "--functions", str(target()), *parameters)
    variables = json.loads(cloud(state, "env", "--stack", STACK, "--json"))
    return {**os.environ, **variables, "PATH": f"{target()}{os.pathsep}{os.environ.get('PATH', '')}"}


def keelway(env, *words, capture=False):
    """Runs a command of the CLI, and shows it as a person would type it."""
    if not capture:
        say(f"$ keelway {shlex.join(words)}")
    done = subprocess.run([str(target() / "keelway"), *words], cwd=ROOT, env=env, text=True,
                          stdout=subprocess.PIPE if capture else None)
    if done.returncode:
        raise Problem(f"`keelway {shlex.join(words)}` ended with code {done.returncode}: the reason is above; "
                      f"`make logs` shows what the functions logged")
    return done.stdout


def lines(path):
    """The lines of a list, without comments and empty ones."""
    return [line.split() for line in path.read_text().splitlines() if line.strip() and not line.startswith("#")]


def start_executors(state, env, others):
    """One process per line of executors.txt; those of an earlier run that still serve this stack are kept."""
    commands = others | {
        name: [str(target() / "keelway"), "executor", "--name", name, "--on", task, "--project", PROJECT, "--", *command]
        for name, task, *command in lines(EXAMPLE / "executors.txt")
    }
    started = processes.ensure(state, commands, env, ROOT)
    say(f"executors: {', '.join(commands)} ({started} started; their output is in {state.dir / 'executors'})")


def evaluated(state, env):
    """Starts the metric store of the example, and says where it is and what is judged by it."""
    known = state.read("figures.json", {})
    port = known.get("port") or server.free_port()
    state.write("figures.json", {"port": port})
    keelway(env, "apply", "-f", greet.of_figures(state, EXAMPLE))
    folder = (EXAMPLE / "evaluation").relative_to(ROOT)
    keelway(env, "resource", "add", str(folder / "sli.yaml"), "-p", PROJECT)
    for service in sorted({service for service, _ in deliveries_of_the_list()}):
        keelway(env, "resource", "add", str(folder / "slo.yaml"), "--as", f"{service}/slo.yaml", "-p", PROJECT, "--stage", STAGE)
    return {"metrics": [sys.executable, str(Path(__file__).with_name("figures.py")), str(EXAMPLE / "figures.txt"), str(greet.figures(state)),
                        "--port", str(port)]}


def deliveries_of_the_list():
    return lines(Path(__file__).with_name("deliveries.txt"))


def trigger(env):
    """Triggers every delivery of the list; their contexts."""
    contexts = []
    for service, image in deliveries_of_the_list():
        version = image.rsplit(":", 1)[-1]
        words = ("trigger", "delivery", "--project", PROJECT, "--service", service, "--image", image, "--labels", f"version={version}")
        say(f"$ keelway {shlex.join(words)}")
        contexts.append(json.loads(keelway(env, *words, "--output", "json", capture=True))["keptnContext"])
    return contexts


def watch(env, contexts):
    """One view of all deliveries. Until it ends, nothing else may write to this terminal."""
    say(f"$ keelway watch {' '.join(context[:8] for context in contexts)}")
    return subprocess.Popen([str(target() / "keelway"), "watch", *contexts], cwd=ROOT, env=env)


def states(env, contexts):
    """{context: overall phase} of these deliveries, as the API tells it."""
    page = json.loads(keelway(env, "get", "sequences", "--project", PROJECT, "--output", "json", capture=True))
    return {state["shkeptncontext"]: state["phase"] for state in page["items"] if state["shkeptncontext"] in contexts}


def play(env):
    """Deliveries from trigger to end; approves what waits for a person, as a person would who reads the view."""
    deliveries = trigger(env)
    view = watch(env, deliveries)
    typed, since, deadline = [], {}, time.monotonic() + PATIENCE_SECONDS
    try:
        while True:
            now = states(env, deliveries)
            for context, state in now.items():
                if state != "waitingForApproval":
                    continue
                if time.monotonic() - since.setdefault(context, time.monotonic()) > READING_SECONDS:
                    typed.append((context[:8], keelway(env, "approve", context[:8], capture=True).strip()))
                    since[context] = float("inf")
            if len(now) == len(deliveries) and all(state in OVER for state in now.values()):
                break
            if time.monotonic() > deadline:
                raise Problem(f"not everything ended within {PATIENCE_SECONDS} s: `keelway get sequences --project "
                              f"{PROJECT}` shows what is open, `make logs` what the functions logged")
            time.sleep(0.3)
        view.wait(timeout=30)
    except subprocess.TimeoutExpired:
        say("the view did not end by itself")
    finally:
        if view.poll() is None:
            view.terminate()
            view.wait()
    say("")
    for context, told in typed:
        say(f"What a person would have typed was typed for you: keelway approve {context}\n  {told}")
    return deliveries


def run(state):
    env = up(state)
    say(f"the page, to watch what follows: {page(env)}\n  sign in with the token {env['KEELWAY_TOKEN']}\n")
    keelway(env, "apply", "-f", str(EXAMPLE.relative_to(ROOT)))
    start_executors(state, env, evaluated(state, env))
    of_stack = {**env, "KEELWAY_STACK": STACK}
    with concurrent.futures.ThreadPoolExecutor() as pool:
        second = pool.submit(promote.Prepared, state, of_stack, target(), keelway, cloud)
        third = pool.submit(greet.prepare, state, of_stack, keelway, cloud)
        try:
            deliveries = play(env)
            say("")
            keelway(env, "get", "environments", "--project", PROJECT)
            say("")
            judged(env)
        except BaseException:
            second.result().end()
            raise
        promote.run(second.result())
        greet.run(third.result(), target())
    some = next(iter(deliveries))[:8]
    say(f"""
The stack and its executors stay up. Where to look next:
  {page(env)}   the page; sign in with the token {env["KEELWAY_TOKEN"]}
  {env_command(state)}   the variables and the command in your shell
  keelway watch --log {some}   one delivery again, with every event
  keelway get sequences --project {PROJECT}   all of them
  {EXAMPLE.relative_to(ROOT)}/figures.txt and evaluation/   what decided; change a figure and `make run` again
  keelway pipeline status podinfo -p shop   the pipeline; its git host ended with this program
  keelway rollout history greeter -p greetings   the versions of the function
  {make(state, "logs")}   what the functions logged
  {make(state, "down")}   end it all""")


def judged(env):
    """What the evaluations came to, and the figures of one that failed."""
    keelway(env, "get", "evaluations", "-p", PROJECT)
    listed = json.loads(keelway(env, "get", "evaluations", "-p", PROJECT, "--output", "json", capture=True))["items"]
    failed = next((one for one in listed if one["result"] == "fail"), None)
    if failed:
        keelway(env, "evaluation", "show", failed["id"][:8], "-p", PROJECT)


def page(env):
    """The address of the web page."""
    return f"{env['KEELWAY_API'].rstrip('/')}/ui/"


def make(state, verb):
    """`make` for this very stack: a stack of one's own is named again."""
    named = {"KEELWAY_STATE": str(state.dir)} if state.dir != ROOT / ".keelway" / "run" else {}
    if STACK != "keelway":
        named["KEELWAY_STACK"] = STACK
    words = "".join(f"{name}={shlex.quote(value)} " for name, value in named.items())
    return f"{words}make {verb}"


def env_command(state):
    """What sets the variables of the stack."""
    return f'eval "$({make(state, "env")})"'


def down(state):
    ended = processes.stop_all(state)
    stopped = server.stop(state)
    say(f"{'the local cloud is' if stopped else 'no local cloud was'} down; {ended} executors ended")


def main():
    verbs = {"run": run, "up": up, "down": down, "build": lambda _: build(), "release": lambda _: build_release()}
    if len(sys.argv) != 2 or sys.argv[1] not in verbs:
        sys.exit(f"usage: run.py {'|'.join(verbs)}")
    state = State(os.environ.get("KEELWAY_STATE") or ROOT / ".keelway" / "run")
    verbs[sys.argv[1]](state)
    if sys.argv[1] == "up":
        record = state.read("cloud.json")
        say(f"up at {record['endpoint']}. Next: {env_command(state)}, then keelway get projects, or make run")


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    try:
        main()
    except Problem as problem:
        sys.exit(f"error: {problem}")
    except KeyboardInterrupt:
        sys.exit(130)
