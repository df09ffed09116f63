from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from locus_memory.plug.projects import project_of


def git(folder: Path, *arguments: str) -> None:
    own = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main")
    subprocess.run(["git", *own, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    made = tmp_path / "shop"
    made.mkdir()
    git(made, "init")
    git(made, "commit", "--allow-empty", "-m", "begin")
    return made


def test_a_project_is_its_working_tree_from_every_folder_in_it(repository: Path) -> None:
    inner = repository / "a" / "b"
    inner.mkdir(parents=True)
    assert project_of(inner) == project_of(repository)
    assert project_of(repository).startswith("project:shop-")
    assert project_of(repository.parent) != project_of(repository)


def test_two_projects_of_one_name_are_two(tmp_path: Path) -> None:
    for each in ("one/shop", "two/shop"):
        (tmp_path / each).mkdir(parents=True)
    assert project_of(tmp_path / "one/shop") != project_of(tmp_path / "two/shop")


def test_a_link_to_a_folder_is_the_folder(repository: Path) -> None:
    link = repository.parent / "link"
    link.symlink_to(repository)
    assert project_of(link) == project_of(repository)


def test_a_worktree_is_the_same_project_on_request(repository: Path) -> None:
    tree = repository.parent / "tree"
    git(repository, "worktree", "add", str(tree))
    assert project_of(tree) != project_of(repository)
    assert project_of(tree, by_remote=True) == project_of(repository, by_remote=True)
    assert project_of(tree, by_remote=True).startswith("project:shop-")


@pytest.mark.parametrize(
    "url",
    [
        "https://example.org/team/shop.git",
        "https://token:secret@example.org/team/shop",
        "ssh://git@example.org:22/team/shop.git",
        "git@example.org:team/shop.git",
        "git@EXAMPLE.org:team/shop/",
    ],
)
def test_clones_of_one_remote_are_one_project_on_request(repository: Path, url: str) -> None:
    git(repository, "remote", "add", "origin", url)
    other = repository.parent / "other"
    other.mkdir()
    git(other, "init")
    git(other, "remote", "add", "origin", "https://example.org/team/shop")
    named = project_of(repository, by_remote=True)
    assert named == project_of(other, by_remote=True)
    assert named.startswith("project:shop-")
    assert "secret" not in named


@pytest.mark.parametrize("content", [b"", b"gitdir: ../nowhere\n", b"\xff\xfe", b"x" * 100_000])
def test_a_broken_worktree_is_a_project_of_its_own(tmp_path: Path, content: bytes) -> None:
    (tmp_path / ".git").write_bytes(content)
    assert project_of(tmp_path, by_remote=True).startswith("project:")
