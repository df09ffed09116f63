from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
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


@pytest.mark.parametrize(
    "url",
    [
        "https://ada:p@ss@example.org/team/shop.git",
        f"https://{'x' * 300}@example.org/team/shop",
        f"https://ada:{'p@' * 200}@example.org/team/shop",
    ],
)
def test_a_password_of_a_remote_makes_no_other_project(repository: Path, url: str) -> None:
    git(repository, "remote", "add", "origin", "https://example.org/team/shop")
    named = project_of(repository, by_remote=True)
    git(repository, "remote", "set-url", "origin", url)
    assert project_of(repository, by_remote=True) == named


@pytest.mark.parametrize("secret", ["ada:hunter2@", f"hunter2{'x' * 300}@", "ada:hun@hunter2@"])
def test_a_password_is_no_name_of_a_project(repository: Path, secret: str) -> None:
    git(repository, "remote", "add", "origin", f"https://{secret}example.org")
    assert "hunter2" not in project_of(repository, by_remote=True)


def _pipe(place: Path) -> None:
    os.mkfifo(place)


@pytest.mark.parametrize(
    "make",
    [
        _pipe,
        lambda place: place.symlink_to(".git"),
        lambda place: place.symlink_to("/dev/zero"),
        lambda place: place.write_text("gitdir: .git"),
        lambda place: place.write_text("gitdir: ."),
        lambda place: place.write_text(f"gitdir: {'x' * 5_000}"),
        lambda place: place.write_text("gitdir: \0"),
        lambda place: place.write_bytes(b"\xff\xfe"),
        lambda place: (place.mkdir(), _pipe(place / "config")),
        lambda place: (place.mkdir(), (place / "config").symlink_to("/dev/zero")),
        lambda place: (place.mkdir(), (place / "config").write_bytes(b"[a]\n" + b"\0=" * 9)),
    ],
)
def test_a_hostile_repository_is_a_project_of_its_own(
    tmp_path: Path, make: Callable[[Path], object]
) -> None:
    (tmp_path / "shop").mkdir()
    make(tmp_path / "shop" / ".git")
    for by_remote in (False, True):
        named = project_of(tmp_path / "shop", by_remote=by_remote)
        assert named.startswith("project:")
        assert named != project_of(tmp_path, by_remote=by_remote)
