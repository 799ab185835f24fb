#!/usr/bin/env python3
"""Plays a Prometheus over files of figures that a person may edit: `make run` has evaluations ask it.

    python3 infra/local/figures.py FILE... [--port PORT] [--token TOKEN]

prints its URL and answers until it is stopped; with `--token TOKEN`, only those who send it (`Authorization: Bearer TOKEN`). The
files are read again for every request. A line is a series and its value, as Prometheus writes them, or a whole query in double
quotes and its value:

    error_rate{service="carts",stage="staging"} 0.02     # a comment
    "sum(rate(http_requests_total{job=\\"carts\\"}[5m]))" 42.5

Queries are those that are in the file, names with or without matchers (`error_rate{service=~"ca.*"}`), and numbers. Nothing is
computed; over a period, each step has the value of the file. """

import argparse
import json
import re
import sys
import threading
import time
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

NAME = r"[A-Za-z_:][A-Za-z0-9_:]*"
TEXT = r'"(?:[^"\\]|\\.)*"'
LABEL = rf"\s*({NAME})\s*(=~|!~|!=|=)\s*({TEXT}|'[^']*')\s*"
SERIES = re.compile(rf"({NAME})?\s*(\{{.*\}})?")
LINE = re.compile(rf"({TEXT}|{NAME}\s*(?:\{{(?:[^\"}}]|{TEXT})*\}})?|\{{(?:[^\"}}]|{TEXT})*\}})\s+(\S+)\s*(?:#.*)?")


class Wrong(Exception):
    """A query or a file that cannot be read: its type and its words."""

    def __init__(self, kind, words):
        super().__init__(words)
        self.kind, self.words = kind, words


def unquoted(text):
    return json.loads(text) if text.startswith('"') else text[1:-1]


def selector(text):
    """The matchers of `name{label="value"}`: (label, operator, value); None: it is something else."""
    found = SERIES.fullmatch(text.strip())
    if not found or not any(found.groups()):
        return None
    name, braces = found.groups()
    matchers = [("__name__", "=", name)] if name else []
    rest = (braces or "{}")[1:-1].strip()
    while rest:
        label = re.match(LABEL, rest)
        if not label or rest[label.end():label.end() + 1] not in ("", ","):
            return None
        matchers.append((label[1], label[2], unquoted(label[3])))
        rest = rest[label.end() + 1:].strip()
    return matchers


def value_of(text):
    """A number as Prometheus reads it."""
    return float(text.replace("Inf", "inf").replace("NaN", "nan"))


def read(paths):
    """Queries by their text, and series by their labels."""
    queries, series = {}, []
    numbered = [(path, *one) for path in paths for one in enumerate(Path(path).read_text(encoding="utf-8").splitlines(), 1)]
    for path, number, line in numbered:
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        try:
            what, value = LINE.fullmatch(line.strip()).groups()
            value = value_of(value)
            if what.startswith('"'):
                queries[unquoted(what)] = value
            else:
                matchers = selector(what)
                if any(operator != "=" for _, operator, _ in matchers):
                    raise ValueError
                series.append(({label: text for label, _, text in matchers}, value))
        except (AttributeError, TypeError, ValueError):
            raise Wrong("internal", f"{Path(path).name}:{number} is no figure: write `name{{label=\"value\"}} number`") from None
    return queries, series


def holds(labels, matcher):
    label, operator, value = matcher
    given = labels.get(label, "")
    same = re.fullmatch(value, given) is not None if operator.endswith("~") else given == value
    return same != operator.startswith("!")


def shown(number):
    """A number as Prometheus writes it."""
    special = {"inf": "+Inf", "-inf": "-Inf", "nan": "NaN"}.get(repr(number))
    return special or repr(number).removesuffix(".0")


def answer(paths, query, at):
    """The data of an answer to a query at a time."""
    text = query.strip()
    queries, series = read(paths)
    if text in queries:
        return {"resultType": "vector", "result": [{"metric": {}, "value": [at, shown(queries[text])]}]}
    try:
        return {"resultType": "scalar", "result": [at, shown(value_of(text))]}
    except ValueError:
        matchers = selector(text)
    if not matchers:
        raise Wrong("bad_data", f'invalid parameter "query": parse error: {text!r} is no name with matchers, and not in the file')
    try:
        for _, operator, value in matchers:
            re.compile(value if operator.endswith("~") else "")
        found = [(labels, value) for labels, value in series if all(holds(labels, one) for one in matchers)]
    except re.error as error:
        raise Wrong("bad_data", f'invalid parameter "query": parse error: {error}') from None
    return {"resultType": "vector", "result": [{"metric": labels, "value": [at, shown(value)]} for labels, value in found]}


def number_of(form, name):
    """A time or a step, in seconds since 1970 or of length."""
    try:
        return float(form[name])
    except (KeyError, ValueError):
        raise Wrong("bad_data", f'invalid parameter "{name}": cannot parse "{form.get(name, "")}" to a valid timestamp') from None


def range_answer(paths, form):
    """The data of an answer to a query over a period."""
    start, end, step = (number_of(form, name) for name in ("start", "end", "step"))
    if end < start or step <= 0 or (end - start) / step > 11_000:
        raise Wrong("bad_data", "no period with 1 to 11,000 points per series")
    found = answer(paths, form["query"], start)
    series = [{"metric": {}, "value": found["result"]}] if found["resultType"] == "scalar" else found["result"]
    times = [start + step * number for number in range(int((end - start) / step) + 1)]
    matrix = [{"metric": one["metric"], "values": [[at, one["value"][1]] for at in times]} for one in series]
    return {"resultType": "matrix", "result": matrix}


class Handler(BaseHTTPRequestHandler):
    """Answers as `/api/v1/query` and `/api/v1/query_range` do."""

    STATUS = {"bad_data": 400, "internal": 500}
    protocol_version = "HTTP/1.1"
    paths = ()
    token = None

    def log_message(self, *_):
        pass

    def send(self, status, kind, text):
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def handle_query(self, form, is_range):
        try:
            at = number_of(form, "time") if form.get("time") else time.time()
            if not form.get("query", "").strip():
                raise Wrong("bad_data", 'invalid parameter "query": unknown position: parse error: no expression found in input')
            data = range_answer(self.paths, form) if is_range else answer(self.paths, form["query"], at)
            status, told = 200, {"status": "success", "data": data}
        except Wrong as wrong:
            status = self.STATUS[wrong.kind]
            told = {"status": "error", "errorType": wrong.kind, "error": wrong.words}
        except OSError as error:
            status, told = 500, {"status": "error", "errorType": "internal", "error": f"no file of figures: {error.strerror}"}
        self.send(status, "application/json", json.dumps(told))

    def asked(self, body=""):
        url = urllib.parse.urlsplit(self.path)
        if url.path in ("/-/ready", "/-/healthy"):
            return self.send(200, "text/plain; charset=utf-8", "Prometheus Server is Ready.\n")
        if url.path not in ("/api/v1/query", "/api/v1/query_range"):
            return self.send(404, "text/plain; charset=utf-8", "404 page not found\n")
        if self.token is not None and self.headers.get("Authorization") != f"Bearer {self.token}":
            return self.send(401, "text/plain; charset=utf-8", "Unauthorized\n")
        pairs = [*urllib.parse.parse_qsl(body), *urllib.parse.parse_qsl(url.query)]
        return self.handle_query(dict(reversed(pairs)), url.path.endswith("_range"))

    def do_GET(self):
        self.asked()

    def do_POST(self):
        self.asked(self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode())


def serve(paths, port=0, token=None):
    """A server over files, on this machine; it answers in a thread of its own. Its URL is that of its `server_address`."""
    handler = type("Figures", (Handler,), {"paths": paths, "token": token})
    server = ThreadingHTTPServer(("127.0.0.1", port), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", metavar="FILE", help="a file of figures")
    parser.add_argument("--port", type=int, default=0, help="the port [default: a free one]")
    parser.add_argument("--token", help="what requests must name as their bearer token [default: nothing]")
    given = parser.parse_args()
    server = serve(given.files, given.port, given.token)
    print("http://{}:{}".format(*server.server_address), flush=True)
    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        sys.exit(0)


if __name__ == "__main__":
    main()
