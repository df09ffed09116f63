"""Keys as they are given: by a mapping, by a text, by the environment."""

from __future__ import annotations

import base64

import pytest

from locus_memory.encryption import EncryptingBackend, EncryptingCheckpointer, EncryptionKeys
from locus_memory.errors import ConfigurationError
from locus_memory.registry import get_checkpointer, get_store, open_backend
from locus_memory.store.wrappers import EncryptingStore

KEY = bytes(range(32))
TEXT = f"2026={base64.b64encode(KEY).decode()}"
OLDER = f"2025={base64.b64encode(bytes(16)).decode()}"


def test_a_text_names_the_active_key_first():
    keys = EncryptionKeys.parse(f"{TEXT}, {OLDER}")
    assert keys == EncryptionKeys({"2026": KEY, "2025": bytes(16)}, "2026")
    assert EncryptionKeys.parse(f"accept-plain,{TEXT}").accept_plain is True


def test_no_repr_and_no_error_shows_a_key():
    assert repr(EncryptionKeys.parse(TEXT)) == "EncryptionKeys(active='2026', accept_plain=False)"
    for text in ("c2VjcmV0", f"2026={TEXT}", "=c2VjcmV0", "2026=secret!", "2026=c2VjcmV0"):
        with pytest.raises(ConfigurationError, match="part 1 of the encryption keys") as caught:
            EncryptionKeys.parse(text)
        assert "c2V" not in str(caught.value)
        assert "secret" not in str(caught.value)


@pytest.mark.parametrize("text", ["", " , ", "accept-plain"])
def test_a_text_without_a_key_is_refused(text):
    with pytest.raises(ConfigurationError, match="none given"):
        EncryptionKeys.parse(text)


def test_keys_are_checked():
    with pytest.raises(ConfigurationError, match="no key 'b' to encrypt with; known: \\['a'\\]"):
        EncryptionKeys({"a": KEY}, "b")
    with pytest.raises(ConfigurationError, match="key 'a' must be bytes: 16, 24 or 32"):
        EncryptionKeys({"a": b"short"}, "a")
    with pytest.raises(ConfigurationError, match="at most 255 bytes"):
        EncryptionKeys({"a" * 256: KEY}, "a" * 256)
    with pytest.raises(ConfigurationError, match="active is the id"):
        EncryptingStore("memory", {"a": KEY})
    with pytest.raises(ConfigurationError, match="name the active key"):
        EncryptingStore("memory", EncryptionKeys({"a": KEY}, "a"), active="a")


def test_every_function_of_the_registry_takes_them():
    assert isinstance(get_store("memory", encryption=TEXT), EncryptingStore)
    assert isinstance(get_checkpointer("memory", encryption=TEXT), EncryptingCheckpointer)
    assert isinstance(open_backend("memory", encryption=TEXT), EncryptingBackend)
    assert not isinstance(open_backend("memory", encryption=None), EncryptingBackend)
    with pytest.raises(ConfigurationError, match="encryption is EncryptionKeys, or a text"):
        open_backend("memory", encryption={"a": KEY})


def test_a_preset_reads_them_from_the_environment(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KEYS", TEXT)
    table = "[tool.locus_memory.presets]\n"
    row = 'sealed = { url = "memory", encryption = "${KEYS}" }\n'
    (tmp_path / "pyproject.toml").write_text(table + row)
    assert isinstance(open_backend("@sealed"), EncryptingBackend)
    (tmp_path / "pyproject.toml").write_text(table + row.replace("${KEYS}", TEXT))
    with pytest.raises(ConfigurationError, match="encryption of 'sealed' holds a literal secret"):
        open_backend("@sealed")


async def test_a_backend_without_a_store_has_encrypted_checkpoints(tmp_path):
    async with open_backend(f"file:{tmp_path}", encryption=TEXT) as backend:
        with pytest.raises(ConfigurationError, match="file: has no store"):
            _ = backend.store
        await backend.checkpointer.save({"step": 1}, "t")
        assert await backend.checkpointer.load("t") == {"step": 1}
