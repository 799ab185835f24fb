#!/usr/bin/env python3
"""Plays gitea/calls.json to a real Gitea, and writes what it answered to gitea/answers.json.

KEELWAY_TEST_GITEA_URL is its address, KEELWAY_TEST_GITEA_ADMIN_TOKEN a token of an administrator with the scopes write:admin,
write:organization and write:repository. The users keelway, reader and stranger and the organization shop are deleted and made anew.
tests/README.md says how to start a Gitea.
"""

import base64
import gzip
import hmac
import http.server
import io
import json
import os
import pathlib
import queue
import re
import sys
import tarfile
import threading
import time
import urllib.error
import urllib.request

HERE = pathlib.Path(__file__).parent / "gitea"
# The headers that a client may read something from. tests/githost/tests/githost/recorded/plain.rs has the same list.
HEADERS = (
    "access-control-expose-headers allow cache-control content-disposition content-type etag last-modified link location "
    "retry-after www-authenticate x-hasmore x-total-count"
).split()
# The same of a webhook.
SENT = (
    "content-type x-gitea-delivery x-gitea-event x-gitea-event-type x-gitea-signature x-github-delivery x-github-event "
    "x-github-event-type x-hub-signature-256"
).split()
SECRET = "hush"
# A token and a password that nobody has at another host.
WRONG = "0123456789abcdef0123456789abcdef01234567"
LAST_LIMIT = 60


class Api:
    def __init__(self, origin, proof=None):
        self.base, self.proof = origin + "/api/v1", proof

    def send(self, method, path, body=None, headers=()):
        request = urllib.request.Request(self.base + path, method=method, headers=dict(headers))
        if body is not None:
            request.data = json.dumps(body).encode()
            request.add_header("content-type", "application/json")
        if self.proof:
            request.add_header("authorization", self.proof)
        try:
            with urllib.request.urlopen(request) as answer:
                return answer.status, answer.headers, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.headers, error.read()

    def done(self, method, path, body=None):
        status, _, answer = self.send(method, path, body)
        if status >= 300:
            sys.exit(f"{method} {path}: {status} {answer.decode(errors='replace')}")
        return json.loads(answer) if answer else None


class Receiver:
    """What the host sends about the repository."""

    def __init__(self):
        sent = self.sent = queue.Queue()

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                sent.put((self.headers, self.rfile.read(int(self.headers["content-length"]))))
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{server.server_port}/"

    def wait(self, wanted, plain):
        while True:
            headers, raw = self.sent.get(timeout=LAST_LIMIT)
            body = json.loads(raw)
            if all(body.get(name) == value for name, value in wanted.items()):
                break
        signature = hmac.new(SECRET.encode(), raw, "sha256").hexdigest()
        delivery = headers["x-gitea-delivery"]
        told = {name: headers[name] for name in SENT if name in headers}
        told = {name: value.replace(signature, "<signature>").replace(delivery, "<delivery>") for name, value in told.items()}
        return {"headers": told, "body": plain.value(body)}


def set_up(origin, token, receiver):
    """The users, their tokens and the empty repository; who asks, by the name that the calls have for them."""
    admin = Api(origin, f"token {token}")
    for gone in ("/repos/shop/config", "/orgs/shop"):
        admin.send("DELETE", gone)
    for user in ("keelway", "reader", "stranger"):
        admin.send("DELETE", f"/admin/users/{user}?purge=true")
    writing = ["write:repository", "write:issue", "read:user"]
    asking = {"nobody": Api(origin), "wrong": Api(origin, f"token {WRONG}")}
    for user, name, scopes in (
        ("keelway", "owner", writing),
        ("keelway", "reading", ["read:repository", "read:issue", "read:user"]),
        ("keelway", "setting-up", [*writing, "write:organization"]),
        ("reader", "reader", writing),
        ("stranger", "stranger", writing),
    ):
        new = {"username": user, "email": f"{user}@noreply.localhost", "password": WRONG, "must_change_password": False}
        if name in ("owner", "reader", "stranger"):
            admin.done("POST", "/admin/users", new)
        own = Api(origin, "Basic " + base64.b64encode(f"{user}:{WRONG}".encode()).decode())
        asking[name] = Api(origin, "token " + own.done("POST", f"/users/{user}/tokens", {"name": name, "scopes": scopes})["sha1"])
    owner = asking.pop("setting-up")
    owner.done("POST", "/orgs", {"username": "shop"})
    owner.done("POST", "/orgs/shop/repos", {"name": "config", "private": True, "default_branch": "main"})
    # The ways to merge that the strict host knows.
    ways = {"allow_rebase": False, "allow_rebase_explicit": False, "allow_fast_forward_only_merge": False}
    owner.done("PATCH", "/repos/shop/config", {"has_pull_requests": True, **ways})
    owner.done("PUT", "/repos/shop/config/collaborators/reader", {"permission": "read"})
    config = {"url": receiver.url, "content_type": "json", "secret": SECRET}
    owner.done("POST", "/repos/shop/config/hooks", {"type": "gitea", "active": True, "events": ["pull_request"], "config": config})
    return asking


class Plain:
    """Answers without what changes from one recording to the next: addresses, times, ids and hashes."""

    def __init__(self, origin):
        self.origin, self.kept = origin, {}

    def filled(self, text):
        for name, value in self.kept.items():
            text = text.replace("{%s}" % name, value)
        return text

    def text(self, text):
        # The year 1 is how Go says that there is no time.
        if re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:.]+(Z|[+-]\d\d:\d\d)", text) and not text.startswith("0001-"):
            return "<time>"
        text = text.replace(self.origin, "{origin}")
        for name, value in sorted(self.kept.items()):
            text = text.replace(value, "{%s}" % name)
        text = re.sub(r"[0-9a-f]{32,}", "<hash>", text)
        text = re.sub(r"token scope=.*", "token scope=<scopes>", text)
        text = re.sub(r"^\d+(\+\w+@noreply\.)", r"<id>\1", text)
        return re.sub(r"(id: |#issuecomment-|/avatars/)\d+", r"\1<id>", text)

    def value(self, value, key=""):
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self.value(one, key) for one in value]
        if isinstance(value, dict):
            # What a repository takes on the disk, whose account Gitea runs under, and a count that lags behind.
            repository = "full_name" in value and "default_branch" in value
            vague = ("size", "ssh_url", "open_pr_counter") if repository else ()
            return {name: f"<{name}>" if name in vague else self.value(one, name) for name, one in sorted(value.items())}
        if type(value) is int and value and (key == "id" or key.endswith("_id")):
            return "<id>"
        return value

    def headers(self, headers):
        found = {name: headers[name] for name in HEADERS if name in headers}
        return {name: f"<{name}>" if name in ("etag", "last-modified") else self.text(value) for name, value in found.items()}

    def body(self, raw):
        if not raw:
            return None
        if raw.startswith(b"\x1f\x8b"):
            with tarfile.open(fileobj=io.BytesIO(gzip.decompress(raw))) as archive:
                return [[entry.name + "/" * entry.isdir(), entry.size] for entry in archive]
        try:
            return self.value(json.loads(raw))
        except ValueError:
            return self.text(raw.decode())


def play(origin, asking, receiver, steps):
    plain, answers = Plain(origin), []
    for step in steps:
        method, path = plain.filled(step["call"]).split(" ", 1)
        if step.get("later"):
            # Longer than the unit in which Gitea orders changes.
            time.sleep(1.1)
        body = json.loads(plain.filled(json.dumps(step["body"]))) if "body" in step else None
        began = time.monotonic()
        while True:
            status, headers, raw = asking[step.get("as", "owner")].send(method, path, body, step.get("headers", {}).items())
            wanted = json.loads(plain.filled(json.dumps(step.get("until", {}))))
            if status == step.get("status", status) and all(at(json.loads(raw), where) == value for where, value in wanted.items()):
                break
            if time.monotonic() - began > LAST_LIMIT:
                sys.exit(f"{step['about']}: still {status} {raw.decode()}")
            time.sleep(0.2)
        for name, where in step.get("keep", {}).items():
            if status >= 300:
                sys.exit(f"{step['about']}: {status} {raw.decode()}")
            plain.kept[name] = at(json.loads(raw), where)
        print(status, step["about"], file=sys.stderr)
        sent = receiver.wait(step["sends"], plain) if "sends" in step else None
        answer = {"about": step["about"], "status": status, "headers": plain.headers(headers), "body": plain.body(raw)}
        answers.append({**answer, "sent": sent} if sent else answer)
    return answers


def at(body, where):
    for name in where.split("/")[1:]:
        body = body[name]
    return body


def interned(value, parts):
    """Accounts and repositories occur many times, and are told once."""
    if isinstance(value, list):
        return [interned(one, parts) for one in value]
    if not isinstance(value, dict):
        return value
    value = {name: interned(one, parts) for name, one in value.items()}
    name = value.get("full_name") or value.get("login")
    if not name:
        return value
    n = 1
    while parts.setdefault(f"<{name} {n}>", value) != value:
        n += 1
    return f"<{name} {n}>"


def main():
    origin = os.environ["KEELWAY_TEST_GITEA_URL"].rstrip("/")
    receiver = Receiver()
    asking = set_up(origin, os.environ["KEELWAY_TEST_GITEA_ADMIN_TOKEN"], receiver)
    answers = play(origin, asking, receiver, json.loads((HERE / "calls.json").read_text()))
    parts = {}
    for answer in answers:
        answer["body"] = interned(answer["body"], parts)
        if "sent" in answer:
            answer["sent"]["body"] = interned(answer["sent"]["body"], parts)
    line = lambda value: json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    version = asking["owner"].done("GET", "/version")["version"]
    parts = ",\n".join(f"    {line(name)}: {line(part)}" for name, part in parts.items())
    answers = ",\n".join(f"    {line(answer)}" for answer in answers)
    text = f'{{\n  "version": {line(version)},\n  "parts": {{\n{parts}\n  }},\n  "answers": [\n{answers}\n  ]\n}}\n'
    (HERE / "answers.json").write_text(text)


if __name__ == "__main__":
    main()
