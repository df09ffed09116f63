"""The rules of retention, as frozen values; pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeAlias, cast

from locus_memory._internal.quoting import quote
from locus_memory.errors import ConfigurationError, InvalidArgumentError
from locus_memory.retention.ages import read_age
from locus_memory.store.filters import parse_filter
from locus_memory.store.item import Namespace, check_namespace

__all__ = ["ItemRule", "RetentionRule", "ThreadRule", "moment_before", "read_rules"]

_OWN: Final = ("locus_memory", "*")
"""First labels that no rule may have: the memories' own bookkeeping would be cut."""

_AGES: Final = ("older_than", "idle_for")


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemRule:
    """A rule for the items of the namespaces at and below a prefix.

    With both limits, only items over both are deleted. Without any, all of them stay.

    Attributes:
        namespace: The first labels; `"*"` matches any one label, such as the user in
            `("users", "*", "events")`. The first label is no `"*"`.
        keep_last: Keep this many items of each namespace, those with the newest update.
        older_than: Keep the items that were updated within this time.

    Raises:
        InvalidArgumentError: A limit is not valid.
        InvalidNamespaceError: The namespace is not valid.
        ConfigurationError: The namespace is that of the memories, or of everything.
    """

    namespace: Namespace
    keep_last: int | None = None
    older_than: timedelta | None = None

    def __post_init__(self) -> None:
        if check_namespace(self.namespace)[0] in _OWN:
            raise ConfigurationError(
                f"a rule for items does not begin with {quote(self.namespace[0])}: memories are "
                "kept until they are erased by forget; history_limit bounds their past versions"
            )
        _check_count(self.keep_last, "keep_last", 0)
        _check_age(self.older_than, "older_than")

    @property
    def deletes(self) -> bool:
        """Whether the rule has a limit at all."""
        return self.keep_last is not None or self.older_than is not None

    def matches(self, namespace: Namespace) -> bool:
        """Return whether the rule is for a namespace."""
        labels = zip(self.namespace, namespace, strict=False)
        return len(namespace) >= len(self.namespace) and all(
            wanted in ("*", label) for wanted, label in labels
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadRule:
    """A rule for the checkpoints of threads, and for whole threads.

    `keep_last` and `older_than` prune each thread, whose newest checkpoint always stays.
    `idle_for` and `keep_threads` delete whole threads. Of each of these pairs, with both limits
    only what is over both is deleted. Without any limit, everything stays. LangGraph's pending
    writes stay with their checkpoints, and go with them.

    Attributes:
        metadata: A store filter on the metadata of the newest checkpoint; `None`: every thread.
        prefix: Only threads whose id begins so.
        user_id: Only threads of this user, as `forget` finds them.
        keep_last: Keep this many checkpoints of each thread, the newest ones, at least 1.
        older_than: Keep the checkpoints that were saved within this time.
        idle_for: Delete a thread whose newest checkpoint is older.
        keep_threads: Keep this many threads of each user, those saved last. Threads without a
            user stay.

    Raises:
        InvalidArgumentError: A limit is not valid.
        InvalidFilterError: The filter is not valid.
    """

    metadata: Mapping[str, Any] | None = None
    prefix: str = ""
    user_id: str | None = None
    keep_last: int | None = None
    older_than: timedelta | None = None
    idle_for: timedelta | None = None
    keep_threads: int | None = None

    def __post_init__(self) -> None:
        parse_filter(self.metadata)
        for name, value in (("prefix", self.prefix), ("user_id", self.user_id)):
            if not isinstance(value, str | None):
                raise InvalidArgumentError(f"{name} is a text, not {quote(value)}")
        _check_count(self.keep_last, "keep_last", 1)
        _check_count(self.keep_threads, "keep_threads", 0)
        _check_age(self.older_than, "older_than")
        _check_age(self.idle_for, "idle_for")

    @property
    def prunes(self) -> bool:
        """Whether the rule deletes checkpoints of threads that stay."""
        return self.keep_last is not None or self.older_than is not None

    @property
    def deletes_threads(self) -> bool:
        """Whether the rule deletes whole threads."""
        return self.idle_for is not None or self.keep_threads is not None

    @property
    def needs_users(self) -> bool:
        """Whether the users of a thread have to be read."""
        return self.user_id is not None or self.keep_threads is not None


RetentionRule: TypeAlias = ItemRule | ThreadRule


def read_rules(tables: Iterable[Mapping[str, Any]], source: str = "rules") -> list[RetentionRule]:
    """Return rules from tables, such as those of a TOML or JSON file.

    A table with `namespace`, a list of labels, is an `ItemRule`, and any other a `ThreadRule`. The
    other fields are theirs; ages are texts such as `"30d"`.

    Args:
        tables: The tables.
        source: The name of their place in an error.

    Raises:
        ConfigurationError: A table is not a valid rule; the error names the place and the field.
    """
    return [_read_rule(table, f"{source}[{place}]") for place, table in enumerate(tables)]


def _read_rule(table: object, where: str) -> RetentionRule:
    if not isinstance(table, Mapping):
        raise ConfigurationError(f"{where}: a rule is a table")
    kind: type[RetentionRule] = ItemRule if "namespace" in table else ThreadRule
    known = [each.name for each in fields(kind)]
    unknown = [str(name) for name in table if name not in known]
    if unknown:
        raise ConfigurationError(
            f"{where}: unknown field {quote(unknown[0])}; known: {', '.join(known)}"
        )
    values = {name: _value(name, value) for name, value in table.items()}
    try:
        return kind(**values)
    except (InvalidArgumentError, ConfigurationError, ValueError, TypeError) as error:
        raise ConfigurationError(f"{where}: {error}") from error


def _value(name: str, value: Any) -> Any:
    if name in _AGES and isinstance(value, str):
        try:
            return read_age(value)
        except InvalidArgumentError:
            # The rule refuses it, and its error names the field.
            return value
    return tuple(cast("Sequence[Any]", value)) if isinstance(value, list) else value


def moment_before(age: timedelta | None, now: datetime) -> datetime | None:
    """Return the moment before which something is too old; `None`: there is no limit.

    Args:
        age: The age.
        now: The present moment.
    """
    if age is None:
        return None
    try:
        return now - age
    except OverflowError:
        return datetime.min.replace(tzinfo=UTC)


def _check_count(count: object, name: str, least: int) -> None:
    is_count = isinstance(count, int) and not isinstance(count, bool) and count >= least
    if count is not None and not is_count:
        raise InvalidArgumentError(f"{name} is a number of at least {least}, not {quote(count)}")


def _check_age(age: object, name: str) -> None:
    if age is not None and (not isinstance(age, timedelta) or age < timedelta(0)):
        raise InvalidArgumentError(
            f"{name} is a timedelta, or in a file a text such as '30d', not {quote(age)}"
        )
