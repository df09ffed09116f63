"""The local service refuses what the real one refuses; the SDK is not needed for this."""

from __future__ import annotations

import base64
import hashlib
import http.client
import json
import re
import uuid
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from urllib.parse import quote

import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

BASE = "/n/locustests/b/memory/o"
GENERIC = ("date", "(request-target)", "host")
CONTENT = ("content-length", "content-type", "x-content-sha256")


class Client:
    """Signs requests as the documentation says, or not quite."""

    def __init__(self, service):
        self.service = service
        config = (service.folder / "config").read_text()
        section = config.partition("[SESSION]")[0]
        self.names = dict(re.findall(r"^(\w+)=(.*)$", section, re.MULTILINE))
        key = (service.folder / "key.pem").read_bytes()
        self.key = serialization.load_pem_private_key(key, None)

    def ask(self, method, target, body=b"", *, key=None, signed=None, user=None, age=0, **headers):
        names = self.names
        given = {
            "date": format_datetime(datetime.now(UTC) - timedelta(seconds=age), usegmt=True),
            "host": f"127.0.0.1:{self.service.port}",
            "content-length": str(len(body)),
            **{name.replace("_", "-"): value for name, value in headers.items()},
        }
        lines = [
            f"{each}: {method.lower()} {target}" if each[0] == "(" else f"{each}: {given[each]}"
            for each in signed or GENERIC
        ]
        signature = (key or self.key).sign(
            "\n".join(lines).encode(), padding.PKCS1v15(), hashes.SHA256()
        )
        key_id = f"{names['tenancy']}/{user or names['user']}/{names['fingerprint']}"
        given["authorization"] = (
            f'Signature version="1",keyId="{key_id}",algorithm="rsa-sha256",'
            f'headers="{" ".join(signed or GENERIC)}",'
            f'signature="{base64.b64encode(signature).decode()}"'
        )
        return self.send(method, target, body, given)

    def send(self, method, target, body, headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.service.port, timeout=10)
        try:
            connection.request(method, target, body or None, headers)
            answer = connection.getresponse()
            content = answer.read()
        finally:
            connection.close()
        return answer.status, dict(answer.getheaders()), content

    def code(self, *arguments, **options):
        status, _, content = self.ask(*arguments, **options)
        return status, json.loads(content)["code"]


@pytest.fixture(scope="module")
def service(oci_service):
    return oci_service


@pytest.fixture
def client(service):
    return Client(service)


@pytest.fixture
def name():
    return f"{BASE}/{uuid.uuid4().hex}"


def test_the_namespace_is_a_bare_string(client):
    status, headers, content = client.ask("GET", "/n/", opc_client_request_id="mine")
    assert (status, content) == (200, b'"locustests"')
    assert headers["opc-client-request-id"] == "mine"
    assert headers["opc-request-id"]


def test_a_signature_is_verified(client, service):
    refused = 401, "NotAuthenticated"
    stranger = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    assert client.code("GET", BASE, key=stranger) == refused
    assert client.code("GET", BASE, user="ocid1.user.oc1..else") == refused
    assert client.code("GET", BASE, age=400) == refused
    assert client.code("GET", BASE, age=-400) == refused
    assert client.code("GET", BASE, signed=("date", "host")) == refused
    assert client.code("GET", BASE, signed=("(request-target)", "host")) == refused
    assert client.ask("GET", BASE, age=200)[0] == 200
    assert client.send("GET", BASE, b"", {})[0] == 401


def test_the_body_of_a_post_is_signed_and_that_of_an_object_is_not(client, name):
    body = b"{}"
    digest = base64.b64encode(hashlib.sha256(body).digest()).decode()
    headers = {"content_type": "application/json", "x_content_sha256": digest}
    target = "/n/locustests/b/memory/actions/x"
    assert client.code("POST", target, body) == (401, "NotAuthenticated")
    signed = (*GENERIC, *CONTENT)
    assert client.ask("POST", target, body, signed=signed, **headers)[0] == 200
    assert client.code("POST", target, b"[]", signed=signed, **headers)[0] == 401
    assert client.ask("PUT", name, body)[0] == 200


def test_conditions(client, name):
    status, first, _ = client.ask("PUT", name, b"1", if_none_match="*")
    assert status == 200
    assert uuid.UUID(first["etag"])
    assert client.code("PUT", name, b"2", if_none_match="*") == (412, "IfNoneMatchFailed")
    status, second, _ = client.ask("PUT", name, b"1", if_match=first["etag"])
    assert second["etag"] != first["etag"], "a new one for the same content"
    assert client.code("PUT", name, b"3", if_match=first["etag"]) == (412, "IfMatchFailed")
    assert client.code("DELETE", name, if_match=first["etag"]) == (412, "IfMatchFailed")
    assert client.ask("GET", name, if_none_match=second["etag"])[0] == 304
    assert client.ask("GET", name)[2] == b"1"
    assert client.ask("DELETE", name, if_match=second["etag"])[0] == 204
    assert client.code("DELETE", name) == (404, "ObjectNotFound")
    assert client.code("GET", name) == (404, "ObjectNotFound")
    assert client.code("PUT", name, b"3", if_match=first["etag"]) == (412, "IfMatchFailed")


def test_a_wrong_digest_and_a_wrong_place(client, name):
    wrong = base64.b64encode(hashlib.md5(b"other", usedforsecurity=False).digest()).decode()
    assert client.code("PUT", name, b"1", content_md5=wrong) == (400, "UnmatchedContentMD5")
    assert client.code("GET", "/n/locustests/b/else/o") == (404, "BucketNotFound")
    assert client.code("GET", "/n/else/b/memory/o") == (404, "NamespaceNotFound")
    assert client.code("PUT", BASE + "/" + "x" * 1025, b"") == (400, "InvalidObjectName")
    assert client.code("PUT", BASE + "/a%0Ab", b"") == (400, "InvalidObjectName")


def test_a_range(client, name):
    client.ask("PUT", name, b"0123456789")
    status, headers, content = client.ask("GET", name, range="bytes=2-4")
    assert (status, content, headers["content-range"]) == (206, b"234", "bytes 2-4/10")


def listed(client, **query):
    target = BASE + "?" + "&".join(f"{k}={quote(str(v), safe='')}" for k, v in query.items())
    status, _, content = client.ask("GET", target)
    assert status == 200
    return json.loads(content)


def test_lists(client):
    folder = uuid.uuid4().hex + "/"
    names = [f"{folder}{n}" for n in ("a", "b", "b/1", "b/2", "c")]
    for each in names:
        client.ask("PUT", f"{BASE}/{quote(each)}", b"12")
    found = listed(client, prefix=folder, fields="name,size")
    assert found == {"objects": [{"name": n, "size": 2} for n in names], "prefixes": []}
    page = listed(client, prefix=folder, limit=2)
    assert page["nextStartWith"] == names[2]
    rest = listed(client, prefix=folder, start=page["nextStartWith"])
    assert [each["name"] for each in rest["objects"]] == names[2:]
    after = listed(client, prefix=folder, startAfter=names[1], end=names[4])
    assert [each["name"] for each in after["objects"]] == names[2:4]
    grouped = listed(client, prefix=folder, delimiter="/")
    assert grouped["prefixes"] == [f"{folder}b/"]
    assert [each["name"] for each in grouped["objects"]] == [names[0], names[1], names[4]]
