"""Every error that locus_memory raises on purpose.

```
LocusMemoryError
├── InvalidArgumentError (ValueError)          bad input; nothing was written
│   ├── InvalidNamespaceError
│   ├── InvalidKeyError
│   ├── InvalidMessageError (TypeError)        what is no message, or no text of one
│   ├── InvalidFilterError
│   ├── InvalidEmbeddingError
│   └── ValueNotSerializableError (TypeError)
├── ConfigurationError (ValueError)            a bad provider string, option or environment
│   ├── UnknownProviderError (LookupError)
│   ├── UnknownOptionError
│   └── MissingDriverError (ImportError)
├── StoreCapabilityError (NotImplementedError)
├── VersionConflictError                       a conditional write lost
├── EncryptionError                            a value that cannot be decrypted
├── BlockingCallError (RuntimeError)           a call of `sync` where it would wait for itself
├── ModelError                                 a chat model failed
│   ├── ModelUnavailableError (ConnectionError)   no connection, no time, overloaded: try again
│   ├── ModelRequestError                      the model's endpoint refused what was asked
│   └── ModelAnswerError (TypeError)           an answer that is no assistant message
├── CheckpointError
│   ├── CheckpointNotFoundError (LookupError)
│   ├── CheckpointConflictError                somebody else saved first
│   ├── CheckpointCorruptError                 a record that is not what was written
│   └── StateTypeError (TypeError)             a stored state that `state_type` refuses
└── BackendError (OSError)
    ├── BackendUnavailableError (ConnectionError)
    ├── BackendWriteError                      read-only, full disk: earlier data is intact
    ├── BackendCorruptError
    └── BackendClosedError (RuntimeError)
```

A leaf also inherits the builtin that an unsuspecting caller would catch. No message, repr
or argument holds a password or a stored value.
"""

from __future__ import annotations

from locus_memory._internal.quoting import quote, shorten

__all__ = [
    "BackendClosedError",
    "BackendCorruptError",
    "BackendError",
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
    "InvalidMessageError",
    "InvalidNamespaceError",
    "LocusMemoryError",
    "MissingDriverError",
    "ModelAnswerError",
    "ModelError",
    "ModelRequestError",
    "ModelUnavailableError",
    "StateTypeError",
    "StoreCapabilityError",
    "UnknownOptionError",
    "UnknownProviderError",
    "ValueNotSerializableError",
    "VersionConflictError",
]


NO_ROOM = "deleting may need room as well: make some on the disk first"
"""What the message of a full disk adds, on every backend alike."""


class LocusMemoryError(Exception):
    """The root: catch it to catch everything the library raises on purpose."""


class InvalidArgumentError(LocusMemoryError, ValueError):
    """An argument the call cannot accept; nothing was written."""


class InvalidNamespaceError(InvalidArgumentError):
    """A namespace that is not a non-empty tuple of non-empty strings."""


class InvalidKeyError(InvalidArgumentError):
    """A key, thread id or checkpoint id that is not a non-empty string."""


class InvalidMessageError(InvalidArgumentError, TypeError):
    """What is given for a message, or for its content, and is neither."""


class InvalidFilterError(InvalidArgumentError):
    """A filter with an unknown operator or an operand of the wrong type."""


class InvalidEmbeddingError(InvalidArgumentError):
    """A vector that is empty, not finite, all zero or of the wrong dimension."""


class ValueNotSerializableError(InvalidArgumentError, TypeError):
    """A value that JSON cannot hold unchanged.

    Attributes:
        path: Where the offending part sits, such as `$.items[3].when`.
        reason: Why JSON cannot hold it, and what to pass in its place.
    """

    def __init__(self, path: str, reason: str) -> None:
        self.path = path
        self.reason = reason
        super().__init__(f"{shorten(path)}: {shorten(reason)}; values must be plain JSON")


class ConfigurationError(LocusMemoryError, ValueError):
    """A provider string, an option or an environment that cannot work."""


class UnknownProviderError(ConfigurationError, LookupError):
    """A provider nobody registered; the message lists the known ones."""


class UnknownOptionError(ConfigurationError):
    """An option the backend does not take; the message lists the known ones."""


class MissingDriverError(ConfigurationError, ImportError):
    """A driver or optional library that is not installed; the message says what to install."""


class StoreCapabilityError(LocusMemoryError, NotImplementedError):
    """A verb that this store cannot serve.

    Attributes:
        capability: The `StoreCapabilities` field that is false.
        store_class: Name of the store's class.
        hint: What to do about it, or `None`.
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
        expected: The version the caller named (0: must not exist).
        actual: The version that is there (0: none).
        namespace: Where the item is, if that is known.
        key: Its name there, if that is known.
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


class BlockingCallError(LocusMemoryError, RuntimeError):
    """A blocking call inside a running event loop, or through a bridge that is closed."""


class ModelError(LocusMemoryError):
    """A chat model failed; the thread it was asked about is saved up to there."""


class ModelUnavailableError(ModelError, ConnectionError):
    """The model cannot be reached, took too long or is overloaded: try again later."""


class ModelRequestError(ModelError):
    """The model's endpoint refused the request: the key, the model's name, the length."""


class ModelAnswerError(ModelError, TypeError):
    """What the model answered is not an assistant message."""


class CheckpointError(LocusMemoryError):
    """Anything that went wrong with a checkpoint."""


class CheckpointNotFoundError(CheckpointError, LookupError):
    """A thread or checkpoint that a verb needs is not there.

    Attributes:
        thread_id: The thread that was asked for.
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
        expected: The checkpoint id the caller named (`None`: an empty thread).
        actual: The newest checkpoint id (`None`: an empty thread).
    """

    def __init__(self, thread_id: str, expected: str | None, actual: str | None) -> None:
        self.thread_id = thread_id
        self.expected = expected
        self.actual = actual
        if expected is None:
            message = f" exists, its newest checkpoint is {quote(actual)}"
        else:
            message = f": expected the newest checkpoint to be {quote(expected)}, "
            message += f"found {quote(actual)}"
        super().__init__(f"thread {quote(thread_id)}{message}")


class CheckpointCorruptError(CheckpointError):
    """A stored record that is truncated, altered or missing its base.

    Attributes:
        thread_id: The thread of the record.
        checkpoint_id: The record that is damaged, where it is known.
    """

    def __init__(self, thread_id: str, checkpoint_id: str | None, reason: str) -> None:
        self.thread_id = thread_id
        self.checkpoint_id = checkpoint_id
        super().__init__(
            f"checkpoint {quote(checkpoint_id)} of thread {quote(thread_id)}: {reason}"
        )


class StateTypeError(CheckpointError, TypeError):
    """A state that is neither a dict nor has `to_checkpoint`, or one `state_type` refuses."""


class BackendError(LocusMemoryError, OSError):
    """The database refused or failed."""


class BackendUnavailableError(BackendError, ConnectionError):
    """The database cannot be reached or stayed locked; never the same as "not found"."""


class BackendWriteError(BackendError):
    """The database cannot be written (read-only, disk full); what was there is intact."""


class BackendCorruptError(BackendError):
    """The database file is damaged, or is not one of ours."""


class BackendClosedError(BackendError, RuntimeError):
    """The store, checkpointer or backend was used after `close()`."""
