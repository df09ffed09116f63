"""A store and checkpoints over one `dbm` file: a whole backend, for `docs/writing-a-backend.md`."""

import dbm.dumb
import threading
import time
from base64 import b64decode, b64encode
from contextlib import contextmanager
from dataclasses import asdict, replace
from datetime import timedelta

from locus_memory import (
    BackendClosedError,
    DeltaCheckpointer,
    DeltaStorage,
    Put,
    StoreCapabilities,
    StoreItem,
    VersionConflictError,
)
from locus_memory.backends.base import PairedBackend
from locus_memory.backends.checked_store import CheckedStore
from locus_memory.checkpoint import UNSET
from locus_memory.checkpoint.record import Record
from locus_memory.checkpoint.storage import (
    check_parent,
    check_replacement,
    newest_first,
    page_of,
)
from locus_memory.store.filters import matches
from locus_memory.store.item import Restored, check_text, timestamp
from locus_memory.store.json_values import decode_json, encode_json, encode_metadata
from locus_memory.store.listing import keys_in_range


class DbmFile:
    """Keys and values in a file, which all who open it in this process share."""

    shared = {}
    lock = threading.Lock()

    def __init__(self, path):
        self._path, self._data, self._closed = str(path), None, False

    @contextmanager
    def use(self):
        with self.lock:
            if self._closed:
                raise BackendClosedError(f"dbm {self._path}: used after close()")
            if self._data is None:
                if self._path not in self.shared:
                    self.shared[self._path] = dbm.dumb.open(self._path, "c"), 0
                self._data, users = self.shared[self._path]
                self.shared[self._path] = self._data, users + 1
            yield self._data

    def close(self):
        with self.lock:
            self._closed, data, self._data = True, self._data, None
            if data is not None:
                users = self.shared.pop(self._path)[1] - 1
                if users:
                    self.shared[self._path] = data, users
                else:
                    data.close()


def following(data):
    """Return the next number of the file, which never comes again."""
    number = int(data.get(b"last", b"0")) + 1
    data[b"last"] = str(number).encode()
    return number


class OverDbm:
    """What a store and a storage have in common; `path` is opened on first use."""

    def __init__(self, path):
        self._file = DbmFile(path)

    async def open(self):
        with self._file.use():
            pass

    async def close(self):
        self._file.close()


class DbmStore(OverDbm, CheckedStore):
    """Items: a JSON object for each namespace, of orders and items by key."""

    def __init__(self, path, *, clock=time.time):
        super().__init__(path)
        self._clock = clock

    @property
    def capabilities(self):
        return StoreCapabilities(ttl=True, list_namespaces=True)

    def _encode(self, operation, vector):
        if not isinstance(operation, Put):
            return operation
        check_text(operation.text, "text")
        value = decode_json(encode_json(operation.value))
        metadata = decode_json(encode_metadata(operation.metadata))
        return replace(operation, value=value, metadata=metadata)

    async def _write(self, operations):
        with self._file.use() as data:
            spaces = {each.namespace: {} for each in operations}
            spaces = {namespace: self._read(data, namespace) for namespace in spaces}
            versions = [self._write_one(data, spaces, each) for each in operations]
            for namespace, space in spaces.items():
                name = self._name(namespace)
                if space:
                    documents = {key: [n, item.to_dict()] for key, (n, item) in space.items()}
                    data[name] = encode_json(documents)
                elif name in data:
                    del data[name]
            data.sync()
            return versions

    def _write_one(self, data, spaces, operation):
        space, key, expected = spaces[operation.namespace], operation.key, operation.if_version
        before = space[key][1] if key in space else None
        actual = before.version if before else 0
        if expected not in (None, actual):
            raise VersionConflictError(expected, actual, operation.namespace, key)
        if not isinstance(operation, Put):
            return int(space.pop(key, None) is not None)
        now = timestamp(self._clock())
        item = StoreItem(
            namespace=operation.namespace,
            key=key,
            value=operation.value,
            metadata=operation.metadata,
            created_at=before.created_at if before else now,
            updated_at=max(now, before.updated_at) if before else now,
            version=actual + 1,
            expires_at=now + timedelta(seconds=operation.ttl) if operation.ttl else None,
        )
        if isinstance(operation, Restored):
            past = "version", "created_at", "updated_at", "expires_at"
            item = replace(item, **{name: getattr(operation, name) for name in past})
        space[key] = following(data), item
        return item.version

    @staticmethod
    def _name(namespace):
        return b"items" + encode_json([*namespace])

    def _read(self, data, namespace):
        """Return the items of a namespace that have not expired, with their orders, by key."""
        documents = decode_json(data.get(self._name(namespace), b"{}"))
        space = {key: (n, StoreItem.from_dict(each)) for key, (n, each) in documents.items()}
        now = timestamp(self._clock())
        return {
            key: (n, item)
            for key, (n, item) in space.items()
            if item.expires_at is None or item.expires_at > now
        }

    def _spaces(self, data):
        names = [decode_json(name[5:]) for name in data.keys() if name[:5] == b"items"]
        return {tuple(name): self._read(data, name) for name in names}

    async def _get_item(self, namespace, key):
        with self._file.use() as data:
            return self._read(data, namespace).get(key, (0, None))[1]

    async def _scan(self, namespace, keys, limit):
        with self._file.use() as data:
            space = self._read(data, namespace)
        found = keys_in_range(space, keys.prefix, keys.after, descending=keys.descending)
        return [space[key][1] for key in [*found][:limit]]

    def _below(self, data, namespace, recursive):
        if not recursive:
            return {namespace: self._read(data, namespace)}
        spaces = self._spaces(data).items()
        return {name: space for name, space in spaces if name[: len(namespace)] == namespace}

    async def _newest(self, selection, page):
        with self._file.use() as data:
            spaces = self._below(data, selection.namespace, selection.recursive).values()
        found = [
            each
            for space in spaces
            for each in space.values()
            if matches(selection.condition, each[1].value, each[1].metadata)
        ]
        found.sort(key=lambda each: -each[0])
        return [item for _, item in found[page.offset : page.offset + page.limit]]

    async def _clear(self, namespace, *, recursive):
        with self._file.use() as data:
            spaces = self._below(data, namespace, recursive)
            for name in map(self._name, spaces):
                if name in data:
                    del data[name]
            data.sync()
        return sum(map(len, spaces.values()))

    async def _list_namespaces(self, listing, limit):
        with self._file.use() as data:
            names = [name for name, space in self._spaces(data).items() if space]
        return sorted({cut for name in names if (cut := listing.cut(name))})[:limit]


class DbmStorage(OverDbm, DeltaStorage):
    """Records, each under the JSON of its thread and its sequence."""

    def _read(self, data, thread_id):
        """Return the records of a thread by their names, oldest first."""
        start, found = b"record" + encode_json([thread_id]), {}
        for name in [each for each in data.keys() if each.startswith(start)]:
            document = decode_json(data[name])
            seal, payload = document.pop("seal"), b64decode(document.pop("payload"))
            origin = document.pop("forked_from")
            document["forked_from"] = origin and tuple(origin)
            found[name] = Record(**document, payload=payload).verified(seal)
        return dict(sorted(found.items(), key=lambda each: each[1].sequence))

    def _put(self, data, record):
        document = asdict(record) | {"seal": record.seal()}
        document["payload"] = b64encode(record.payload).decode()
        document["forked_from"] = record.forked_from and [*record.forked_from]
        name = encode_json([record.thread_id]) + str(record.sequence).encode()
        data[b"record" + name] = encode_json(document)

    def _change(self, data, known, removed, rebased):
        rewritten = {record.revision: record for record in rebased}
        for name, record in known.items():
            if record.revision in removed:
                del data[name]
            elif record.revision in rewritten:
                self._put(data, replace(rewritten[record.revision], sequence=record.sequence))

    async def store(self, record, *, expected_parent=UNSET, rebased=()):
        with self._file.use() as data:
            known = self._read(data, record.thread_id)
            newest = [each.checkpoint_id for each in known.values()][-1:]
            check_parent(record.thread_id, expected_parent, newest[0] if newest else None)
            removed = {
                each.revision
                for each in known.values()
                if each.checkpoint_id == record.checkpoint_id
            }
            check_replacement(known.values(), removed=removed, rebased=rebased, base=record.base)
            self._change(data, known, removed, rebased)
            sequence = following(data)
            self._put(data, replace(record, sequence=sequence))
            data.sync()
            return sequence

    async def retrieve(self, thread_id, checkpoint_id=None):
        with self._file.use() as data:
            for record in reversed(self._read(data, thread_id).values()):
                if checkpoint_id in (None, record.checkpoint_id):
                    return record
        return None

    async def list_checkpoints(self, thread_id, limit=10, *, before=None):
        with self._file.use() as data:
            return newest_first([*self._read(data, thread_id).values()], limit, before)

    async def delete(self, thread_id, revisions=None, *, rebased=()):
        with self._file.use() as data:
            known = self._read(data, thread_id)
            removed = {record.revision for record in known.values()}
            if revisions is not None:
                removed &= set(revisions)
            check_replacement(known.values(), removed=removed, rebased=rebased)
            self._change(data, known, removed, rebased)
            data.sync()
            return len(removed)

    async def list_threads(self, limit=100, *, prefix=None, after=None):
        with self._file.use() as data:
            names = [name[6:] for name in data.keys() if name[:6] == b"record"]
        threads = {decode_json(name[: name.rindex(b"]") + 1])[0] for name in names}
        return page_of(threads, limit, prefix=prefix, after=after)


def dbm_checkpointer(path, **options):
    return DeltaCheckpointer(DbmStorage(path), **options)


class DbmBackend(PairedBackend):
    """A store and a checkpointer in one file."""

    provider = "dbm"

    def __init__(self, path):
        self._store = DbmStore(path)
        self._checkpointer = dbm_checkpointer(path)
