"""A local Object Storage service, for tests: `python tests/backends/oci/service.py FOLDER`.

It obeys the documentation of the service (https://docs.oracle.com/iaas/api/#/en/objectstorage/)
and of signatures (https://docs.oracle.com/iaas/Content/API/Concepts/signingrequests.htm) for
objects: it verifies each signature with the public key, gives each write a new entity tag, and
applies conditions, lists and limits as the service does. Buckets are in memory.

It writes a key and a configuration file for the SDK into the folder, prints its port and serves
until it is stopped. `POST /faults` with JSON plans failures, `GET /counts` counts the requests by
verb, `POST /about` sets what the bucket is like and how far ahead the clock is; all are for tests,
and not signed.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import random
import re
import sys
import uuid
from bisect import bisect_left, insort
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime, parsedate_to_datetime
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

NAMESPACE, BUCKET, REGION = "locustests", "memory", "eu-frankfurt-1"
TENANCY, USER = "ocid1.tenancy.oc1..aaaatests", "ocid1.user.oc1..aaaatests"
SKEW = 300.0
"""Seconds that the date of a request may differ from the clock."""

SIGNED = re.compile(r'(\w+)="([^"]*)"')
SUMMARY = {"size", "etag", "timeCreated", "md5", "timeModified", "storageTier", "archivalState"}
PAGE = 1000
PLANS = ("/faults", "/latency", "/about")
CONTROLS = (*PLANS, "/counts", "/names", "/raw/")


def now(clock=0.0):
    """Return the time of a clock that is so many seconds ahead."""
    return datetime.now(UTC) + timedelta(seconds=clock)


class RefusedError(Exception):
    """An answer that is an error of the service."""

    def __init__(self, status, code, message="", **headers):
        super().__init__(code)
        self.status, self.code, self.message, self.headers = status, code, message, headers


@dataclass
class Request:
    method: str
    target: str
    headers: dict
    body: bytes
    path: list = field(init=False)
    query: dict = field(init=False)

    def __post_init__(self):
        parts = urlsplit(self.target)
        self.query = dict(parse_qsl(parts.query, keep_blank_values=True))
        # An object name may have slashes, so the path is split before it is unquoted.
        self.path = [unquote(each) for each in parts.path.split("/", 6)[1:]]


@dataclass
class Answer:
    status: int = 200
    body: bytes = b""
    headers: dict = field(default_factory=dict)


@dataclass
class Stored:
    body: bytes
    created: datetime
    modified: datetime
    headers: dict
    etag: str = field(default_factory=lambda: str(uuid.uuid4()))

    @property
    def md5(self):
        return base64.b64encode(hashlib.md5(self.body, usedforsecurity=False).digest()).decode()

    def described(self):
        return {
            "etag": self.etag,
            "last-modified": format_datetime(self.modified, usegmt=True),
            "content-md5": self.md5,
            "content-type": self.headers.get("content-type", "application/octet-stream"),
            "accept-ranges": "bytes",
            **{name: v for name, v in self.headers.items() if name.startswith("opc-meta-")},
        }


class Signatures:
    """The check of request signatures."""

    def __init__(self, folder):
        # The shortest there is: each request of a test is signed and checked with it.
        key = rsa.generate_private_key(public_exponent=65537, key_size=1024)
        self.public = key.public_key()
        private = key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.TraditionalOpenSSL,
            serialization.NoEncryption(),
        )
        (folder / "key.pem").write_bytes(private)
        (folder / "key.pem").chmod(0o600)
        der = self.public.public_bytes(
            serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        fingerprint = hashlib.md5(der, usedforsecurity=False).hexdigest()
        self.fingerprint = ":".join(re.findall("..", fingerprint))
        self.keys = {f"{TENANCY}/{USER}/{self.fingerprint}", "ST$a.session.token"}
        (folder / "token").write_text("a.session.token")
        self._write_config(folder)

    def _write_config(self, folder):
        common = f"tenancy={TENANCY}\nregion={REGION}\nkey_file={folder / 'key.pem'}\n"
        user = f"fingerprint={self.fingerprint}\nuser={USER}\n"
        (folder / "config").write_text(
            f"[DEFAULT]\n{common}{user}"
            f"[SESSION]\n{common}{user}security_token_file={folder / 'token'}\n"
            f"[STRANGER]\n{common}fingerprint={self.fingerprint}\nuser={USER}stranger\n"
        )

    def check(self, request, clock):
        given = request.headers.get("authorization", "")
        if not given.startswith("Signature "):
            raise RefusedError(401, "NotAuthenticated", "The required information is missing")
        parts = dict(SIGNED.findall(given))
        names = parts.get("headers", "date").split()
        if parts.get("version") != "1" or parts.get("algorithm") != "rsa-sha256":
            raise RefusedError(401, "NotAuthenticated", "unknown version or algorithm")
        self._check_headers(request, names, clock)
        if parts.get("keyId") not in self.keys:
            raise RefusedError(401, "NotAuthenticated", "The key is not known")
        try:
            self.public.verify(
                base64.b64decode(parts.get("signature", "")),
                self.string_of(request, names).encode(),
                padding.PKCS1v15(),
                hashes.SHA256(),
            )
        except (InvalidSignature, ValueError):
            raise RefusedError(401, "NotAuthenticated", "The signature is not valid") from None

    @staticmethod
    def string_of(request, names):
        lines = []
        for name in names:
            if name == "(request-target)":
                lines.append(f"{name}: {request.method.lower()} {request.target}")
            elif name in request.headers:
                lines.append(f"{name}: {request.headers[name]}")
            else:
                raise RefusedError(401, "NotAuthenticated", f"the header {name} is not there")
        return "\n".join(lines)

    @staticmethod
    def _check_headers(request, names, clock):
        date = next((name for name in ("x-date", "date") if name in names), None)
        wanted = {"(request-target)", "host"}
        # The body of an object is not signed, as the documentation says.
        is_object = request.method == "PUT" and len(request.path) == 6 and request.path[4] == "o"
        if request.method in {"POST", "PUT", "PATCH"} and not is_object:
            wanted |= {"content-length", "content-type", "x-content-sha256"}
        if date is None or not wanted <= set(names):
            raise RefusedError(401, "NotAuthenticated", "a required header is not signed")
        sent = parsedate_to_datetime(request.headers[date])
        if abs((now(clock) - sent).total_seconds()) > SKEW:
            raise RefusedError(401, "NotAuthenticated", "The date is too far from the clock")
        if "x-content-sha256" in names:
            digest = base64.b64encode(hashlib.sha256(request.body).digest()).decode()
            if request.headers["x-content-sha256"] != digest:
                raise RefusedError(401, "NotAuthenticated", "the hash of the body differs")


class Bucket:
    """Objects by name, and their names in order."""

    def __init__(self):
        self.objects = {}
        self.names = []

    def handle(self, request):
        if request.path[5:] in ([], [""]):
            if request.method != "GET":
                raise RefusedError(405, "MethodNotAllowed")
            return self.listed(request.query)
        name = request.path[5]
        if len(name.encode()) > 1024 or set(name) & set("\0\r\n"):
            raise RefusedError(400, "InvalidObjectName")
        verbs = {"PUT": self.put, "GET": self.get, "HEAD": self.head, "DELETE": self.delete}
        if request.method not in verbs:
            raise RefusedError(405, "MethodNotAllowed")
        return verbs[request.method](name, request)

    def _check(self, name, headers):
        found = self.objects.get(name)
        wanted = headers.get("if-match")
        if wanted is not None and (found is None or wanted not in {"*", found.etag}):
            raise RefusedError(412, "IfMatchFailed", "The If-Match header does not match")
        return found

    def put(self, name, request):
        headers = request.headers
        found = self._check(name, headers)
        unwanted = headers.get("if-none-match")
        if unwanted not in {None, "*"}:
            raise RefusedError(400, "InvalidParameter", "If-None-Match only takes *")
        if unwanted and found:
            raise RefusedError(412, "IfNoneMatchFailed", "The object exists")
        now = datetime.now(UTC)
        new = Stored(request.body, found.created if found else now, now, headers)
        if headers.get("content-md5", new.md5) != new.md5:
            message = f"The computed MD5 of the request body ({new.md5}) does not match"
            raise RefusedError(400, "UnmatchedContentMD5", message)
        if found is None:
            insort(self.names, name)
        self.objects[name] = new
        described = new.described()
        return Answer(
            headers={
                "etag": new.etag,
                "last-modified": described["last-modified"],
                "opc-content-md5": new.md5,
            }
        )

    def get(self, name, request):
        found = self._check(name, request.headers)
        if found is None:
            raise RefusedError(404, "ObjectNotFound", f"The object '{name}' was not found")
        if request.headers.get("if-none-match") == found.etag:
            return Answer(304, headers={"etag": found.etag})
        ranged = re.fullmatch(r"bytes=(\d+)-(\d*)", request.headers.get("range", ""))
        if not ranged:
            return Answer(200, found.body, found.described())
        start, end = int(ranged[1]), int(ranged[2] or len(found.body) - 1)
        if start >= len(found.body):
            raise RefusedError(416, "InvalidRange")
        body = found.body[start : end + 1]
        span = f"bytes {start}-{start + len(body) - 1}/{len(found.body)}"
        return Answer(206, body, {**found.described(), "content-range": span})

    def head(self, name, request):
        answer = self.get(name, request)
        return Answer(answer.status, b"", {**answer.headers, "content-length": len(answer.body)})

    def delete(self, name, request):
        found = self.objects.get(name)
        if found is None:
            raise RefusedError(404, "ObjectNotFound", f"The object '{name}' was not found")
        self._check(name, request.headers)
        del self.objects[name]
        del self.names[bisect_left(self.names, name)]
        return Answer(204, headers={"last-modified": format_datetime(datetime.now(UTC), True)})

    def listed(self, query):
        limit = int(query.get("limit", PAGE))
        delimiter = query.get("delimiter")
        fields = {each.strip() for each in query.get("fields", "").split(",")} & SUMMARY
        if not 1 <= limit <= PAGE or delimiter not in {None, "/"}:
            raise RefusedError(400, "InvalidParameter")
        prefix = query.get("prefix", "")
        place = bisect_left(self.names, max(prefix, query.get("start", "")))
        found, prefixes, following = [], [], None
        for name in self.names[place:]:
            if not name.startswith(prefix) or name >= query.get("end", "\U0010ffff"):
                break
            if name <= query.get("startAfter", ""):
                continue
            folder = self._folder(name, prefix, delimiter)
            if folder in prefixes:
                continue
            if len(found) + len(prefixes) == limit:
                following = name
                break
            if folder:
                prefixes.append(folder)
            else:
                found.append(self._summary(name, fields))
        content = {"objects": found, "prefixes": prefixes}
        if following is not None:
            content["nextStartWith"] = following
        return Answer(body=json.dumps(content).encode())

    @staticmethod
    def _folder(name, prefix, delimiter):
        rest, found, _ = name[len(prefix) :].partition(delimiter or "/")
        return prefix + rest + "/" if delimiter and found else None

    def _summary(self, name, fields):
        found = self.objects[name]
        known = {
            "size": len(found.body),
            "etag": found.etag,
            "md5": found.md5 if "md5" in fields else None,
            "timeCreated": found.created.isoformat(timespec="milliseconds"),
            "timeModified": found.modified.isoformat(timespec="milliseconds"),
            "storageTier": "Standard",
            "archivalState": None,
        }
        return {"name": name, **{each: known[each] for each in fields}}


@dataclass
class Fault:
    """A planned failure; `method` and `name` are patterns of the requests that meet it.

    Kinds: `status` answers with an error, `cut` closes the connection without an answer, `torn`
    within the body. `late` says that the request has its effect first. `slow` waits.
    """

    kind: str
    method: str = ".*"
    name: str = ".*"
    status: int = 503
    code: str = "ServiceUnavailable"
    retry_after: float | None = None
    late: bool = False
    seconds: float = 0.0
    times: int | None = 1
    rate: float = 1.0
    after: int = 0

    def meets(self, request):
        if not re.fullmatch(self.method, request.method):
            return False
        if not re.search(self.name, unquote(request.target)) or self.times == 0:
            return False
        if self.after:
            self.after -= 1
            return False
        if random.random() > self.rate:
            return False
        self.times = None if self.times is None else self.times - 1
        return True


class Service:
    """The service."""

    def __init__(self, folder):
        self.signatures = Signatures(folder)
        self.buckets = {(NAMESPACE, BUCKET): Bucket()}
        self.faults = []
        self.counts = {}
        self.latency = 0.0
        self.about = {}

    @property
    def clock(self):
        return self.about.get("clock", 0.0)

    def handle(self, request):
        self.signatures.check(request, self.clock)
        path = request.path
        if path[:1] != ["n"]:
            raise RefusedError(404, "NotFound")
        if path in (["n"], ["n", ""]):
            return Answer(body=json.dumps(NAMESPACE).encode())
        if path[1] != NAMESPACE:
            raise RefusedError(404, "NamespaceNotFound", "The namespace was not found")
        if len(path) < 4 or path[2] != "b":
            raise RefusedError(404, "NotFound")
        bucket = self.buckets.get((path[1], path[3]))
        if bucket is None:
            message = (
                f"Either the bucket named '{path[3]}' does not exist or you are not authorized"
            )
            raise RefusedError(404, "BucketNotFound", message)
        if path[4:5] != ["o"]:
            return self.described(path)
        return bucket.handle(request)

    def described(self, path):
        """Answer what a bucket is like, and its rules."""
        if self.about.get("denied"):
            raise RefusedError(404, "BucketNotFound", "You are not authorized")
        if path[4:] == ["retentionRules"]:
            return Answer(body=json.dumps({"items": self.about.get("retention", [])}).encode())
        if path[4:] == ["l"]:
            if "lifecycle" not in self.about:
                raise RefusedError(404, "LifecyclePolicyNotFound", "There is no policy")
            return Answer(body=json.dumps({"items": self.about["lifecycle"]}).encode())
        usual = {
            "publicAccessType": "NoPublicAccess",
            "storageTier": "Standard",
            "versioning": "Disabled",
            "isReadOnly": False,
        }
        found = {"name": path[3], "namespace": path[1], **usual, **self.about.get("bucket", {})}
        return Answer(body=json.dumps(found).encode())

    def control(self, request):
        """Answer a request of a test."""
        if request.target == "/counts":
            counts, self.counts = self.counts, {}
            return Answer(body=json.dumps(counts).encode())
        if request.target == "/names":
            names = self.buckets[NAMESPACE, BUCKET].names
            return Answer(body=json.dumps(names).encode())
        if request.target in PLANS:
            self.plan(request.target, json.loads(request.body))
            return Answer()
        bucket = self.buckets[NAMESPACE, BUCKET]
        name = unquote(request.target[len("/raw/") :])
        if request.method == "PUT":
            return bucket.put(name, request)
        return bucket.get(name, request)

    def plan(self, target, given):
        if target == "/faults":
            self.faults = [Fault(**each) for each in given]
        elif target == "/about":
            self.about = given
        else:
            self.latency = float(given)

    def answer(self, request):
        try:
            answer = self.handle(request)
        except RefusedError as error:
            answer = refusal(error.status, error.code, error.message, **error.headers)
        verb = "LIST" if request.path[4:5] == ["o"] and len(request.path) < 6 else request.method
        for counted in (verb, str(answer.status)):
            self.counts[counted] = self.counts.get(counted, 0) + 1
        return answer

    async def serve(self, reader, writer):
        try:
            while (request := await read_request(reader, writer)) is not None:
                if not await self.respond(request, writer):
                    break
        except (ConnectionError, asyncio.IncompleteReadError, TimeoutError):
            pass
        finally:
            writer.close()

    async def respond(self, request, writer):
        """Answer a request; return whether the connection stays open."""
        if request.target.startswith(CONTROLS):
            await write_answer(writer, request, self.control(request))
            return True
        if self.latency:
            await asyncio.sleep(self.latency)
        fault = next((each for each in self.faults if each.meets(request)), None)
        if fault is None:
            await write_answer(writer, request, self.answer(request), clock=self.clock)
            return True
        await asyncio.sleep(fault.seconds)
        answer = self.answer(request) if fault.late or fault.kind in {"slow", "torn"} else None
        if fault.kind == "cut":
            return False
        if fault.kind == "status":
            headers = {} if fault.retry_after is None else {"retry-after": fault.retry_after}
            answer = refusal(fault.status, fault.code, "planned", **headers)
        await write_answer(writer, request, answer, torn=fault.kind == "torn")
        return fault.kind != "torn"


def refusal(status, code, message, **headers):
    body = json.dumps({"code": code, "message": message}).encode()
    return Answer(status, body, {name.replace("_", "-"): v for name, v in headers.items()})


async def read_request(reader, writer):
    line = await reader.readline()
    if not line:
        return None
    method, target, _ = line.decode("latin-1").split()
    headers = {}
    while (line := await reader.readline()) not in {b"\r\n", b""}:
        name, _, value = line.decode("latin-1").partition(":")
        headers[name.strip().lower()] = value.strip()
    if headers.get("expect", "").lower() == "100-continue":
        writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        await writer.drain()
    if "chunked" in headers.get("transfer-encoding", ""):
        return Request(method, target, headers, await read_chunks(reader))
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return Request(method, target, headers, body)


async def read_chunks(reader):
    body = b""
    while size := int((await reader.readline()).split(b";")[0], 16):
        body += await reader.readexactly(size)
        await reader.readline()
    await reader.readline()
    return body


async def write_answer(writer, request, answer, *, torn=False, clock=0.0):
    headers = {
        "date": format_datetime(now(clock), usegmt=True),
        "content-type": "application/json",
        "opc-request-id": uuid.uuid4().hex,
        "content-length": len(answer.body),
        **answer.headers,
    }
    if "opc-client-request-id" in request.headers:
        headers["opc-client-request-id"] = request.headers["opc-client-request-id"]
    lines = [f"HTTP/1.1 {answer.status} ANSWER", *(f"{n}: {v}" for n, v in headers.items())]
    body = b"" if request.method == "HEAD" or answer.status in {204, 304} else answer.body
    if answer.status in {204, 304}:
        lines = [each for each in lines if not each.startswith("content-length")]
    sent = "\r\n".join([*lines, "", ""]).encode("latin-1") + body
    writer.write(sent[: len(sent) - max(len(body) // 2, 1)] if torn else sent)
    await writer.drain()


async def main(folder, port=0):
    service = Service(folder)
    server = await asyncio.start_server(service.serve, "127.0.0.1", port, backlog=512)
    print(server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), *map(int, sys.argv[2:])))
