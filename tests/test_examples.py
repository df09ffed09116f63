"""Every example of the README and the documentation, run as a reader would run it.

A fenced block's language, and a comment such as `<!-- fails -->` before it, say what happens to
it:

- `python` runs in an empty folder; its comments `# > text` are what it prints, all of it. A
  comment `# >     text`, indented, goes on with the line of the comment before it. Marked
  `fails`, it must end in the error its last comment `# > ` names. It is either complete (a file:
  its first line is a comment that names it, or it calls `asyncio.run`), or it can be pasted line
  by line: into `python -m asyncio`, or into `python` where nothing is awaited.
- `python`, marked `pytest`, is a test file: pytest must pass it. It sees the `python` block
  before it on the page as the module `before`, and by the name of the file that it is, and the
  files of `docs/examples`, which are themselves run as files. Of the suite on `docs/testing.md`
  the tests of `delete` run, the verb that its store overrides, and the one of any verbs in any
  order; of those on `docs/writing-a-backend.md` all tests but those of many examples;
  `integration/` runs them whole.
- `python`, marked `live`, needs what the `test` extra does not install; `integration/` runs it.
- `python`, marked with a framework of `ELSEWHERE`, runs where that is: in the environments of
  `make frameworks`.
- `python`, marked `unrun`, needs a server that the project has never had.
- `console` holds commands after `$ ` and what they print; a page's blocks share a folder with
  the files that the page shows, and each command runs. Made-up ids, moments, sizes and scores
  may differ. A line `...` stands for any lines, `...` within a line for any text. Marked
  `any-output`, the commands need only succeed. `docs/cli.md` has a test of its own,
  `tests/cli/test_docs.py`.

The pages `docs/backends/postgresql.md` and `redis.md` have a server each: one whose databases
include `mydb`, found by the environment variables of PostgreSQL, and one that takes the place
of `localhost:6379`. The page `docs/real-model.md` has an endpoint in place of `localhost:11434`,
whose model goes by rules: `tests/model_endpoint.py`. For the commands of the README and the start,
it is in place of OpenAI's own.

All `python` blocks also run one after the other in one folder, in the order of the navigation,
as a reader does who pastes each page from top to bottom: on databases that are new, and on
databases that hold data of the reader, none of which may change.
"""

from __future__ import annotations

import ast
import asyncio
import code
import inspect
import os
import re
import shutil
import subprocess
import sys
import types
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from io import StringIO
from pathlib import Path

import pytest

from locus_memory import open_backend
from locus_memory.errors import LocusMemoryError

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(
    r"^(?:<!-- ([a-z-]+) -->\n\n)?( *)```([a-z]+)\n(.*?)^\2```$", re.DOTALL | re.MULTILINE
)
OWN_TEST = ROOT / "docs" / "cli.md"
KINDS = {"python", "console", "sh", "sql", "toml", "text", "json", "mermaid"}
COMMAND = Path(sys.executable).with_name("locus-memory")
REDIS = "localhost:6379"
WRAPPERS_PAGE = ROOT / "docs" / "testing.md"
BACKEND_PAGE = ROOT / "docs" / "writing-a-backend.md"
FILES = sorted((ROOT / "docs" / "examples").glob("*.py"))
OF_MANY_EXAMPLES = (
    *("test_any_", "behaves_like_a_dict", "hidden_cap", "what_is_recalled", "deleting_any"),
    *("forks_of_forks", "no_chain_is_longer"),
)
"""Parts of the names of the tests that take most of the time of a suite."""

MODEL, MODEL_PAGE = "localhost:11434", ROOT / "docs" / "real-model.md"
OPENAI_PAGES = {ROOT / "README.md", ROOT / "docs" / "getting-started.md"}


@dataclass(frozen=True)
class Block:
    page: Path
    line: int
    language: str
    mark: str | None
    code: str

    def __str__(self):
        return f"{self.page.name}:{self.line}"


def blocks_of(page):
    text = page.read_text(encoding="utf-8")
    for found in FENCE.finditer(text):
        mark, indent, language, code = found.groups()
        lines = [line.removeprefix(indent) for line in code.splitlines()]
        line = text.count("\n", 0, found.start(3)) + 1
        yield Block(page, line, language, mark, "\n".join(lines) + "\n")


BLOCKS = [block for page in PAGES for block in blocks_of(page)]
PYTHON = [block for block in BLOCKS if block.language == "python"]
ELSEWHERE = {
    "harness": "pydantic_ai_harness.memory",
    "strands": "strands",
    "agent-framework": "agent_framework",
    "llama-index": "llama_index.core",
    "dspy": "dspy",
    "agno": "agno",
    "haystack": "haystack_integrations.tools.mcp",
    "langchain-core": "dspy",
    "document-store": "dspy",
}
"""The module that a block with this mark needs, which has an environment of its own."""

NOT_HERE = {"pytest", "live", "unrun", *ELSEWHERE}
SCRIPTS = [block for block in PYTHON if block.mark not in NOT_HERE]
SCRIPTS += [Block(path, 1, "python", None, path.read_text(encoding="utf-8")) for path in FILES]
TESTS = [block for block in PYTHON if block.mark == "pytest"]
CONSOLES = sorted({block.page for block in BLOCKS if block.language == "console"} - {OWN_TEST})


@pytest.fixture
def empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")
    # A terminal of 80 columns without colours.
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setenv("PATH", str(COMMAND.parent), prepend=os.pathsep)
    monkeypatch.setenv("LOCUS_MEMORY_MODELS", str(tmp_path / "models"))
    return tmp_path


def test_every_fence_is_understood():
    for page in PAGES:
        fences = re.findall(r"^ *```", page.read_text(encoding="utf-8"), re.MULTILINE)
        assert len(fences) == 2 * len(list(blocks_of(page))), page
    for block in BLOCKS:
        assert block.language in KINDS, block
        assert block.mark in {None, "fails", "any-output", *NOT_HERE}, block


def use_postgresql(server, monkeypatch):
    """Let `postgresql:mydb` mean a database of the server."""
    if not server.run("SELECT 1 FROM pg_database WHERE datname = 'mydb'"):
        server.run("CREATE DATABASE mydb")
    for name, value in (("HOST", "127.0.0.1"), ("PORT", server.port), ("USER", "locus")):
        monkeypatch.setenv(f"PG{name}", str(value))


def located(block, addresses):
    """Return the code of a block with the addresses of the servers of the tests."""
    for address, ours in addresses.items():
        if address == REDIS or block.page == MODEL_PAGE:
            block = replace(block, code=block.code.replace(address, ours))
    return block.code


@pytest.fixture
def addresses(request, monkeypatch):
    """Start the server of the block's page, if it has one; return the addresses that are ours."""
    page = request.getfixturevalue("block").page
    if page == ROOT / "docs" / "backends" / "postgresql.md":
        use_postgresql(request.getfixturevalue("postgresql_server"), monkeypatch)
    if page == ROOT / "docs" / "backends" / "redis.md":
        return {REDIS: f"localhost:{request.getfixturevalue('redis_server').port}"}
    return {MODEL: request.getfixturevalue("model_endpoint")} if page == MODEL_PAGE else {}


def compiled(source, name):
    """Compile a block as a whole, top-level `await` allowed."""
    return compile(source, name, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)


def execute(block, addresses):
    """Run a block as a whole, as a notebook does."""
    names = {"__name__": "__main__"}
    running = eval(compiled(located(block, addresses), str(block)), names)
    if inspect.iscoroutine(running):
        asyncio.run(running)


class Pasted(code.InteractiveConsole):
    """What `python -m asyncio` does with lines that are pasted, but for showing values.

    A blank line ends a block, as it does in every Python before 3.13.
    """

    def __init__(self):
        super().__init__({"__name__": "__main__"})
        self.compile.compiler.flags |= ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        self.statements = []

    def runcode(self, code):
        self.statements.append(code)

    def showsyntaxerror(self, filename=None, **options):
        raise sys.exc_info()[1]

    def lines(self, source):
        """Take the lines, and a blank one at the end; return the statements they make."""
        for line in [*source.splitlines(), ""]:
            self.push(line)
        statements, self.statements = self.statements, []
        return statements

    def run(self, source):
        statements = self.lines(source)
        if any(each.co_flags & inspect.CO_COROUTINE for each in statements):
            asyncio.run(self._run(statements))
        else:
            for statement in statements:
                exec(statement, self.locals)

    async def _run(self, statements):
        for statement in statements:
            running = types.FunctionType(statement, self.locals)()
            if inspect.iscoroutine(running):
                await running


def paste(block, addresses):
    """Run a block as lines that are pasted: into `python -m asyncio`, or `python` if that does."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "displayhook", lambda _value: None)
        Pasted().run(located(block, addresses))


def file_of(block):
    """Return the name of the file that the block says it is; `None`: it is none."""
    named = re.match(r"# (\w+\.py)\n", block.code)
    return named and named[1]


def is_complete(block):
    """Whether the block shows a whole file."""
    return block.page in FILES or "asyncio.run(" in block.code or file_of(block) is not None


def printed_by(block, run, *options):
    """Run a block; return what it prints, and the error it must end in, line by line."""
    output = StringIO()
    with redirect_stdout(output):
        if block.mark == "fails":
            with pytest.raises(LocusMemoryError) as caught:
                run(block, *options)
            print(f"{type(caught.value).__name__}: {caught.value}")
        else:
            run(block, *options)
    return output.getvalue().splitlines()


def shown_by(block, addresses):
    """Run a block as its reader does; return what it prints, or why it cannot be run."""
    try:
        return printed_by(block, execute if is_complete(block) else paste, addresses)
    # Whatever it is, it goes into the list of what a page shows wrongly.
    except Exception as error:  # noqa: BLE001
        return [f"{type(error).__name__}: {error}"]


def promised_by(block):
    """Return the lines that the comments say are printed, those that were wrapped made whole."""
    lines = []
    for line in re.findall(r"# > ?(.*)", block.code):
        if lines and line.startswith("    "):
            lines[-1] += " " + line.strip()
        else:
            lines.append(line)
    return lines


def test_a_wrapped_line_is_one_line():
    block = Block(ROOT, 1, "python", None, "# > a\n# >     b\n    # >     c\n# >   d\n# >\n")
    assert promised_by(block) == ["a b c", "  d", ""]


@pytest.mark.parametrize("block", SCRIPTS, ids=str)
def test_python(block, empty_folder, addresses):
    assert printed_by(block, execute, addresses) == promised_by(block)


@pytest.mark.parametrize("block", [each for each in PYTHON if each.mark in ELSEWHERE], ids=str)
def test_python_of_a_framework(block, empty_folder):
    pytest.importorskip(
        ELSEWHERE[block.mark], reason="it has an environment of its own: make frameworks"
    )
    assert printed_by(block, execute, {}) == promised_by(block)


@pytest.mark.parametrize("block", SCRIPTS, ids=str)
def test_python_can_be_pasted_or_is_a_file(block):
    if is_complete(block):
        compile(block.code, str(block), "exec", dont_inherit=True)
    else:
        # Blank lines and comments are statements to it as well.
        assert len(Pasted().lines(block.code)) >= len(ast.parse(block.code).body)


USERS = ["ada", "bob", *(f"user-{number}" for number in range(18))]
THREADS = ("thread", "thread-1", "trip", "monday", "friday", "pets", "bill", "diary")


async def fill(backend):
    """Write what an application has, under the names that the pages teach."""
    spaces = [(label,) for label in ("cart", "facts", "global", "jobs", "log", "notes", "trips")]
    spaces += [("users", user) for user in USERS]
    spaces += [("users", user, "memories") for user in USERS]
    spaces += [("locus_memory", "users", user, "current") for user in USERS]
    for space in spaces:
        for key in ("diet", "seat", "1", "2", "apple"):
            await backend.store.put(space, key, {"text": f"the reader's {key}"}, {"mine": True})
    for thread in THREADS:
        for turn in range(3):
            await backend.checkpointer.save({"mine": turn}, thread, f"turn-{turn}")


async def everything(backend):
    """Return all items and all checkpoints."""
    every = 1_000_000
    items = {
        space: await backend.store.scan(space, every)
        for space in await backend.store.list_namespaces(limit=every)
    }
    threads = {}
    for thread in await backend.checkpointer.list_threads(every):
        for info in await backend.checkpointer.list_with_metadata(thread, every):
            state = await backend.checkpointer.load(thread, info.checkpoint_id)
            threads[thread, info.checkpoint_id] = (info.created_at, info.metadata, state)
    return items, threads


def on_each(places, work):
    """Do something with the backend of each place; return what it returns, by place."""

    async def one(place):
        async with open_backend(place, state_type=None) as backend:
            return await work(backend)

    return {place: asyncio.run(one(place)) for place in places}


def own_places(redis_address):
    """Return everything in the places that the examples have on servers for themselves."""
    made = [("postgresql:mydb", {"schema": "first_try"})]
    made += [(f"redis:{redis_address}", {"key_prefix": "first-try:"})]

    async def one(place, options):
        async with open_backend(place, state_type=None, **options) as backend:
            return await everything(backend)

    return [asyncio.run(one(place, options)) for place, options in made]


def in_order(pages):
    """Return the pages in the order of the navigation, the README first."""
    listed = re.findall(r"([\w/-]+\.md)$", (ROOT / ".mkdocs.yml").read_text(), re.MULTILINE)
    order = [ROOT / "README.md", *(ROOT / "docs" / name for name in listed)]
    assert sorted(order) == sorted(pages)
    return order


@pytest.mark.slow
@pytest.mark.parametrize("others", [False, True], ids=["alone", "beside-other-data"])
def test_all_of_them_in_one_folder(others, empty_folder, monkeypatch, request):
    use_postgresql(request.getfixturevalue("postgresql_server"), monkeypatch)
    redis_address = f"localhost:{request.getfixturevalue('redis_server').port}"
    addresses = {REDIS: redis_address, MODEL: request.getfixturevalue("model_endpoint")}
    places = ["sqlite:./agent.db", "postgresql:mydb", f"redis:{redis_address}"] if others else []
    on_each(places, fill)
    before = on_each(places, everything)
    assert all(len(items) >= 3 * len(USERS) and threads for items, threads in before.values())

    differ = {}
    for page in in_order(PAGES):
        for block in (each for each in SCRIPTS if each.page == page):
            printed = shown_by(block, addresses)
            if printed != promised_by(block):
                differ[str(block)] = (promised_by(block), printed)

    assert on_each(places, everything) == before
    assert differ == {}
    assert [items or threads for items, threads in own_places(redis_address)] == [{}] * 2


def run_tests(block, folder, *selected):
    """Run a block that is a test file, as its reader does: all that is selected must pass."""
    before = [each for each in SCRIPTS if each.page == block.page and each.line < block.line]
    if before:
        for name in {"before.py", file_of(before[-1]) or "before.py"}:
            (folder / name).write_text(before[-1].code, encoding="utf-8")
    for path in FILES:
        shutil.copy(path, folder)
    (folder / "test_example.py").write_text(block.code, encoding="utf-8")
    # The plugins that it does not load take longer to import than most of the tests.
    absent = ("no:cacheprovider", "no:anyio", "no:langsmith_plugin", "no:xdist")
    options = ["-q", *(f"-p{name}" for name in absent)]
    settings = ("asyncio_default_fixture_loop_scope=function", "tmp_path_retention_policy=failed")
    options += [f"-o{setting}" for setting in settings]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *selected, "test_example.py"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"[1-9]\d* passed", done.stdout)


@pytest.mark.slow
@pytest.mark.parametrize("block", TESTS, ids=str)
def test_python_tests(block, empty_folder):
    if block.page == WRAPPERS_PAGE and "StoreConformance" in block.code:
        run_tests(block, empty_folder, "-k", "delete or behaves_like_a_dict")
    elif block.page == BACKEND_PAGE:
        run_tests(block, empty_folder, "-k", f"not ({' or '.join(OF_MANY_EXAMPLES)})")
    else:
        run_tests(block, empty_folder)


VARIES = re.compile(
    r"\b[0-9a-f]{12,}\b"  # made-up ids
    r"|\b\d{4}-\d\d-\d\d[ T]\d\d:\d\d(?::\d\d)?(?:\.\d+)?"  # moments
    r"|\b\d{1,3}(?:,\d{3})+\b|\b\d+\.\d+"  # sizes, scores, ratios and versions
    r"|(?<=process )\d+"
)


def settled(line):
    """Return a line without what differs from run to run or from machine to machine."""
    return re.sub(r" +", " ", VARIES.sub("#", line)).rstrip()


def matches(expected, printed):
    """Whether the output is what the page shows; see the top of this file."""
    printed = "".join(f"{settled(line)}\n" for line in printed.splitlines())
    lines = []
    for line in map(settled, expected):
        parts = [re.escape(part) for part in line.split("...")]
        lines.append(
            r"(?:[^\n]*\n)*?" if line.strip() == "..." else r"[^\n]*".join(parts) + r" *\n"
        )
    return re.fullmatch("".join(lines), printed) is not None


def commands_of(block):
    """Return each command of a console block with the lines it prints."""
    commands = []
    for line in block.code.splitlines():
        if line.startswith("$ "):
            commands.append((line[2:], []))
        elif commands[-1][0].endswith("\\"):
            command, printed = commands.pop()
            commands.append((command + "\n" + line.removeprefix("> "), printed))
        else:
            commands[-1][1].append(line)
    return commands


@pytest.mark.slow
@pytest.mark.parametrize("page", CONSOLES, ids=lambda page: page.name)
def test_console(page, empty_folder, monkeypatch, request):
    addresses = {}
    if page in {MODEL_PAGE, *OPENAI_PAGES}:
        addresses = {MODEL: request.getfixturevalue("model_endpoint")}
        monkeypatch.setenv("OPENAI_BASE_URL", f"http://{addresses[MODEL]}/v1")
        monkeypatch.setenv("OPENAI_API_KEY", "of-no-use-elsewhere")
    for block in blocks_of(page):
        if block.language == "python" and file_of(block):
            (empty_folder / file_of(block)).write_text(located(block, addresses), encoding="utf-8")
        if block.language != "console":
            continue
        for command, expected in commands_of(block):
            done = subprocess.run(
                command,
                shell=True,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                text=True,
                check=False,
            )
            assert "Traceback" not in done.stdout, (str(block), command, done.stdout)
            if block.mark == "any-output":
                assert done.returncode == 0, (str(block), command, done.stdout)
            else:
                shown = "\n".join(expected)
                assert matches(expected, done.stdout), (
                    f"{block}: $ {command}\n--- shown\n{shown}\n--- printed\n{done.stdout}"
                )


@pytest.mark.parametrize(
    ("expected", "printed", "same"),
    [
        (["a", "b"], "a\nb\n", True),
        (["a", "...", "d"], "a\nb\nc\nd\n", True),
        (["a ... c"], "a b c\n", True),
        (["a ... c"], "a b d\n", False),
        (["a"], "a\nb\n", False),
        ([], "a\n", False),
        (["x  1,234 2026-01-01 10:00"], "x 99,234 2027-01-01 11:00\n", True),
        (["x@0123456789ab 12"], "x@ba9876543210 12\n", True),
        (["x 12"], "x 13\n", False),
    ],
)
def test_what_counts_as_the_same_output(expected, printed, same):
    assert matches(expected, printed) is same
