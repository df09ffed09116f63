"""Methods of classes that are replaced, and put back."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any

__all__ = ["Patches", "Wrap"]

Wrap = Callable[[Callable[..., Any]], Callable[..., Any]]
"""Returns the method to use in place of an original one."""


class Patches:
    """Replaced methods; `undo` puts the original ones back."""

    def __init__(self) -> None:
        self._undoing: list[Callable[[], None]] = []
        self._replaced: set[tuple[type[Any], str]] = set()

    def replace(
        self,
        root: type[Any],
        wraps: Mapping[str, Wrap],
        is_left_out: Callable[[type[Any]], bool] = lambda _: False,
    ) -> None:
        """Wrap async methods of a class and of its subclasses, those defined later included.

        A method that is wrapped already stays as it is.

        Args:
            root: The class.
            wraps: How to wrap the methods, by name; a class that does not define one inherits it.
            is_left_out: Whether the methods of a class stay as they are.
        """

        def patch(kind: type[Any]) -> None:
            if not is_left_out(kind):
                for name, wrap in wraps.items():
                    self._replace(kind, name, wrap)

        for kind in _family(root):
            patch(kind)

        def noted(cls: type[Any], /, **keywords: Any) -> None:
            super(root, cls).__init_subclass__(**keywords)
            patch(cls)

        self._set(root, "__init_subclass__", classmethod(noted))

    def undo(self) -> None:
        """Put the original methods back."""
        while self._undoing:
            self._undoing.pop()()

    def _replace(self, kind: type[Any], name: str, wrap: Wrap) -> None:
        method = vars(kind).get(name)
        if (kind, name) in self._replaced or not inspect.iscoroutinefunction(method):
            return
        if not getattr(method, "__isabstractmethod__", False):
            self._replaced.add((kind, name))
            self._set(kind, name, wrap(method))

    def _set(self, kind: type[Any], name: str, value: object) -> None:
        if name in vars(kind):
            original = vars(kind)[name]
            self._undoing.append(lambda: setattr(kind, name, original))
        else:
            self._undoing.append(lambda: delattr(kind, name))
        setattr(kind, name, value)


def _family(root: type[Any]) -> Iterator[type[Any]]:
    """Yield a class and all its subclasses, each once."""
    seen: set[type[Any]] = set()
    waiting = [root]
    while waiting:
        kind = waiting.pop()
        if kind not in seen:
            seen.add(kind)
            waiting += kind.__subclasses__()
            yield kind
