"""The place of memories: a user, and a namespace that is not the server's."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from starlette.responses import Response
from typing_extensions import override

from locus_memory.inspection.names import format_namespace
from locus_memory.web.models import UserAsked
from locus_memory.web.pages.frame.visit import Visit
from locus_memory.web.questions.data import Data

__all__ = ["MemoriesAddress", "MemoriesVisit"]


class MemoriesAddress(UserAsked):
    """Which memories a page is about."""

    namespace: tuple[str, ...] = ()
    """Their namespace; by default that of the server."""


class MemoriesVisit(Visit):
    """A visit of a page about the memories of a user, in the server's namespace or another one.

    Raises:
        ValidationError: The fields of the visit name no place.
    """

    @cached_property
    def named(self) -> MemoriesAddress:
        """What the fields of the visit name."""
        return self.asked(MemoriesAddress)

    @property
    @override
    def data(self) -> Data:
        """The data, with this namespace as that of the memories.

        Raises:
            InvalidNamespaceError: The namespace is not valid.
        """
        return self._memories

    @cached_property
    def _memories(self) -> Data:
        namespace = self.named.namespace
        return super().data.under(namespace) if namespace else super().data

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters that lead to the same place."""
        return self.named.model_dump()

    @property
    def title(self) -> str:
        """The name of the place, for a heading."""
        named = self.named
        scope = format_namespace(named.namespace) if named.namespace else ""
        return " in ".join(filter(None, [named.user or "no user", scope]))

    @override
    def render(self, template: str, *, status: int = 200, **values: Any) -> Response:
        """Return a page about these memories."""
        return super().render(template, status=status, place=self, **values)

    @override
    def go(self, path: str, said: str | None = None, /, **parameters: Any) -> Response:
        """Return an answer that leads to a page about these memories."""
        return super().go(path, said, **self.parameters, **parameters)
