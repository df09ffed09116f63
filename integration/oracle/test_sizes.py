"""What a thread takes up on Oracle's protocol, and what `doctor` says of the database."""

from __future__ import annotations

import subprocess
import sys

import orjson

from integration.oracle_tables import OnOracle
from locus_memory.registry import get_checkpointer


class TestSizes(OnOracle):
    async def test_200_checkpoints_take_3_percent_of_full_json(self, tmp_path):
        """The bar of all servers: stored payloads against the JSON of every state."""
        state = {"messages": [], "step": 0}
        full = 0
        options = {"table_prefix": self.prefix(tmp_path)}
        async with get_checkpointer(self.url, **options) as checkpointer:
            for turn in range(200):
                said = f"Turn {turn}: " + " ".join(f"word{(turn * 7 + n) % 97}" for n in range(40))
                messages = [*state["messages"], {"role": "user", "content": said}]
                state = {"messages": messages, "step": turn}
                full += len(orjson.dumps(state))
                await checkpointer.save(state, "thread")
            assert await checkpointer.load("thread") == state
            stored = (await checkpointer.get_storage_stats("thread"))["compressed_size"]
        assert stored / full <= 0.03, (stored, full)

    def test_doctor_names_what_the_database_can(self, tmp_path):
        """The command checks a store and checkpoints, and leaves nothing behind."""
        command = [sys.executable, "-m", "locus_memory.cli", "doctor", "--url", self.url]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "put, get, search and delete work" in done.stdout
        assert "save, load and delete work" in done.stdout
        assert "agent:secret" not in done.stdout + done.stderr
