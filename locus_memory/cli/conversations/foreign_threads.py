"""Threads that a framework stores with this library: their names and their parts."""

from __future__ import annotations

from locus_memory.integrations.langgraph.threads import Place

__all__ = ["Foreign"]


class Foreign:
    """Threads of LangGraph, recognized by their names; LangGraph need not be installed."""

    @staticmethod
    def hides(name: str) -> bool:
        """Return whether a thread holds only the pending writes of another thread."""
        place = Place.named(name)
        return place is not None and name == place.writes

    @staticmethod
    def parts(name: str) -> list[str]:
        """Return a thread and the threads that belong to it."""
        place = Place.named(name)
        return [name] if place is None or name != place.name else [place.name, place.writes]

    @staticmethod
    def beside(name: str, thread_id: str) -> str:
        """Return the name of a fork, so that LangGraph finds the fork of its own thread."""
        place = Place.named(name)
        if place is None or name != place.name or Place.named(thread_id) is not None:
            return thread_id
        return place.moved(thread_id).name

    @staticmethod
    def name_of(thread_id: str) -> str:
        """Return the thread with the checkpoints of the LangGraph thread with this id."""
        return Place.at(thread_id, "").name
