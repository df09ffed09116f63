from __future__ import annotations

import ast
import importlib
import json
import re
import subprocess
import sys
import tomllib
import types
from importlib.metadata import metadata
from importlib.util import find_spec
from pathlib import Path

import pytest

import locus_memory
from locus_memory import errors
from locus_memory._internal.providers.installing import install_command
from locus_memory.errors import LocusMemoryError, MissingDriverError

ROOT = Path(__file__).parents[1]
PACKAGES = [
    "locus_memory",
    *(
        f"locus_memory.{name}"
        for name in (
            "agent",
            "backends",
            "backends.file",
            "backends.inmemory",
            "backends.oci",
            "backends.opensearch",
            "backends.oracle",
            "backends.postgresql",
            "backends.redis",
            "backends.sqlite",
            "chat",
            "chat.openai",
            "checkpoint",
            "conversation",
            "documents",
            "evaluation",
            "memory",
            "memory.providers",
            "observability",
            "resources",
            "resources.backends",
            "retrieval",
            "store",
            "testing",
        )
    ),
]

HEAVY = [
    *("sqlite3", "redis", "asyncpg", "psycopg", "pgvector", "opensearchpy", "oci", "oracledb"),
    *("numpy", "pydantic", "orjson", "cryptography", "typer", "rich", "asyncio", "opentelemetry"),
    *("pytest", "hypothesis", "tenacity", "onnxruntime", "tokenizers", "langgraph", "locus"),
    *("agents", "anthropic", "mcp"),
    *("pydantic_ai", "openai", "key_value"),
    *("fastmcp", "strands", "agent_framework", "llama_index", "crewai"),
]


def run(code):
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd="/"
    )
    return done.stdout.split()


def syntax_of(package):
    path = Path(importlib.import_module(package).__file__)
    return ast.parse(path.read_text(encoding="utf-8"))


def type_checking_imports(package):
    """Return the module of each name that a package imports for type checkers only."""
    block = next(node for node in syntax_of(package).body if isinstance(node, ast.If))
    return {alias.name: node.module for node in block.body for alias in node.names}


def lazy_call(package):
    block = next(node for node in syntax_of(package).body if isinstance(node, ast.If))
    return next(node for node in ast.walk(block.orelse[0]) if isinstance(node, ast.Call))


def lazy_table(package):
    """Return the module of each name that is in `__all__`."""
    return ast.literal_eval(lazy_call(package).args[1])


def unlisted_table(package):
    """Return the module of each name that works, and is not in `__all__`."""
    keywords = {each.arg: ast.literal_eval(each.value) for each in lazy_call(package).keywords}
    return keywords.get("unlisted", {})


def module_in(package, module):
    """Return the whole name of a module in a table."""
    return module if module.startswith("locus_memory.") else f"{package}.{module}"


STARRED = """
import json, sys
found = {}
for package in sys.argv[1:]:
    for loaded in [each for each in sys.modules if each.startswith("locus_memory")]:
        del sys.modules[loaded]
    names = {}
    exec(f"from {package} import *", names)
    found[package] = sorted(set(names) - {"__builtins__"})
print(json.dumps(found))
"""


@pytest.mark.parametrize("package", PACKAGES)
class TestNames:
    def test_all_is_a_literal_without_repeats(self, package):
        literal = next(
            ast.literal_eval(node.value)
            for node in syntax_of(package).body
            if isinstance(node, ast.Assign) and node.targets[0].id == "__all__"
        )
        assert importlib.import_module(package).__all__ == literal
        assert len(literal) == len(set(literal))

    def test_every_name_resolves_and_is_listed(self, package):
        module = importlib.import_module(package)
        for name in module.__all__:
            assert getattr(module, name) is not None
        assert dir(module) == sorted(module.__all__)

    def test_all_is_what_is_bound(self, package):
        module = importlib.import_module(package)
        for name in module.__all__:
            getattr(module, name)
        ours = {
            name
            for name, value in vars(module).items()
            if not isinstance(value, types.ModuleType)
            and name not in {"TYPE_CHECKING", "annotations", "lazy_names", "require"}
            and (name == "__version__" or not name.startswith("_"))
        }
        assert ours - set(unlisted_table(package)) == set(module.__all__)

    def test_what_is_unlisted_works_and_is_not_in_all(self, package):
        module = importlib.import_module(package)
        for name in unlisted_table(package):
            assert getattr(module, name).__name__ == name
            assert name not in module.__all__

    def test_type_checkers_see_what_is_imported_later(self, package):
        tables = {**lazy_table(package), **unlisted_table(package)}
        later = {name: module_in(package, module) for name, module in tables.items()}
        assert type_checking_imports(package) == later

    def test_a_name_is_listed_where_it_is_defined(self, package):
        for name, module in {**lazy_table(package), **unlisted_table(package)}.items():
            assert name in importlib.import_module(module_in(package, module)).__all__

    def test_a_wrong_name_is_an_attribute_error(self, package):
        with pytest.raises(AttributeError, match=re.escape(f"{package!r} has no attribute 'Stor'")):
            importlib.import_module(package).Stor  # noqa: B018 - looking it up is the test


@pytest.mark.slow
def test_a_star_import_of_each_works():
    """Where nothing of ours was imported before."""
    done = subprocess.run(
        [sys.executable, "-c", STARRED, *PACKAGES], capture_output=True, check=True, cwd="/"
    )
    listed = {name: sorted(importlib.import_module(name).__all__) for name in PACKAGES}
    assert json.loads(done.stdout) == listed


def test_importing_the_package_loads_nothing_heavy():
    assert (
        run(
            f"import sys, locus_memory\nprint(*[name for name in {HEAVY!r} if name in sys.modules])"
        )
        == []
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "use",
    [
        "from locus_memory import get_store; get_store('memory')",
        "from locus_memory import AgentState, Message",
        "from locus_memory import BaseStore, DeltaCheckpointer, EncryptingStore, EmbeddingStore",
    ],
)
def test_what_needs_no_driver_loads_none(use):
    drivers = [name for name in HEAVY if name not in {"pydantic", "orjson", "asyncio"}]
    assert run(f"import sys; {use}\nprint(*[n for n in {drivers!r} if n in sys.modules])") == []


@pytest.mark.parametrize(
    ("use", "extra"),
    [
        ("import locus_memory; locus_memory.PostgreSQLStore", "postgresql"),
        ("from locus_memory import RedisCheckpointer", "redis"),
        ("from locus_memory import get_store; get_store('postgres://host/db')", "postgresql"),
        ("from locus_memory import open_backend; open_backend('redis')", "redis"),
        ("from locus_memory import get_store; get_store('oci:bucket')", "oci"),
        ("from locus_memory import open_backend; open_backend('opensearch')", "opensearch"),
        ("from locus_memory import get_store; get_store('oracle:mydb')", "oracle"),
    ],
)
def test_a_missing_driver_is_one_sentence(use, extra):
    drivers = ("asyncpg", "redis", "oci", "opensearchpy", "oracledb")
    absent = f"import sys; sys.modules.update(dict.fromkeys({drivers}))"
    failed = subprocess.run(
        [sys.executable, "-c", f"{absent}; {use}"], capture_output=True, text=True, check=False
    )
    assert failed.stderr.splitlines()[-1] == (
        f"locus_memory.errors.MissingDriverError: {extra}: needs the {extra!r} extra: "
        f"{install_command(extra)}"
    )


def test_every_error_is_exported_and_drawn_in_the_tree():
    defined = {
        name
        for name, value in vars(errors).items()
        if isinstance(value, type) and issubclass(value, LocusMemoryError)
    }
    assert defined == set(errors.__all__)
    assert defined <= {*locus_memory.__all__, *unlisted_table("locus_memory")}
    tree = errors.__doc__.split("```")[1]
    assert set(re.findall(r"^\W*(\w+)", tree, re.MULTILINE)) == defined
    assert tree in (ROOT / "docs" / "errors-and-events.md").read_text(encoding="utf-8")


ELSEWHERE = ("strands", "agent-framework", "llama-index", "crewai")
EACH = """
import importlib, pkgutil
import locus_memory

elsewhere = %s


names = [each.name for each in pkgutil.walk_packages(locus_memory.__path__, "locus_memory.")]
for name in names:
    try:
        module = importlib.import_module(name)
    except ImportError as error:
        # These have environments of their own.
        if not any(f"'{extra}' extra" in str(error) for extra in elsewhere):
            raise
        continue
    missing = [each for each in getattr(module, "__all__", ()) if not hasattr(module, each)]
    if missing:
        print(name, missing)
print(len(names))
"""


@pytest.mark.slow
def test_every_module_can_be_imported_and_has_its_names():
    """In this order; that there is no circle says `tests/test_architecture.py`."""
    [count] = run(EACH % (ELSEWHERE,))
    expected = len(list((ROOT / "locus_memory").rglob("*.py"))) - 1
    for name in (extra.replace("-", "_") for extra in ELSEWHERE):
        if find_spec(name) is None:
            folder = ROOT / "locus_memory" / "integrations" / name
            expected -= len(list(folder.glob("*.py"))) - 1
    assert int(count) == expected


def test_the_version_is_the_distributions():
    assert metadata("locus-memory")["Version"] == locus_memory.__version__
    assert locus_memory.__version__ in (ROOT / "docs" / "changelog.md").read_text(encoding="utf-8")


def test_core_dependencies_are_few():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    core = {re.split(r"[<>=]", requirement)[0] for requirement in project["dependencies"]}
    assert core == {
        "markdown-it-py",
        "numpy",
        "orjson",
        "pydantic",
        "snowballstemmer",
        "tenacity",
        "typing-extensions",
    }


@pytest.mark.parametrize(
    "path",
    [
        "agent.Agent",
        "checkpoint.UNSET",
        "checkpoint.compare",
        "checkpoint.record.moved",
        "checkpoint.storage.DeltaStorage",
        "checkpoint.storage.copied",
        "conversation.repair",
        "conversation.root_digest",
        "conversation.validate",
        "faces.BlockingStore",
        "integrations.langgraph.GraphMemory",
        "integrations.langgraph.LocusSaver",
        "integrations.langgraph.LocusStore",
        "integrations.langgraph.MemoryMiddleware",
        "integrations.locus.LocusCheckpointer",
        "integrations.locus.LocusMemoryManager",
        "integrations.locus.LocusStore",
        "integrity.verify",
        "messages.Message",
        "registry.Provider",
        "state.AgentState",
        "store.candidates.CandidateStore",
        "store.checksum",
        "store.encoding.encode_namespace",
        "store.item.check_namespace",
        "store.json_values.encode_json",
        "sync.blocking",
        "testing.StoreConformance",
        "tools.as_tool",
    ],
)
def test_a_path_that_was_documented_once_is_kept(path):
    module, _, name = f"locus_memory.{path}".rpartition(".")
    try:
        parent = importlib.import_module(module)
        found = hasattr(parent, name) or importlib.import_module(f"{module}.{name}")
    except MissingDriverError as error:
        pytest.skip(str(error))
    assert found
