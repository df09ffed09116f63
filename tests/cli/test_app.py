from __future__ import annotations

import gc
import os
import re
import signal
import subprocess
import sys

import pytest

import locus_memory
from locus_memory._internal.providers.installing import install_command
from locus_memory.cli import main
from locus_memory.cli.printing import outcome
from locus_memory.events import subscribe

COMMANDS = [
    "demo", "doctor", "verify", "chat", "mcp", "serve", "ui", "plug", "presets",
    "memories", "remember", "history", "undo", "forget", "identity", "notes", "episodes",
    "recall", "why",
    "ingest", "consolidate",
    "threads", "checkpoints", "show", "diff", "fork", "prune", "vacuum", "stats", "import",
    "export",
    "ls", "get", "put", "rm", "search", "reembed", "eval", "migrate", "backup", "restore",
    "docs", "tree", "cat", "find", "compact", "audit-deletion", "retain", "rotate", "models",
]  # fmt: skip

READING = [
    ("ls",),
    ("ls", "users"),
    ("get", "users", "u1"),
    ("rm", "users", "u1"),
    ("search", "word"),
    ("memories",),
    ("history", "k"),
    ("undo", "k"),
    ("forget", "k"),
    ("identity",),
    ("identity", "remove", "1f"),
    ("notes",),
    ("episodes",),
    ("recall", "word"),
    ("why", "t"),
    ("consolidate",),
    ("threads",),
    ("checkpoints", "t"),
    ("show", "t"),
    ("diff", "t", "u"),
    ("fork", "t", "u"),
    ("prune", "t", "--keep-last", "1"),
    ("stats",),
    ("threads", "rm", "t", "--yes"),
    ("vacuum", "--yes"),
    ("export", "t"),
    ("docs",),
    ("docs", "ls"),
    ("docs", "search", "word"),
    ("docs", "rm", "guide.md"),
    ("tree",),
    ("cat", "memory://a"),
    ("find", "word"),
    ("rotate",),
    ("compact",),
    ("audit-deletion", "word"),
    ("retain", "--threads", "--keep-last", "1", "--yes"),
    ("ui", "--port", "0"),
]


def command(*arguments, **options):
    return subprocess.run(
        [sys.executable, "-m", "locus_memory.cli", *arguments],
        capture_output=True,
        check=False,
        **options,
    )


def test_help_lists_every_command(ok):
    listed = ok("--help").out.partition("Getting started:\n")[2].partition("Examples:\n")[0]
    assert re.findall(r"^  (\w[\w-]*)", listed, re.MULTILINE) == COMMANDS


def test_no_arguments_is_help(ok):
    assert ok().out == ok("--help").out


# A server prints its address once, and answers in JSON over HTTP.
@pytest.mark.parametrize("name", [each for each in COMMANDS if each not in ("serve", "ui")])
def test_each_command_has_help_and_json(ok, name):
    text = ok(name, "--help").out
    assert "--json" in text
    assert f"locus-memory {name} " in text


DESTRUCTIVE = {
    "forget", "rm", "remove", "prune", "vacuum", "restore", "compact", "retain",
    "consolidate", "rotate",
}  # fmt: skip


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("correct", "remember"), ("update", "remember"), ("edit", "remember"),
        ("change", "remember"),
        ("add", "remember"), ("save", "remember"), ("list", "memories"), ("serach", "search"),
        ("memorys", "memories"), ("histroy", "history"),
    ],
)  # fmt: skip
def test_an_unknown_command_is_answered_with_what_is_meant(fails, typed, meant):
    told = f"error: no command '{typed}': did you mean '{meant}'?\n"
    assert fails(2, typed, "--user", "ada") == told


@pytest.mark.parametrize(
    "typed",
    [
        "forgett", "forgot", "remove", "restores", "delete", "erase", "prun", "r", "vacum",
        "compac",
        "consolidat", "überschreiben", "忘れる", "", "x" * 5000,
    ],
)  # fmt: skip
def test_a_command_that_erases_is_never_the_guess(fails, typed):
    told = fails(2, typed)
    guessed = set(re.findall(r"mean '([\w-]+)'", told))
    assert not DESTRUCTIVE & guessed
    assert guessed or "locus-memory --help" in told


def test_a_subcommand_that_erases_is_never_the_guess(fails):
    for typed in ("remov", "removed", "rmm"):
        assert "mean" not in fails(2, "identity" if "v" in typed else "threads", typed)


def test_no_help_line_is_cut_off(ok, monkeypatch):
    for columns in ("60", "80", "120"):
        monkeypatch.setenv("COLUMNS", columns)
        assert "..." not in ok("--help").out.partition("Options:")[2]


def test_version(ok):
    assert ok("--version").out == f"locus-memory {locus_memory.__version__}\n"


@pytest.mark.slow
def test_help_imports_nothing_heavy():
    code = """
import sys
from locus_memory.cli import main
try:
    main(["--help"])
except SystemExit as done:
    assert done.code == 0
heavy = {"numpy", "sqlite3", "pydantic", "asyncio", "locus_memory.registry"} & set(sys.modules)
assert not heavy, heavy
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False, text=True)
    assert done.returncode == 0, done.stderr


def test_without_the_extra_it_says_what_to_install():
    code = """
import sys
sys.modules["typer"] = None
from locus_memory.cli import main
main(["--help"])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False, text=True)
    expected = f"locus-memory: needs the 'cli' extra: {install_command('cli')}\n"
    assert (done.returncode, done.stderr) == (1, expected)


@pytest.mark.parametrize("arguments", READING)
def test_reading_makes_no_database(fails, empty_directory, arguments):
    assert fails(1, *arguments) == "error: no database at sqlite:./locus.db: name one with --url\n"
    assert list(empty_directory.iterdir()) == []


def test_the_url_goes_before_or_after_the_command(ok, empty_directory):
    ok("--url", "sqlite:./a.db", "put", "n", "k", "1")
    assert (empty_directory / "a.db").exists()
    assert ok("get", "n", "k", "--url", "sqlite:./a.db").out == "1\n"


def test_the_nearer_url_wins(ok):
    ok("--url", "sqlite:./a.db", "put", "n", "k", "1", "--url", "sqlite:./b.db")
    assert ok("--url", "sqlite:./b.db", "get", "n", "k").out == "1\n"


def test_the_environment_says_where(ok, monkeypatch):
    monkeypatch.setenv("LOCUS_MEMORY_URL", "sqlite:./env.db")
    ok("put", "n", "k", "1")
    assert ok("--url", "sqlite:./env.db", "get", "n", "k").out == "1\n"


def test_json_goes_before_or_after_the_command(ok):
    ok("put", "n", "k", "1")
    assert ok("--json", "get", "n", "k").json == ok("get", "n", "k", "--json").json


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("nosql://user:s3cret@h", "unknown provider 'nosql'. Known: file, memory, oci, opensearch"),
        ("sqlit:./a.db", "did you mean 'sqlite'?"),
        ("two words", "a provider string is"),
        ("memory:s3cret", "takes no hint"),
    ],
)
def test_a_bad_url_is_a_usage_error(fails, url, says):
    line = fails(2, "--url", url, "threads")
    assert says in line
    assert "s3cret" not in line


def test_a_provider_without_a_store_says_so(ok, fails, write):
    ok("--url", "file:./dir", "import", write("a.json", [{"role": "user", "content": "hello"}]))
    assert ok("--url", "file:./dir", "show", "a").out.endswith("user: hello\n")
    assert "file: has no store" in fails(1, "--url", "file:./dir", "search", "hello")


@pytest.mark.parametrize(
    "arguments",
    [
        ("nonsense",),
        ("get", "n"),
        ("get", "n", "k", "extra"),
        ("ls", "--limit", "many"),
        ("ls", "--limit", "-1"),
        ("threads", "--nonsense"),
        ("import",),
        ("export", "t", "--format", "xml"),
    ],
)
def test_a_wrong_call_is_a_usage_error(fails, arguments):
    fails(2, *arguments)


def test_a_missing_quote_is_told(fails):
    assert "a text with spaces needs quotes" in fails(
        2, "history", "home", "--user", "José", "Núñez"
    )


@pytest.mark.parametrize(
    "arguments",
    [
        ("threads", "--after"),
        ("threads", "--prefix"),
        ("ls", "n", "--after"),
        ("ls", "--after"),
        ("ls",),
        ("get", "n"),
        ("put", "n", "k"),
        ("put", "n", "k", "1", "--text"),
        ("put", "n", "k", "1", "--metadata"),
        ("search",),
        ("search", "word", "--filter"),
        ("memories", "--user"),
        ("memories", "--query"),
        ("remember",),
        ("remember", "a", "--key"),
        ("remember", "a", "--user"),
        ("history",),
        ("undo",),
        ("undo", "k", "--user"),
        ("forget",),
        ("forget", "--dry-run", "--user"),
        ("forget", "--dry-run", "--query"),
        ("chat",),
        ("chat", "--user"),
        ("show",),
        ("export",),
        ("checkpoints", "t", "--before"),
    ],
)
def test_an_argument_that_is_no_text(ok, run, arguments):
    ok("put", "n", "k", "1")
    result = run(*arguments, "\udcff")
    assert result.code in (1, 2)
    assert result.err.startswith("error: ")
    assert result.err.count("\n") == 1
    assert ok("get", "n", "k", "--json").json["version"] == 1


@pytest.mark.parametrize("limit", ["9223372036854775808", "9" * 23])
def test_a_limit_beyond_all_counting(ok, chat, limit):
    ok("put", "n", "k", "1")
    assert len(ok("threads", "--limit", limit, "--json").json["threads"]) == 1
    assert len(ok("checkpoints", "chat", "--limit", limit, "--json").json["checkpoints"]) == 5
    assert len(ok("ls", "n", "--limit", limit, "--json").json["items"]) == 1
    assert ok("search", "ladder", "--limit", limit).out


def test_a_file_that_is_no_database(fails, write):
    write("locus.db", "this is a text file, and far too long to be an empty database" * 20)
    fails(1, "threads")


def test_a_bug_is_one_line_too(run, monkeypatch, ok):
    ok("put", "n", "k", "1")
    monkeypatch.setattr("locus_memory.cli.commands.items._get", None)
    result = run("get", "n", "k")
    assert result.code == 1
    assert result.err == "internal error: TypeError: the first argument must be callable\n"


def test_a_bug_can_be_looked_into(run, monkeypatch, ok):
    ok("put", "n", "k", "1")
    monkeypatch.setenv("LOCUS_MEMORY_DEBUG", "1")
    monkeypatch.setattr("locus_memory.cli.commands.items._get", None)
    with pytest.raises(TypeError):
        run("get", "n", "k")


def test_an_interrupt_is_130(run, monkeypatch, ok):
    ok("put", "n", "k", "1")

    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("locus_memory.cli.commands.items._get", interrupt)
    result = run("get", "n", "k")
    assert (result.code, result.out) == (130, "")


def test_main_leaves_with_the_exit_code(capsys):
    with pytest.raises(SystemExit) as left:
        main(["get", "n", "k"])
    assert left.value.code == 1
    assert (
        capsys.readouterr().err == "error: no database at sqlite:./locus.db: name one with --url\n"
    )


def test_an_error_drives_no_terminal(capsys):
    outcome.report(outcome.CommandError("a\x1b[31mred\nsecond line"))
    assert capsys.readouterr().err == "error: a\\x1b[31mred second line\n"


@pytest.mark.slow
def test_the_installed_command_works(empty_directory):
    script = os.path.join(os.path.dirname(sys.executable), "locus-memory")  # noqa: PTH118, PTH120 - the link itself, not its target
    environment = {**os.environ, "LOCUS_MEMORY_URL": "sqlite:./env.db"}
    done = subprocess.run(
        [script, "put", "n", "k", "1"], capture_output=True, check=False, env=environment
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"n k: version 1\n", b"")
    assert (empty_directory / "env.db").exists()


@pytest.mark.slow
def test_a_reader_that_goes_away_is_no_traceback(ok):
    ok("put", "n", "k", "--string", "x" * 2_000_000)
    process = subprocess.Popen(
        [sys.executable, "-m", "locus_memory.cli", "get", "n", "k"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # An unbuffered stdout does not notice.
        env={name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"},
    )
    process.stdout.read(10)
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait() == 1


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="needs a POSIX shell")
@pytest.mark.parametrize(
    ("closed", "says"),
    [(">&-", b"error: stdout is closed: the command cannot print a result\n"), (">&- 2>&-", b"")],
)
def test_a_closed_stdout(ok, closed, says):
    ok("put", "n", "k", "1")
    shell = f'"{sys.executable}" -m locus_memory.cli get n k {closed}'
    done = subprocess.run(["sh", "-c", shell], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (1, says)


@pytest.mark.slow
def test_output_that_the_terminal_cannot_show(ok):
    ok("put", "n", "k", "snow ☃")
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = command("get", "n", "k", env=environment)
    assert (done.returncode, done.stdout) == (0, b"snow \\u2603\n")


# A job in the background ignores interrupts, and so do its children, if they are not told.
INTERRUPTIBLE = """
import runpy, signal
signal.signal(signal.SIGINT, signal.default_int_handler)
runpy.run_module("locus_memory.cli", run_name="__main__")
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGINT"), reason="needs signals")
def test_an_interrupted_process_says_nothing(empty_directory):
    process = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTIBLE, "put", "n", "k", "-"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    process.stdin.write(b"x" * 200_000)  # More than a pipe holds: it is reading now.
    process.stdin.flush()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate()
    assert (process.returncode, out, err) == (130, b"", b"")


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [("threads",), ("chat", "t", "--scripted")])
def test_a_database_that_cannot_be_opened_is_closed(run, write, arguments):
    write("locus.db", "this is a text file, and far too long to be an empty database" * 20)
    gc.collect()
    names = []
    unsubscribe = subscribe(lambda event: names.append(event.name))
    try:
        assert run(*arguments, stdin=b"hello\n").code == 1
        gc.collect()
    finally:
        unsubscribe()
    assert "resource.unclosed" not in names
