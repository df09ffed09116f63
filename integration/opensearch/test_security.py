"""TLS, passwords and roles, on a server with the security plugin."""

from __future__ import annotations

import ssl

import pytest
from opensearchpy import AsyncOpenSearch

from locus_memory.errors import ConfigurationError, MissingDriverError
from locus_memory.registry import get_checkpointer, open_backend
from locus_memory.testing.servers import OpenSearchServer

# The node takes a minute to start.
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def secure_server():
    try:
        with OpenSearchServer(security=True) as server:
            path = "/_plugins/_security/api"
            rights = {
                "cluster_permissions": ["cluster_composite_ops"],
                "index_permissions": [{"index_patterns": ["*"], "allowed_actions": ["crud"]}],
            }
            server.call("PUT", f"{path}/roles/writes", rights)
            user = {"password": "Wr1tes-only-please", "opendistro_security_roles": ["writes"]}
            server.call("PUT", f"{path}/internalusers/writer", user)
            yield server
    except MissingDriverError as error:
        pytest.skip(str(error))


def made(server, user, prefix, **options):
    where = server.address.replace("://", f"://{user}@")
    options = {"ca_certs": str(server.authority), **options}
    return get_checkpointer(f"opensearch:{where}", index_prefix=prefix, state_type=None, **options)


async def test_the_owner_of_everything_saves_and_loads(secure_server, prefix):
    async with made(secure_server, "admin:admin", prefix) as checkpointer:
        await checkpointer.save({"n": 1}, "t")
        assert await checkpointer.load("t") == {"n": 1}
    address = secure_server.address.removeprefix("https://")
    context = ssl.create_default_context(cafile=secure_server.authority)
    options = {"ssl_context": context, "http_auth": ("admin", "admin"), "index_prefix": prefix}
    where = f"opensearch:https://{address}"
    async with get_checkpointer(where, state_type=None, **options) as checkpointer:
        assert await checkpointer.load("t") == {"n": 1}


async def test_a_wrong_password_is_one_clear_error(secure_server, prefix):
    checkpointer = made(secure_server, "admin:hunter2", prefix)
    for _ in range(2):
        with pytest.raises(ConfigurationError, match="401") as caught:
            await checkpointer.load("t")
        assert "hunter2" not in f"{caught.value!r} {caught.value.__cause__!r} {checkpointer!r}"
    await checkpointer.close()


async def test_a_role_without_the_right_to_create_is_told_so(secure_server, prefix):
    checkpointer = made(secure_server, "readall:readall", prefix)
    with pytest.raises(ConfigurationError, match="indices:admin/create"):
        await checkpointer.save({"n": 1}, "t")
    await checkpointer.close()


async def test_a_role_that_only_writes_uses_the_indexes_of_an_administrator(
    secure_server, prefix, events
):
    async with made(secure_server, "admin:admin", prefix) as administrator:
        await administrator.open()
    async with made(secure_server, "writer:Wr1tes-only-please", prefix) as checkpointer:
        await checkpointer.save({"n": 1}, "t")
        assert await checkpointer.load("t") == {"n": 1}
        assert await checkpointer.delete("t")
    async with made(secure_server, "readall:readall", prefix) as checkpointer:
        assert await checkpointer.load("t") is None
        with pytest.raises(ConfigurationError, match="403"):
            await checkpointer.save({"n": 1}, "t")


async def test_an_unknown_authority_is_refused(secure_server, prefix):
    checkpointer = made(secure_server, "admin:admin", prefix, ca_certs=None)
    with pytest.raises(ConfigurationError, match="certificate"):
        await checkpointer.load("t")
    await checkpointer.close()
    unverified = made(secure_server, "admin:admin", prefix, ca_certs=None, verify_certs=False)
    async with unverified as checkpointer:
        await checkpointer.save({"n": 1}, "t")


async def test_a_signer_sees_each_request(secure_server, prefix):
    from urllib3 import make_headers  # noqa: PLC0415 - a dependency of the driver

    seen = []

    def sign(method, url, body, headers):
        seen.append((method, url, body))
        return make_headers(basic_auth="admin:admin")

    where = f"opensearch:{secure_server.address}"
    options = {"ca_certs": str(secure_server.authority), "index_prefix": prefix}
    async with get_checkpointer(where, http_auth=sign, state_type=None, **options) as checkpointer:
        await checkpointer.save({"n": 1}, "t")
        assert await checkpointer.load("t") == {"n": 1}
        with pytest.raises(ConfigurationError, match="401"):
            await refused(where, options)
    assert {method for method, _, _ in seen} >= {"GET", "PUT", "POST"}
    assert all(url.startswith(secure_server.address) for _, url, _ in seen)


async def refused(where, options):
    def sign(method, url, body, headers):
        return {}

    async with get_checkpointer(where, http_auth=sign, state_type=None, **options) as unsigned:
        await unsigned.load("t")


async def test_a_ready_client_is_used_and_left_open(secure_server, prefix):
    client = AsyncOpenSearch(
        hosts=[secure_server.address],
        http_auth=("admin", "admin"),
        ca_certs=str(secure_server.authority),
    )
    for _ in range(2):
        options = {"client": client, "index_prefix": prefix, "state_type": None}
        async with get_checkpointer("opensearch", **options) as checkpointer:
            await checkpointer.save({"n": 1}, "t")
            assert await checkpointer.load("t") == {"n": 1}
    assert await client.ping()
    await client.close()


async def test_advice_without_the_right_to_ask(secure_server, prefix):
    where = secure_server.address.replace("://", "://admin:admin@")
    options = {"index_prefix": prefix, "verify_certs": False}
    async with open_backend(f"opensearch:{where}", **options) as backend:
        await backend.open()
        assert {each.name for each in await backend.advice()} >= {"opensearch.unverified"}
    where = secure_server.address.replace("://", "://writer:Wr1tes-only-please@")
    options = {"index_prefix": prefix, "ca_certs": str(secure_server.authority)}
    async with open_backend(f"opensearch:{where}", **options) as backend:
        await backend.checkpointer.save({"n": 1}, "t")
        assert await backend.advice() == []
