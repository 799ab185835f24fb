#!/usr/bin/env python3
"""`make release-check`: what can be checked of the release packages without an AWS account.

Each package holds one executable `bootstrap` for the wanted machine, needs no glibc symbol that the runtime has not, and
asks the runtime for work when started. Then the packages are deployed into a local cloud of their own.
"""

import argparse
import http.server
import platform
import subprocess
import sys
import tempfile
import threading
import zipfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from keelway_local import elf, server, stack  # noqa: E402
from keelway_local.common import ROOT, TEMPLATE, Problem, State, say  # noqa: E402

# provided.al2023 is Amazon Linux 2023, which has glibc 2.34.
NEWEST_GLIBC = (2, 34)
LAMBDA_ZIP_BYTES = 50 * 1024 * 1024
START_SECONDS = 10


def host():
    return "arm64" if platform.machine() in ("arm64", "aarch64") else "x86-64"


def unpack(package, directory):
    """The bootstrap of a package, executable."""
    with zipfile.ZipFile(package) as archive:
        if archive.namelist() != ["bootstrap"]:
            raise Problem(f"{package} holds {archive.namelist()}: it must hold `bootstrap` alone; run make package again")
        path = Path(archive.extract("bootstrap", directory))
    path.chmod(0o755)
    return path


class RuntimeApi(http.server.BaseHTTPRequestHandler):
    """As much of Lambda's runtime API as shows whether a function comes to ask for work."""

    def do_GET(self):
        if self.path.endswith("/runtime/invocation/next"):
            self.server.asked.set()
        self.server.over.wait(START_SECONDS)

    def do_POST(self):
        self.server.trouble = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode(errors="replace")
        self.server.over.wait(START_SECONDS)

    def log_message(self, *_):
        """The runtime API is silent."""


def starts(bootstrap, name):
    """Whether the function asks for its first event; it is ended then."""
    api = http.server.ThreadingHTTPServer(("127.0.0.1", 0), RuntimeApi)
    api.daemon_threads = True
    api.asked, api.over, api.trouble = threading.Event(), threading.Event(), ""
    threading.Thread(target=api.serve_forever, daemon=True).start()
    variables = {
        "AWS_LAMBDA_RUNTIME_API": f"127.0.0.1:{api.server_port}", "AWS_LAMBDA_FUNCTION_NAME": name,
        "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "256", "AWS_LAMBDA_FUNCTION_VERSION": "$LATEST",
        "AWS_LAMBDA_LOG_GROUP_NAME": "check", "AWS_LAMBDA_LOG_STREAM_NAME": "check", "AWS_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "check", "AWS_SECRET_ACCESS_KEY": "check", "AWS_ENDPOINT_URL": "http://127.0.0.1:9",
        "KEELWAY_TABLE": "check", "KEELWAY_BUS": "check", "KEELWAY_SEQUENCES_QUEUE_URL": "http://127.0.0.1:9/0/check",
        "KEELWAY_SEQUENCES_QUEUE_ARN": "arn:aws:sqs:us-east-1:000000000000:check", "KEELWAY_SCHEDULER_GROUP": "check",
        "KEELWAY_SCHEDULER_ROLE_ARN": "arn:aws:iam::000000000000:role/check",
        "KEELWAY_SCHEDULER_DLQ_ARN": "arn:aws:sqs:us-east-1:000000000000:check",
        "KEELWAY_TOKEN_SHA256": "0" * 64, "KEELWAY_START_DEADLINE": "10m", "KEELWAY_TASK_TIMEOUT": "24h",
        "KEELWAY_RETENTION_DAYS": "90", "KEELWAY_MAX_EVENT_BYTES": "245760", "KEELWAY_MAX_EXECUTIONS": "1000",
        "KEELWAY_POLLING": "true",
        "KEELWAY_WEBHOOKS": "true",
        "KEELWAY_MAX_RECEIVES": "10", "KEELWAY_LOG": "info",
    }
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen([str(bootstrap)], env=variables, stdout=output, stderr=output)
        waited = 0.0
        while not api.asked.is_set() and process.poll() is None and waited < START_SECONDS and not api.trouble:
            api.asked.wait(0.1)
            waited += 0.1
        process.kill()
        process.wait()
        api.over.set()
        api.shutdown()
        output.seek(0)
        said = output.read().decode(errors="replace").strip()
    if not api.asked.is_set():
        raise Problem(f"{name} did not ask the runtime for work within {START_SECONDS} s: "
                      f"{(api.trouble or said or 'it said nothing')[-800:]}")


def check(package, name, arch):
    if not package.is_file():
        raise Problem(f"there is no package {package}: run make package ARCH={arch} first")
    size = package.stat().st_size
    if size > LAMBDA_ZIP_BYTES:
        raise Problem(f"{package} has {size} bytes: Lambda takes at most {LAMBDA_ZIP_BYTES}")
    with tempfile.TemporaryDirectory() as directory:
        bootstrap = unpack(package, directory)
        machine, glibc = elf.inspect(bootstrap)
        if machine != arch:
            raise Problem(f"{package} is for {machine}, not for {arch}: run make package ARCH={arch} first")
        needs = "no glibc" if glibc is None else f"glibc {'.'.join(map(str, glibc))}"
        if glibc and glibc > NEWEST_GLIBC:
            raise Problem(f"{name} needs {needs}, and the runtime has {'.'.join(map(str, NEWEST_GLIBC))}: "
                          f"build it with make package, which links for the older one")
        started = "not run: it is for another machine"
        if arch == host() and platform.system() == "Linux":
            starts(bootstrap, name)
            started = "starts"
        say(f"{name}: {size / 1e6:.1f} MB, {machine}, needs {needs}; {started}")


def deploy(packages, arch):
    """A stack of the packages on a local cloud of its own, as CloudFormation makes it from a change set."""
    state = State(ROOT / ".keelway" / "release-check")
    try:
        endpoint = server.start(state)["endpoint"]
        stack.client("cloudformation", endpoint).validate_template(TemplateBody=TEMPLATE.read_text())
        say("the template is valid")
        stack.deploy(state, "release-check", packages, {"Architecture": arch.replace("-", "_")})
    finally:
        server.stop(state)


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--arch", required=True, choices=["arm64", "x86-64"])
    options.add_argument("--lambda", dest="packages", type=Path, required=True, metavar="DIR")
    options.add_argument("functions", nargs="+")
    chosen = options.parse_args()
    for name in chosen.functions:
        check(chosen.packages / name / "bootstrap.zip", name, chosen.arch)
    deploy(chosen.packages, chosen.arch)


if __name__ == "__main__":
    try:
        main()
    except (Problem, elf.NotElf) as problem:
        sys.exit(f"error: {problem}")
