"""The local Object Storage service as a process of its own, and the plan of its failures."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path
from urllib.parse import quote

SERVICE = Path(__file__).with_name("service.py")
ADDRESS = "memory/locustests"


def prefix_of(path):
    """Return a prefix of names for a folder of a test."""
    return "t" + hashlib.sha256(str(path).encode()).hexdigest()[:16] + "/"


class Served:
    """The service, from `start` to `stop`; a restart on the same port forgets all objects."""

    def __init__(self):
        self._folder = tempfile.TemporaryDirectory(prefix="locus-oci-")
        self.folder = Path(self._folder.name)
        self.process = None
        self.port = 0

    def start(self):
        command = [sys.executable, str(SERVICE), str(self.folder), str(self.port)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True)
        self.port = int(self.process.stdout.readline())

    def stop(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.stop()
        self._folder.cleanup()

    @property
    def endpoint(self):
        return f"http://127.0.0.1:{self.port}"

    @property
    def options(self):
        """The options of a connection."""
        return {"config_file": str(self.folder / "config"), "service_endpoint": self.endpoint}

    def _ask(self, path, body=None, method=None):
        request = urllib.request.Request(self.endpoint + path, body, method=method)
        with urllib.request.urlopen(request) as answer:
            return answer.read()

    def plan(self, *faults):
        """Plan failures, in place of those that were planned before."""
        self._ask("/faults", json.dumps(faults).encode())

    def about(self, **settings):
        """Set the `bucket`, its rules (`retention`, `lifecycle`), and the `clock` of the service.

        Nothing restores what is usual.
        """
        self._ask("/about", json.dumps(settings).encode())

    def counts(self):
        """Return the requests by verb and by status since the last call."""
        return json.loads(self._ask("/counts"))

    def names(self):
        """Return the names of all objects."""
        return json.loads(self._ask("/names"))

    def latency(self, seconds):
        """Let each answer take so long."""
        self._ask("/latency", str(seconds).encode())

    def read(self, name):
        """Return the content of an object."""
        return self._ask("/raw/" + quote(name))

    def write(self, name, body):
        """Write an object, whatever was there."""
        self._ask("/raw/" + quote(name), body, "PUT")
