"""The imports of what LangGraph's own savers and stores keep."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from locus_memory._internal.providers.drivers import require
from locus_memory.cli.foreign.family import Asked, Importer, Show
from locus_memory.cli.options.models import open_embedder
from locus_memory.inspection.names import format_namespace

if TYPE_CHECKING:
    from locus_memory.backends.base import Backend
    from locus_memory.integrations.langgraph.importing.items import CopiedItems, ItemSource
    from locus_memory.integrations.langgraph.importing.threads import Copied, Source
    from locus_memory.integrations.langgraph.threads import Place
    from locus_memory.store.item import Namespace

__all__ = ["saver_importer", "store_importer"]

_COLUMNS: Final = {
    "thread_id": "thread",
    "namespace": "namespace",
    "checkpoints": ">checkpoints",
    "writes": ">pending writes",
    "saved": ">new checkpoints",
}
_FAULTS: Final = {
    "missing": "{} checkpoints or writes are not there: another process removes them; run the "
    "import again when it has finished",
    "unreadable": "{} checkpoints cannot be read, and are left out: they are damaged, encrypted, "
    "pickled, or of a release of LangGraph before 0.3",
}
_ITEM_COLUMNS: Final = {
    "namespace": "namespace",
    "items": ">items",
    "saved": ">new items",
    "kept": ">newer there",
    "expired": ">expired",
}
_ITEM_FAULTS: Final = {"unreadable": "items that cannot be read are left out: {}"}


def saver_importer(asked: Asked) -> Importer[Any]:
    """Return the import of the threads of a saver."""
    require("langgraph.checkpoint.base", "langgraph", needed_by="the import of a saver")
    from locus_memory.integrations.langgraph.importing.threads import open_source  # noqa: PLC0415 - an extra

    async def copy(source: Source, backend: Backend, show: Show) -> list[Copied]:
        from locus_memory.integrations.langgraph.importing.threads import (  # noqa: PLC0415 - an extra
            import_threads,
        )

        def count(place: Place, completed: int) -> None:
            show(place.thread_id, completed)

        return await import_threads(source, backend, thread_id=asked.thread, on_checkpoint=count)

    return Importer(
        listed="threads",
        source=open_source(asked.where),
        copy=copy,
        columns=_COLUMNS,
        sums=("checkpoints", "writes", "saved", "unreadable", "missing"),
        faults=_FAULTS,
        only=asked.thread,
    )


def store_importer(asked: Asked) -> Importer[Any]:
    """Return the import of the items of a store."""
    require("langgraph.store.base", "langgraph", needed_by="the import of a store")
    from locus_memory.integrations.langgraph.importing.items import open_items  # noqa: PLC0415 - an extra

    index = None if asked.embedder is None else {"embed": open_embedder(asked.embedder)}

    async def copy(source: ItemSource, backend: Backend, show: Show) -> list[CopiedItems]:
        from locus_memory.integrations.langgraph.importing.items import (  # noqa: PLC0415 - an extra
            import_items,
        )

        def count(namespace: Namespace, completed: int) -> None:
            show(format_namespace(namespace), completed)

        return await import_items(source, backend, index=index, on_item=count)

    return Importer(
        listed="namespaces",
        source=open_items(asked.where),
        copy=copy,
        columns=_ITEM_COLUMNS,
        sums=("items", "saved", "kept", "expired", "unreadable"),
        faults=_ITEM_FAULTS,
    )
