from enum import Enum
from types import SimpleNamespace

import pytest

from locus_memory.conversation.roles import is_memory_block, role_of
from locus_memory.memory.inject import inject
from locus_memory.messages import Message


class Plain(Enum):
    DEVELOPER = "developer"
    USER = "user"


@pytest.mark.parametrize(
    ("role", "expected"),
    [
        ("user", "user"),
        ("developer", "system"),
        (Plain.USER, "user"),
        (Plain.DEVELOPER, "system"),
        (Message.assistant("x").role, "assistant"),
    ],
)
def test_roles(role, expected):
    assert role_of(SimpleNamespace(role=role)) == expected


def test_what_a_memory_manager_injects_is_a_block():
    messages = [Message.system("be brief"), Message.user("hello")]
    assert [is_memory_block(m) for m in inject(messages, "facts")] == [False, True, False]
    assert not is_memory_block(SimpleNamespace(role="user"))
