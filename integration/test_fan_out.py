"""64 clients in 8 processes with a mixed load: no call fails, and no acknowledged write is lost."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[1] / "tests" / "benchmarks"
SCRIPT = """
import json, sys
from pathlib import Path
import fan_out

print(json.dumps(fan_out.together(sys.argv[1], Path(sys.argv[2]), 10.0)))
"""


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["postgresql", "redis"])
def test_no_call_fails_and_no_write_is_lost(backend, tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, backend, str(tmp_path)],
        cwd=BENCHMARKS,
        stdout=subprocess.PIPE,
        text=True,
        timeout=600,
        check=True,
    )
    found = json.loads(done.stdout)
    assert found["ours"]["errors"] == []
    assert found["raw"]["errors"] == []
    assert found["lost"] == 0
    assert found["ours"]["calls"] > 64
