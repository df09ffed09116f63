"""The command `rotate`, with keys of the environment."""

from __future__ import annotations

import asyncio
import base64

import pytest

from locus_memory.encryption import EncryptionKeys
from locus_memory.registry import open_backend
from locus_memory.store.encoding import encode_namespace
from locus_memory.store.json_values import encode_json

URL = "sqlite:./locus.db"
VARIABLE = "LOCUS_MEMORY_ENCRYPTION_KEYS"
OLD, NEW = (f"{name}={base64.b64encode(name.encode() * 8).decode()}" for name in ("ab", "cd"))
COUNTS = {"items": 3, "checkpoints": 4, "plain": 0, "dry_run": False}


async def fill(keys):
    async with open_backend(URL, state_type=None, encryption=keys) as backend:
        for number in range(3):
            await backend.store.put(("n",), f"k{number}", f"walnut {number}")
        for number in range(4):
            await backend.checkpointer.save({"step": number}, "t")


@pytest.fixture
def database(empty_directory):
    return lambda keys: asyncio.run(fill(keys))


def test_it_encrypts_what_the_active_key_did_not(database, ok, fails, monkeypatch):
    database(OLD)
    monkeypatch.setenv(VARIABLE, f"{NEW},{OLD}")
    done = {"active": "cd", "items_encrypted": 3, "checkpoints_encrypted": 4} | COUNTS
    assert ok("rotate", "--dry-run", "--json").json == done | {"dry_run": True}
    assert ok("rotate", "--json").json == done
    done |= {"items_encrypted": 0, "checkpoints_encrypted": 0}
    assert ok("rotate", "--json").json == done
    assert ok("rotate").out.splitlines()[-1].split() == ["checkpoints", "4", "0"]
    monkeypatch.setenv(VARIABLE, NEW)
    assert ok("show", "t", "--json").json["state"]["step"] == 3
    assert ok("get", "n", "k1", "--json").json["value"] == "walnut 1"
    assert ok("verify", "--json").json["ok"] is True
    monkeypatch.setenv(VARIABLE, OLD)
    assert "of thread 't' needs the key 'cd'" in fails(1, "show", "t")


def test_plain_data_is_encrypted_and_erased(database, ok, fails, monkeypatch, empty_directory):
    database(None)
    assert "the backend is not encrypted" in fails(1, "rotate")
    monkeypatch.setenv(VARIABLE, NEW)
    assert "accept_plain" in fails(1, "rotate")
    done = {"active": "cd", "items_encrypted": 3, "checkpoints_encrypted": 4}
    assert ok("rotate", "--accept-plain", "--json").json == COUNTS | done | {"plain": 7}
    for path in empty_directory.iterdir():
        assert b"walnut" not in path.read_bytes()


def test_verify_names_what_no_key_opens(database, ok, run, monkeypatch):
    database(OLD)
    monkeypatch.setenv(VARIABLE, NEW)
    found = run("verify", "--json").json
    assert found["ok"] is False
    assert len(found["damaged"]) == 7
    assert all("needs the key 'ab'" in each["reason"] for each in found["damaged"])


def test_keys_that_are_not_valid_are_refused(database, fails, monkeypatch):
    database(OLD)
    monkeypatch.setenv(VARIABLE, "ab=short")
    assert "part 1 of the encryption keys" in fails(1, "ls")


def test_names_of_an_earlier_version_are_counted_encrypted_and_erased(
    ok, monkeypatch, empty_directory
):
    keys = EncryptionKeys.parse(OLD)
    space, key = ("locus_memory", "current"), "user:allergy:zebrawood"

    async def fill_as_before():
        place = encode_namespace((*space, key, keys.active)).encode()
        value = {"type": "user", "key": key[5:], "content": "No zebrawood.", "metadata": {}}
        data = base64.b64encode(keys.encrypt(encode_json(value), place)).decode()
        async with open_backend(URL, state_type=None) as backend:
            await backend.store.put(space, key, {"key_id": keys.active, "aes_gcm": data}, text="")

    asyncio.run(fill_as_before())
    monkeypatch.setenv(VARIABLE, OLD)

    def advice():
        found = ok("doctor", "--json").json["checks"]
        return [each["detail"] for each in found if each["check"] == "encryption.names"]

    (told,) = advice()
    assert told.startswith("1 items have readable names")
    assert "No zebrawood." in ok("memories").out
    assert ok("rotate", "--json").json["plain"] == 1
    assert advice() == []
    assert "No zebrawood." in ok("memories").out
    for path in empty_directory.iterdir():
        assert b"zebrawood" not in path.read_bytes()
