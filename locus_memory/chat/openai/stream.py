"""Listening for the end of a stream, which the `openai` package keeps to itself."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from typing import Any, Final

__all__ = ["EndListener"]

# At the start of a line: within the text of an answer, JSON would have escaped the line break.
_END: Final = re.compile(rb"[\r\n]data: ?\[DONE\]")
_LONGEST_END = 16


class EndListener:
    """The response of a stream, that notes whether its last event was `[DONE]`.

    It takes the place of the `httpx.Response` that an `openai.AsyncStream` reads from.

    Args:
        response: The response itself.

    Attributes:
        heard: Whether the end was announced.
    """

    def __init__(self, response: Any) -> None:
        self.heard = False
        self._response = response

    @classmethod
    def put_on(cls, stream: Any) -> EndListener:
        """Listen to a stream that was not read from yet; nothing is heard of a foreign one."""
        listener = cls(getattr(stream, "response", None))
        if hasattr(stream, "response"):
            stream.response = listener
        return listener

    async def aiter_bytes(self) -> AsyncIterator[bytes]:
        """Yield what the response yields."""
        last = b"\n"
        async for piece in self._response.aiter_bytes():
            last += piece
            self.heard = self.heard or _END.search(last) is not None
            last = last[-_LONGEST_END:]
            yield piece

    def __getattr__(self, name: str) -> Any:
        """Return what the response has of that name."""
        return getattr(self._response, name)
