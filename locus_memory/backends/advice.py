"""Advice about a database that works, but is configured badly; `locus-memory doctor` prints it."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final, NamedTuple

__all__ = [
    "Advice",
    "Check",
    "by_facts",
    "by_queries",
    "is_remote",
    "on_clock",
    "on_folder",
    "on_plain",
    "on_version",
]

_MOST_SKEW: Final = 2.0
"""Seconds: by how much clocks may differ before expiry and ages do."""

_NETWORK: Final = frozenset(
    ("nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "glusterfs", "fuse.sshfs")
)
"""The types of network file systems, as Linux names them."""

_MOUNTS: Final = Path("/proc/mounts")


@dataclass(frozen=True, slots=True)
class Advice:
    """One finding about the configuration of a database.

    Attributes:
        name: Its name, such as `redis.eviction`; programs may look for it.
        finding: What is configured badly, and what follows from it.
        remedy: What to do.
    """

    name: str
    finding: str
    remedy: str


class Check(NamedTuple):
    """A row of the table of what may be configured badly.

    Attributes:
        name: The name of the advice, behind that of the provider.
        test: What finds the cases: a query that returns a row for each, or a function of facts.
        finding: The text, with the fields of a case in braces, as in the other texts.
        remedy: What to do.
    """

    name: str
    test: Any
    finding: str
    remedy: str

    def told(self, provider: str, case: Mapping[str, Any]) -> Advice:
        """Return the advice on a case."""
        texts = (text.format(**case) for text in (self.name, self.finding, self.remedy))
        return Advice(f"{provider}.{next(texts)}", *texts)


def by_facts(
    provider: str, checks: Sequence[Check], cases: Iterable[Mapping[str, Any]]
) -> list[Advice]:
    """Return advice for each row and each case whose facts satisfy its test."""
    return [check.told(provider, case) for case in cases for check in checks if check.test(case)]


async def by_queries(
    provider: str,
    checks: Sequence[Check],
    ask: Callable[[Any], Awaitable[Iterable[Mapping[str, Any]]]],
) -> list[Advice]:
    """Return advice for each row, and each case that its query returns."""
    return [check.told(provider, case) for check in checks for case in await ask(check.test)]


def on_plain(provider: str, hosts: Iterable[str], remedy: str) -> Iterator[Advice]:
    """Yield advice for each other machine, of the hosts that a connection goes to unencrypted."""
    for host in filter(is_remote, hosts):
        finding = f"the connection to another machine is not encrypted ({host})"
        yield Advice(f"{provider}.unencrypted", finding, remedy)


def on_clock(provider: str, theirs: float, before: float) -> Iterator[Advice]:
    """Yield advice if the clock of a server differs from the clock here.

    Args:
        provider: The provider.
        theirs: The time of the server, in seconds since the epoch.
        before: The time here when the server was asked.
    """
    skew = max(before - theirs, theirs - time.time())
    if skew > _MOST_SKEW:
        yield Advice(
            f"{provider}.clock",
            f"the clock of the server differs by {skew:.0f} seconds from the clock here; expiry "
            "and ages differ as much",
            "let NTP set both clocks",
        )


def on_version(provider: str, place: str, found: int, known: int) -> Iterator[Advice]:
    """Yield advice if an earlier version of the library made the tables of a place.

    Args:
        provider: The provider.
        place: What has the version, such as the path of a file.
        found: Its version; 0: it is empty.
        known: The version that this library brings it to.
    """
    if 0 < found < known:
        yield Advice(
            f"{provider}.schema",
            f"an earlier version of the library made {place} (schema {found}, this one uses "
            f"{known}): its first use brings it up to date, and earlier versions may fail then",
            "take a backup, end the processes of earlier versions, and run locus-memory stats",
        )


def is_remote(host: str) -> bool:
    """Return whether a host is another machine: neither a socket nor a loopback address."""
    if not host or host.startswith(("/", "@")) or host == "localhost":
        return False
    try:
        return not ip_address(host.strip("[]").partition("%")[0]).is_loopback
    except ValueError:
        return True


def on_folder(provider: str, place: Path) -> Iterator[Advice]:
    """Yield advice about the file system of a place."""
    kind = _file_system(place)
    if kind in _NETWORK:
        yield Advice(
            f"{provider}.network",
            f"{place} is on a network file system ({kind}), whose locks may not hold",
            "move it to a local disk, or use a database with a server",
        )


def _file_system(place: Path) -> str:
    """Return the type of the file system of a place; empty where the system does not tell."""
    try:
        lines = _MOUNTS.read_text("utf-8", "replace").splitlines()
        path = place.resolve()
    except OSError:
        return ""
    fields = [line.split(" ") for line in lines]
    mounts = {field[1].replace("\\040", " "): field[2] for field in fields if len(field) > 2}  # noqa: PLR2004 - device, place, type
    return next((mounts[str(each)] for each in (path, *path.parents) if str(each) in mounts), "")
