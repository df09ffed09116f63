"""Files of the shapes that people export, made by code."""

from __future__ import annotations

import io
import json
import zipfile

NOON = 1_714_564_800  # 2024-05-01T12:00:00Z
SAID = "I am allergic to peanuts."


def node(name, parent, message=None):
    return {name: {"id": name, "parent": parent, "children": [], "message": message}}


def gpt_message(name, role, text, at=NOON, **more):
    content = {"content_type": "text", "parts": [text]}
    author = {"role": role, "name": None, "metadata": {}}
    return {"id": name, "author": author, "create_time": at, "content": content, **more}


def chatgpt(name="g", *, said=SAID, **more):
    """Return a conversation of ChatGPT whose first answer was made anew."""
    hidden = {"is_visually_hidden_from_conversation": True}
    mapping = {
        **node("root", None),
        **node("sys", "root", gpt_message("sys", "system", "Be kind.", metadata=hidden)),
        **node("u", "sys", gpt_message("u", "user", said)),
        **node("old", "u", gpt_message("old", "assistant", "Old.", NOON + 1)),
        **node("tool", "u", gpt_message("tool", "assistant", "search()", recipient="web")),
        **node("new", "tool", gpt_message("new", "assistant", "Noted.", NOON + 90_000)),
    }
    about = {"title": "Food", "create_time": NOON, "conversation_id": name, "id": name}
    return {**about, "current_node": "new", "mapping": mapping, **more}


def claude(name="c", *, said=SAID):
    """Return a conversation of Claude."""

    def message(sender, text, content):
        about = {"uuid": f"{sender}-1", "sender": sender, "created_at": "2024-05-01T12:00:00Z"}
        return {**about, "text": text, "content": content}

    answer = [{"type": "thinking"}, {"type": "text", "text": "Noted."}]
    return {
        "uuid": name,
        "name": "Food",
        "created_at": "2024-05-01T12:00:00.000000Z",
        "chat_messages": [
            message("human", said, []),
            message("assistant", "", answer),
        ],
    }


def run(name, start, inputs, outputs, **more):
    """Return a run of LangSmith."""
    extra = {"metadata": {"thread_id": "t"}}
    about = {"id": name, "trace_id": name, "run_type": "chain", "parent_run_id": None}
    start = f"2024-05-01T{start}:00:00"
    return {
        **about,
        "start_time": start,
        "extra": extra,
        "inputs": inputs,
        "outputs": outputs,
    } | more


HUMAN = {"type": "human", "content": SAID}
STORED = {
    "lc": 1,
    "type": "constructor",
    "id": ["langchain", "schema", "messages", "AIMessage"],
    "kwargs": {"content": [{"type": "text", "text": "Noted."}], "tool_calls": []},
}
RUNS = [
    run("b", 13, {"messages": [[HUMAN]]}, {"generations": [[{"text": "x", "message": STORED}]]}),
    run("a", 12, {"input": "Hello"}, {"output": "Ahoy"}),
    run("x", 12, {}, {}, parent_run_id="a"),
]

WHATSAPP = {
    "american": "5/1/24, 9:05 PM - Ada: {0}\n5/1/24, 9:06\u202fPM - Bo B: Noted.\n"
    "5/13/24, 0:10 AM - Bo B: Hi.\n",
    "german": "01.05.24, 21:05 - Ada: {0}\n01.05.24, 21:06 - Bo B: Noted.\n"
    "13.05.24, 00:10 - Bo B: Hi.\n",
    "iphone": "\ufeff[01/05/2024, 21:05:10] Ada: {0}\r\n[01/05/2024, 21:05:11] Bo B: Noted.\r\n"
    "\u200e[02/05/2024, 21:06:10] Ada: \u200eimage omitted\r\n[13/05/2024, 00:10:00] Bo B: Hi.\r\n",
    "iso": "[2024-05-01 21:05:10] Ada: {0}\n[2024-05-01 21:06:10] Bo B: Noted.\n"
    "[2024-05-13 00:10:00] Bo B: Hi.\n",
}
SLACK = (
    "\n> Ada [U1] @ 01/05/2024 21:05:10 Z:\n{0}\n\n> Bo B [U2] @ 01/05/2024 21:06:10 Z:\nNoted.\n"
)
COPIED = "Ada  9:05 PM\n{0}\nBo B [21:06]\nNoted.\n"

MESSAGES = [{"role": "user", "content": SAID}, {"role": "assistant", "content": "Noted."}]


def dumped(value):
    return json.dumps(value).encode()


def lines(*values):
    return b"\n".join(map(dumped, values))


def zipped(**files):
    """Return a ZIP archive."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name, content in files.items():
            archive.writestr(name.replace("_json", ".json").replace("_txt", ".txt"), content)
    return made.getvalue()
