"""Exports of other places: read, or refused by a sentence that says what was seen."""

from __future__ import annotations

import asyncio
import io
import os
import subprocess
import sys
import time
import tracemalloc
import zipfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from locus_memory.memory.scope import Scope
from locus_memory.registry import get_store
from locus_memory.transfer.chats import entries, speakers
from locus_memory.transfer.chats.conversation import Asked, Conversation, Unread, moment_in
from locus_memory.transfer.chats.formats import ChatFormat, read_chats
from locus_memory.transfer.chats.speakers import slack_header, whatsapp_header
from tests.cli.conversations.exports import (
    COPIED,
    HUMAN,
    MESSAGES,
    RUNS,
    SAID,
    SLACK,
    WHATSAPP,
    chatgpt,
    claude,
    dumped,
    gpt_message,
    lines,
    node,
    zipped,
)
from tests.cli.conversations.exports import (
    run as run_of,
)


def read(content, *, me=None, kind=None):
    """Return the threads of a file with their messages, and the sentences of what is not read."""
    found = list(read_chats(io.BytesIO(content), Asked("f.json", "f", me), kind))
    threads = {each.thread_id: each for each in found if isinstance(each, Conversation)}
    return threads, [each.why for each in found if isinstance(each, Unread)]


TURNS = [{"user": SAID, "assistant": "Noted."}]
PARTS = [{"type": "text", "text": SAID}, {"type": "image_url", "image_url": {"url": "x"}}]
LOOP = {**node("a", "b", gpt_message("a", "user", "Hi")), **node("b", "a")}
DEEP = b'[{"messages": [{"role": "user", "x": ' + b"[" * 300 + b"]" * 300 + b"}]}, %s]"
READ = {
    "chatgpt": (dumped([chatgpt()]), ["g"]),
    "chatgpt, several": (dumped([chatgpt("a"), chatgpt("b")]), ["a", "b"]),
    "chatgpt, one": (dumped(chatgpt()), ["g"]),
    "chatgpt, lines": (lines(chatgpt("a"), chatgpt("b")), ["a", "b"]),
    "chatgpt, no current node": (dumped([chatgpt(current_node=None)]), ["g"]),
    "chatgpt, unknown current node": (dumped([chatgpt(current_node="?")]), ["g"]),
    "chatgpt, a loop": (dumped([{"mapping": LOOP, "current_node": "a"}]), ["f"]),
    "chatgpt, one never begun": (dumped([chatgpt("a"), {"mapping": node("r", None)}]), ["a"]),
    "chatgpt, Chinese": (dumped([chatgpt(said="我对花生过敏。"), chatgpt("h")]), ["g", "h"]),
    "claude": (dumped([claude()]), ["c"]),
    "claude, an object": (dumped({"conversations": [claude("a"), claude("b")]}), ["a", "b"]),
    "claude and chatgpt": (dumped([claude(), chatgpt()]), ["c", "g"]),
    "messages": (dumped({"messages": MESSAGES}), ["f"]),
    "messages, a list": (dumped(MESSAGES), ["f"]),
    "messages, lists": (dumped([MESSAGES, MESSAGES]), ["f-1", "f-2"]),
    "messages, lines": (lines(*MESSAGES), ["f"]),
    "messages, lines of objects": (
        lines({"messages": MESSAGES}, {"messages": MESSAGES}),
        ["f-1", "f-2"],
    ),
    "messages, indented": (dumped(MESSAGES).replace(b",", b",\n"), ["f"]),
    "messages, in parts": (dumped([{"role": "user", "content": PARTS}]), ["f"]),
    "messages of anthropic": (dumped([{"role": "user", "content": PARTS[:1]}]), ["f"]),
    "messages of langchain": (
        dumped(
            {
                "messages": [
                    {"type": "human", "content": SAID},
                    {"type": "ai", "data": {"content": "Noted."}},
                ]
            }
        ),
        ["f"],
    ),
    "messages, nothing said": (dumped([{"role": "user", "content": None}]), ["f"]),
    "byte order mark": (b"\xef\xbb\xbf" + dumped([chatgpt()]), ["g"]),
    "turns": (dumped(TURNS), ["f"]),
    "turns, dated": (dumped({"turns": TURNS, "session_date": "2024-05-01"}), ["f"]),
    "langsmith": (lines(*RUNS), ["t"]),
    "langsmith, an object": (dumped({"runs": RUNS}), ["t"]),
    "half a character": (b'[{"role": "user", "content": "' + SAID.encode() + b' \\ud83d"}]', ["f"]),
    **{
        f"whatsapp, {name}": (text.format(SAID).encode(), ["f-2024-05-01", "f-2024-05-13"])
        for name, text in WHATSAPP.items()
    },
    "whatsapp, two languages": (
        WHATSAPP["german"].format("我对花生过敏。 Ja.").encode(),
        ["f-2024-05-01", "f-2024-05-13"],
    ),
    "slack": (SLACK.format(SAID).encode(), ["f-2024-05-01"]),
    "slack, copied": (COPIED.format(SAID).encode(), ["f"]),
}


@pytest.mark.parametrize("name", READ)
def test_an_export_is_read(name):
    content, threads = READ[name]
    found, unread = read(content, me="Ada")
    assert (list(found), unread) == (threads, [])
    roles = [each["role"] for each in found[threads[0]].messages]
    assert roles[:1] == ["user"]
    assert set(roles) <= {"user", "assistant"}


GOOD = dumped(chatgpt())
REFUSED = {
    "empty": (b"", [], "f.json: the file is empty"),
    "blank": (b" \n\n", [], "f.json: the file is empty"),
    "empty list": (b"[]", [], "the conversation has no messages"),
    "no file of chats": (dumped({"user": 1, "mail": 2}), [], "an object with 'user', 'mail'"),
    "a list of numbers": (b"[1, 2]", [], "saw a number; what can be read: chatgpt, claude"),
    "null": (b"null", [], "saw null"),
    "nulls": (b"[null, null]", [], "saw null"),
    "a text": (b"Dear diary,\nit rained.", [], "not JSON: "),
    "a picture": (b"\x89PNG\r\n\x1a\n\x00\xff", [], "f.json, line 1: not UTF-8"),
    "UTF-16": ("[]".encode("utf-16"), [], "not UTF-8"),
    "truncated object": (GOOD[:-9], [], "not JSON"),
    "truncated list": (b"[" + GOOD + b"," + GOOD[:60], ["g"], "f.json, conversation 2: not JSON"),
    "truncated at once": (b"[" + GOOD[:60], [], "not JSON"),
    "truncated line": (GOOD + b"\n" + GOOD[:60], ["g"], "f.json, line 2: not JSON"),
    "null in between": (b"[%s, null, %s]" % (GOOD, dumped(claude())), ["g", "c"],
                        "f.json, conversation 2: not an object"),
    "a tree of nulls": (dumped([chatgpt("a"), {"mapping": None}, chatgpt("b")]), ["a", "b"],
                        "f.json, conversation 2: 'mapping' is not an object"),
    "a message of nulls": (dumped([{"role": None, "content": None}]), [],
                           "f.json, message 1: 'role' is missing"),
    "an unknown role": (dumped([*MESSAGES, {"role": "martian"}]), [],
                        "f.json, message 3: unknown role 'martian'"),
    "no list of messages": (dumped({"messages": {"a": 1}}), [], "'messages' is not a list"),
    "a broken claude": (dumped([{"chat_messages": 3}, claude()]), ["c"], "'chat_messages' is not"),
    "a broken run": (lines(RUNS[0], 7), ["t"], "f.json, line 2: not an object"),
    "a broken turn": (dumped([{"user": 3}]), [], "'user' is not a string"),
    "too deep": (DEEP % dumped({"messages": MESSAGES}), ["f-2"], "nested too deeply"),
    "who is who": (WHATSAPP["iso"].encode(), [],
                   "unknown: name one with --me; the speakers are 'Ada', 'Bo B'"),
    "not UTF-8 in a list": (b'[%s, {"mapping": "\xff"}, %s]' % (GOOD, dumped(claude())), ["g", "c"],
                            "f.json, conversation 2: not UTF-8"),
    "not UTF-8 in a chat": (WHATSAPP["iso"].encode() + b"\xff", [], "f.json, line 4: not UTF-8"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_read_is_told(name):
    """In one sentence with the file, the place and what was seen; the rest is read."""
    content, threads, says = REFUSED[name]
    found, [why] = read(content)
    assert list(found) == threads
    assert why.startswith("f.json")
    assert says in why


def test_of_a_tree_the_branch_that_was_seen_last_is_read():
    found = read(dumped([chatgpt()]))[0]["g"]
    said = [(each["role"], each["content"], each["id"]) for each in found.messages]
    assert said == [("user", SAID, "u"), ("assistant", "Noted.", "new")]
    moments = [each["metadata"]["said_at"] for each in found.messages]
    assert moments == ["2024-05-01T12:00:00+00:00", "2024-05-02T13:00:00+00:00"]
    assert found.metadata == {"title": "Food"}


def test_runs_of_a_thread_are_its_turns():
    found = read(lines(*RUNS))[0]["t"]
    said = [(each["role"], each["content"]) for each in found.messages]
    assert said == [
        ("user", "Hello"),
        ("assistant", "Ahoy"),
        ("user", SAID),
        ("assistant", "Noted."),
    ]
    state = [*MESSAGES, {"role": "user", "content": "And tea?"}]
    whole = [*state, {"role": "assistant", "content": "Yes."}]
    graph = run_of("g", 12, {"messages": state}, {"messages": whole})
    last = read(lines(graph))[0]["t"].messages
    assert [each["content"] for each in last] == ["And tea?", "Yes."]


@pytest.mark.parametrize("name", WHATSAPP)
def test_speakers_keep_their_names_and_days(name):
    text = WHATSAPP[name].format(f"{SAID}\nAnd: tea.")
    first, second = read(text.encode(), me="ada")[0].values()
    assert [(each["role"], each["name"], each["content"]) for each in first.messages] == [
        ("user", "Ada", f"{SAID}\nAnd: tea."),
        ("assistant", "Bo B", "Noted."),
    ]
    assert first.messages[0]["metadata"]["said_at"][:16] == "2024-05-01T21:05"
    assert second.messages[0]["metadata"]["said_at"][:16] == "2024-05-13T00:10"


def test_a_speaker_that_is_not_there_is_told():
    [why] = read(WHATSAPP["iso"].encode(), me="Cy")[1]
    assert "no speaker is 'Cy': name one with --me; the speakers are 'Ada', 'Bo B'" in why


@pytest.mark.parametrize("kind", ["claude", "openai", "slack", "turns"])
def test_a_format_that_is_named_is_not_looked_for(kind):
    found, unread = read(dumped([chatgpt()]), kind=ChatFormat(kind), me="Ada")
    assert found == {}
    assert unread


@pytest.mark.parametrize(
    "line",
    [
        "1/1/24, 9:05 " + " " * 50_000,
        "a" * 50_000,
        "[" * 50_000,
        "> " + "x [" * 20_000,
        "9" * 50_000,
        "Ada " + "\u202f" * 50_000,
    ],
)
def test_no_line_takes_long(line):
    began = time.perf_counter()
    for header in (whatsapp_header, slack_header):
        header(line)
    assert time.perf_counter() - began < 0.1


@given(st.one_of(st.floats(), st.integers(), st.text(), st.none(), st.booleans(), st.datetimes()))
@settings(max_examples=50, deadline=None)
def test_a_moment_is_none_or_one(value):
    read = moment_in(str(value) if hasattr(value, "isoformat") else value)
    assert read is None or moment_in(read) == read


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(0, 9) | st.text(max_size=3),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    [
                        "mapping",
                        "message",
                        "chat_messages",
                        "role",
                        "content",
                        "messages",
                        "inputs",
                        "run_type",
                        "turns",
                        "user",
                        "id",
                        "parent",
                        "author",
                        "parts",
                        "sender",
                        "sessions",
                    ]
                ),
                inner,
                max_size=4,
            )
        ),
        max_leaves=12,
    )
)
@settings(max_examples=150, deadline=None)
def test_any_json_is_read_or_told(value):
    """No shape is an error of another kind."""
    found, unread = read(dumped(value))
    assert all(each.messages for each in found.values())
    assert all(why.startswith("f.json") for why in unread)


def test_a_stream_yields_what_a_whole_file_does(monkeypatch):
    content = dumped([chatgpt("a"), claude("b"), {"messages": MESSAGES}])
    whole = read(content)
    monkeypatch.setattr(entries, "SMALL", 200)
    assert read(content) == whole
    assert read(dumped({"conversations": [chatgpt("a"), claude("b")]}))[0].keys() == {"a", "b"}
    assert read(dumped({"messages": MESSAGES * 9}))[0].keys() == {"f"}
    monkeypatch.setattr(entries, "SMALL", 3000)
    assert read(lines(*map(chatgpt, "abcd")))[0].keys() == set("abcd")


def peak_of(content, monkeypatch):
    monkeypatch.setattr(entries, "SMALL", 2**16)
    tracemalloc.start()
    count = sum(1 for _ in read_chats(io.BytesIO(content), Asked("f", "f")))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return count, peak


def test_memory_does_not_grow_with_the_file(monkeypatch):
    one = dumped(chatgpt(said="tea " * 1000))
    for count in (40, 400):
        found, peak = peak_of(b"[" + b",".join([one] * count) + b"]", monkeypatch)
        assert found == count
        assert peak < 1_000_000


LARGE = """
import resource, sys
from locus_memory.transfer.chats.files import read_file
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
count = sum(1 for _ in read_file(sys.argv[1], name=None, me="Ada", kind=None))
print(count, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="needs resource")
@pytest.mark.parametrize("kind", ["chatgpt", "whatsapp"])
def test_200_megabytes_are_read_in_flat_memory(tmp_path, kind):
    path = tmp_path / "large"
    count = 2000
    with path.open("wb") as file:
        if kind == "chatgpt":
            one = dumped(chatgpt(said="tea " * 25_000))
            file.write(b"[" + b",".join([one] * count) + b"]")
        else:
            for day in range(count):
                date = f"{1 + day % 28:02}.{1 + day // 28 % 12:02}.{2010 + day // 336}"
                file.write(f"{date}, 12:00 - Ada: {'tea ' * 250}\n".encode() * 100)
    assert path.stat().st_size > 190_000_000
    call = [sys.executable, "-c", LARGE, path]
    done = subprocess.run(call, capture_output=True, text=True, check=True)
    found, kilobytes = map(int, done.stdout.split())
    assert found == count
    assert kilobytes < 60_000


def turns_of(user, thread):
    async def work():
        async with get_store("sqlite:./locus.db") as store:
            space = Scope(("locus_memory", "users", user)).transcript(thread)
            found = [(each.value["text"], each.metadata) for each in await store.scan(space, 100)]
            return [(text, meta["speaker"], meta["date"][:16]) for text, meta in found]

    return asyncio.run(work())


def test_what_the_user_said_is_the_users(ok, write):
    """It has the moment of its message; a second time, nothing is new."""
    call = ("ingest", write("conversations.json", [chatgpt(), claude()]), "--user", "ada", "--json")
    done = ok(*call).json
    assert [(row["turns"], row["saved"]) for row in done["threads"]] == [(2, 2), (2, 2)]
    assert [row["recorded"] for row in done["conversations"]] == [2, 2]
    (memory,) = ok("memories", "--user", "ada", "--origin", "user", "--json").json["memories"]
    assert (memory["key"], memory["since"][:10]) == ("allergy:peanuts", "2024-05-01")
    assert turns_of("ada", "g") == [
        (SAID, "user", "2024-05-01T12:00"),
        ("Noted.", "assistant", "2024-05-02T13:00"),
    ]
    again = ok(*call).json
    sums = ("saved", "stored", "recorded", "episodes", "facts", "pending")
    assert [again[name] for name in sums] == [0] * len(sums)


def test_a_chat_of_people(run, ok, write):
    path = write("chat.txt", WHATSAPP["german"].format(SAID))
    refused = run("ingest", path, "--user", "ada")
    assert refused.code == 1
    assert "the speakers are 'Ada', 'Bo B'" in refused.err
    ok("ingest", path, "--user", "ada", "--me", "Ada")
    (memory,) = ok("memories", "--user", "ada", "--json").json["memories"]
    assert memory["key"] == "allergy:peanuts"
    assert [speaker for _, speaker, _ in turns_of("ada", "chat-2024-05-01")] == ["user", "Bo B"]


def test_the_words_of_others_are_not_the_users(ok, write):
    ok("ingest", write("c.txt", WHATSAPP["iso"].format(SAID)), "--user", "bo", "--me", "bo b")
    listed = ok("memories", "--user", "bo", "--origin", "user", "--json").json
    assert listed["memories"] == []


def test_a_bad_conversation_is_named_and_the_rest_goes_on(run, write):
    result = run("ingest", write("c.json", [chatgpt("a"), None, chatgpt("b")]), "--json")
    assert result.code == 1
    assert [row["thread_id"] for row in result.json["threads"]] == ["a", "b"]
    assert "conversation 2: not an object" in result.json["unread"][0]


@pytest.mark.parametrize("wanted", ["threads", "memories"])
def test_a_part_can_be_chosen(ok, write, wanted):
    done = ok("ingest", write("c.json", [chatgpt()]), f"--{wanted}", "--json").json
    assert (done["saved"], done["recorded"]) == ((2, 0) if wanted == "threads" else (0, 2))


def test_an_archive_of_an_export_is_read(ok, run, write):
    content = zipped(conversations_json=dumped([chatgpt()]), user_json=b"{}")
    assert ok("ingest", write("export.zip", content), "--json").json["saved"] == 2
    chat = zipped(_chat_txt=WHATSAPP["iso"].format(SAID))
    assert ok("ingest", write("chat.zip", chat), "--me", "Ada", "--json").json["saved"] == 3
    assert run("ingest", write("broken.zip", content[:90])).code == 1


def test_after_a_crash_the_rest_is_taken_in(run, ok, write, monkeypatch):
    """Whatever was written when it stopped, the next call completes it."""
    path = write("c.json", [chatgpt("a"), chatgpt("b"), chatgpt("c")])
    call = ("ingest", path, "--user", "ada", "--json")
    from locus_memory.memory.manager import LLMMemoryManager  # noqa: PLC0415 - it is slow to load

    whole = LLMMemoryManager.ingest

    async def stops(self, agent, name, turns, **options):
        if name == "b":
            raise MemoryError
        return await whole(self, agent, name, turns, **options)

    with monkeypatch.context() as patch:
        patch.setattr(LLMMemoryManager, "ingest", stops)
        assert run(*call).code == 1
    done = ok(*call).json
    assert (done["saved"], done["recorded"]) == (2, 4)
    assert [row["recorded"] for row in done["conversations"]] == [0, 2, 2]
    assert len(turns_of("ada", "b")) == 2


def test_the_other_name_says_so(ok):
    assert "Another name of `ingest`." in ok("import", "--help").out


@pytest.mark.parametrize(
    "name", ["trace_id", "run_type", "parent_run_id", "mapping", "turns", "sessions"]
)
def test_a_field_of_any_name_keeps_no_message_out(name):
    found = read(dumped([{**MESSAGES[0], name: "x"}, *MESSAGES[1:]]))
    assert (len(found[0]["f"].messages), found[1]) == (len(MESSAGES), [])
    whole = {"id": "a", "messages": MESSAGES}
    assert list(read(lines({**whole, name: 1}, {**whole, "id": "b"}))[0]) == ["a", "b"]


BIG = b"123456789012345678901234567890"


@pytest.mark.parametrize("joined", [b"[%s,%s]", b"%s\n%s\n", b'{"conversations": [%s, %s]}'])
def test_a_number_or_half_a_character_concerns_its_entry_only(joined):
    unused = dumped(chatgpt("a")).replace(b"{", b'{"x": %s,' % BIG, 1)
    half = dumped(chatgpt("b", said="tea @")).replace(b"@", b"\\ud83d")
    assert list(read(joined % (half, unused))[0]) == ["b", "a"]
    kept = b'{"id": "k", "messages": [{"role": "user", "content": "x", "n": %s}]}' % BIG
    found, [why] = read(joined % (kept, half))
    assert list(found) == ["b"]
    assert "message 1: it has an integer of more than 64 bits" in why


def test_an_entry_that_is_too_large_is_named(monkeypatch):
    monkeypatch.setattr(entries, "SMALL", 2**16)
    monkeypatch.setattr(entries, "LARGEST", 2**20)
    for joined in (b"[%s,%s,%s]", b"%s\n%s\n%s\n"):
        large = dumped(chatgpt("l", said="x" * 2**20))
        found, [why] = read(joined % (dumped(chatgpt("a")), large, dumped(chatgpt("b"))))
        assert list(found) == ["a", "b"]
        assert "it is larger than 1 MB" in why


def test_deep_nesting_takes_linear_time():
    began = time.perf_counter()
    assert read(b"[" * 200_000)[1]
    assert time.perf_counter() - began < 5


def test_a_thread_of_messages_keeps_its_older_name():
    for name in ("uuid", "conversation_id"):
        assert list(read(dumped({name: "u", "messages": MESSAGES}))[0]) == ["f"]


def test_an_archive_names_its_chats(run, ok, write):
    chat = zipped(**{"_chat_txt": WHATSAPP["iso"].format(SAID), "__MACOSX/._chat_txt": b"\xff"})
    done = ok("ingest", write("Bob.zip", chat), "--me", "Ada", "--json").json
    assert done["threads"][0]["thread_id"].startswith("Bob-2024")


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_damaged_archive_is_named(run, write, method):
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", method) as archive:
        archive.writestr("_chat.txt", WHATSAPP["iso"].format(SAID) * 100)
    content = bytearray(made.getvalue())
    content[60] ^= 0xFF
    content[70] ^= 0xFF
    assert (
        "_chat.txt: the ZIP archive is damaged"
        in run("ingest", write("x.zip", bytes(content)), "--me", "Ada").err
    )
    content[8] = content[content.rfind(b"PK\x01\x02") + 10] = 9
    assert "x.zip, _chat.txt: " in run("ingest", write("x.zip", bytes(content)), "--me", "Ada").err


def test_every_file_is_looked_at_before_anything_is_written(fails, write):
    chat = write("c.json", MESSAGES)
    assert "takes one FILE" in fails(2, "ingest", chat, write("p.zip", zipped(photo=b"x")))
    assert "no.json" in fails(1, "ingest", chat, "no.json")
    assert "no database" in fails(1, "threads")


def test_a_caption_that_is_no_text_is_kept(ok, write):
    message = {"role": "user", "content": "x", "metadata": {"image_caption": {"a": 1}}}
    assert ok("ingest", write("c.json", [message]), "--threads", "--json").json["saved"] == 1


def test_what_is_off_the_record_makes_no_memory(ok, write):
    """A message, one of LangChain, and a conversation; the places of the others stay."""
    off = {"remember": False}
    said = [
        {"role": "user", "content": "I live in Graz.", "metadata": off},
        {"type": "human", "content": "I live in Wien.", "additional_kwargs": off},
        {"role": "user", "content": SAID},
    ]
    whole = {"id": "b", "metadata": off, "messages": MESSAGES}
    path = write("c.json", [{"id": "a", "messages": said}, whole])
    done = ok("ingest", path, "--user", "ada", "--memories", "--json").json
    assert [row["recorded"] for row in done["conversations"]] == [1, 0]
    assert [text for text, *_ in turns_of("ada", "a")] == [SAID]
    assert turns_of("ada", "b") == []
    done = ok("ingest", path, "--threads", "--json").json
    assert [(row["saved"], row["stored"]) for row in done["threads"]] == [(3, 1), (2, 0)]
    on = [{**each, "metadata": {}, "additional_kwargs": {}} for each in said]
    path = write("c.json", [{"id": "a", "messages": on}])
    assert ok("ingest", path, "--user", "ada", "--memories", "--json").json["recorded"] == 2


def test_what_cannot_be_read_is_counted(run, write):
    done = run("ingest", write("c.json", [chatgpt(), *[7] * 150]), "--json")
    assert (done.code, done.json["left_out"], len(done.json["unread"])) == (1, 150, 100)
    assert done.err.count("not an object") == 100


def test_a_message_without_end_is_refused(monkeypatch):
    monkeypatch.setattr(speakers, "LARGEST", 1000)
    head = b"25/12/2023, 22:00 - Bob: Hi.\n"
    assert len(read(head + b"more\n" * 150, me="Bob")[0]) == 1
    [why] = read(head + b"more\n" * 250, me="Bob")[1]
    assert "a message is larger than" in why


def test_runs_are_their_users():
    """A thread of two users is two conversations, and what is off the record stays so."""

    def of(user, hour, **more):
        about = {"thread_id": 7, "user_id": user, **more}
        return run_of(user, hour, {"input": SAID}, {"output": "Ok."}, extra={"metadata": about})

    found = read(lines(of("bo", 13), of(5, 12), of("bo", 14, remember=False)))[0]
    owners = [(name, each.metadata["user_id"]) for name, each in found.items()]
    assert owners == [("7", "5"), ("7-bo", "bo")]
    marks = [each["metadata"].get("remember") for each in found["7-bo"].messages]
    assert marks == [None, None, False, False]


def test_the_words_of_another_agent_are_not_the_users():
    """A run begins at the message of its inputs; other names in its outputs are agents."""
    state = [
        {"type": "human", "content": "Hi.", "id": "1"},
        {"type": "ai", "content": "Hello.", "id": "2"},
        {"type": "human", "content": SAID, "id": "3"},
        {"type": "human", "content": "Noted.", "name": "doctor", "id": "4"},
        {"type": "ai", "content": "Done.", "id": "5"},
    ]
    run = run_of("g", 12, {"messages": [HUMAN]}, {"messages": state})
    said = [(each["role"], each["content"]) for each in read(lines(run))[0]["t"].messages]
    assert said == [("user", SAID), ("assistant", "Noted."), ("assistant", "Done.")]


def test_the_only_speaker_need_not_be_the_user():
    [why] = read(b"25/12/2023, 22:00 - Bob: Hi.\n")[1]
    assert "name one with --me; the speakers are 'Bob'" in why


DATED = {
    "a quoted line": (("25/12/2023, 22:00", "25/12/2023, 21:00", "25/12/2023, 22:01"), "12-25"),
    "a later day decides": (("03/04/2023, 10:00 PM", "25/04/2023, 10:00 PM"), "04-03"),
    "short and of anywhere": (("03/04/2023, 10:00 pm", "04/04/2023, 10:00 pm"), "04-03"),
    "short and American": (("3/4/23, 10:00 PM", "4/4/23, 10:00 PM"), "03-04"),
    "days that go back": (("3/4/23, 22:00", "4/3/23, 22:00"), "03-04"),
    "one date of no calendar": (
        ("13/04/2023, 9:00", "12/31/2023, 9:00", "14/04/2023, 9:00"),
        "04-13",
    ),
}


@pytest.mark.parametrize("name", DATED)
def test_dates_are_read_in_the_order_in_which_most_are_dates(name):
    moments, day = DATED[name]
    content = "".join(f"{each} - Ada: Hi.\n" for each in moments).encode()
    assert next(iter(read(content, me="Ada")[0])) == f"f-2023-{day}"


def test_a_current_node_that_is_no_name_is_none():
    assert list(read(dumped([chatgpt(current_node=[])]))[0]) == ["g"]


def test_marks_of_turns_that_others_wrote_lose_nothing(ok, write):
    mark = {"locus_memory.turn": 1}
    said = [{"role": "user", "content": each, "metadata": mark} for each in ("One.", "Two.")]
    call = {"id": "1", "function": {"name": "f", "arguments": "{}"}}
    calls = {"role": "assistant", "tool_calls": [call], "metadata": {"locus_memory.turn": 2}}
    path = write("c.json", [{"id": "a", "messages": [*said, calls]}])
    ok("ingest", path, "--user", "ada", "--memories")
    assert [text for text, *_ in turns_of("ada", "a")] == ["One.", "Two."]
