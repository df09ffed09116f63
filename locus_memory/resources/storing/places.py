"""Where the parts of a tree are in its store."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from locus_memory.documents.layout import digest_of
from locus_memory.resources.uri import MemoryURI
from locus_memory.store.item import Namespace, check_identifier, check_namespace

__all__ = ["Path", "Places", "name_of_task"]

Path = tuple[str, ...]
"""The segments of a URI."""

_USERS: Final = "users"


@dataclass(frozen=True, slots=True)
class Places:
    """The namespaces of one tree: each part has a label, and the segments of a path follow it.

    Segments become labels and keys unchanged, so two paths never share an item. No label is one of
    a memory manager's, which may have the same prefix.

    Attributes:
        root: The prefix of all of them.
    """

    root: Namespace

    @classmethod
    def of(cls, prefix: Namespace, user_id: str | None) -> Places:
        """Return the places of a tree; those of a user are where `forget(user_id=)` erases.

        Raises:
            InvalidArgumentError: The prefix is no namespace, or the user id no name.
        """
        check_namespace(prefix)
        if user_id is None:
            return cls(prefix)
        return cls((_USERS, check_identifier(user_id, "a user id"), *prefix))

    def node(self, path: Path) -> tuple[Namespace, str]:
        """Return the item of an entry or of a folder, which is not the root."""
        return self.children(path[:-1]), path[-1]

    def children(self, path: Path) -> Namespace:
        """Return the namespace of the children of a folder, by name."""
        return (*self.root, "tree", *path)

    def chunks(self, path: Path) -> Namespace:
        """Return the namespace of the chunks of an entry, or the parent of those of a folder."""
        return (*self.root, "chunks", *path)

    def history(self, path: Path) -> Namespace:
        """Return the namespace of the past versions of an entry, by number."""
        return (*self.root, "versions", *path)

    def levels(self, path: Path) -> tuple[Namespace, str]:
        """Return the namespace and the key of the item with the levels of a folder."""
        return (*self.root, "folders", *path), "folder"

    @property
    def tasks(self) -> Namespace:
        """The namespace of the entries whose levels or vectors are still to be made."""
        return (*self.root, "tasks")

    @property
    def sessions(self) -> Namespace:
        """The namespace of the cursors of committed sessions, by their ids."""
        return (*self.root, "commits")


def name_of_task(path: Path) -> str:
    """Return the key of the task of an entry: short, whatever the path."""
    return digest_of(str(MemoryURI(path)))
