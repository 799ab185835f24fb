#!/usr/bin/env python3
"""The local cloud: an AWS emulator on loopback and infra/template.yaml deployed into it. See README.md beside this.

Needs Python 3.10 with its venv module; it makes the rest itself. Results go to stdout, progress to stderr.
"""

import argparse
import json
import os
import signal
import sys
from pathlib import Path

if sys.version_info < (3, 10):
    sys.exit(f"Python {sys.version.split()[0]} is too old: install Python 3.10 or later and run this with it")

sys.path.insert(0, str(Path(__file__).resolve().parent))

from keelway_local import environment, models, recorder, server  # noqa: E402
from keelway_local.common import ROOT, Problem, State  # noqa: E402

IN_VENV = {"deploy", "undeploy", "env", "secret", "function", "package", "logs", "outputs", "actions"}


def key_value(text):
    key, equals, value = text.partition("=")
    if not (key and equals):
        raise argparse.ArgumentTypeError(f"{text!r} is not KEY=VALUE")
    return key, value


def parser():
    top = argparse.ArgumentParser(prog="cloud.py", description=__doc__.splitlines()[0])
    verbs = top.add_subparsers(dest="verb", required=True, metavar="COMMAND")

    def verb(name, about, stack=False):
        added = verbs.add_parser(name, help=about, description=about)
        if name not in ("venv", "actions"):
            added.add_argument("--state", type=Path, default=ROOT / ".keelway" / "run", metavar="DIR",
                               help="state directory (.keelway/run)")
        if stack:
            added.add_argument("--stack", default="keelway" if name in ("deploy", "undeploy") else None,
                               metavar="NAME", help="stack name")
        return added

    verb("venv", "make a Python environment if needed, and print its python").add_argument(
        "kind", nargs="?", default="cloud", choices=sorted(environment.KINDS))
    verb("start", "start the local cloud, unless it runs, and print its endpoint").add_argument(
        "--port", type=int, help="port (KEELWAY_PORT, or a free one)")
    verb("serve", "be the local cloud until it ends: what its container runs").add_argument("--port", type=int, help="port (a free one)")
    verb("stop", "stop the local cloud that `start` started")
    deploy = verb("deploy", "deploy the template and print its outputs", stack=True)
    deploy.add_argument("--functions", type=Path, default=ROOT / "target" / "debug", metavar="DIR",
                        help="directory of the binaries, or of <name>/bootstrap.zip (target/debug)")
    deploy.add_argument("--parameter", type=key_value, action="append", default=[], metavar="KEY=VALUE",
                        help="a parameter of the template; may be given several times")
    undeploy = verb("undeploy", "delete a stack and its table", stack=True)
    for remote in (deploy, undeploy):
        remote.add_argument("--endpoint", metavar="URL", help="another emulator than the state's own")
        remote.add_argument("--allow-remote", action="store_true", help="the endpoint may be on another machine")
    verb("env", "print shell exports for a deployed stack", stack=True).add_argument(
        "--json", action="store_true", help="as JSON")
    verb("outputs", "print the outputs of a deployed stack", stack=True)
    logs = verb("logs", "print what the functions logged", stack=True)
    logs.add_argument("--function", choices=sorted(path.parent.name for path in ROOT.glob("functions/*/Cargo.toml")))
    logs.add_argument("--since", type=int, default=3600, metavar="SECONDS")
    secret = verb("secret", "store a secret of a stack", stack=True)
    secret.add_argument("name", help="<namespace>/<name>, as manifests of the namespace call it; with --installation: <name>")
    secret.add_argument("--installation", action="store_true", help="of the installation itself, as git hosts name it")
    secret.add_argument("text", help="what it holds, such as {\"token\": \"...\"}")
    function = verb("function", "publish versions of a Python function, and print their ARNs", stack=True)
    function.add_argument("name", help="the function; it is made if it does not exist")
    function.add_argument("files", nargs="+", type=Path, metavar="FILE", help="a module with a `handler`; each becomes a version")
    function.add_argument("--alias", metavar="NAME", help="make this alias of the first version, if there is none, and a URL for it")
    function.add_argument("--variable", type=key_value, action="append", default=[], metavar="KEY=VALUE",
                          help="a variable of a new function; may be given several times")
    package = verb("package", "put packages of code into S3, and print what to push")
    package.add_argument("bucket", help="it is made if it does not exist")
    package.add_argument("files", nargs="+", type=Path, metavar="FILE", help="a module with a `handler`; each becomes a package")
    verb("actions", "print which actions the template allows each function, as JSON")
    verb("recorded", "print which actions each function used, and which were denied, as JSON",
         stack=True)
    verb("models", "print which operations were checked with AWS's service models, and what these do not allow, as JSON", stack=True)
    return top


def show(value):
    print(json.dumps(value, indent=2))


def run_in_venv(options):
    """Verbs that need the packages of the environment."""
    from keelway_local import function, stack, template

    if options.verb == "actions":
        return show(template.actions(template.load()))
    state = State(options.state)
    if options.verb in ("deploy", "undeploy") and options.endpoint:
        stack.check_loopback(options.endpoint, options.allow_remote)
    if options.verb == "deploy":
        return show(stack.deploy(state, options.stack, options.functions, dict(options.parameter), options.endpoint))
    if options.verb == "undeploy":
        return stack.undeploy(state, options.stack, options.endpoint)
    if options.verb == "secret":
        # Before the first deployment, only the arguments name the stack.
        name = options.stack or stack.outputs(state)["StackName"]
        return stack.store_secret(state, f"{name}/{'-/' if options.installation else ''}{options.name}", options.text)
    if options.verb == "function":
        return show(function.publish(state, options.name, options.files, options.alias, dict(options.variable)))
    if options.verb == "package":
        return show(function.package(state, options.bucket, options.files))
    if options.verb == "env":
        return show(stack.environment(state, options.stack)) if options.json else print(stack.exports(state, options.stack))
    if options.verb == "outputs":
        return show(stack.outputs(state, options.stack))
    return stack.logs(state, options.function, options.since, options.stack)


def main():
    options = parser().parse_args()
    if options.verb == "venv":
        return print(environment.ensure(options.kind))
    if options.verb in IN_VENV:
        python = environment.ensure()
        if Path(sys.prefix).resolve() != environment.directory().resolve():
            os.execv(python, [str(python), __file__, *sys.argv[1:]])
        return run_in_venv(options)
    state = State(options.state)
    if options.verb == "start":
        print(server.start(state, options.port)["endpoint"])
    elif options.verb == "serve":
        sys.exit(server.serve(state, options.port))
    elif options.verb == "stop":
        server.stop(state)
    elif options.verb == "models":
        show(models.summary(state.read("checked.json", []), state.read("findings.json", []), options.stack))
    else:
        show(recorder.summary(state.read("recorded.json", []), options.stack))


def explain(error):
    """Prints errors of the services in one sentence. Any other error is a fault of this program, and keeps its trace."""
    module = type(error).__module__.partition(".")[0]
    if module in ("botocore", "boto3", "s3transfer"):
        return f"the cloud refused: {error}"
    return None


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    try:
        main()
    except Problem as problem:
        sys.exit(f"error: {problem}")
    except KeyboardInterrupt:
        sys.exit(130)
    except Exception as error:
        if not (text := explain(error)):
            raise
        sys.exit(f"error: {text}")
