"""The place of memories: a user, and a namespace that is not the server's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from starlette.responses import Response

from locus_memory.inspection.names import format_namespace
from locus_memory.store.item import Namespace
from locus_memory.web.models import UserAsked
from locus_memory.web.pages.frame.visit import Visit
from locus_memory.web.questions.data import Data

__all__ = ["Place", "PlaceAsked"]


class PlaceAsked(UserAsked):
    """Which memories a page is about."""

    namespace: tuple[str, ...] = ()
    """Their namespace; by default that of the server."""


@dataclass(frozen=True, slots=True)
class Place:
    """The memories that a page is about.

    Attributes:
        visit: The visit of the page.
        user: The user of the memories; `None`: none.
        namespace: Their namespace; empty: that of the server.
        data: The data, with this namespace as that of the memories.
    """

    visit: Visit
    user: str | None
    namespace: Namespace
    data: Data

    @classmethod
    def of(cls, visit: Visit) -> Self:
        """Return the place that the fields of a visit name.

        Raises:
            ValidationError: They name none.
            InvalidNamespaceError: The namespace is not valid.
        """
        asked = visit.asked(PlaceAsked)
        data = visit.data.under(asked.namespace) if asked.namespace else visit.data
        return cls(visit, asked.user, asked.namespace, data)

    @property
    def fields(self) -> dict[str, Any]:
        """The parameters that lead to the same place."""
        return {"user": self.user, "namespace": self.namespace}

    @property
    def title(self) -> str:
        """The name of the place, for a heading."""
        scope = format_namespace(self.namespace) if self.namespace else ""
        return " in ".join(filter(None, [self.user or "no user", scope]))

    def render(self, template: str, *, status: int = 200, **values: Any) -> Response:
        """Return a page about these memories."""
        return self.visit.render(template, status=status, place=self, **values)

    def go(self, path: str, said: str, /, **parameters: Any) -> Response:
        """Return an answer that leads to a page about these memories."""
        return self.visit.go(path, said, **self.fields, **parameters)
