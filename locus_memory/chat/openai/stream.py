"""Detection of the end of a stream, which the `openai` package does not report."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from typing import Any, Final

__all__ = ["EndListener"]

# At the start of a line: inside an answer's text, JSON escapes the line break.
_END: Final = re.compile(rb"[\r\n]data: ?\[DONE\]")
_LONGEST_END = 16


class EndListener:
    """The response of a stream that records whether its last event was `[DONE]`.

    It replaces the `httpx.Response` that an `openai.AsyncStream` reads from.

    Args:
        stream: The stream, which is not read yet; one of another class announces no end.

    Attributes:
        heard: Whether the end of the stream was announced.
    """

    def __init__(self, stream: Any) -> None:
        self.heard = False
        self._response: Any = getattr(stream, "response", None)
        if self._response is not None:
            stream.response = self

    async def aiter_bytes(self) -> AsyncIterator[bytes]:
        """Yield the bytes of the response."""
        last = b"\n"
        async for piece in self._response.aiter_bytes():
            last += piece
            self.heard = self.heard or _END.search(last) is not None
            last = last[-_LONGEST_END:]
            yield piece

    def __getattr__(self, name: str) -> Any:
        """Return the attribute of the response."""
        return getattr(self._response, name)
