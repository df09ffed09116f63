from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from locus_memory.agent.loop import Agent
from locus_memory.chat.scripted import ScriptedModel
from locus_memory.errors import ModelUnavailableError
from locus_memory.messages import Message, ToolCall
from locus_memory.registry import open_backend

RULES = "(without --model, the scripted model answers by a few rules)\n"
LONG = "I live in Lyon, in the old town above the river, and I moved there three years ago."
WAITS = "(memory: the last messages stay queued; the next chat extracts from them)\n"

# A job in the background ignores interrupts, and so do its children, if they are not told.
COMMAND = """
import runpy, signal
signal.signal(signal.SIGINT, signal.default_int_handler)
runpy.run_module("locus_memory.cli", run_name="__main__")
"""


class Handler(BaseHTTPRequestHandler):
    def log_message(self, *args):
        """Say nothing."""

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        # The names of headers differ between versions of the client in their case.
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.requests.append((headers, body))
        answer = self.server.answers.pop(0)
        if answer is None:
            self.server.asked.set()
            self.server.over.wait()
            return
        status = answer if isinstance(answer, int) else 200
        streams = status == 200 and body.get("stream")
        self.send_response(status)
        self.send_header("content-type", "text/event-stream" if streams else "application/json")
        self.end_headers()
        self.wfile.write(b"".join(pieces(answer)) if streams else whole(answer))


def whole(answer):
    if isinstance(answer, int):
        return json.dumps({"error": {"message": "no luck\ntoday"}}).encode()
    message = {"role": "assistant", "content": answer}
    choice = {"index": 0, "finish_reason": "stop", "message": message}
    return json.dumps({"id": "1", "object": "chat.completion", "choices": [choice]}).encode()


def pieces(answer):
    for word in [*answer.split(" "), None]:
        delta = {} if word is None else {"content": f"{word} "}
        choice = {"index": 0, "delta": delta, "finish_reason": None if word else "stop"}
        chunk = {"id": "1", "object": "chat.completion.chunk", "choices": [choice]}
        yield b"data: %b\n\n" % json.dumps(chunk).encode()
    yield b"data: [DONE]\n\n"


@pytest.fixture
def endpoint():
    """A server on this machine that gives its answers in order; `None` is none at all."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.requests, server.answers = [], []
    server.asked, server.over = threading.Event(), threading.Event()
    server.url = f"http://127.0.0.1:{server.server_port}/v1"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.over.set()
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(autouse=True)
def no_key_of_the_developer(monkeypatch):
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


@pytest.fixture
def start():
    """Start a chat in a process of its own, which is killed if the test leaves it running."""
    with ExitStack() as stack:

        def starter(*arguments):
            process = subprocess.Popen(
                [sys.executable, "-c", COMMAND, "chat", *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            stack.enter_context(process)
            stack.callback(process.kill)
            return process

        yield starter


def messages(ok, thread):
    state = ok("show", thread, "--json").json["state"]
    return [(each["role"], each.get("content")) for each in state["messages"]]


@pytest.mark.slow
def test_a_pipe_gets_answers_and_nothing_else(start):
    chat = start("t", "--user", "ada", "--scripted")
    out, err = chat.communicate("I live in Lyon.\r\n\n  \nWhere do I live?\nhello")
    assert (chat.returncode, err) == (0, "")
    assert out == "Noted.\nYou said: I live in Lyon.\nHello! What can I do for you?\n"


def test_another_process_goes_on_with_the_thread_and_another_thread_remembers(run, ok):
    first = run("chat", "t", "--user", "ada", stdin=b"I live in Lyon.\n")
    assert (first.code, first.out, first.err) == (0, "Noted.\n", RULES)
    asked = ("--user", "ada", "--scripted")
    assert ok("chat", "t", *asked, stdin=b"Where do I live?").out == "You said: I live in Lyon.\n"
    there = ok("chat", "u", *asked, stdin=b"Where do I live?").out
    assert there == "I remember: The user lives in Lyon.\n"
    assert ok("chat", "v", "--scripted", stdin=b"Where do I live?").out == "I do not know.\n"
    alone = ok("chat", "w", "--no-memory", *asked, stdin=b"Where do I live?").out
    assert alone == "I do not know.\n"


def test_nothing_is_remembered_without_memory(ok):
    ok("chat", "t", "--scripted", "--no-memory", stdin=b"I live in Lyon.")
    assert ok("memories").out == "no memories\n"


def test_a_chat_off_the_record_keeps_its_thread_alone(ok):
    asked = ("--user", "ada", "--scripted")
    ok("chat", "t", *asked, stdin=b"I live in Lyon.\n")
    told = ok("chat", "u", *asked, "--off-record", stdin=b"Where do I live?\nMy name is Ada.\n")
    assert told.out == "I remember: The user lives in Lyon.\nNoted.\n"
    # The thread stays as it began.
    assert ok("chat", "u", *asked, stdin=b"I eat no meat.\nWhat is my name?").out == (
        "Noted.\nYou said: My name is Ada.\n"
    )
    (memory,) = json.loads(ok("memories", "--user", "ada", "--json").out)["memories"]
    assert memory["content"] == "The user lives in Lyon."
    found = ok("chat", "v", *asked, stdin=b"What is my name?\nWhich meat do I eat?").out
    assert found == "I do not know.\nI do not know.\n"


def test_json_is_a_line_for_each_answer(ok):
    lines = ok("chat", "--scripted", "--json", stdin=b"hello\nhi\n").out.splitlines()
    first, second = map(json.loads, lines)
    assert first["text"] == "Hello! What can I do for you?"
    assert first["thread_id"] == second["thread_id"]
    assert first["thread_id"].startswith("chat-")
    infos = ok("checkpoints", first["thread_id"], "--json").json["checkpoints"]
    assert second["checkpoint_id"] == infos[0]["checkpoint_id"]


def test_no_lines_make_no_thread(ok):
    assert ok("chat", "t", "--scripted").out == ""
    assert ok("threads").out == "no threads\n"


def test_an_answer_drives_no_terminal(ok):
    said = "I like \x1b[31mred\x07.\nWhat do I like?\n"
    out = ok("chat", "t", "--scripted", stdin=said.encode()).out
    assert out == "Noted.\nYou said: I like \\x1b[31mred\\x07.\n"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("--model", "m", "--scripted"), 2),
        (("--base-url", "http://127.0.0.1:9/v1"), 2),
        (("--conversation-manager", "sliding"), 2),
        (("--conversation-manager", "sliding_window:0"), 2),
        (("--user", ""), 2),
        (("",), 2),
        (("--url", "file:./dir", "--scripted"), 1),
    ],
)
def test_a_wrong_call(fails, arguments, code):
    fails(code, "chat", *arguments, stdin=b"hello\n")


def test_a_model_without_a_key(fails):
    assert fails(2, "chat", "--model", "m", stdin=b"hello\n") == (
        "error: --model needs OPENAI_API_KEY, or an endpoint named with --base-url\n"
    )


def test_a_model_by_its_string(ok, fails, endpoint):
    assert (
        ok("chat", "--model", "scripted", stdin=b"hello\n").out == "Hello! What can I do for you?\n"
    )
    line = fails(2, "chat", "--model", "scripted", "--base-url", endpoint.url, stdin=b"hello\n")
    assert line == "error: --base-url: the model 'scripted' takes no endpoint\n"
    assert fails(2, "chat", "--model", "scripted:x", stdin=b"hello\n").startswith(
        "error: --model: scripted: nothing follows it"
    )
    endpoint.answers += ["Hello there."]
    asked = ("chat", "--model", "openai:tiny", "--base-url", endpoint.url, "--no-memory")
    assert ok(*asked, stdin=b"hello\n").out == "Hello there. \n"
    assert endpoint.requests[0][1]["model"] == "tiny"


def test_a_line_that_is_no_text(run, ok):
    result = run("chat", "t", "--scripted", stdin=b"hello\n\xff\nhi\n")
    assert (result.code, result.out) == (1, "Hello! What can I do for you?\n")
    assert result.err == "error: stdin: not UTF-8 (byte 0 of a line)\n"
    assert len(messages(ok, "t")) == 2


def test_the_thread_of_another_user(ok, fails):
    ok("chat", "t", "--user", "ada", "--scripted", stdin=b"I live in Lyon.")
    line = fails(1, "chat", "t", "--user", "bob", "--scripted", stdin=b"Where?")
    assert line == "error: thread 't' belongs to another user: choose another\n"
    assert len(messages(ok, "t")) == 2
    line = fails(1, "chat", "t", "--scripted", stdin=b"Where?")
    assert line == "error: thread 't' belongs to a user: name the user with --user\n"
    assert len(messages(ok, "t")) == 2
    ok("chat", "t", "--user", "ada", "--scripted", stdin=b"My name is Kim.")
    assert len(ok("memories", "--user", "ada", "--json").json["memories"]) == 2


def save(*states):
    """Let an agent's run be cut off with each of the messages as the last one."""

    async def unreachable(messages, *, tools=()):
        raise ModelUnavailableError("gone")

    async def work():
        async with open_backend("sqlite:./locus.db") as backend:
            for thread, text in states:
                with pytest.raises(ModelUnavailableError):
                    await Agent(unreachable, checkpointer=backend).run(text, thread)

    asyncio.run(work())


def test_a_thread_that_was_cut_off_gets_its_answer_first(run, ok):
    save(("t", "I live in Lyon."))
    result = run("chat", "t", "--scripted", stdin=b"Where do I live?\n")
    assert (result.code, result.out) == (0, "Noted.\nYou said: I live in Lyon.\n")
    assert result.err == "(the last run was interrupted: this is its missing answer)\n"
    assert [role for role, _ in messages(ok, "t")] == ["user", "assistant"] * 2
    assert ok("memories", "--json").json["total"] == 1
    assert ok("chat", "t", "--scripted").err == ""


def test_a_thread_that_was_cut_off_in_a_tool_call_is_mended(ok):
    async def work():
        call = ToolCall(id="c", name="ring", arguments={})
        said = (Message.user("Ring!"), Message.assistant(tool_calls=[call]))
        async with open_backend("sqlite:./locus.db") as backend:
            state = Agent(ScriptedModel(), checkpointer=backend)
            await state.run("hello", "t")
            newest = (await state.state("t")).with_messages(said)
            await backend.checkpointer.save(newest, "t", metadata={"kind": "assistant"})

    asyncio.run(work())
    ok("chat", "t", "--scripted", stdin=b"hello\n")
    roles = [role for role, _ in messages(ok, "t")]
    assert roles == ["user", "assistant", "user", "assistant", "tool", "user", "assistant"]


def test_an_imported_thread_is_gone_on_with_and_not_answered_unasked(ok, write):
    said = [{"role": "user", "content": "The key is under the pot."}]
    ok("import", write("t.json", said))
    assert ok("chat", "t", "--scripted").out == ""
    out = ok("chat", "t", "--scripted", stdin=b"Where is the key?").out
    assert out == "You said: The key is under the pot.\n"


def test_a_model_behind_an_endpoint(ok, endpoint, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    ok("remember", "The user lives in Lyon.", "--user", "ada", "--key", "home")
    endpoint.answers += ["In Lyon, of course.", '{"changes": []}']
    model = ("--model", "tiny", "--base-url", endpoint.url)
    asked = ("t", "--user", "ada", "--system", "You are terse.", *model)
    result = ok("chat", *asked, stdin=b"Where do I live?\n")
    assert result.out == "In Lyon, of course. \n"
    headers, body = endpoint.requests[0]
    assert "sk-secret" not in str(headers)
    assert (body["model"], body["stream"]) == ("tiny", True)
    prompt, known, question = body["messages"]
    assert prompt == {"role": "system", "content": "You are terse."}
    assert known["role"] == "system"
    assert "- The user lives in Lyon.\n" in known["content"]
    assert question == {"role": "user", "content": "Where do I live?"}


def test_the_environment_names_the_endpoint_and_its_key(ok, endpoint, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.setenv("OPENAI_BASE_URL", endpoint.url)
    endpoint.answers += ["Hello."]
    assert ok("chat", "--model", "tiny", "--no-memory", stdin=b"hello\n").out == "Hello. \n"
    assert endpoint.requests[0][0]["authorization"] == "Bearer sk-secret"


def test_the_model_sees_a_window(ok, endpoint):
    endpoint.answers += ["One.", "Two.", "Three."]
    model = ("--model", "tiny", "--base-url", endpoint.url, "--no-memory")
    ok("chat", "t", "--conversation-manager", "sliding_window:1", *model, stdin=b"1\n2\n3\n")
    assert [len(body["messages"]) for _, body in endpoint.requests] == [1, 1, 1]
    assert len(messages(ok, "t")) == 6


def test_a_conversation_manager_by_its_string(ok, endpoint):
    endpoint.answers += ["One.", "Two.", "Three."]
    model = ("--model", "tiny", "--base-url", endpoint.url, "--no-memory")
    for manager in ("null", "sliding_window:1"):
        ok("chat", "t", "--conversation-manager", manager, *model, stdin=b"1\n2\n3\n")
        endpoint.answers += ["One.", "Two.", "Three."]
    seen = [len(body["messages"]) for _, body in endpoint.requests]
    assert seen == [1, 3, 5, 1, 1, 1]


def test_an_error_of_the_endpoint_is_a_line_and_the_chat_goes_on(run, ok, endpoint):
    endpoint.answers += [400, "Better now."]
    model = ("--model", "tiny", "--base-url", endpoint.url, "--no-memory")
    result = run("chat", "t", *model, stdin=b"one\ntwo\n")
    assert (result.code, result.out) == (1, "Better now. \n")
    first, last = result.err.splitlines()
    assert first.startswith("error: ")
    assert "no luck today" in first
    assert last == "error: messages without an answer: 1"
    assert messages(ok, "t") == [
        ("user", "one"),
        ("user", "two"),
        ("assistant", "Better now. "),
    ]


@pytest.mark.slow
def test_what_is_known_of_a_user_reaches_the_model_and_nobody_elses(ok, endpoint):
    ok("remember", "The user lives in Lyon.", "--user", "ada", "--key", "home")
    ok("identity", "add", "Always answer in English.", "--user", "ada")
    endpoint.answers += ["391.", '{"changes": []}', "391.", '{"changes": []}']
    model = ("--model", "tiny", "--base-url", endpoint.url)
    ok("chat", "--user", "ada", *model, stdin=b"What is 17 times 23?\n")
    ok("chat", "--user", "bob", *model, stdin=b"What is 17 times 23?\n")
    # Beside each answer, the model is asked what to remember of it.
    (known, asked), _, (of_bob,), _ = (body["messages"] for _, body in endpoint.requests)
    assert "- always: Always answer in English." in known["content"]
    assert "- The user lives in Lyon." in known["content"]
    assert asked["content"] == of_bob["content"] == "What is 17 times 23?"


def test_a_chat_is_one_session_which_costs_one_call_and_is_one_episode(ok, endpoint):
    home = {"type": "user", "key": "home", "content": "The user lives in Lyon.", "messages": [1]}
    told = {"changes": [home | {"op": "add"}], "identity": []}
    told["notes"] = ["The user lives in Lyon, and sails."]
    endpoint.answers += ["Noted.", "Noted, too.", json.dumps(told)]
    model = ("--model", "tiny", "--base-url", endpoint.url)
    result = ok("chat", "t", "--user", "ada", *model, stdin=f"{LONG}\nI sail.\n".encode())
    assert (result.err, len(endpoint.requests)) == ("", 3)
    (memory,) = ok("memories", "--user", "ada", "--json").json["memories"]
    assert memory["content"] == "The user lives in Lyon."
    (episode,) = ok("episodes", "--user", "ada", "--json").json["episodes"]
    assert (episode["notes"][0]["text"], episode["turns"]) == (
        "The user lives in Lyon, and sails.",
        [1, 4],
    )


def test_memory_that_fails_is_a_line_and_the_answer_stands(run, endpoint):
    endpoint.answers += ["Noted.", *[400] * 5]
    model = ("--model", "tiny", "--base-url", endpoint.url)
    result = run("chat", "t", *model, stdin=LONG.encode())
    assert (result.code, result.out) == (0, "Noted. \n")
    *failed, last = result.err.splitlines(keepends=True)
    assert failed
    assert all(line.startswith("(memory: memory.extract_failed ") for line in failed)
    assert last == WAITS
    assert "no luck today" in result.err


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals")
def test_an_interrupt_between_messages_leaves_with_everything_saved(ok, start):
    chat = start("t", "--user", "ada", "--scripted")
    chat.stdin.write("I live in Lyon.\n")
    chat.stdin.flush()
    assert chat.stdout.readline() == "Noted.\n"
    chat.send_signal(signal.SIGINT)
    out, err = chat.communicate()
    assert (chat.returncode, out, err) == (130, "", "")
    assert len(messages(ok, "t")) == 2
    (memory,) = ok("memories", "--user", "ada", "--json").json["memories"]
    assert memory["content"] == "The user lives in Lyon."


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals")
def test_an_interrupt_while_the_model_answers_leaves_what_was_said(ok, run, endpoint, start):
    endpoint.answers += [None, *[400] * 5]
    chat = start("t", "--model", "tiny", "--base-url", endpoint.url)
    chat.stdin.write("I live in Lyon.\n")
    chat.stdin.flush()
    assert endpoint.asked.wait(60)
    chat.send_signal(signal.SIGINT)
    out, err = chat.communicate()
    assert (chat.returncode, out) == (130, "")
    assert "the last messages stay queued" in err
    assert messages(ok, "t") == [("user", "I live in Lyon.")]
    resumed = run("chat", "t", "--scripted")
    assert (resumed.code, resumed.out) == (0, "Noted.\n")
    # What waits for a model is left to one.
    assert ok("memories", "--json").json["total"] == 0
    home = {"type": "user", "key": "home", "content": "The user lives in Lyon.", "messages": [1]}
    told = {"changes": [home | {"op": "add"}], "identity": [], "notes": []}
    endpoint.answers[:] = ["Noted.", json.dumps(told)]
    ok("chat", "t", "--model", "tiny", "--base-url", endpoint.url, stdin=b"I sail.\n")
    assert ok("memories", "--json").json["total"] == 1


INTERRUPTED = """
import signal, sys
class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == sys.argv[1]:
            signal.raise_signal(signal.SIGINT)
sys.meta_path.insert(0, Interrupting())
from locus_memory.cli import main
main(sys.argv[2:])
"""


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals")
@pytest.mark.parametrize(
    "module",
    [
        "locus_memory._internal.providers.drivers",
        "rich",
        "locus_memory.cli.app",
        "locus_memory.cli.commands.chat_session",
        "locus_memory.backends.sqlite.backend",
    ],
)
def test_an_interrupt_while_a_module_is_imported_is_one_as_any_other(empty_directory, module):
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, module, "chat", "t", "--scripted"],
        capture_output=True,
        check=False,
        input="I live in Lyon.\n",
        text=True,
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


TYPED = r"""
import os, pty, select, sys
pid, terminal = pty.fork()
if not pid:
    os.environ["TERM"] = "dumb"
    os.execv(sys.executable, [sys.executable, "-m", "locus_memory.cli", *sys.argv[2:]])
shown = b""
typed = ""

def read():
    # A key that is pressed between the prompt and its reading is lost: press it again.
    while not select.select([terminal], [], [], 5)[0]:
        os.write(terminal, typed.encode())
    return os.read(terminal, 4096)

for following in sys.argv[1].split("|"):
    prompts = shown.count(b"> ") + 1
    while shown.count(b"> ") < prompts:
        shown += read()
    typed = following
    os.write(terminal, typed.encode())
try:
    while piece := read():
        shown += piece
except OSError:
    pass  # On Linux, a terminal that nobody holds any more ends so.
print(shown.decode().replace("\r\n", "\n"))
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="needs a POSIX terminal")
@pytest.mark.parametrize(("last", "code"), [("/quit\n", 0), ("\x04", 0), ("\x03", 130)])
def test_on_a_terminal(empty_directory, last, code):
    typed = f"I live in Lyon.\n|/memories\n|/help\n|/nonsense\n|{last}"
    done = subprocess.run(
        [sys.executable, "-c", TYPED, typed, "chat", "t", "--user", "ada"],
        capture_output=True,
        check=False,
        text=True,
    )
    assert done.returncode == code, done
    assert RULES in done.stdout
    assert "(thread t of user ada; /help lists commands, Ctrl-D leaves)" in done.stdout
    assert "Noted.\n(new memories: 1; /memories shows them)\n> " in done.stdout
    assert "user  home  The user lives in Lyon." in done.stdout
    assert "/quit      leave" in done.stdout
    assert "(unknown command /nonsense; known: /memories, /off, /on, /help, /quit)" in done.stdout
    assert "Traceback" not in done.stdout


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="needs a POSIX terminal")
def test_a_terminal_goes_off_the_record_and_back(empty_directory):
    said = "/off\n|I live in Lyon.\n|/memories\n|/on\n|My name is Ada.\n|/memories\n"
    done = subprocess.run(
        [sys.executable, "-c", TYPED, f"{said}|/quit\n", "chat", "t", "--off-record"],
        capture_output=True,
        check=False,
        text=True,
    )
    assert done.returncode == 0, done
    assert "(thread t, off the record; /help" in done.stdout
    off, _, on = done.stdout.partition("(on the record)")
    assert "(off the record: only the thread is kept)" in off
    assert "new memories" not in off
    assert "no memories" in off
    assert "The user is called Ada." in on or "name is Ada" in on
    assert "Lyon" not in on
