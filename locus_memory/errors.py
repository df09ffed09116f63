"""Every error that locus_memory raises on purpose.

```
LocusMemoryError
├── InvalidArgumentError (ValueError)          bad input; nothing was written
│   ├── InvalidNamespaceError
│   ├── InvalidKeyError
│   ├── InvalidMessageError (TypeError)        not a message, or not the text of one
│   ├── InvalidFilterError
│   ├── InvalidEmbeddingError
│   └── ValueNotSerializableError (TypeError)
├── ConfigurationError (ValueError)            a bad provider string, option or environment
│   ├── UnknownProviderError (LookupError)
│   ├── UnknownOptionError
│   ├── UnsetVariableError                     a preset needs a variable that is not set
│   └── MissingDriverError (ImportError)
├── StoreCapabilityError (NotImplementedError)
├── VersionConflictError                       a conditional write lost: read again
├── EncryptionError                            a value that cannot be decrypted
├── ArchiveError (ValueError)                  an archive that is not as it was written, or newer
├── BlockingCallError (RuntimeError)           a call of `sync` that would wait for itself
├── MemoryBackendError                         a tree of `memory://` resources failed
│   ├── MemoryBackendNotFound (LookupError)    no backend of this name, or none is available
│   ├── UnsupportedMemoryOp (NotImplementedError)
│   ├── MemoryNotFound (LookupError)           nothing has this URI; never an outage
│   ├── MemoryConflict (VersionConflictError)  the URI is taken
│   ├── MemoryAccessDenied (PermissionError)   outside the root, or the system denies it
│   ├── MemoryExtractionFailed                 a commit took no memories; it is safe to repeat
│   ├── MemoryStoreClosed (BackendClosedError) a handle was used after its last release
│   ├── MemoryTimeout (TimeoutError)           the work goes on; it is safe to repeat
│   └── InvalidMemoryURI (InvalidArgumentError)
├── ModelError                                 a chat model failed
│   ├── ModelUnavailableError (ConnectionError)   no connection, timeout, overloaded: retry
│   ├── ModelRequestError                      the model's endpoint refused the request
│   └── ModelAnswerError (TypeError)           the answer is not an assistant message
├── CheckpointError
│   ├── CheckpointNotFoundError (LookupError)
│   ├── CheckpointConflictError                another writer saved first: load again
│   ├── CheckpointCorruptError                 the stored bytes differ: run `locus-memory verify`
│   └── StateTypeError (TypeError)             a stored state that `state_type` refuses
└── BackendError (OSError)
    ├── BackendUnavailableError (ConnectionError)  retry later; it never means "not found"
    │   └── BackendTimeoutError (TimeoutError)     another process holds a lock for too long
    ├── BackendWriteError                      read-only, full disk: existing data is intact
    ├── BackendCorruptError
    └── BackendClosedError (RuntimeError)
```

A leaf also inherits the builtin exception that a caller would expect. No message, repr
or argument holds a password or a stored value.
"""

from __future__ import annotations

from locus_memory._internal.quoting import quote, shorten

__all__ = [
    "ArchiveError",
    "BackendClosedError",
    "BackendCorruptError",
    "BackendError",
    "BackendTimeoutError",
    "BackendUnavailableError",
    "BackendWriteError",
    "BlockingCallError",
    "CheckpointConflictError",
    "CheckpointCorruptError",
    "CheckpointError",
    "CheckpointNotFoundError",
    "ConfigurationError",
    "EncryptionError",
    "InvalidArgumentError",
    "InvalidEmbeddingError",
    "InvalidFilterError",
    "InvalidKeyError",
    "InvalidMemoryURI",
    "InvalidMessageError",
    "InvalidNamespaceError",
    "LocusMemoryError",
    "MemoryAccessDenied",
    "MemoryBackendError",
    "MemoryBackendNotFound",
    "MemoryConflict",
    "MemoryExtractionFailed",
    "MemoryNotFound",
    "MemoryStoreClosed",
    "MemoryTimeout",
    "MissingDriverError",
    "ModelAnswerError",
    "ModelError",
    "ModelRequestError",
    "ModelUnavailableError",
    "StateTypeError",
    "StoreCapabilityError",
    "UnknownOptionError",
    "UnknownProviderError",
    "UnsetVariableError",
    "UnsupportedMemoryOp",
    "ValueNotSerializableError",
    "VersionConflictError",
]


NO_ROOM = "deleting may need room as well: make some on the disk first"
"""The advice in the message of a full disk, the same on every backend."""


class LocusMemoryError(Exception):
    """The base class of every error that the library raises on purpose."""


class InvalidArgumentError(LocusMemoryError, ValueError):
    """An argument that the call does not accept; nothing was written."""


class InvalidNamespaceError(InvalidArgumentError):
    """A namespace that is not a non-empty tuple of non-empty strings."""


class InvalidKeyError(InvalidArgumentError):
    """A key, thread id or checkpoint id that is not a non-empty string."""


class InvalidMessageError(InvalidArgumentError, TypeError):
    """A value that is not a message, or not the content of a message."""


class InvalidFilterError(InvalidArgumentError):
    """A filter with an unknown operator or an operand of the wrong type."""


class InvalidEmbeddingError(InvalidArgumentError):
    """A vector that is empty, not finite, all zero or of the wrong dimension."""


class ValueNotSerializableError(InvalidArgumentError, TypeError):
    """A value that JSON cannot hold unchanged.

    Attributes:
        path: The place of the offending part, such as `$.items[3].when`.
        reason: Why JSON cannot hold it, and what to pass instead.
    """

    def __init__(self, path: str, reason: str) -> None:
        self.path = path
        self.reason = reason
        super().__init__(f"{shorten(path)}: {shorten(reason)}; values must be plain JSON")


class ConfigurationError(LocusMemoryError, ValueError):
    """A provider string, an option or an environment that cannot work."""


class UnknownProviderError(ConfigurationError, LookupError):
    """A provider that is not registered; the message lists the known ones."""


class UnknownOptionError(ConfigurationError):
    """An option that the backend does not accept; the message lists the known ones."""


class UnsetVariableError(ConfigurationError):
    """A preset names a variable of the environment that is not set."""


class MissingDriverError(ConfigurationError, ImportError):
    """A driver or optional library that is not installed; the message says what to install."""


class StoreCapabilityError(LocusMemoryError, NotImplementedError):
    """A verb that this store does not support.

    Attributes:
        capability: The `StoreCapabilities` field that is false.
        store_class: Name of the store's class.
        hint: The remedy, or `None`.
    """

    def __init__(self, capability: str, store_class: str, hint: str | None = None) -> None:
        self.capability = capability
        self.store_class = store_class
        self.hint = hint
        message = f"{store_class} does not support {capability!r}"
        super().__init__(f"{message}. {hint}" if hint else message)


class VersionConflictError(LocusMemoryError):
    """A conditional write found another version; nothing was written.

    Attributes:
        expected: The version that the caller passed (0: must not exist).
        actual: The stored version (0: none).
        namespace: The item's namespace, if known.
        key: The item's key, if known.
    """

    def __init__(
        self,
        expected: int,
        actual: int,
        namespace: tuple[str, ...] | None = None,
        key: str | None = None,
    ) -> None:
        self.expected = expected
        self.actual = actual
        self.namespace = namespace
        self.key = key
        where = "" if key is None else f"{quote(key)} in {quote(namespace)}: "
        super().__init__(f"{where}expected version {expected}, found {actual}")


class EncryptionError(LocusMemoryError):
    """A stored value that no known key decrypts, or that was moved or altered."""


class ArchiveError(LocusMemoryError, ValueError):
    """An archive is truncated, altered or of a newer version; nothing was written.

    Attributes:
        path: The archive.
        entry: The entry of the archive that is at fault, or `None`: the archive as a whole.
    """

    def __init__(self, path: str, entry: str | None, reason: str) -> None:
        self.path = path
        self.entry = entry
        super().__init__(f"{path}: {reason}" if entry is None else f"{path}: {entry}: {reason}")


class BlockingCallError(LocusMemoryError, RuntimeError):
    """A blocking call inside a running event loop, or through a closed bridge."""


class ModelError(LocusMemoryError):
    """A chat model failed; the thread is saved up to that call."""


class ModelUnavailableError(ModelError, ConnectionError):
    """The model cannot be reached, took too long or is overloaded: retry later."""


class ModelRequestError(ModelError):
    """The model's endpoint refused the request: the key, the model's name, the length."""


class ModelAnswerError(ModelError, TypeError):
    """The model's answer is not an assistant message."""


class CheckpointError(LocusMemoryError):
    """The base class of the errors of checkpoints."""


class CheckpointNotFoundError(CheckpointError, LookupError):
    """A thread or checkpoint that a verb needs does not exist.

    Attributes:
        thread_id: The requested thread.
        checkpoint_id: The checkpoint, or `None` for the whole thread.
    """

    def __init__(self, thread_id: str, checkpoint_id: str | None = None) -> None:
        self.thread_id = thread_id
        self.checkpoint_id = checkpoint_id
        what = f"no thread {quote(thread_id)}"
        super().__init__(
            what
            if checkpoint_id is None
            else f"no checkpoint {quote(checkpoint_id)} in {quote(thread_id)}"
        )


class CheckpointConflictError(CheckpointError):
    """The thread is not in the state the caller expected; nothing was written.

    Attributes:
        thread_id: The thread.
        expected: The checkpoint id that the caller passed (`None`: an empty thread).
        actual: The newest checkpoint id (`None`: an empty thread).
    """

    def __init__(self, thread_id: str, expected: str | None, actual: str | None) -> None:
        self.thread_id = thread_id
        self.expected = expected
        self.actual = actual
        super().__init__(
            f"thread {quote(thread_id)} exists, its newest checkpoint is {quote(actual)}"
            if expected is None
            else f"thread {quote(thread_id)}: expected the newest checkpoint to be "
            f"{quote(expected)}, found {quote(actual)}"
        )


class CheckpointCorruptError(CheckpointError):
    """A stored record that is truncated, altered or missing its base.

    Attributes:
        thread_id: The thread of the record.
        checkpoint_id: The damaged record, if known.
    """

    def __init__(self, thread_id: str, checkpoint_id: str | None, reason: str) -> None:
        self.thread_id = thread_id
        self.checkpoint_id = checkpoint_id
        super().__init__(
            f"checkpoint {quote(checkpoint_id)} of thread {quote(thread_id)}: {reason}"
        )


class StateTypeError(CheckpointError, TypeError):
    """A state without `to_checkpoint` that is no dict, or one that `state_type` refuses."""


class BackendError(LocusMemoryError, OSError):
    """The database refused the call or failed."""


class BackendUnavailableError(BackendError, ConnectionError):
    """The database cannot be reached or stayed locked; never the same as "not found"."""


class BackendTimeoutError(BackendUnavailableError, TimeoutError):
    """Another process, which may be suspended, holds a lock for too long; nothing was written."""


class BackendWriteError(BackendError):
    """The database cannot be written (read-only, disk full); existing data is intact."""


class BackendCorruptError(BackendError):
    """The database file is damaged, or the library did not create it."""


class BackendClosedError(BackendError, RuntimeError):
    """The store, checkpointer or backend was used after `close()`."""


class MemoryBackendError(LocusMemoryError):
    """An operation on a tree of `memory://` resources failed."""


class MemoryBackendNotFound(MemoryBackendError, LookupError):  # noqa: N818 - a name of the field
    """No memory backend has this name, or none of the named ones is available.

    Attributes:
        name: The requested name or names.
        available: The names of the backends that are available.
    """

    def __init__(self, name: str, available: tuple[str, ...] = ()) -> None:
        self.name = name
        self.available = tuple(available)
        known = ", ".join(map(quote, self.available)) or "none"
        super().__init__(f"no memory backend {quote(name)} is available; there are: {known}")


class UnsupportedMemoryOp(MemoryBackendError, NotImplementedError):  # noqa: N818 - as above
    """An operation that this memory backend, or this part of its tree, does not support.

    Attributes:
        op_type: The name of the class of the operation.
        backend_name: The name of the backend.
        reason: The reason and the remedy, or `None`.
    """

    def __init__(self, op_type: str, backend_name: str, reason: str | None = None) -> None:
        self.op_type = op_type
        self.backend_name = backend_name
        self.reason = reason
        message = f"{backend_name} does not support {op_type}"
        super().__init__(f"{message}: {reason}" if reason else message)


class MemoryNotFound(MemoryBackendError, LookupError):  # noqa: N818 - as above
    """No entry has this URI, at this level or in this version.

    Attributes:
        uri: The URI.
    """

    def __init__(self, uri: str, reason: str | None = None) -> None:
        self.uri = uri
        super().__init__(f"{shorten(uri)}: {reason or 'nothing has this URI'}")


class MemoryConflict(MemoryBackendError, VersionConflictError):  # noqa: N818 - as above
    """The URI is taken: by an entry that must not be there, or a folder; nothing was written.

    Attributes:
        uri: The URI.
    """

    def __init__(self, uri: str, reason: str = "it exists already") -> None:
        VersionConflictError.__init__(self, 0, 1)
        self.uri = uri
        self.args = (f"{shorten(uri)}: {reason}",)


class MemoryAccessDenied(MemoryBackendError, PermissionError):  # noqa: N818 - as above
    """A URI outside the part of the tree that may be used, or a file that may not be read."""


class MemoryExtractionFailed(MemoryBackendError):  # noqa: N818 - as above
    """The session is archived, but no memories were taken from it; commit it again."""


class MemoryStoreClosed(MemoryBackendError, BackendClosedError):  # noqa: N818 - as above
    """A handle was used after its last release.

    Attributes:
        handle: The name of the handle.
    """

    def __init__(self, handle: str) -> None:
        self.handle = handle
        super().__init__(f"{handle} is closed: open the backend again")


class MemoryTimeout(MemoryBackendError, TimeoutError):  # noqa: N818 - as above
    """An operation took longer than its `timeout_seconds`; it goes on, and is safe to repeat."""


class InvalidMemoryURI(MemoryBackendError, InvalidArgumentError):  # noqa: N818 - as above
    """A text that is not a `memory://` URI."""
