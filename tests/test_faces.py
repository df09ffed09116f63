"""The types of blocking faces name every method there is, and none that is not."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import pytest

from locus_memory import faces
from locus_memory.agent.loop import Agent
from locus_memory.backends.base import Backend
from locus_memory.checkpoint.base import BaseCheckpointer
from locus_memory.conversation.base import NullManager
from locus_memory.documents.index import DocumentIndex
from locus_memory.memory.base import NoopMemoryManager
from locus_memory.memory.manager import LLMMemoryManager
from locus_memory.registry import get_checkpointer, get_store, open_backend
from locus_memory.resources.backends.handle import MemoryStoreHandle
from locus_memory.resources.tree import MemoryTree
from locus_memory.store.base import BaseStore
from locus_memory.sync import Blocking, Bridge, blocking

CLASSES = {
    "BlockingAgent": Agent,
    "BlockingBackend": Backend,
    "BlockingCheckpointer": BaseCheckpointer,
    "BlockingDocumentIndex": DocumentIndex,
    "BlockingMemoryManager": LLMMemoryManager,
    "BlockingMemoryStore": MemoryStoreHandle,
    "BlockingMemoryTree": MemoryTree,
    "BlockingStore": BaseStore,
}


def typed_names(face):
    """Return the names that a type checker knows of a face, and what each is taken from."""
    tree = ast.parse(Path(faces.__file__).read_text())
    classes = {each.name: each for each in tree.body if isinstance(each, ast.ClassDef)}
    parts = [
        classes[face],
        *(classes[each.id] for each in classes[face].bases if each.id in classes),
    ]
    known = [
        row for part in parts for each in part.body if isinstance(each, ast.If) for row in each.body
    ]
    names = {}
    for each in known:
        if isinstance(each, ast.Assign):
            names[each.targets[0].id] = ast.unparse(each.value)
        else:
            names[each.target.id if isinstance(each, ast.AnnAssign) else each.name] = None
    return names


@pytest.mark.parametrize(("face", "kind"), CLASSES.items())
def test_every_method_is_typed_as_itself(face, kind):
    names = typed_names(face)
    for name, source in names.items():
        assert name in kind.__annotations__ or hasattr(kind, name), name
        if source is not None:
            method = inspect.getattr_static(kind, name)
            verb = "_Blocks" if inspect.iscoroutinefunction(method) else "_Yields"
            assert source.startswith(f"{verb}("), source
            assert source.endswith(f".{name})"), source
    there = {
        name
        for name in dir(kind)
        if not name.startswith("_") and inspect.iscoroutinefunction(getattr(kind, name))
    }
    assert there <= set(names)


def test_a_face_is_of_the_class_that_its_type_says():
    with Bridge() as bridge:
        for target, face in (
            ("memory", faces.BlockingStore),
            (get_store("memory"), faces.BlockingStore),
            (get_checkpointer("memory"), faces.BlockingCheckpointer),
            (open_backend("memory"), faces.BlockingBackend),
            (NoopMemoryManager(), faces.BlockingMemoryManager),
            (DocumentIndex("memory"), faces.BlockingDocumentIndex),
            (MemoryTree("memory"), faces.BlockingMemoryTree),
            (NullManager(), Blocking),
        ):
            assert type(blocking(target, bridge=bridge)) is face
        with blocking(open_backend("memory"), bridge=bridge) as backend:
            assert type(backend.store) is faces.BlockingStore
            assert type(backend.checkpointer) is faces.BlockingCheckpointer
        with blocking(LLMMemoryManager("memory"), bridge=bridge) as memory:
            assert type(memory.for_user("ada")) is faces.BlockingMemoryManager
            assert list(memory.for_user("ada").memories()) == []


def test_documents_are_indexed_and_found_without_await(tmp_path):
    (tmp_path / "rig.txt").write_text("The mast is of spruce.")
    with Bridge() as bridge, blocking(DocumentIndex("memory"), bridge=bridge) as index:
        assert index.add_path(tmp_path).added == 1
        assert [each.source for each in index.retrieve("mast")] == ["rig.txt"]
        assert [each.chunks for each in index.sources()] == [1]
        assert index.delete_source("rig.txt") == 1
        assert index.retrieve("mast") == []
