"""A disk that tells which names a loss of power may still take back."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


class Disk:
    """The names in folders that changed since the last sync of their folder."""

    def __init__(self, monkeypatch):
        if not Path("/proc/self/fd").is_dir():
            pytest.skip("the name of an open folder is not known here")
        self.unsynced = set()
        for name in ("mkdir", "rename", "replace", "rmdir", "unlink"):
            monkeypatch.setattr(os, name, self.changing(getattr(os, name)))
        monkeypatch.setattr(os, "fsync", self.syncing(os.fsync))

    def changing(self, function):
        def call(*places, **options):
            function(*places, **options)
            for place in places:
                if not isinstance(place, int):
                    self.unsynced.add(str(Path(place).parent.resolve()))

        return call

    def syncing(self, function):
        def call(handle):
            function(handle)
            self.unsynced.discard(str(Path(f"/proc/self/fd/{handle}").readlink()))

        return call
