"""Finds the Docker API of this machine, served by Docker or podman, and uses it in plain HTTP, without a command or a package."""

import http.client
import ipaddress
import json
import os
import platform
import socket
from pathlib import Path
from urllib.parse import quote, urlsplit

from .common import Problem

# The label of every container of the tests. Its value is the temporary directory that they share.
LABEL = "dev.keelway.temp"
# In seconds. Removing a container includes ending its processes.
ANSWER_SECONDS = 60


class _Unix(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=ANSWER_SECONDS)
        self._path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


class Engine:
    """The API at a URL (unix:// or tcp://)."""

    def __init__(self, url):
        self.url = url

    def _connection(self):
        url = urlsplit(self.url)
        return _Unix(url.path) if url.scheme == "unix" else http.client.HTTPConnection(url.hostname, url.port or 2375, timeout=ANSWER_SECONDS)

    def ask(self, method, path):
        """(status, parsed answer). Raises OSError if there is no answer."""
        connection = self._connection()
        try:
            connection.request(method, path, headers={"Host": "localhost"})
            answer = connection.getresponse()
            text = answer.read()
        except http.client.HTTPException as error:
            raise OSError(f"no answer in HTTP: {error!r}") from None
        finally:
            connection.close()
        try:
            return answer.status, json.loads(text or b"null")
        except ValueError:
            return answer.status, text.decode(errors="replace")

    def why_not(self):
        """Why the API does not answer. None: it does."""
        try:
            status, said = self.ask("GET", "/version")
        except OSError as error:
            return error.strerror or str(error)
        return None if status == 200 else f"it answers {status}: {said}"

    def kind(self):
        """`podman` or `docker`: the command that belongs to the API."""
        _, version = self.ask("GET", "/version")
        names = [part.get("Name", "") for part in version.get("Components") or ()]
        return "podman" if any(name.startswith("Podman") for name in names) else "docker"

    def labelled(self, value):
        """The ids of all containers with this label, running or not."""
        filters = quote(json.dumps({"label": [f"{LABEL}={value}"]}))
        status, found = self.ask("GET", f"/containers/json?all=true&filters={filters}")
        if status != 200:
            raise Problem(f"the Docker API at {self.url} does not list containers: {found}")
        return [container["Id"] for container in found]

    def remove(self, name):
        """Ends and removes a container with its volumes; returns whether it existed."""
        status, said = self.ask("DELETE", f"/containers/{quote(name)}?force=true&v=true")
        # 409: another process is removing it.
        if status not in (200, 204, 404, 409):
            raise Problem(f"container {name} cannot be removed: {said.get('message') if isinstance(said, dict) else said}")
        return status != 404


def is_local(url):
    """Whether the API is on this machine, because tests and container share a directory and the loopback address."""
    parts = urlsplit(url)
    if parts.scheme == "unix":
        return bool(parts.path)
    try:
        return parts.scheme == "tcp" and (parts.hostname == "localhost" or ipaddress.ip_address(parts.hostname or "").is_loopback)
    except ValueError:
        return False


def candidates():
    """The URLs to try; only DOCKER_HOST if that is set."""
    if os.environ.get("DOCKER_HOST"):
        return [os.environ["DOCKER_HOST"]]
    home, own = Path.home(), Path(os.environ.get("XDG_RUNTIME_DIR") or f"/run/user/{os.getuid()}")
    sockets = [Path("/var/run/docker.sock"), home / ".docker/run/docker.sock", home / ".docker/desktop/docker.sock"]
    if platform.system() == "Linux":
        # The podman of a user does not see the containers of root, and vice versa.
        sockets += [own / "docker.sock", Path("/run/podman/podman.sock") if os.getuid() == 0 else own / "podman/podman.sock"]
    return [f"unix://{socket}" for socket in sockets]


def find():
    """(the first API that answers or None, the URLs that were tried with the error of each)"""
    looked = {}
    for url in candidates():
        engine = Engine(url)
        if not (why := engine.why_not()):
            return engine, looked
        looked[url] = why
    return None, looked


def end_container(record):
    """Removes the container in a state directory's record {name, engine}, if it exists."""
    engine = Engine(record["engine"]) if record.get("engine") else find()[0]
    if engine is None:
        return False
    try:
        return engine.remove(record["name"])
    except OSError as error:
        raise Problem(f"container {record['name']} cannot be removed: no answer at {engine.url} ({error})") from None
