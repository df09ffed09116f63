"""The command that a message names installs the extra from where this package came from."""

from __future__ import annotations

import json
import shlex

import pytest

from locus_memory._internal.providers import installing
from locus_memory._internal.providers.drivers import require
from locus_memory._internal.providers.installing import install_command
from locus_memory.errors import MissingDriverError


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Install a distribution without files, with the record that pip writes; `None`: with none."""

    def install(record):
        folder = tmp_path / "packages" / "came_from-1.0.dist-info"
        folder.mkdir(parents=True)
        (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: came-from\nVersion: 1.0\n")
        if record is not None:
            (folder / "direct_url.json").write_text(json.dumps(record))
        monkeypatch.syspath_prepend(folder.parent)
        monkeypatch.setattr(installing, "_DISTRIBUTION", "came-from")

    return install


@pytest.mark.parametrize("name", ["clone", "a clone", "a'clone", "café"])
def test_a_clone_is_installed_from_its_folder(installed, tmp_path, name):
    clone = tmp_path / name
    clone.mkdir()
    installed({"url": clone.as_uri(), "dir_info": {}})
    assert shlex.split(install_command("redis")) == ["pip", "install", f"{clone}[redis]"]


def test_a_clone_that_is_edited_stays_so(installed, tmp_path):
    installed({"url": tmp_path.as_uri(), "dir_info": {"editable": True}})
    assert install_command("redis") == f"pip install --editable '{tmp_path}[redis]'"


def test_a_file_is_installed_again(installed, tmp_path):
    wheel = tmp_path / "came_from-1.0-py3-none-any.whl"
    wheel.touch()
    installed({"url": wheel.as_uri(), "archive_info": {}})
    assert install_command("cli") == f"pip install '{wheel}[cli]'"


@pytest.mark.parametrize(
    ("record", "requirement"),
    [
        (None, "came-from[cli]"),
        ({"url": "file:///no/such/clone", "dir_info": {}}, "came-from[cli]"),
        (
            {"url": "https://host/it.git", "vcs_info": {"vcs": "git", "commit_id": "abc"}},
            "came-from[cli] @ git+https://host/it.git@abc",
        ),
        (
            {
                "url": "ssh://git@host/it.git",
                "vcs_info": {"vcs": "git", "commit_id": "abc", "requested_revision": "v1"},
            },
            "came-from[cli] @ git+ssh://git@host/it.git@v1",
        ),
        (
            {"url": "https://host/it-1.0.tar.gz", "archive_info": {}},
            "came-from[cli] @ https://host/it-1.0.tar.gz",
        ),
    ],
)
def test_anything_else_is_named(installed, record, requirement):
    installed(record)
    assert install_command("cli") == f"pip install '{requirement}'"


def test_without_a_distribution_it_is_named(monkeypatch):
    monkeypatch.setattr(installing, "_DISTRIBUTION", "no-such-distribution")
    assert install_command("cli") == "pip install 'no-such-distribution[cli]'"


def test_the_error_ends_with_the_command(installed, tmp_path):
    installed({"url": tmp_path.as_uri(), "dir_info": {}})
    with pytest.raises(MissingDriverError) as caught:
        require("no_such_module", "redis", needed_by="RedisStore")
    assert str(caught.value) == (
        f"RedisStore: needs the 'redis' extra: pip install '{tmp_path}[redis]'"
    )
