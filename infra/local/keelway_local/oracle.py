"""Runs inside the local cloud for `make test-oracles`: passes requests about items on to AWS's DynamoDB Local, and records events
and matches.

Tables are made and described by the emulator; DynamoDB Local gets each of them when the first request names it.
"""

import asyncio
import json
import os
import threading
from urllib.parse import urlsplit

import urllib3

# The operations on items. All other operations are about tables, and stay with the emulator.
ITEMS = {"GetItem", "BatchGetItem", "Query", "Scan", "PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", "TransactGetItems",
         "TransactWriteItems"}
PREFIX = "DynamoDB_20120810"
# The members of a table's description that DynamoDB Local needs.
KEPT = ("TableName", "AttributeDefinitions", "KeySchema")
OF_INDEX = ("IndexName", "KeySchema", "Projection")
SIGNED = "AWS4-HMAC-SHA256 Credential=local/20200101/us-east-1/dynamodb/aws4_request, SignedHeaders=host;x-amz-date, Signature=0"
HEADERS = {"content-type": "application/x-amz-json-1.0", "x-amz-date": "20200101T000000Z", "authorization": SIGNED}
ANSWERED = ("content-type", "x-amz-crc32")


class Items:
    """Passes requests about items on to DynamoDB Local at this address."""

    def __init__(self, url, inner):
        self._pool = urllib3.connectionpool.connection_from_url(url, maxsize=32, block=False, retries=False)
        self._inner = inner

    def _ask(self, operation, body):
        answer = self._pool.request("POST", "/", body=body, headers={**HEADERS, "x-amz-target": f"{PREFIX}.{operation}"})
        return answer.status, {name: value for name, value in answer.headers.items() if name.lower() in ANSWERED}, answer.data

    async def handle(self, method, path, headers, body, query):
        prefix, _, operation = headers.get("x-amz-target", "").rpartition(".")
        if prefix != PREFIX or operation not in ITEMS | {"DeleteTable"}:
            return await self._inner(method, path, headers, body, query)
        if operation == "DeleteTable":
            await asyncio.to_thread(self._ask, operation, body)
            return await self._inner(method, path, headers, body, query)
        answer = await asyncio.to_thread(self._ask, operation, body)
        if answer[0] == 400 and b"ResourceNotFoundException" in answer[2] and await self._made(headers, json.loads(body)):
            answer = await asyncio.to_thread(self._ask, operation, body)
        return answer

    async def _made(self, headers, request):
        """Makes the tables of a request that the emulator has; returns whether there were any."""
        made = False
        for name in _tables(request):
            described = await self._inner("POST", "/", {**headers, "x-amz-target": f"{PREFIX}.DescribeTable"},
                                          json.dumps({"TableName": name}).encode(), {})
            if described[0] != 200:
                continue
            table = json.loads(described[2])["Table"]
            wanted = {key: table[key] for key in KEPT}
            wanted["BillingMode"] = "PAY_PER_REQUEST"
            if indexes := table.get("GlobalSecondaryIndexes"):
                wanted["GlobalSecondaryIndexes"] = [{key: index[key] for key in OF_INDEX} for index in indexes]
            status, _, text = await asyncio.to_thread(self._ask, "CreateTable", json.dumps(wanted).encode())
            # Two requests may arrive at the same time.
            made = made or status == 200 or b"ResourceInUseException" in text
        return made


def _tables(request):
    """The names of the tables that a request is about."""
    if "TableName" in request:
        return [request["TableName"]]
    if "RequestItems" in request:
        return list(request["RequestItems"])
    return list({part["TableName"] for item in request.get("TransactItems", ()) for part in item.values()})


class Matches:
    """Records each event on a bus, and which rules match it."""

    def __init__(self, path):
        self._out, self._lock = open(path, "a"), threading.Lock()
        self._numbers, self._next = threading.local(), 0

    def note(self, view, pattern, takes):
        with self._lock:
            # The emulator asks the rules about one event after the other, always with the same object.
            if getattr(self._numbers, "view", None) is not view:
                self._numbers.view, self._numbers.n = view, self._next
                self._next += 1
                self._write({"n": self._numbers.n, "event": view.event_with_detail()})
            self._write({"n": self._numbers.n, "pattern": pattern, "takes": takes})

    def _write(self, line):
        self._out.write(json.dumps(line) + "\n")
        self._out.flush()


def _wrap_matches(path):
    from ministack.services import eventbridge

    matches, inner = Matches(path), eventbridge._matches_pattern_view

    def matches_pattern(pattern, view, *rest):
        takes = inner(pattern, view, *rest)
        matches.note(view, pattern, takes)
        return takes

    eventbridge._matches_pattern_view = matches_pattern


def install(environment):
    """Begins what the variables of `make test-oracles` ask for. Without them, it does nothing."""
    from ministack import app

    if url := environment.get("KEELWAY_DYNAMODB"):
        if urlsplit(url).hostname not in ("127.0.0.1", "localhost"):
            raise SystemExit(f"KEELWAY_DYNAMODB is {url}: DynamoDB Local runs on this machine")
        app.SERVICE_HANDLERS["dynamodb"] = Items(url, app.SERVICE_HANDLERS["dynamodb"]).handle
    if folder := environment.get("KEELWAY_ORACLES"):
        _wrap_matches(os.path.join(folder, "matches.jsonl"))
