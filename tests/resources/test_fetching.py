"""Pages of the web: from a server on this machine, which stands for any, good or hostile."""

from __future__ import annotations

import asyncio
import math
import re
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import IPv4Address, IPv6Address
from urllib.parse import quote, unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from locus_memory.errors import (
    BackendUnavailableError,
    ConfigurationError,
    InvalidArgumentError,
    MemoryAccessDenied,
    MemoryBackendError,
    MemoryNotFound,
    MemoryTimeout,
)
from locus_memory.resources import FetchOptions, MemoryTree, fetching
from locus_memory.resources.fetching import fetched

PAGE = b"<html><body><h1>Rig</h1><p>The gaff is of ash.</p><script>evil()</script></body></html>"
HERE = FetchOptions(allow_private=True, seconds=20)


class Web:
    """A server: each path has a status, headers and a body, or a function of the handler."""

    def __init__(self):
        self.answers = {}
        self.asked = []
        web = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                web.asked.append((self.path, self.headers["Host"]))
                path = self.path if self.path in web.answers else self.path.partition("?")[0]
                answer = web.answers.get(path, (404, {}, b""))
                if callable(answer):
                    answer(self)
                    return
                status, headers, body = answer
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *arguments):
                pass

        class Server(ThreadingHTTPServer):
            def handle_error(self, request, client_address):
                """Say nothing of clients that no longer wait."""

        self.server = Server(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,))
        self.thread.start()
        self.port = self.server.server_port
        self.url = f"http://127.0.0.1:{self.port}"

    def close(self):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


@pytest.fixture
def web():
    made = Web()
    yield made
    made.close()


@pytest.fixture
def names(monkeypatch):
    """The addresses of names; what is not there is asked for."""
    known = {}
    real = socket.getaddrinfo

    def resolved(host, port, *arguments, **options):
        name = host.decode() if isinstance(host, bytes) else host
        if name not in known:
            return real(host, port, *arguments, **options)
        found = known[name]
        found = found.pop(0) if isinstance(found[0], list) else found
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (each, port)) for each in found]

    monkeypatch.setattr(socket, "getaddrinfo", resolved)
    return known


async def test_a_page_becomes_an_entry(web):
    web.answers["/docs/rig"] = (200, {"Content-Type": "text/html"}, PAGE)
    async with MemoryTree("memory", fetch=HERE) as tree:
        for expected in ((1, 0), (0, 1)):
            done = await tree.add_resource(f"{web.url}/docs/rig?token=secret#part", reason="ash")
            assert (done.added, done.unchanged, done.skipped) == (*expected, ())
            assert done.uri == f"memory://resources/127.0.0.1%3A{web.port}/docs/"
        [hit] = (await tree.find("What is the gaff of?")).hits
        read = await tree.read(hit.uri)
        assert "The gaff is of ash." in read.data
        assert "evil" not in read.data
        assert read.metadata["url"] == f"{web.url}/docs/rig"
        assert read.metadata["reason"] == "ash"
        await tree.add_resource(f"{web.url}/docs/rig?token=other")
        assert len((await tree.list(done.uri)).entries) == 2
        there = await tree.add_resource(f"{web.url}/docs/rig", "memory://notes/web")
        assert (await tree.read("memory://notes/web/rig.html")).data == read.data
        assert there.uri == "memory://notes/web/"
    assert web.asked[0][0] == "/docs/rig?token=secret"


@pytest.mark.parametrize(
    ("path", "headers", "body", "name", "text"),
    [
        ("/a.md", {"Content-Type": "text/plain"}, b"# A", "a.md", "# A"),
        ("/a.py", {"Content-Type": "text/plain"}, b"x = 1", "a.py", "x = 1"),
        ("/a", {"Content-Type": "text/markdown; charset=utf-8"}, "é".encode(), "a.md", "é"),
        ("/a", {"Content-Type": "text/plain; charset=shift_jis"}, "日本".encode("shift_jis"),
         "a.txt", "日本"),
        ("/a", {"Content-Type": "text/plain; charset=koi8-r"}, "мачта".encode("koi8-r"),
         "a.txt", "мачта"),
        ("/a", {"Content-Type": "text/plain; charset=nonsense"}, b"plain", "a.txt", "plain"),
        ("/a.json", {"Content-Type": "application/json"}, b'{"a": 1}', "a.json", '{"a": 1}'),
        ("/", {}, b"no type", "index.txt", "no type"),
        ("/", {"Content-Encoding": "Identity"}, b"not packed", "index.txt", "not packed"),
        ("/..%2F..%2Fetc/pass%00wd", {}, b"x", "pass-wd-!.txt", "x"),
        ("/.env", {"Content-Type": "text/plain"}, b"x", "env-!.txt", "x"),
        ("/2401.1234", {"Content-Type": "text/html"}, b"<p>x</p>", "2401.1234.html", "x"),
        ("/a.PDF.HTM", {"Content-Type": "text/plain"}, b"x", "a.PDF.HTM", "x"),
        ("/%E0%B9%81%E0%B8%A1%E0%B9%88", {"Content-Type": "text/plain"}, b"x", "แม่.txt", "x"),
        ("/" + "%F0%A0%AE%B7" * 90, {"Content-Type": "text/plain"}, b"x",
         "𠮷" * 50 + "-!.txt", "x"),
        ("/a." + "%E6%97%A5" * 99, {"Content-Type": "text/plain"}, b"x",
         "a." + "日" * 66 + "-!.txt", "x"),
        ("/a", {"Content-Type": "text/markdown; charset=utf-8"}, "\ufeff# A".encode(), "a.md",
         "# A"),
        ("/a", {"Content-Type": "text/plain; charset=utf-16-le"}, "\ufeffA".encode("utf-16-le"),
         "a.txt", "A"),
        ("/%E6%97%A5%E6%9C%AC.md", {"Content-Type": "text/plain"}, b"x", "日本.md", "x"),
        ("/" + "a" * 300, {"Content-Type": "text/plain"}, b"x", "a" * 80 + "-!.txt", "x"),
    ],
)  # fmt: skip
async def test_the_name_and_the_text_of_a_page(web, path, headers, body, name, text):  # noqa: PLR0917
    web.answers[path] = (200, headers, body)
    async with MemoryTree("memory", fetch=HERE) as tree:
        done = await tree.add_resource(web.url + path, "memory://x")
        assert done.skipped == ()
        [entry] = (await tree.list("memory://x")).entries
        assert re.sub("-[0-9a-f]{8}[.]", "-!.", entry.name) == name
        assert (await tree.read(entry.uri)).data == text


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("2401.12345", "2401.67890"),
        ("a.md", "a.rst"),
        ("a b", "a-b"),
        ("हिन", "हेन"),
        ("ที่", "ทู่"),
        ("x" * 90 + "1", "x" * 90 + "2"),
        ("日" * 80 + "1", "日" * 80 + "2"),
        ("?", "!"),
        ("a?b", "a%3Fb"),
    ],
)
def test_two_pages_of_a_folder_have_two_names(one, other):
    for kind in ("text/html", "text/plain"):
        names = {
            fetching._name(fetching._split(f"http://h/{quote(each, '?%')}"), kind)
            for each in (one, other)
        }
        assert len(names) == 2


@given(
    st.text(min_size=1, max_size=200), st.sampled_from(["text/html", "text/x", "application/pdf"])
)
def test_a_name_is_one_that_file_systems_take(text, kind):
    url = f"http://h/{quote(text, '', errors='replace')}"
    name = fetching._name(fetching._split(url), kind)
    assert len(name.encode()) <= 255
    assert name.isprintable() or any(not each.isprintable() for each in unquote(url))
    assert "/" not in name
    assert name not in (".", "..")


async def test_a_charset_of_python_takes_no_time(web):
    """It is no charset of pages, and takes the square of the time."""
    body = b"-" + b"aaaa" * 2_000_000
    web.answers["/a"] = (200, {"Content-Type": "text/plain; charset=Punycode"}, body)
    assert (await fetched(f"{web.url}/a", HERE))[2] == body


async def test_a_redirect_that_is_not_ascii(web):
    """Its bytes arrive as they are, in UTF-8 or another charset."""
    for place in ("日本", "é a"):
        web.answers[f"/{quote(place)}"] = (200, {}, place.encode())
        header = f"HTTP/1.1 302 Found\r\nLocation: /{place}\r\n\r\n".encode()
        web.answers["/a"] = lambda handler, header=header: handler.wfile.write(header)
        assert (await fetched(f"{web.url}/a", HERE))[2] == place.encode()
    web.answers["/%93%FA?q=%FC"] = (200, {}, b"raw")
    web.answers["/a"] = lambda handler: handler.wfile.write(
        b"HTTP/1.1 302 Found\r\nLocation: /\x93\xfa?q=\xfc\r\n\r\n"
    )
    assert (await fetched(f"{web.url}/a", HERE))[2] == b"raw"


@pytest.mark.parametrize("seconds", [math.inf, 1e12])
async def test_any_time_is_a_limit(web, seconds):
    web.answers["/a"] = (200, {}, b"Here.")
    limits = FetchOptions(allow_private=True, seconds=seconds)
    assert (await fetched(f"{web.url}/a", limits))[2] == b"Here."


async def test_slashes_of_a_path_remain(web):
    web.answers["/a//b"] = lambda handler: handler.wfile.write(
        b"HTTP/1.1 200 OK\r\n\r\n" + handler.requestline.encode()
    )
    assert (await fetched(f"{web.url}//a//b", HERE))[2] == b"GET //a//b HTTP/1.1"


async def test_an_address_of_ipv6_needs_no_port(monkeypatch):
    asked = []

    def resolved(host, port, **options):
        asked.append((host, port))
        raise OSError("none")

    monkeypatch.setattr(socket, "getaddrinfo", resolved)
    for url in ("http://[2606:4700::1111]/a", "https://[2606:4700::1111]/a"):
        with pytest.raises(BackendUnavailableError):
            await fetched(url, FetchOptions())
    assert asked == [(b"2606:4700::1111", 80), (b"2606:4700::1111", 443)]


async def test_an_address_that_does_not_answer_is_not_the_last(web, names):
    """As with `localhost`, whose first address may be one that the server does not listen at."""
    names["two.test"] = ["127.0.0.9", "127.0.0.1"]
    web.answers["/a"] = (200, {}, b"Here.")
    assert (await fetched(f"http://two.test:{web.port}/a", HERE))[2] == b"Here."


async def test_a_path_that_is_not_ascii_is_encoded(web):
    web.answers["/%C3%A9%20a?q=%C3%BC"] = (200, {"Content-Type": "text/plain"}, b"x")
    assert (await fetched(f"{web.url}/é a?q=ü", HERE))[2] == b"x"


async def test_servers_of_one_host_have_folders_of_their_own(web):
    other = Web()
    try:
        async with MemoryTree("memory", fetch=HERE) as tree:
            for server in (web, other):
                server.answers["/a.md"] = (200, {}, f"Of {server.port}.".encode())
                done = await tree.add_resource(f"{server.url}/a.md")
                assert (done.added, done.updated) == (1, 0)
            assert len((await tree.tree("memory://resources", 5)).entries) == 4
    finally:
        other.close()


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_is_followed(web, status):
    web.answers["/a"] = (status, {"Location": "b/c"}, b"")
    web.answers["/b/c"] = (status, {"Location": f"{web.url}/d.md"}, b"")
    web.answers["/d.md"] = (200, {"Content-Type": "text/plain"}, b"Here.")
    parts, name, content = await fetched(f"{web.url}/a", HERE)
    assert (parts.path, name, content) == ("/d.md", "d.md", b"Here.")
    with pytest.raises(MemoryBackendError, match="1 redirects"):
        await fetched(f"{web.url}/a", FetchOptions(allow_private=True, redirects=1))


async def test_a_loop_of_redirects_ends(web):
    web.answers["/a"] = (302, {"Location": "/a"}, b"")
    with pytest.raises(MemoryBackendError, match="5 redirects"):
        await fetched(f"{web.url}/a", HERE)
    assert len(web.asked) == 6


PRIVATE = """
    127.0.0.1 127.8.8.8 0.0.0.0 10.1.2.3 172.16.0.1 172.31.255.255 192.168.1.1 169.254.169.254
    100.100.100.200 168.63.129.16 192.0.0.192 198.18.0.1 224.0.0.1 255.255.255.255 240.0.0.1
    :: ::1 fe80::1 fe80::1%lo fc00::1 fd00:ec2::254 fec0::1 ff02::1 ::127.0.0.1 ::ffff:127.0.0.1
    ::ffff:169.254.169.254 64:ff9b::7f00:1 64:ff9b::a9fe:a9fe 64:ff9b:1::1 2002:7f00:1::
    2002:a9fe:a9fe:: 2001:db8::1 2001::1
""".split()  # noqa: SIM905 - as a list, it would be thirty lines


@pytest.mark.parametrize("address", PRIVATE)
def test_an_address_that_is_not_public(address):
    assert not fetching._is_public(address)


@pytest.mark.parametrize("address", ["1.1.1.1", "93.184.216.34", "2606:4700::1111"])
def test_an_address_that_is_public(address):
    assert fetching._is_public(address)


@given(st.integers(0, 2**32 - 1))
def test_no_way_to_write_an_address_makes_it_public(number):
    """An address of IPv6 that stands for one of IPv4 is refused, whatever it is."""
    plain = IPv4Address(number)
    assert not fetching._is_public(str(plain)) or (plain.is_global and not plain.is_private)
    for start in (0, 0xFFFF << 32, int(IPv6Address("64:ff9b::")), int(IPv6Address("64:ff9b:1::"))):
        assert not fetching._is_public(str(IPv6Address(start | number)))
    assert not fetching._is_public(str(IPv6Address((0x2002 << 112) | (number << 80))))


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "localhost", "127.1", "2130706433", "0x7f.1", "[::1]", "[::ffff:127.0.0.1]",
     "0", "[fe80::1]", "LOCALHOST", "localhost."],
)  # fmt: skip
async def test_a_private_host_is_refused_however_it_is_written(web, host):
    with pytest.raises((MemoryAccessDenied, BackendUnavailableError)) as refused:
        await fetched(f"http://{host}:{web.port}/", FetchOptions())
    assert host not in str(refused.value)
    assert web.asked == []


async def test_a_name_with_one_private_address_is_refused(web, names):
    names["mixed.test"] = ["93.184.216.34", "127.0.0.1"]
    with pytest.raises(MemoryAccessDenied):
        await fetched(f"http://mixed.test:{web.port}/", FetchOptions())


async def test_a_redirect_to_a_private_address_is_refused(web, names, monkeypatch):
    """Each request is checked anew, also of the same name, which now has another address."""
    monkeypatch.setattr(fetching, "_is_public", lambda address: address == "127.0.0.1")
    names["public.test"] = [["127.0.0.1"], ["169.254.169.254"]]
    web.answers["/a"] = (302, {"Location": "/b"}, b"")
    with pytest.raises(MemoryAccessDenied, match="not public"):
        await fetched(f"http://public.test:{web.port}/a", FetchOptions())
    for where in ("http://169.254.169.254/latest", "//10.0.0.1/", f"http://[::1]:{web.port}/b"):
        names["public.test"] = ["127.0.0.1"]
        web.answers["/a"] = (302, {"Location": where}, b"")
        with pytest.raises(MemoryAccessDenied, match="not public"):
            await fetched(f"http://public.test:{web.port}/a", FetchOptions())
    assert {path for path, _ in web.asked} == {"/a"}


async def test_the_address_that_was_checked_is_the_one_that_is_asked(web, names, monkeypatch):
    """A name server that gives another answer a moment later gets nowhere."""
    monkeypatch.setattr(fetching, "_is_public", lambda address: address == "127.0.0.1")
    names["rebind.test"] = [["127.0.0.1"], ["10.0.0.1"]]
    web.answers["/"] = (200, {"Content-Type": "text/plain"}, b"Here.")
    found = await fetched(f"http://rebind.test:{web.port}/", FetchOptions())
    assert found[2] == b"Here."
    assert web.asked == [("/", f"rebind.test:{web.port}")]
    assert names["rebind.test"] == [["10.0.0.1"]]


@pytest.mark.parametrize("to", ["file:///etc/passwd", "ftp://127.0.0.1/", "javascript:1", "data:,x",
                                "http://[", "http://user:pw@127.0.0.1/"])  # fmt: skip
async def test_a_redirect_elsewhere_is_refused(web, to):
    web.answers["/a"] = (302, {"Location": to}, b"")
    with pytest.raises((InvalidArgumentError, BackendUnavailableError)):
        await fetched(f"{web.url}/a", HERE)


@pytest.mark.parametrize(
    "url",
    ["http:///a", "https://", "http://:80/", "http://a:99999/", "http://a:b/", "http://[::1/",
     "http://user@host/", "http://u:p@host/", "gopher://host/", "HTTP//host", "http://" + "a" * 70,
     "http://a..b/", "http://@host/"],
)  # fmt: skip
async def test_what_is_no_url(url):
    with pytest.raises(InvalidArgumentError) as refused:
        await fetched(url, HERE)
    assert "u:p" not in str(refused.value)


def packed(handler):
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\nxx")


def short(handler):
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nshort")


def nonsense(handler):
    handler.wfile.write(b"\x00\xff no http \r\n\r\n")


def headers_without_end(handler):
    handler.wfile.write(b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 500 + b"\r\n")


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        ((404, {}, b""), MemoryNotFound),
        ((410, {}, b""), MemoryNotFound),
        ((401, {}, b""), BackendUnavailableError),
        ((403, {}, b""), BackendUnavailableError),
        ((500, {}, b""), BackendUnavailableError),
        ((302, {}, b""), BackendUnavailableError),
        ((200, {"Content-Type": "image/png"}, b"x"), MemoryBackendError),
        ((200, {"Content-Type": "application/zip"}, b"x"), MemoryBackendError),
        ((200, {"Content-Type": "text/plain"}, b"x" * 101), MemoryBackendError),
        (packed, MemoryBackendError),
        (short, BackendUnavailableError),
        (nonsense, BackendUnavailableError),
        (headers_without_end, BackendUnavailableError),
    ],
)
async def test_an_answer_that_is_no_page(web, answer, error):
    web.answers["/a"] = answer
    with pytest.raises(error):
        await fetched(f"{web.url}/a", FetchOptions(allow_private=True, max_bytes=100))


async def test_an_endless_page_is_not_read_to_its_end(web):
    def endless(handler):
        handler.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            handler.wfile.write(b"x" * 1000)

    web.answers["/a"] = endless
    with pytest.raises(MemoryBackendError, match="too large"):
        await fetched(f"{web.url}/a", FetchOptions(allow_private=True, max_bytes=1000))


@pytest.mark.parametrize("begins", [b"", b"HTTP/1.1 200 OK\r\nA: ", b"HTTP/1.1 200 OK\r\n\r\n"])
async def test_a_server_that_drips_ends_with_its_time(web, begins):
    """Each byte comes in time, and all of them do not; nor does a thread wait for them."""
    gone = threading.Event()

    def drip(handler):
        handler.wfile.write(begins)
        try:
            while not gone.wait(0.02):
                handler.wfile.write(b"x")
        except OSError:
            gone.set()

    web.answers["/a"] = drip
    with pytest.raises(MemoryTimeout):
        await fetched(f"{web.url}/a", FetchOptions(allow_private=True, seconds=0.3))
    assert await asyncio.to_thread(gone.wait, 10)


async def test_a_call_that_is_cancelled_ends_the_request(web):
    asked, gone = threading.Event(), threading.Event()

    def drip(handler):
        asked.set()
        try:
            while not gone.wait(0.02):
                handler.wfile.write(b"x")
        except OSError:
            gone.set()

    web.answers["/a"] = drip
    task = asyncio.create_task(fetched(f"{web.url}/a", HERE))
    await asyncio.to_thread(asked.wait, 10)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await asyncio.to_thread(gone.wait, 10)


async def test_a_call_that_is_cancelled_ends_a_request_that_is_just_secure(web, monkeypatch):
    shaking, stopped, gone = threading.Event(), threading.Event(), threading.Event()

    class Secure:
        """It takes the socket over, as TLS does, and ends its handshake too late."""

        def wrap_socket(self, link, server_hostname):
            taken = socket.socket(fileno=link.detach())
            taken.settimeout(20)
            shaking.set()
            stopped.wait(10)
            return taken

    def drip(handler):
        try:
            while not gone.wait(0.02):
                handler.wfile.write(b"x")
        except OSError:
            gone.set()

    monkeypatch.setattr(fetching.ssl, "create_default_context", Secure)
    web.answers["/a"] = drip
    task = asyncio.create_task(fetched(f"{web.url}/a".replace("http", "https", 1), HERE))
    await asyncio.to_thread(shaking.wait, 10)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    stopped.set()
    try:
        # The server hears of no request, or that nobody reads its answer.
        assert not web.asked or await asyncio.to_thread(gone.wait, 5)
        await asyncio.sleep(0.3)
        assert not web.asked or gone.is_set()
    finally:
        gone.set()


async def test_nobody_there():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/secret"
        for scheme in ("http", "https"):
            with pytest.raises(BackendUnavailableError) as failed:
                await fetched(url.replace("http", scheme, 1), HERE)
            assert "secret" not in str(failed.value)


async def test_a_server_without_tls(web):
    with pytest.raises(BackendUnavailableError):
        await fetched(web.url.replace("http", "https", 1), HERE)


async def test_https_never_leads_to_http(web, monkeypatch):
    class Reading(fetching._Reading):
        def _get(self, parts):
            return web.url

    monkeypatch.setattr(fetching, "_Reading", Reading)
    with pytest.raises(MemoryAccessDenied, match="from https to http"):
        await fetched("https://example.test/", HERE)


@pytest.mark.parametrize("wrong", [{"max_bytes": -1}, {"seconds": -1}, {"redirects": -1},
                                   {"seconds": "5"}])  # fmt: skip
def test_a_limit_is_a_number(wrong):
    with pytest.raises(ConfigurationError):
        FetchOptions(**wrong)


@given(st.text(max_size=40))
def test_any_text_is_a_url_or_refused(text):
    try:
        parts = fetching._split(f"http://{text}")
    except InvalidArgumentError:
        pass
    else:
        name = fetching._name(parts, "text/plain")
        assert name not in ("", ".", "..")
        assert "/" not in name
        assert not name.startswith(".")
        assert len(name) <= 110
