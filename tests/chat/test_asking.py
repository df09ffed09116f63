from __future__ import annotations

from locus_memory.chat.asking import ask, takes_tools
from locus_memory.chat.base import INVALID_ARGUMENTS, ToolSpec
from locus_memory.chat.storable import storable
from locus_memory.messages import Message, ToolCall

ADD = ToolSpec("add", "Adds.", {"type": "object"})


class Takes:
    async def __call__(self, messages, /, *, tools):
        return Message.assistant(f"{len(tools)} tools")


class Hides:
    __signature__ = "nothing of the kind"

    async def __call__(self, messages):
        return Message.assistant("Hi.")


def test_who_takes_tools():
    async def plain(messages):
        """Only talk."""

    async def named(messages, tools=()):
        """Take them by name."""

    async def any_(messages, **options):
        """Take anything."""

    async def other(messages, *tools):
        """Take something else of that name."""

    async def placed(tools, /):
        """Take something else of that name."""

    assert [takes_tools(each) for each in (plain, named, any_, other, placed, Takes())] == [
        *(False, True, True, False, False),
        True,
    ]
    assert takes_tools(Hides())


async def test_tools_are_handed_over_where_there_are_any():
    assert (await ask(Takes(), [], [ADD])).content == "1 tools"

    async def plain(messages):
        return Message.assistant("Hi.")

    assert (await ask(plain, [])).content == "Hi."


async def test_pieces_of_any_iterator():
    class Pieces:
        def __init__(self):
            self.left = ["Hi", "", " there", Message.assistant("Hi there")]

        def __aiter__(self):
            return self

        async def __anext__(self):
            if not self.left:
                raise StopAsyncIteration
            return self.left.pop(0)

    class Model:
        async def __call__(self, messages):
            raise AssertionError

        def stream(self, messages):
            return Pieces()

    heard = []
    answer = await ask(Model(), [], on_text=heard.append)
    assert (answer.content, heard) == ("Hi there", ["Hi", " there"])


async def test_an_answer_that_can_be_saved_is_the_same():
    given = Message(
        role="assistant",
        content="Grüß dich 👋",
        tool_calls=(ToolCall(name="add", arguments={"a": [1, None]}),),
        metadata={"finish_reason": "stop", INVALID_ARGUMENTS: {"c": "no JSON"}},
    )
    call = given.tool_calls[0].model_copy(update={"id": "c"})
    given = given.model_copy(update={"tool_calls": (call,)})
    assert storable(given) is given
