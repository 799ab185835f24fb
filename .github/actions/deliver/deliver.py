"""Triggers a delivery and waits for its end: what the action next to this file runs. It needs Python 3.9, and nothing else.

Its inputs are environment variables; action.yml says what they mean. It ends with 0 when every sequence of the delivery ended with
pass or warning and every stage was reached, with 1 otherwise or when the time is up, and with 2 when an input is wrong. So does
`keelway watch --exit-code`.
"""

import ipaddress
import json
import os
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid

# Between two looks at a delivery, in seconds. It counts as over when two looks find nothing open: a stage may follow in between.
LOOK = float(os.environ.get("KEELWAY_LOOK", "5"))
# The pauses before a request is sent again, in seconds.
PAUSES = (1, 2, 4, 8, 16)
OVER = ("finished", "aborted", "timedOut")


def given(name, default=""):
    return os.environ.get(f"KEELWAY_{name}", "").strip() or default


def escaped(text, more=""):
    """As a command of a workflow takes it."""
    return "".join(f"%{ord(c):02X}" if c in "%\r\n" + more else c for c in text)


def wrong(text):
    print(f"::error::{escaped(text)}")
    sys.exit(2)


class NoRedirect(urllib.request.HTTPRedirectHandler):
    """urllib would send the token to wherever an answer points. A redirect is an answer like any other here."""

    def redirect_request(self, *_):
        return None


OPENER = urllib.request.build_opener(NoRedirect)


def on_this_machine(host):
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def safe(what, url):
    """The address, if nobody on the way there can read what is sent."""
    parts = urllib.parse.urlsplit(url)
    if parts.scheme == "https" or (parts.scheme == "http" and on_this_machine(parts.hostname or "")):
        return url
    return wrong(f"{what} is {url!r}: write an address that begins with https://, so that nobody on the way can read the token")


def without_query(url):
    return urllib.parse.urlsplit(url)._replace(query="", fragment="").geturl()


def points_to(error):
    """Where an answer points to, if it is a redirect."""
    location = error.headers.get("location") if 300 <= error.code < 400 else None
    return location and without_query(urllib.parse.urljoin(error.url, location))


def needed(name):
    return given(name) or wrong(f"the input {name.lower()} is empty")


class Api:
    def __init__(self, base):
        base = safe("the input api", base).rstrip("/")
        self.base = base if base.endswith("/v1") else f"{base}/v1"
        self.token = self.new_token()

    def new_token(self):
        """The token that was given, or the job's own. The latter is valid for some minutes only."""
        if given("TOKEN"):
            return given("TOKEN")
        url, secret = os.environ.get("ACTIONS_ID_TOKEN_REQUEST_URL"), os.environ.get("ACTIONS_ID_TOKEN_REQUEST_TOKEN")
        if not url or not secret:
            wrong("there is no token: give the job the permission id-token: write, or this action the input token")
        url = safe("ACTIONS_ID_TOKEN_REQUEST_URL", url)
        url += f"&audience={urllib.parse.quote(given('AUDIENCE', 'keelway'), safe='')}"
        request = urllib.request.Request(url, headers={"authorization": f"bearer {secret}"})
        with OPENER.open(request, timeout=30) as answer:
            token = json.load(answer)["value"]
        print(f"::add-mask::{token}")
        return token

    def ask(self, method, path, body=None):
        """Every request here may be sent twice: the event that triggers has the same id each time."""
        data = None if body is None else json.dumps(body).encode()
        for pause in (*PAUSES, None):
            request = urllib.request.Request(f"{self.base}/{path}", data, method=method)
            request.add_header("authorization", f"Bearer {self.token}")
            request.add_header("content-type", "application/json")
            try:
                with OPENER.open(request, timeout=30) as answer:
                    return json.load(answer)
            except urllib.error.HTTPError as error:
                if points_to(error):
                    print(f"::error::{method} /v1/{path}: {error.code}, which points to {points_to(error)}: the token is sent to no other"
                          " address; if that is where the API is, write it as the input api")
                    sys.exit(1)
                text = error.read().decode(errors="replace")
                if error.code == 401 and pause is not None:
                    self.token = self.new_token()
                elif error.code not in (429, 500, 502, 503, 504) or pause is None:
                    print(f"::error::{method} /v1/{path}: {error.code} {detail(text)}")
                    sys.exit(1)
            except OSError as error:
                if pause is None:
                    print(f"::error::{method} /v1/{path}: {error}")
                    sys.exit(1)
            time.sleep(pause)


def detail(text):
    try:
        problem = json.loads(text)
        return problem.get("detail") or problem.get("title") or text
    except (ValueError, AttributeError):
        return text[:500]


def labels():
    pairs = (line.strip() for line in given("LABELS").splitlines() if line.strip())
    split = [pair.partition("=") for pair in pairs]
    for key, equals, _ in split:
        if not key or not equals:
            wrong(f"labels: {key!r} is not key=value")
    return {key: value for key, _, value in split}


def trigger(api, project):
    """The context of the delivery. The same step of a run is the same event, so running the job again starts nothing more. The
    input id stands for the run if it is given."""
    stage, sequence = given("STAGE"), given("SEQUENCE", "delivery")
    if not stage:
        stages = api.ask("GET", f"project/{urllib.parse.quote(project)}").get("stages", [])
        stage = stages[0]["stageName"] if stages else wrong(f"project {project} has no stages: apply its shipyard first")
    service, image = needed("SERVICE"), needed("IMAGE")
    run = [os.environ.get(f"GITHUB_{name}", "") for name in ("SERVER_URL", "REPOSITORY", "RUN_ID", "JOB", "ACTION")]
    link = f"{run[0]}/{run[1]}/actions/runs/{run[2]}" if run[2] else ""
    run[2] = given("ID", run[2])
    of_run = uuid.uuid5(uuid.NAMESPACE_URL, "\n".join([*run, project, stage, sequence, service, image]))
    event = {
        "specversion": "1.0",
        "id": str(of_run if run[2] else uuid.uuid4()),
        "source": f"github-actions/{run[1]}" if run[1] else "github-actions",
        "type": f"sh.keptn.event.{stage}.{sequence}.triggered",
        "data": {
            "project": project,
            "stage": stage,
            "service": service,
            "labels": {**({"run": link} if link else {}), **labels()},
            "configurationChange": {"values": {"image": image}},
        },
    }
    return api.ask("POST", "event", event)["keptnContext"]


def look(api, project, context):
    """How far it is: nothing known yet, or the state."""
    states = api.ask("GET", f"sequence/{urllib.parse.quote(project)}?keptnContext={urllib.parse.quote(context)}")["states"]
    return states[0] if states else {"phase": "triggered", "executions": []}


def line(execution):
    result = execution.get("result") or execution.get("phase", "")
    message = execution.get("message", "")
    return f"{execution['stage']}.{execution['sequence']}: {result}{': ' if message else ''}{message}"


def follow(api, project, context, wait, until):
    """Prints what changes, until it is over or asks for a person. The state, and whether it is over."""
    shown, over_before = set(), False
    while True:
        state = look(api, project, context)
        for text in (line(execution) for execution in state["executions"]):
            if text not in shown:
                shown.add(text)
                print(text, flush=True)
        over = state["phase"] in OVER and bool(state["executions"])
        if over and over_before:
            return state, True
        if wait == "approval" and state["phase"] == "waitingForApproval":
            return state, False
        if time.monotonic() > until:
            print(f"::error::the delivery is not over after {given('TIMEOUT', '60')} minutes; it goes on ({state['phase']}):"
                  f" keelway watch {context} -p {project}")
            say("result", "waiting")
            sys.exit(1)
        over_before = over
        time.sleep(LOOK)


def say(name, value):
    """An output of the step."""
    if "GITHUB_OUTPUT" in os.environ:
        with open(os.environ["GITHUB_OUTPUT"], "a", encoding="utf-8") as outputs:
            outputs.write(f"{name}={value}\n")
    print(f"{name}: {value}", flush=True)


def problems(state, over):
    """What keeps the delivery from having got through: a title and a reason for each."""
    ended = [execution for execution in state["executions"] if over or execution.get("result")]
    bad = [execution for execution in ended if execution.get("result") not in ("pass", "warning")]
    failed = [(f"{e['stage']}.{e['sequence']}", e.get("message") or e.get("result") or "it has no result") for e in bad]
    missed = [(f"{m['stage']}.{m['sequence']}", after(m.get("after"))) for m in state.get("notReached", [])]
    # What was not reached because something failed is no news.
    return failed or missed


def after(end):
    return "not reached" + (f": {end['stage']}.{end['sequence']} ended with {end['result']}" if end else "")


def cell(text):
    return " ".join(text.split()).replace("|", "\\|")


def summary(executions, context, project):
    if "GITHUB_STEP_SUMMARY" in os.environ:
        rows = "".join(
            f"| {e['stage']} | {e['sequence']} | {e.get('result') or e.get('phase', '')} | {cell(e.get('message', ''))} |\n" for e in executions
        )
        asks = any(execution.get("state") == "waitingForApproval" for execution in executions)
        more = f"\n`keelway approve {context} -p {project}`\n" if asks else ""
        with open(os.environ["GITHUB_STEP_SUMMARY"], "a", encoding="utf-8") as page:
            page.write(f"`{given('IMAGE')}`\n\n| Stage | Sequence | Result | |\n|---|---|---|---|\n{rows}{more}\n")


def main():
    wait, minutes = given("WAIT", "end"), given("TIMEOUT", "60")
    if wait not in ("end", "approval", "nothing"):
        wrong(f"wait is {wait!r}: write end, approval or nothing")
    if not minutes.isdigit():
        wrong(f"timeout is {minutes!r}: write a number of minutes")
    api, project = Api(needed("API")), needed("PROJECT")
    context = trigger(api, project)
    say("context", context)
    if wait == "nothing":
        return say("result", "waiting")
    state, over = follow(api, project, context, wait, time.monotonic() + 60 * int(minutes))
    summary(state["executions"], context, project)
    found = problems(state, over)
    warned = any(execution.get("result") == "warning" for execution in state["executions"])
    passed = "warning" if warned else "pass"
    say("result", "fail" if found else passed if over else "waiting")
    for title, reason in found:
        print(f"::error title={escaped(title, ':,')}::{escaped(reason)}")
    if found:
        sys.exit(1)


if __name__ == "__main__":
    main()
