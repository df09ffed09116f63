"""Drafts of records: that of a large state is made off the event loop."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from locus_memory._internal.offload import in_thread
from locus_memory.checkpoint.encoding.encode import Draft
from locus_memory.checkpoint.encoding.large_states import freeze, is_large
from locus_memory.checkpoint.states import Written

__all__ = ["drafted_by"]


async def drafted_by(work: Callable[..., Draft], written: Written, *, compared: bool) -> Draft:
    """Return the draft that `work` creates from the current state.

    A small state is processed at once. A large one is copied at once, and the copy is processed
    in another thread, while the caller may change the state.

    Args:
        work: Creates the draft of a document; it owns the copy of a large one.
        written: The state.
        compared: Whether it is compared with the previous state, rather than written as a whole.

    Raises:
        ValueNotSerializableError: The state is not JSON; the error names the path.
    """
    if written.is_owned:
        owned = partial(work, written.document, is_owned=True)
        is_long = is_large(written.document, compared=compared)
        return await in_thread(owned) if is_long else owned()
    document, shared = written.document, {key: written.document[key] for key in written.shared}
    own = {k: v for k, v in document.items() if k not in shared} if shared else document
    frozen = freeze(own) if is_large(own, compared=compared) else None
    if frozen is None:
        return work(document)
    return await in_thread(lambda: work(frozen.checked(shared), is_owned=True))
