from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def oci_service():
    """The local Object Storage service, as a process of its own."""
    path = Path(__file__).with_name("served.py")
    spec = importlib.util.spec_from_file_location("oci_served", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with module.Served() as served:
        yield served
