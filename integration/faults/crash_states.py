"""What a loss of power may leave of a process's work on files, by a record of its system calls.

What was not synced may be on the disk or not, each write and each name on its own: a file's bytes
are safe once the file is synced, and a name once its folder is. A rename is one step.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from tempfile import mkdtemp

RECORDER = Path(__file__).with_name("recorder.c")
MOST_SUBSETS = 6
"""Of at most so many steps that were not synced, all subsets are tried; else these and `DRAWN`."""
DRAWN = 12


def built(folder):
    """Compile the recorder; return its path, or `None` without a compiler or on another system."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None or sys.platform != "linux":
        return None
    library = folder / "recorder.so"
    options = ["-shared", "-fPIC", "-O1", "-w", "-o", str(library), str(RECORDER)]
    subprocess.run([compiler, *options, "-ldl", "-lpthread"], check=True)
    return library


def recorded(library, program, folder, *arguments):
    """Return the steps of a Python program on the files below a folder."""
    log = folder.with_name(f"record of {folder.name}")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program, str(folder), *arguments],
        env={
            **os.environ,
            "LD_PRELOAD": str(library),
            "LOCUS_RECORD": str(log),
            "LOCUS_UNDER": str(folder),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    steps = []
    for line in log.read_text(errors="surrogateescape").splitlines():
        name, path, number, written = line.split("\t")
        steps.append((name, Path(path), int(number), bytes.fromhex(written)))
    return steps


@dataclass(eq=False)
class Node:
    """A file, with the bytes that are on the disk, or a folder, with the names."""

    is_folder: bool
    content: bytes = b""
    names: dict[str, Node] = field(default_factory=dict)


@dataclass(eq=False)
class Pending:
    """A step that is not synced: a change of the content of a file, or of names in folders."""

    nodes: tuple[Node, ...]
    apply: object


class Disk:
    """The files as the process sees them, and what of them is on the disk."""

    def __init__(self, base):
        self.base = base
        self.root = Node(is_folder=True)
        self.seen = {base: self.root}
        self.pending = []
        self.acknowledged = 0

    def do(self, step):
        name, path, number, written = step
        if path.name.startswith("ack "):
            self.acknowledged = int(path.name.removeprefix("ack ")) + 1
            return
        getattr(self, name)(path, number, written)

    def _later(self, apply, *nodes):
        self.pending.append(Pending(nodes, apply))

    def _name(self, path, node):
        self.seen[path] = node
        parent = self.seen[path.parent]
        self._later(lambda at: at(parent).names.update({path.name: node}), parent)

    def create(self, path, number, written):
        self._name(path, Node(is_folder=False))

    def mkdir(self, path, number, written):
        self._name(path, Node(is_folder=True))

    def unlink(self, path, number, written):
        del self.seen[path]
        parent = self.seen[path.parent]
        self._later(lambda at: at(parent).names.pop(path.name, None), parent)

    rmdir = unlink

    def rename(self, path, number, written):
        target = Path(os.fsdecode(written))
        node, old, new = self.seen[path], self.seen[path.parent], self.seen[target.parent]
        for below in [each for each in self.seen if path in (each, *each.parents)]:
            self.seen[target / below.relative_to(path)] = self.seen.pop(below)

        def apply(at):
            if at(old).names.get(path.name) is node:
                del at(old).names[path.name]
            at(new).names[target.name] = node

        self._later(apply, old, new)

    def write(self, path, number, written):
        node = self.seen[path]

        def apply(at):
            content = at(node).content.ljust(number, b"\0")
            at(node).content = content[:number] + written + content[number + len(written) :]

        self._later(apply, node)

    def truncate(self, path, number, written):
        node = self.seen[path]

        def apply(at):
            at(node).content = at(node).content[:number].ljust(number, b"\0")

        self._later(apply, node)

    def sync(self, path, number, written):
        # A folder that is synced while one of its names is renamed elsewhere has both.
        node = self.seen[path]
        kept = []
        for each in self.pending:
            if node in each.nodes:
                each.apply(lambda found: found)
            else:
                kept.append(each)
        self.pending = kept

    def left(self, random):
        """Yield what a loss of power may leave at this moment: files and folders by their paths."""
        steps = len(self.pending)
        subsets = range(2**steps)
        if steps > MOST_SUBSETS:
            every = 2**steps - 1
            subsets = {0, every, *(every ^ 1 << n for n in range(steps))}
            subsets |= {(1 << n) - 1 for n in range(steps)}
            subsets |= {random.getrandbits(steps) for _ in range(DRAWN)}
        for subset in subsets:
            copies = {}

            def at(node, copies=copies):
                if node not in copies:
                    copies[node] = Node(node.is_folder, node.content, dict(node.names))
                return copies[node]

            for n, each in enumerate(self.pending):
                if subset >> n & 1:
                    each.apply(at)
            yield dict(files_of(at(self.root), Path(), at))


def files_of(folder, path, at):
    for name, node in folder.names.items():
        found = at(node)
        yield path / name, None if found.is_folder else found.content
        if found.is_folder:
            yield from files_of(found, path / name, at)


def crash_states(base, steps, seed=1):
    """Yield each different state after a loss of power, with how much was acknowledged by then."""
    disk, random, known = Disk(base), Random(seed), set()
    for step in [None, *steps]:
        if step is not None:
            disk.do(step)
        for files in disk.left(random):
            key = (disk.acknowledged, frozenset(files.items()))
            if key not in known:
                known.add(key)
                yield disk.acknowledged, files


def laid_out(files, folders):
    """Write the files of a state into a new folder, and return it."""
    folder = Path(mkdtemp(dir=folders))
    for path, content in sorted(files.items()):
        if content is None:
            (folder / path).mkdir()
        else:
            (folder / path).write_bytes(content)
    return folder
