"""Threads that a framework keeps with us: how they are named, and which of them people read."""

from __future__ import annotations

from locus_memory.integrations.langgraph.threads import Place

__all__ = ["Foreign"]


class Foreign:
    """LangGraph's threads among ours, told by their names; LangGraph need not be installed."""

    @staticmethod
    def hides(name: str) -> bool:
        """Whether a thread holds pending writes only, which belong to another thread."""
        place = Place.named(name)
        return place is not None and name == place.writes

    @staticmethod
    def parts(name: str) -> list[str]:
        """Return the threads that belong together with one, itself among them."""
        place = Place.named(name)
        return [name] if place is None or name != place.name else [place.name, place.writes]

    @staticmethod
    def beside(name: str, thread_id: str) -> str:
        """Return what a fork of a thread is called: LangGraph finds a fork of its own, too."""
        place = Place.named(name)
        if place is None or name != place.name or Place.named(thread_id) is not None:
            return thread_id
        return place.moved(thread_id).name

    @staticmethod
    def name_of(thread_id: str) -> str:
        """Return the thread that keeps the checkpoints of LangGraph's thread of an id."""
        return Place.at(thread_id, "").name
